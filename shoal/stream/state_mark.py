"""The mark of a changelog: the record that says how far the state in it reaches, whose it is, and in which form."""

from collections.abc import Mapping
from typing import Any

from shoal.models.errors import FailStop
from shoal.models.times import iso

MARK = b"\x00mark"
FORMAT = 1  # of the state of both stages
# True of whatever state was lost: what was published stays published, so another state must be another stream.
ANEW = "start a new `app` with raised versions of all metrics"
REMEDY = f"restore the topic from a copy, or {ANEW}"


def check_mark(where: str, mark: dict[str, Any], log_id: str) -> None:
    """A state belongs to one audit log, and is read by versions that know its form.

    Raises:
        FailStop: it belongs to another log, or was written by a newer version.
    """
    if (found := mark.get("format", 0)) != FORMAT:
        raise FailStop(newer(where, found))
    if mark["log"] != log_id:
        raise FailStop(
            f"{where}: its state belongs to audit log {mark['log']}, the configured one is {log_id}; "
            f"restore [audit] url, or {ANEW}"
        )


def last_beat(mark: Mapping[str, Any], epoch: int) -> int | None:
    """The latest beat that a partition took, in microseconds; None if there was none in this epoch of its clocks."""
    found: int | None = mark.get("beat")
    return found if mark.get("epoch", 0) == epoch else None


def start_of(where: str, label: str, start: int | None, mark: Mapping[str, Any], epoch: int) -> int | None:
    """The offset at which a metric begins: a new one where the state ends, or (None) at a beat to come.

    At a beat if presence is protected, and only then it has a `start`, in microseconds: how far a partition was read by
    then depends on load, so on who is there.

    Raises:
        FailStop: that beat has come already.
    """
    if label in mark["starts"] or start is None:
        found: int | None = mark["starts"].get(label, mark["offset"])
        return found
    if (beat := last_beat(mark, epoch)) is not None and beat >= start:
        raise FailStop(begun(where, label, start, beat))
    return None


def newer(where: str, found: int) -> str:
    """What to say where a newer version wrote a state."""
    return (
        f"{where}: its state has format {found}, this version of shoal reads up to {FORMAT}; "
        "run the version that wrote it, or a newer one"
    )


def lacks(where: str, what: str) -> str:
    """What to say where a state, or a message, is of something that is neither configured nor retired."""
    return (
        f"{where}: {what} is in use, this configuration lacks it; start this worker with the newer configuration that "
        "has it, or retire the metric"
    )


def returned(where: str, label: str) -> str:
    """What to say where a metric that was retired is configured again: the log has been written on without it."""
    return (
        f"{where}: metric {label} was retired, and a newer worker has written on without its accounts; users would "
        "start again at count 0: start this worker with the newer configuration, or raise the metric's version"
    )


def begun(where: str, label: str, start: int, beat: int) -> str:
    """What to say where a metric that protects presence is added too late, in microseconds."""
    return (
        f"{where}: metric {label} is new here and starts at {iso(start)}, and there was a beat of {iso(beat)} already; "
        "which records count, and the order of releases, would depend on when workers came to know the metric: give it "
        "a later `start`, and raise its version"
    )


def closed_tick(where: str, label: str) -> str:
    """What to say where contributions come for a tick that beats have closed."""
    return (
        f"{where}: contributions of metric {label} came for a tick that is closed; this is a bug, or somebody else "
        f"wrote there: {REMEDY}"
    )


def lost(where: str, metric: str, found: list[int], due: list[int]) -> str:
    """What is said of a state that has fewer or more accounts than its mark says."""
    return (
        f"{where}: its changelog has {found[0]} accounts of metric {metric} where {due[0]} are due ({_each(found[1:])} "
        f"and {_each(due[1:])} of users' groups and open slots); users would start again at count 0: {REMEDY}"
    )


def _each(numbers: list[int]) -> str:
    """Numbers without brackets, in which a worker that is discreet takes them for places."""
    return ", ".join(map(str, numbers))
