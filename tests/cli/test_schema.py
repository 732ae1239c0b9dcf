"""`shoal schema`: lists the schemas and prints them; of events, as a configuration expects them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from shoal.agents.cli.main import app
from shoal.models import schemas
from shoal.models.errors import ConfigError

VISITS = Path(__file__).parents[2] / "examples" / "visits.toml"


def schema(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["schema", *map(str, arguments)])


def test_without_a_name_it_lists_them() -> None:
    lines = schema().stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*schemas.names(), "events"]


@pytest.mark.parametrize("name", schemas.names())
def test_a_schema_is_printed_as_it_is_stored(name: str) -> None:
    assert schema(name).stdout == schemas.text(name)


def test_events_are_those_of_a_configuration() -> None:
    made = json.loads(schema("events", VISITS).stdout)
    assert made["$id"] == "urn:shoal:schema:events:visits"
    assert json.loads(schema("events", VISITS, "--topic", "visits").stdout) == made


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("release",), "there is no schema 'release'; there are: .*events"),
        (("events",), "shoal schema events CONFIG"),
        (("configuration", VISITS), "for the schema of events"),
        (("events", VISITS, "--topic", "else"), "no metric reads topic 'else'"),
    ],
)
def test_mistakes_are_told(arguments: tuple[object, ...], said: str) -> None:
    ran = schema(*arguments)
    assert isinstance(ran.exception, ConfigError)
    with pytest.raises(ConfigError, match=said):
        raise ran.exception
