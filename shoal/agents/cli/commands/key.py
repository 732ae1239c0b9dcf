"""`shoal key`: the secret that all noise comes from."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.audit import key_file
from shoal.agents.cli.output import AsJson, result

KeyPath = Annotated[Path, typer.Argument(metavar="FILE", help="Where the key is written; never overwritten.")]


def new(file: KeyPath, as_json: AsJson = False) -> None:
    """Make a secret key that only this user can read.

    Whoever has it can take the noise off every release: keep a copy in a safe place, and use it in one deployment.

    Example: shoal key new shoal.key
    """
    made = key_file.new(file)
    fields = {"file": str(file), "fingerprint": made.fingerprint}
    result(fields, as_json=as_json, text=lambda: f"{file}: new key {made.fingerprint}")
