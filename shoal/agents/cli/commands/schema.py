"""`shoal schema`: JSON Schemas of the configuration, of the topics, and of events as a configuration expects them."""

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from shoal.agents.cli.output import show
from shoal.models import schemas
from shoal.models.errors import ConfigError

EVENTS = "events"
Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which schema; none: list them.")]
Config = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG]", help="Of events: the configuration that reads them.")
]
Topic = Annotated[str | None, typer.Option(help="Of events: the source topic, if there are several.")]


def schema(name: Name = None, config: Config = None, topic: Topic = None) -> None:
    """Print a JSON Schema: of the configuration, for editors; of a topic, for consumers; of events, for producers.

    Without a name it lists them. `events` needs a configuration: what its metrics read of a record of a source topic.
    An editor completes and checks a configuration beside which `shoal schema configuration` was written to
    shoal.schema.json, if the first line of the file is `#:schema ./shoal.schema.json`.

    Example: shoal schema configuration > shoal.schema.json
    """
    if name == EVENTS:
        _of_events(config, topic)
        return
    if config is not None or topic is not None:
        raise ConfigError(f"a configuration and a topic are for the schema of {EVENTS}; leave them out")
    if name is None:
        for one in schemas.names():
            show(f"{one:<20}{orjson.loads(schemas.text(one))['title']}")
        show(f"{EVENTS:<20}What a configuration reads of a source topic: shoal schema {EVENTS} CONFIG")
    elif name in schemas.names():
        sys.stdout.write(schemas.text(name))
    else:
        known = ", ".join((*schemas.names(), EVENTS))
        raise ConfigError(f"there is no schema {name!r}; there are: {known}")


def _of_events(config: Path | None, topic: str | None) -> None:
    if config is None:
        raise ConfigError(f"the schema of {EVENTS} is that of a configuration: shoal schema {EVENTS} CONFIG")
    from shoal.models.config.file import load  # what the others need not wait for
    from shoal.models.schemas.events import events_schema

    made = events_schema(load(config), topic)
    show(orjson.dumps(made, option=orjson.OPT_INDENT_2).decode())
