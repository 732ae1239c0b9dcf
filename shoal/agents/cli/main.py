"""`shoal`: the command line. Results go to stdout, everything else to stderr; exit 0 ok, 1 failed, 2 usage."""

import logging
import os
import sys
from collections.abc import Callable

import typer

from shoal import __version__
from shoal.agents.cli.audit import migrate, replay, user, verify
from shoal.agents.cli.beat import beat
from shoal.agents.cli.budget import budget
from shoal.agents.cli.check import check
from shoal.agents.cli.demo import demo
from shoal.agents.cli.kafka import broker, produce, topics
from shoal.agents.cli.key import new
from shoal.agents.cli.map import map_
from shoal.agents.cli.plan import plan
from shoal.agents.cli.run import run
from shoal.agents.cli.simulate import buses
from shoal.agents.cli.window import window
from shoal.agents.cli.worker import worker
from shoal.models.errors import ShoalError

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "worker": worker,
    "run": run,
    "produce": produce,
    "beat": beat,
    "window": window,
    "map": map_,
    "plan": plan,
    "check": check,
    "topics": topics,
    "migrate": migrate,
    "budget": budget,
    "broker": broker,
}
GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "audit": (
        "Proofs of what was released, and what is kept of one user.",
        {"verify": verify, "replay": replay, "user": user},
    ),
    "key": ("The secret key.", {"new": new}),
    "simulate": ("Events to try things with.", {"buses": buses}),
}

app = typer.Typer(
    name="shoal",
    help="Live statistics about people from Kafka topics, with user-level differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"shoal {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show it."),
) -> None:
    """Live statistics about people from Kafka topics, with user-level differential privacy."""


for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
for _group, (_help, _commands) in GROUPS.items():
    _sub = typer.Typer(help=_help, no_args_is_help=True, rich_markup_mode=None)
    for _name, _command in _commands.items():
        _sub.command(_name)(_command)
    app.add_typer(_sub, name=_group)


def main() -> None:
    """Run a command; a user's mistake is one line, never a traceback."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it logs, our errors say once and in one line
    try:
        app()
    except ShoalError as error:
        print(f"shoal: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("shoal: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our stdout has gone: nothing left to say, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # a bug; its text and traceback may hold a value
        from shoal.agents.kafka.fail_stop import describe

        print(f"shoal: {describe(error, 'this command')}", file=sys.stderr)
        sys.exit(1)
