"""`shoal beat`: moves the clocks of metrics that protect presence."""

import asyncio
import signal
from typing import Annotated

import typer

from shoal.agents.audit.session import load_config
from shoal.agents.cli.output import ConfigPath, say
from shoal.agents.kafka.beats import beat_once, beat_until, check_past, interval, now, topics_of
from shoal.agents.kafka.settings import KafkaSettings, needed_settings
from shoal.models.config.durations import parse_duration
from shoal.models.times import time_of_text


def beat(
    config: ConfigPath,
    every: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Time between two beats; default: a quarter of the finest step."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Send one beat and end.")] = False,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --once: the time of the beat, which must have passed.")
    ] = None,
) -> None:
    """Tell all partitions what time it is, until Ctrl-C or SIGTERM: steps of relation add-remove end by that alone.

    Run it on any host that may produce, or on two: the latest beat counts. It looks at the wall clock and at no event.

    Example: shoal beat shoal.toml --every 15m
    """
    seconds, time = _seconds(every), _time(at, once=once)
    loaded = load_config(config)
    topics = topics_of(loaded)
    settings = needed_settings(loaded, config)
    if once:
        partitions = asyncio.run(beat_once(settings, topics, now() if time is None else time))
        say(f"shoal: a beat to {partitions} partitions of {', '.join(topics)}")
    else:
        asyncio.run(_until_stopped(settings, topics, interval(loaded) if seconds is None else seconds))


async def _until_stopped(settings: KafkaSettings, topics: tuple[str, ...], every: float) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await beat_until(stop, settings, topics, every, say)
    say("shoal: beats stopped")


def _seconds(every: str | None) -> float | None:
    try:
        length = None if every is None else parse_duration(every)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--every") from None
    if length == 0:
        raise typer.BadParameter("it must be longer than 0s", param_hint="--every")
    return None if length is None else length / 1e6


def _time(at: str | None, *, once: bool) -> int | None:
    if at is None:
        return None
    if not once:
        raise typer.BadParameter("it is for one beat; add --once", param_hint="--at")
    time = time_of_text(at)
    if time is None:
        raise typer.BadParameter(f"{at!r} is no time; write it as 2026-01-31T18:30:00Z", param_hint="--at")
    check_past(time, "--at")
    return time
