"""The stored answers.

digests.json      of every case and kind: how many entries, and SHA-256 of all of them
parameters.json   of every metric the text whose digest names its noise
summaries.json    of every case the counters of its file run, and the verdict of its replay
bytes/            of some cases all releases and messages, one a line
cli/              what commands print with --json
saved/VERSION/    of every case the state that VERSION has left behind half way. Never rewritten
"""

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.golden.case import Case

FOLDER = Path(__file__).parent
SAVED = FOLDER / "saved"
# SHA-256 of all files of a folder in saved/: what a version of the past has left behind does not change any more.
FROZEN: Mapping[str, str] = {
    "952ad58": "eba71120e671efc913b98553ea72db9ae1725ec1a81677b64bee5bcd5edadaaa",
    "3280704": "b4102a31d260c1e550c58e2a1f860ee93823b60862251d8cf7ab500e350d1103",
    "format-3": "45d3f7bbbe353aabc567420f0d241eb4291c8b30bf41c93aad417c43c70e61ff",
    "format-4": "5fe1169056e1f62887945a96da629f3a04555c6eefc90cff0569e445c45c1243",
    "release-format-4": "05c3d00eb469cda72ea2511da14f13b210598d4211b19a54378c02339e9106a1",
    "life": "00d762bc7ca0bd488a26d5af0a4bb2851dc6703101eb5e861c914230c739deaf",
}
# States of versions before `life` are of other parameters: `life` is part of the digest, hence of the key. A state that
# holds noise, or what was chosen with a key, does not go on as if it had been of this version's key from the start.
BEFORE_LIFE = frozenset({"952ad58", "3280704", "format-3", "format-4", "release-format-4"})
RENEWED = frozenset(
    {
        "sharp with groups", "sharp with blocks", "means with a delta", "sharp with sigma", "forward decay",
        "keys that are found", "keys that are found late",
    }
)  # fmt: skip


def slug(name: str) -> str:
    """A case's name in names of files and tests."""
    return "-".join(name.replace(",", " ").split())


@cache
def read(name: str) -> Any:
    """A stored JSON file; it is there all the same while this runs."""
    return json.loads((FOLDER / name).read_text("utf-8"))


def write(name: str, value: Any, *, sort: bool = False) -> None:
    """Store a JSON file, one value a line."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, sort_keys=sort, ensure_ascii=False) + "\n", "utf-8")


def lines_of(case: Case, kind: str) -> Path:
    """The file with all entries of a kind."""
    return FOLDER / "bytes" / slug(case.name) / f"{kind}.jsonl"


def as_lines(entries: Iterable[tuple[bytes | None, ...]]) -> list[str]:
    """Entries as text, their parts after one another; what they hold is text."""
    return [" ".join("-" if part is None else part.decode() for part in entry) for entry in entries]


# ---------------------------------------------------------------- saved states


def versions() -> list[str]:
    """Those whose states are there."""
    return sorted(path.name for path in SAVED.iterdir() if path.is_dir())


def has_state(version: str, name: str) -> bool:
    """Whether a version has left a state of the case behind that still can go on."""
    return _state_file(version, name).exists() and not (version in BEFORE_LIFE and name in RENEWED)


def saved_state(version: str, name: str) -> dict[str, Any]:
    """What it has left behind."""
    found = json.loads(gzip.decompress(_state_file(version, name).read_bytes()))
    for partition in (*found["sources"], *found["homes"]):
        partition["changelog"] = {b64decode(key): b64decode(value) for key, value in partition["changelog"]}
    for home in found["homes"]:
        home["messages"] = [b64decode(message) for message in home["messages"]]
        if home["last"] is not None:
            home["last"] = tuple((name, value.encode()) for name, value in home["last"])
    return found  # type: ignore[no-any-return]


def save_state(version: str, name: str, state: Mapping[str, Any]) -> None:
    """Store what this version leaves behind; what is there is not overwritten."""
    text = json.dumps(
        {
            "sources": [{"changelog": _encoded(one["changelog"])} for one in state["sources"]],
            "homes": [
                {
                    "changelog": _encoded(one["changelog"]),
                    "last": None if one["last"] is None else [(name, value.decode()) for name, value in one["last"]],
                    "first": one["first"],
                    "messages": [b64encode(message).decode() for message in one["messages"]],
                }
                for one in state["homes"]
            ],
        }
    )
    path = _state_file(version, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))


def _encoded(changelog: Mapping[bytes, bytes]) -> list[tuple[str, str]]:
    return [(b64encode(key).decode(), b64encode(value).decode()) for key, value in changelog.items()]


def _state_file(version: str, name: str) -> Path:
    return SAVED / version / f"{slug(name)}.json.gz"


def folder_digest(version: str) -> str:
    """SHA-256 of all files of a version."""
    found = sha256()
    for path in sorted((SAVED / version).iterdir()):
        found.update(path.name.encode() + b"\0" + sha256(path.read_bytes()).digest())
    return found.hexdigest()
