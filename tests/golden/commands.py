"""The JSON of the commands, on three configurations and the corpus's own events.

What no version makes twice is replaced before anything is compared: see `REPLACED`. Numbers with a fraction are stored
with nine digits and compared to six: plans come from floating-point arithmetic, in which machines may differ a little.
"""

import json
import math
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.golden.corpus import digest
from tests.golden.driver import SECRET, command
from tests.golden.events import Stream, events_of

HERE = Path(__file__).parent
EVENTS = Stream(count=500, pace=1200, units=60, in_order=True)
TRIPS = Stream(count=500, pace=120, units=60, in_order=True)
# What a run has that no other has, and the word that stands for it.
REPLACED = {"the folder that the command ran in": "FOLDER", "the random name of the audit log": "LOG"}
# Name, configuration, arguments; in this order, for some of them change the ledger.
COMMANDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("shop-label", "shop", ("label", "{config}")),  # before there is a log, whose random id its digest covers
    ("shop-plan", "shop", ("plan", "{config}", "--users", "2500", "--samples", "3", "--over", "30d")),
    ("shop-plan-from-events", "shop", ("plan", "{config}", "--values", "{events}")),
    ("shop-budget-unused", "shop", ("budget", "{config}")),
    ("shop-check", "shop", ("check", "{config}")),
    ("shop-check-people", "shop", ("check", "{config}", "--people", "4")),
    ("shop-run", "shop", ("run", "{config}", "--input", "{events}", "--output", "{out}", "--dead-letters", "{dead}")),
    ("shop-budget", "shop", ("budget", "{config}")),
    ("shop-backup", "shop", ("audit", "backup", "{config}", "{folder}/copy.db")),
    ("shop-verify", "shop", ("audit", "verify", "{config}", "--copy", "{folder}/copy.db")),
    ("shop-restore", "shop", ("audit", "restore", "{config}", "{folder}/copy.db")),
    ("shop-window", "shop", ("window", "{config}", "--metric", "sales", "--group", "north", "--length", "3d")),
    ("places-plan", "places", ("plan", "{config}", "--users", "800", "--samples", "6", "--cells", "40")),
    ("places-plan-from-events", "places", ("plan", "{config}", "--values", "{events}")),
    ("places-check", "places", ("check", "{config}")),
    ("places-check-people", "places", ("check", "{config}", "--people", "4")),
    ("places-run", "places", ("run", "{config}", "--input", "{events}", "--output", "{out}")),
    ("places-budget", "places", ("budget", "{config}")),
    ("presence-plan", "presence", ("plan", "{config}", "--users", "2500", "--samples", "3", "--over", "30d")),
    ("presence-check", "presence", ("check", "{config}", "--people", "4")),
    ("presence-run", "presence", ("run", "{config}", "--input", "{events}", "--output", "{out}")),
    ("presence-budget", "presence", ("budget", "{config}")),
    ("places-map", "places", ("map", "{out}", "--out", "{folder}")),
)  # fmt: skip
NAMES = tuple(name for name, _, _ in COMMANDS)
DIGITS = 9


@cache
def answers() -> dict[str, Any]:
    """What every command prints with --json; of a run also what it writes."""
    with TemporaryDirectory(prefix="shoal-golden-") as folder:
        here = Path(folder)
        _prepare(here)
        return {name: _answer(here, of, arguments) for name, of, arguments in COMMANDS}


def _prepare(folder: Path) -> None:
    for name, stream in (("shop", EVENTS), ("places", TRIPS), ("presence", EVENTS)):
        key = folder / f"{name}.key"
        key.touch(mode=0o600)
        key.write_text(SECRET.hex() + "\n")
        (folder / f"{name}.toml").write_text((HERE / f"{name}.toml").read_text())
        values = [event.value or b"" for event in events_of(stream) if event.in_files]
        (folder / f"{name}.jsonl").write_bytes(b"\n".join(values) + b"\n")


def _answer(folder: Path, of: str, arguments: tuple[str, ...]) -> Any:
    paths = {
        "config": folder / f"{of}.toml", "events": folder / f"{of}.jsonl", "out": folder / f"{of}.releases.jsonl",
        "dead": folder / f"{of}.dead.jsonl", "folder": folder,
    }  # fmt: skip
    code, printed = command(*(one.format(**paths) for one in arguments), "--json")
    assert code == 0, f"{' '.join(arguments)} ended with status {code}"
    answer = json.loads(printed.replace(str(folder), REPLACED["the folder that the command ran in"]))
    if isinstance(answer, dict) and "log" in answer:
        answer["log"] = REPLACED["the random name of the audit log"]
    if arguments[0] == "run":
        written = {name: paths[name] for name in ("out", "dead") if paths[name].exists()}
        answer["written"] = {name: digest([(path.read_bytes(),)]) for name, path in written.items()}
    return rounded(answer)


def rounded(value: Any) -> Any:
    """Numbers with a fraction, to so many digits as machines agree on."""
    match value:
        case dict():
            return {key: rounded(part) for key, part in value.items()}
        case list():
            return [rounded(part) for part in value]
        case float() if math.isfinite(value):
            return float(f"{value:.{DIGITS}g}")
        case _:
            return value
