"""`shoal audit` as a script sees it: its status and what it says as JSON."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.agents.lane import KERNEL, ON


@dataclass
class Said:
    """What a command said as JSON."""

    status: int
    fields: dict[str, Any]

    @property
    def ok(self) -> bool:
        assert self.fields["ok"] == (self.status == 0) == (not self.fields["findings"])
        return self.status == 0

    @property
    def kinds(self) -> set[str]:
        return {finding["kind"] for finding in self.fields["findings"]}

    @property
    def text(self) -> str:
        return "\n".join(f"{one['where']}: {one['message']}" for one in self.fields["findings"])


def audit(name: str, config: Path, *arguments: str) -> Said:
    done = CliRunner().invoke(app, ["audit", name, str(config), "--json", *arguments])
    if isinstance(done.exception, Exception):
        raise done.exception
    return Said(done.exit_code, json.loads(done.stdout))


def replay(config: Path) -> Said:
    """From the events, in the lane of the test: it does all that a replay from the contributions does."""
    lane = "kernel" if os.environ.get(KERNEL) == ON else "twin"
    return audit("replay", config, "--from", "events", "--lane", lane)
