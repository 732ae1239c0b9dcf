"""Decisions of operators: what cannot be decided is refused before anything is locked out or written."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.cli.main import app

VALUES = """
[kafka]
brokers = "127.0.0.1:1"
app = "app"
[privacy]
key_file = "shoal.key"
epsilon = 3
[audit]
url = "sqlite:///shoal.db"
[[metric]]
name = "basket"
topic = "purchases"
user = "who"
time = "at"
statistic = "count"
every = "1h"
max_contributions = 8
epsilon = 1
"""
PRESENT = VALUES.replace('every = "1h"', 'every = "1h"\nrelation = "add-remove"\nstart = "2026-01-01"')


@pytest.mark.parametrize(
    ("config", "arguments", "words"),
    [
        (VALUES, ["visits", "--by", "operator"], "no metric reads topic 'visits'; name one of purchases"),
        (VALUES, ["purchases", "--by", " "], "--by is empty; name who decides this"),
        (VALUES, ["purchases", "--by", "operator", "--beat", "2026-01-01"], "--beat is for metrics that protect"),
        (
            PRESENT,
            ["purchases", "--by", "operator", "--beat", "soon"],
            "--beat 'soon' is no time; write an ISO 8601 time",
        ),
        (VALUES, ["purchases", "--by", "operator", "--partition", "1"], "no worker has read it"),
        (PRESENT, ["purchases", "--by", "operator"], "no worker has read it"),
    ],
)
def test_a_loss_that_cannot_be_accepted_is_refused_with_a_sentence(
    tmp_path: Path, config: str, arguments: list[str], words: str
) -> None:
    path = tmp_path / "shoal.toml"
    path.write_text(config)
    key_file.new(tmp_path / "shoal.key")
    refused = CliRunner().invoke(app, ["accept-loss", str(path), *arguments, "--yes"])
    assert refused.exit_code == 1
    assert words in str(refused.exception)
