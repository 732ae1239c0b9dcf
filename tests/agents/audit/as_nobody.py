"""A process without the rights of root, which asks for logs: `as_nobody(folder, [("open", url), ("check", url)])`."""

import json
import os
import subprocess
import sys
from pathlib import Path

from shoal.agents.audit.database import refuse_unwritable
from shoal.agents.audit.ledger import Ledger
from shoal.models.errors import LedgerError

NOBODY = 65534


def as_nobody(warm: Path, asked: list[tuple[str, str]]) -> list[str]:
    """Ask for each log as a user without rights, if this one is root, and return what each asking said.

    The process first opens and checks a log of its own at `warm`, as root: so all modules are imported, which the
    other user might not be allowed to read.
    """
    command = [sys.executable, "-m", __name__, str(warm), json.dumps(asked)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return [str(said) for said in json.loads(done.stdout)]


def _asked(kind: str, url: str) -> str:
    try:
        if kind == "check":
            refuse_unwritable(url)
        else:
            Ledger.open(url).close()
    except LedgerError as error:
        return str(error)
    return "no refusal"


def main(warm: str, asked: str) -> None:
    """Drop the rights of root, ask for each log, and print what was said as JSON."""
    for kind in ("open", "check"):
        _asked(kind, f"sqlite:///{warm}")
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    print(json.dumps([_asked(kind, url) for kind, url in json.loads(asked)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
