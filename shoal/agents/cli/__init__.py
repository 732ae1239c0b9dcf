"""The commands, by name; a module each."""

from collections.abc import Callable

from shoal.agents.cli.broker import broker
from shoal.agents.cli.run import run

COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "broker": broker,
}
GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {}
