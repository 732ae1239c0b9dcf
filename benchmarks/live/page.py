"""Tables of `make bench-live`, and the block of them in the guide."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks import figures
from benchmarks.live import backlog
from benchmarks.live.bars import QUANTITIES, Judgement, Result, is_disturbed, judged
from benchmarks.live.costs import MOST_BESIDE
from benchmarks.live.rows import HOURLY, Row
from benchmarks.page import number, verdict

NAME, TITLE, COMMAND = "live", "What a waiting worker costs", "make bench-live"
GUIDE = figures.ROOT / "docs" / "explanation" / "performance.md"
DISTURBED = "busy"  # in the place of a verdict, and beside a row


def tables(data: Mapping[str, Any]) -> str:
    """Rows, bars, and what else was measured."""
    rows = rows_of(data)
    about = (
        "Cores of the worker and, beyond what the producer alone costs it, of the broker. p50 and p99 are seconds from "
        f"the end of a tick until its release is readable. *{DISTURBED.capitalize()}* marks a row beside which other "
        f"programs took more than {MOST_BESIDE} cores."
    )
    return "\n\n".join([about, costs(rows, data.get("streams", {})), verdicts(rows), *_others(data)])


def costs(rows: Sequence[tuple[Row, Result]], streams: Mapping[str, Any]) -> str:
    """A line for each row, and for Kafka Streams at each rate."""
    header = (
        "", "partitions", "events/s", "worker", "broker", "broker, producer alone", "transactions/s", "p50 s", "p99 s",
    )  # fmt: skip
    lines = [_line(_name(row), row.partitions, row.rate, result) for row, result in rows]
    name = "Kafka Streams, warm, exactly-once v2"
    lines += [_line(name, one["partitions"], one["rate"], one) for one in streams.get("rows", ())]
    return figures.table(header, lines)


def _name(row: Row) -> str:
    """The ticks of a row, as its line names them."""
    latency = "" if row.every == HOURLY else f", `latency = {json.dumps(row.latency)}`"
    return f"`every = {json.dumps(row.every)}`{latency}, `{row.algorithm}`"


def _line(name: str, partitions: int, rate: int, result: Result) -> Sequence[object]:
    if "failed" in result:
        return (name, partitions, f"{rate:,}", f"failed: {result['failed']}", *["–"] * 5)
    shares = [cores(result[key]) for key in ("worker", "beyond", "alone")]
    others = [number(result.get(key), digits) for key, digits in (("transactions", 2), ("p50", 3), ("p99", 3))]
    return (name + (f" ({DISTURBED})" if is_disturbed(result) else ""), partitions, f"{rate:,}", *shares, *others)


def cores(value: float) -> str:
    """Cores in thousandths, which is what a clock of a hundredth second can tell over twelve seconds.

    >>> cores(0.03125), cores(-0.0004), cores(1.5)
    ('0.031', '0.000', '1.500')
    """
    return f"{value:.3f}".replace("-0.000", "0.000")


def verdicts(rows: Sequence[tuple[Row, Result]]) -> str:
    """A line for each bar and row."""
    lines = [
        (one.row.label, QUANTITIES[one.bar.quantity], number(one.value, 3), f"{one.bar.most:g}", _verdict(one))
        for one in judged(rows)
    ]
    return figures.table(("", "what", "measured", "at most", ""), lines)


def _verdict(one: Judgement) -> str:
    return verdict(one.is_met) if one.is_met or not is_disturbed(one.result) else DISTURBED


def _others(data: Mapping[str, Any]) -> list[str]:
    """Lines on backlogs, on releases per contribution, and on Kafka Streams if it is missing."""
    lines = backlog.lines(data.get("backlog", {}))
    if "releases_a_second" in data:
        lines.append(
            f'{data["releases_a_second"]:,.0f} releases a second in one partition with `every = "contribution"`'
        )
    if missing := data.get("streams", {}).get("missing"):
        lines.append(f"Kafka Streams is missing: {missing}")
    return ["\n".join(f"* {line}." for line in lines)] if lines else []


def to_json(rows: Sequence[tuple[Row, Result]]) -> list[dict[str, Any]]:
    """Rows as the results keep them."""
    return [{"row": asdict(row), "found": dict(result)} for row, result in rows]


def rows_of(data: Mapping[str, Any]) -> list[tuple[Row, Result]]:
    """Rows of kept results."""
    return [(Row(**one["row"]), one["found"]) for one in data["rows"]]


def block(kept: Mapping[str, Any] | None) -> str:
    """The block of the guide; empty before the first full run."""
    return f"\n{tables(kept)}\n\n{kept['machine']}, {kept['at'][:10]}.\n\n" if kept else ""


def write(kept: Mapping[str, Any]) -> None:
    """Write the block of the guide."""
    GUIDE.write_text(figures.within(GUIDE.read_text(), COMMAND, block(kept)))
