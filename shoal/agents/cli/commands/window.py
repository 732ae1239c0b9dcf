"""`shoal window`: the sum, count or mean over any window, from what was published."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.agents.audit.published import Wanted, filed, logged
from shoal.agents.audit.session import load_config
from shoal.agents.cli.output import AsJson, ConfigPath, progress, result, say
from shoal.agents.input.event_file import size_of
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.at import Steps
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.parts.metric import Metric as Parts
from shoal.mechanisms.parts.of import Mean
from shoal.mechanisms.spec import ADD_REMOVE
from shoal.models.config.durations import format_duration, parse_duration
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError
from shoal.models.numerals import json_number
from shoal.models.times import EARLIEST, iso, time_of_number, time_of_text
from shoal.stream.any_window import Answer, History, tells_windows

LAST = "last"

Metric = Annotated[str, typer.Option("--metric", metavar="NAME", help="The metric.")]
End = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="End of the window, at the end of a step: ISO 8601, epoch seconds or ms, or last."
    ),
]
Length = Annotated[
    str, typer.Option(metavar="DURATION", help="Length of the window, such as 7d: a multiple of the metric's step.")
]
Of = Annotated[str | None, typer.Option("--group", metavar="G", help="The group, if the metric has groups.")]
Input = Annotated[
    str | None,
    typer.Option("--input", metavar="FILE", help="Releases as JSON lines, or - for stdin; default: the audit log."),
]


def window(
    config: ConfigPath,
    metric: Metric,
    length: Length,
    end: End = LAST,
    group: Of = None,
    input_: Input = None,
    as_json: AsJson = False,
) -> None:
    """Print the sum, count or mean over any window, from the releases of a metric with decay all-windows or none,
    of relation values.

    The noise is in the releases: asking costs nothing, however often. No key is needed, and nothing is written. The
    releases are those in the audit log, or in a file as `shoal run` writes it or as the releases topic has them.

    Example: shoal window shoal.toml --metric sales --end 2026-01-31T00:00:00Z --length 7d
    """
    loaded = load_config(config)
    wanted = _wanted(config, loaded, metric, group)
    step = expect(wanted.parts.at, Steps).length
    span, moment = _length(length, step), _end(end, step)
    with _history(loaded, wanted, input_) as history:
        answer = history.answer(history.end if moment is None else moment, span)
    if answer.start < answer.first:
        say(f"shoal: note: nothing was before {iso(answer.first)}, when the first step began")
    fields = _fields(wanted, answer)
    if _drowns(wanted.parts, answer):
        say("shoal: note: the noise is wider than the range of the values, so that this mean says nothing")
    result(fields, as_json=as_json, text=lambda: _text(wanted.parts.statistic, fields))


@contextmanager
def _history(loaded: Config, wanted: Wanted, path: str | None) -> Iterator[History]:
    if path is None:
        with logged(loaded.audit.url, wanted) as history:
            yield history
        return
    with progress(f"reading {path}", size_of(path)) as advance:
        history = filed(path, wanted, advance)
    yield history


# ---------------------------------------------------------------- what is asked


def _wanted(path: Path, loaded: Config, name: str, group: str | None) -> Wanted:
    metric = next((metric for metric in loaded.metrics if metric.name == name), None)
    if metric is None:
        names = ", ".join(metric.name for metric in loaded.metrics)
        raise _usage("--metric", f"there is no metric {name!r}; name one of: {names}")
    if metric.protects_presence:
        raise ConfigError(
            f'{path}: metric "{name}" has relation {ADD_REMOVE}, whose releases tell their own window alone; for '
            "another one add a metric with a decay window of that length"
        )
    if not tells_windows(metric):
        raise ConfigError(
            f'{path}: metric "{name}" releases nothing that windows are made of; that needs decay = {{ kind = '
            '"all-windows" } in a metric of its own, or a new version'
        )
    if group is None and metric.place is not None:
        raise _usage("--group", f'metric "{name}" has groups; name one')
    if group is not None and metric.place is None:
        raise _usage("--group", f'metric "{name}" has no groups; leave it out')
    return Wanted(loaded.kafka.app, metric, LinearStatistic.of(metric), group or "")


def _length(text: str, step: Even) -> int:
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise _usage("--length", str(error)) from None
    if not length or not step.divides(length):
        least, every = (format_duration(step.span(count)) for count in (max(1, step.fits(length)), 1))
        raise _usage("--length", f"window length {text!r} is no multiple of the step, {every}; say {least}")
    return length


def _end(text: str, step: Even) -> int | None:
    """The end in microseconds; None: the last one there is."""
    if text == LAST:
        return None
    number = json_number(text)
    moment = time_of_text(text) if number is None else time_of_number(Decimal(number))
    if moment is None:
        raise _usage("--end", f"{text!r} is no time; say {LAST}, an ISO 8601 time or seconds since the epoch")
    if not step.divides(moment):
        before = step.start(step.index(moment))
        nearest = " or ".join(iso(time) for time in (before, step.end_after(moment)) if time >= EARLIEST)
        raise _usage(
            "--end", f"window end {text!r} is no end of a step of {format_duration(step.microseconds)}; say {nearest}"
        )
    return moment


def _usage(option: str, message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=option)


# ---------------------------------------------------------------- what is told


def _fields(wanted: Wanted, answer: Answer) -> dict[str, Any]:
    metric, estimate = wanted.parts, answer.estimate
    return {
        "metric": metric.name,
        "group": wanted.group or None,
        "version": metric.version,
        "start": iso(answer.start),
        "end": iso(answer.end),
        "value": None if estimate is None else estimate.value,
        "noise_sd": None if estimate is None else estimate.noise_sd,
        "low": None if estimate is None else estimate.low,
        "high": None if estimate is None else estimate.high,
        "samples": 0 if estimate is None else estimate.samples,
        "mechanism": wanted.mechanism.mechanism,
    }


def _drowns(metric: Parts, answer: Answer) -> bool:
    """Whether a mean has more noise than its range has room: a clamped value alone does not show it."""
    if not isinstance(metric.of, Mean) or answer.estimate is None:
        return False
    low, high = metric.of.values.ranges[0]
    return bool(answer.estimate.noise_sd > high - low)


def _text(statistic: str, fields: dict[str, Any]) -> str:
    name = fields["metric"] + (f", group {fields['group']}" if fields["group"] else "")
    line = f"{statistic} of {name}, from {fields['start']} to {fields['end']}: "
    if fields["value"] is None:
        return f"{line}none, nothing came"
    line += f"{fields['value']:.12g}"
    if fields["mechanism"] == "exact":
        return f"{line}, exactly"
    noise = f"noise_sd {fields['noise_sd']:.6g}, {fields['samples']} samples, mechanism {fields['mechanism']}"
    return f"{line}\nnoise interval {fields['low']:.6g} to {fields['high']:.6g} (95 %), {noise}"
