"""The tables of a run, and where they stand: the report in benchmarks/results, and a block of the guide."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import figures
from benchmarks.speed import files, growth, latency, noise, replay, summary, workers
from benchmarks.speed.subjects import RAW, STREAMS
from benchmarks.speed.summary import cell

NAME = "speed"
GUIDE = figures.ROOT / "docs" / "explanation" / "performance.md"
PICTURE = figures.ROOT / "docs" / "images" / f"{NAME}.svg"
COMMAND = "make bench"
RULES = """\
Measured with `make bench` (how: `python -m benchmarks.speed --help`); the raw figures are in [speed.json](speed.json),
and a short account is [performance](../../docs/explanation/performance.md). A cell has the median of all rounds and, in
brackets, the least and the greatest. The broker is on the same machine: trust ratios, which are taken within one round,
and rates by processor time, before rates by the clock."""


def throughput(data: Mapping[str, Any]) -> str:
    """Everybody on the same topic."""
    header = (
        "", "k events/s", "k events/CPU-s", "of the raw loop, by CPU", "× Kafka Streams, warm, by CPU",
        "CPU-s per million events", "of the broker", "peak MB", "events read",
    )  # fmt: skip
    rounds: Sequence[summary.Round] = data["rounds"]
    rows, failed = [], []
    for key, subject in data["subjects"].items():
        rows.append(_row(rounds, key, subject, subject["label"]))
        if key == STREAMS and summary.good(rounds, key):
            rows.append(_warm(rounds, subject))
        reasons = sorted({one[key]["failed"] for one in rounds if "failed" in one.get(key, {})})
        failed += [f"* {subject['label']}: failed in a round: {reason}" for reason in reasons]
    absent = [f"* {label}: missing: {reason}" for label, reason in data["missing"].items()]
    about = (
        f"{data['topic']:,} events of {data['users']:,} users, {data['partitions']} partitions, "
        f"{_rounds(len(rounds))}; other programs took {_others(rounds)} cores during a run, and the load before it was "
        f"{_load(rounds)}."
    )
    parts = [about, figures.table(header, rows), "\n".join(failed + absent), _versions(data)]
    return "\n\n".join(part for part in parts if part)


def _row(rounds: Sequence[summary.Round], key: str, subject: Mapping[str, Any], label: str) -> tuple[str, ...]:
    raw = subject["kind"] == RAW
    return (
        label,
        cell(summary.spread(rounds, key, summary.by_wall), 1000),
        cell(summary.spread(rounds, key, summary.by_cpu), 1000),
        "1" if raw else cell(summary.ratio(rounds, key, "raw", summary.by_cpu)),
        cell(summary.ratio(rounds, key, STREAMS, summary.by_cpu, _warm_by_cpu)),
        cell(summary.spread(rounds, key, summary.cpu)),
        cell(summary.spread(rounds, key, summary.broker_cpu)),
        cell(summary.spread(rounds, key, lambda run: float(run["peak_mb"]))),
        f"{subject['events']:,}",
    )


def _warm(rounds: Sequence[summary.Round], subject: Mapping[str, Any]) -> tuple[str, ...]:
    """The last quarter of a long run of Kafka Streams, when Java has compiled what it will."""
    return (
        "the same, warm: its last quarter",
        cell(summary.spread(rounds, STREAMS, lambda run: summary.by_wall(summary.warm(run))), 1000),
        cell(summary.spread(rounds, STREAMS, _warm_by_cpu), 1000),
        cell(summary.ratio(rounds, STREAMS, "raw", _warm_by_cpu, summary.by_cpu)),
        "1",
        cell(summary.spread(rounds, STREAMS, lambda run: summary.cpu(summary.warm(run)))),
        "–",
        "–",
        f"{subject['events'] // 4:,}",
    )


def _warm_by_cpu(run: summary.Run) -> float:
    return summary.by_cpu(summary.warm(run))


def _rounds(number: int) -> str:
    return "one round" if number == 1 else f"{number} rounds"


def _told_of(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """How many rounds the lines of the parts are of.

    >>> one = {"found": {"twin": [{}]}}
    >>> _told_of({"growth": {"runs": []}, "files": one})
    'The figures below are of one round.'
    >>> _told_of({"growth": {"runs": []}, "files": one, "workers": {"rounds": [[{"lane": "twin"}]] * 3}})
    'The figures below are of one round (growth, files) and 3 rounds (workers).'
    """
    by_number: dict[int, list[str]] = {}
    for name, data in parts.items():
        lanes = Counter(runs[0]["lane"] for runs in data.get("rounds", ()))
        number = max([1, *lanes.values(), *map(len, data.get("found", {}).values())])
        by_number.setdefault(number, []).append(name)
    if len(by_number) == 1:
        return f"The figures below are of {_rounds(*by_number)}."
    said = " and ".join(f"{_rounds(number)} ({', '.join(names)})" for number, names in by_number.items())
    return f"The figures below are of {said}."


def _others(rounds: Sequence[summary.Round]) -> str:
    return cell(summary.Spread.of([run["others"] for one in rounds for run in one.values() if "failed" not in run]))


def _load(rounds: Sequence[summary.Round]) -> str:
    return cell(summary.Spread.of([run["load"] for one in rounds for run in one.values() if "failed" not in run]))


def _versions(data: Mapping[str, Any]) -> str:
    found = [
        f"{subject['label'].partition(',')[0]}: " + " ".join(f"{name} {version}" for name, version in pinned.items())
        for subject in data["subjects"].values()
        if (pinned := subject["versions"])
    ]
    return "; ".join(found) + "." if found else ""


TABLES = {
    "throughput": ("Throughput", throughput),
    "growth": ("Growth, memory and restore", growth.tables),
    "latency": ("Latency", latency.tables),
    "workers": ("Workers", workers.tables),
    "files": ("Files", files.tables),
    "replay": ("Replays", replay.tables),
    "noise": ("Noise", noise.tables),
}


PARTS = {  # that the guide has a line of
    "growth": growth, "latency": latency, "workers": workers, "files": files, "replay": replay,
}  # fmt: skip


def tables(kept: Mapping[str, Any]) -> str:
    """All parts that were measured, one after the other."""
    parts = []
    for name, (title, make) in TABLES.items():
        if name in kept:
            ran = kept[name]["ran"]
            measured = (
                f"`{ran['command']}`, {ran['at']}, {ran['minutes']:.0f} minutes; {ran['machine']}; {ran['versions']}."
            )
            parts.append(f"## {title}\n\n{make(kept[name]['data'])}\n\n{measured}")
    return "\n\n".join(parts)


def report(kept: Mapping[str, Any]) -> str:
    """The page of all figures."""
    return f"# Speed: all measurements\n\n{RULES}\n\n{tables(kept)}\n"


def block(kept: Mapping[str, Any]) -> str:
    """What stands in the guide: the first table, in short."""
    data = kept["throughput"]["data"]
    ran = kept["throughput"]["ran"]
    rounds = data["rounds"]
    rows = []
    for key, subject in data["subjects"].items():
        row = _row(rounds, key, subject, subject["label"])
        rows.append((*row[:5], row[6]))
        if key == STREAMS and summary.good(rounds, key):
            row = _warm(rounds, subject)
            rows.append((*row[:5], row[6]))
    header = (
        "one process", "k events/s", "k events/CPU-s", "of the raw loop, by CPU", "× Kafka Streams, warm",
        "broker's CPU-s per million events",
    )  # fmt: skip
    about = f"{ran['machine']}, {ran['at'][:10]}, {_rounds(len(rounds))}"
    measured = f"{about}; other programs took {_others(rounds)} cores."
    more = [line for name, part in PARTS.items() if name in kept for line in part.short(kept[name]["data"])]
    if more:
        measured += f" {_told_of({name: kept[name]['data'] for name in PARTS if name in kept})}"
    told = "".join(f"* {line}\n" for line in more)
    return f"\n{figures.table(header, rows)}\n\n{measured}\n\n{told}" + ("\n" if told else "")


def kept() -> dict[str, Any]:
    """The figures of the last full run of each part."""
    path = figures.RESULTS / f"{NAME}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def keep(name: str, data: Mapping[str, Any], ran: Mapping[str, Any]) -> None:
    """Keep the figures of a part, and bring all that shows them up to date."""
    (figures.RESULTS / f"{NAME}.json").write_text(
        json.dumps(kept() | {name: {"ran": ran, "data": data}}, indent=1) + "\n"
    )
    write()


def write() -> None:
    """The report, the guide's block and the picture, from the figures that were kept."""
    from benchmarks.speed.picture import draw

    found = kept()
    (figures.RESULTS / f"{NAME}.md").write_text(report(found))
    if "throughput" in found:
        GUIDE.write_text(figures.within(GUIDE.read_text(), COMMAND, block(found)))
        PICTURE.write_text(draw(found))
