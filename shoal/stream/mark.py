"""The mark of a changelog: the record that says how far the state in it reaches, and whose it is."""

from typing import Any

from shoal.models.errors import FailStop

MARK = b"\x00mark"
# 1: marks without a format; release may have passed over messages of topics that it did not know. 2: it does not.
FORMAT = 2


def check_log(where: str, mark: dict[str, Any], log_id: str) -> None:
    """A state belongs to one audit log.

    Raises:
        FailStop: to another one.
    """
    if mark["log"] != log_id:
        raise FailStop(
            f"{where}: its state belongs to audit log {mark['log']}, the configured one is {log_id}; "
            "restore [audit] url, or start a new app with new metric versions"
        )


def lacks(where: str, what: str) -> str:
    """What to say where a state, or a message, is of something that is neither configured nor retired."""
    return (
        f"{where}: {what} is in use, this configuration lacks it; start this worker with the newer configuration that "
        "has it, or retire the metric"
    )
