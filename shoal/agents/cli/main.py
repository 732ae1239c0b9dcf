"""`shoal`: the command line. Results go to stdout, everything else to stderr; exit 0 ok, 1 failed, 2 usage."""

import logging
import sys

import typer

from shoal import __version__
from shoal.agents.cli.lazy import STOPPED, Command, Group, Table, group_of
from shoal.agents.cli.shadows import shadow
from shoal.agents.cli.stdout import StdoutError, flush_stdout, give_up_stdout, watch_stdout
from shoal.models.errors import ShoalError
from shoal.models.printable import printable

HERE = "shoal.agents.cli.commands"
COMMANDS: Table = {
    "demo": Command(f"{HERE}.demo:demo", "Watch real purchases, or buses, become private statistics."),
    "init": Command(f"{HERE}.init:init", "Write a first configuration: ask, and propose fields."),
    "worker": Command(f"{HERE}.worker:worker", "Run the agents: events in, private releases out."),
    "run": Command(f"{HERE}.run:run", "Run the metrics over a file of events, without Kafka."),
    "produce": Command(f"{HERE}.kafka:produce", "Send a file of events to its topic."),
    "dead-letters": Command(f"{HERE}.kafka:dead_letters", "Count refused events, or write them to be repaired."),
    "beat": Command(f"{HERE}.beat:beat", "Send beats: how time goes on where presence is protected."),
    "tail": Command(f"{HERE}.tail:tail", "Print releases with their noise, as they are published."),
    "window": Command(f"{HERE}.window:window", "Print the sum, count or mean over any window."),
    "dashboard": Command(f"{HERE}.dashboard:dashboard", "Show what was released, with its noise, on a page."),
    "export": Command(f"{HERE}.export:export", "Write releases as CSV, JSON lines or Parquet."),
    "map": Command(f"{HERE}.dashboard:map_", "Draw the releases by place."),
    "plan": Command(f"{HERE}.plan:plan", "Predict the error before any budget is spent."),
    "check": Command(f"{HERE}.check:check", "Would a worker start, and what would be guaranteed?"),
    "label": Command(f"{HERE}.label:label", "The privacy facts of a deployment, to be signed."),
    "schema": Command(f"{HERE}.schema:schema", "JSON Schemas: of the configuration, topics and events."),
    "topics": Command(f"{HERE}.kafka:topics", "Create the topics that are missing, verify the others."),
    "migrate": Command(f"{HERE}.audit:migrate", "Bring the schema of the audit log up to date."),
    "budget": Command(f"{HERE}.budget:budget", "Show what was charged and what is left."),
    "accept-loss": Command(f"{HERE}.turns:accept_loss", "Accept that records were gone before they were read."),
    "restart-clock": Command(f"{HERE}.turns:restart_clock", "Restart a clock that a wrong time took too far."),
    "broker": Command(f"{HERE}.kafka:broker", "Run a real Kafka on this machine, for development."),
    "audit": Group(
        "Proofs and copies of what was released, and what is kept of one user.",
        {
            "verify": Command(f"{HERE}.audit:verify", "Check the audit log; needs no key."),
            "replay": Command(f"{HERE}.audit:replay", "Make every release again and compare every byte."),
            "backup": Command(f"{HERE}.audit:backup", "Copy the audit log while workers run, and check the copy."),
            "restore": Command(f"{HERE}.audit:restore", "Replace the audit log by a copy that is in order."),
            "user": Command(f"{HERE}.audit:user", "Tell what workers keep of one user."),
        },
    ),
    "key": Group("The secret key.", {"new": Command(f"{HERE}.key:new", "Make a key; nothing is overwritten.")}),
    "simulate": Group(
        "Events to try things with.", {"buses": Command(f"{HERE}.simulate:buses", "Trips of a city's buses.")}
    ),
}

app = group_of(
    COMMANDS, "Live statistics about people from Kafka topics, with user-level differential privacy.", "shoal"
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


def main() -> None:
    """Run a command; a user's mistake is one line, never a traceback."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it logs, our errors say once and in one line
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it remarks on a home that cannot be written
    watch_stdout()
    try:
        _call()
    except ShoalError as error:
        print(f"shoal: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)  # it came before there was a command
        sys.exit(130)
    except BrokenPipeError:  # the reader of our stdout has gone: nothing left to say, not even at exit
        sys.exit(1)
    except StdoutError as error:
        print(
            f"shoal: standard output: cannot be written ({error.strerror}); make room, or pipe it on", file=sys.stderr
        )
        sys.exit(1)
    except SystemExit:
        raise
    except BaseException as error:  # a bug, a panic of the kernel too; its text and traceback may hold a value
        if (said := shadow(error)) is None:
            from shoal.agents.kafka.fail_stop import describe

            said = describe(error, "this command")
        print(printable(f"shoal: {said}"), file=sys.stderr)
        sys.exit(1)
    finally:
        give_up_stdout()


def _call() -> None:
    """Run the command that was asked for, and print what it left in a buffer."""
    try:
        app()
    except SystemExit:
        flush_stdout()
        raise
