"""Stages and instructions of docker/Dockerfile."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker" / "Dockerfile"
CONFIG = "/etc/shoal/shoal.toml"


class Instruction(NamedTuple):
    """An instruction without its flags; `text` is one line."""

    keyword: str
    text: str
    flags: dict[str, str]

    @property
    def words(self) -> list[str]:
        return self.text.split()


class Stage(NamedTuple):
    """A stage of the Dockerfile: its base image, its name and its instructions."""

    image: str  # that it begins with
    name: str
    instructions: list[Instruction]

    def all(self, keyword: str) -> Iterator[Instruction]:
        return (one for one in self.instructions if one.keyword == keyword)

    def only(self, keyword: str) -> str:
        """Text of the only instruction with this keyword."""
        (found,) = self.all(keyword)
        return found.text

    def copied(self, source: str = "") -> list[str]:
        """Paths that are copied from another stage, by its name, or from the repository."""
        return [word for one in self.all("COPY") if one.flags.get("from", "") == source for word in one.words[:-1]]


def read() -> list[Stage]:
    """Stages in their order; the last one is the image."""
    lines = re.sub(r"^#.*\n", "", FILE.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", "").splitlines()
    stages = list[Stage]()
    for keyword, _, text in (line.partition(" ") for line in lines if line):
        flags = dict[str, str]()
        while found := re.match(r"--(\S+)=(\S+)\s+", text):
            flags[found[1]], text = found[2], text[found.end() :]
        if keyword == "FROM":
            image, _, name = text.partition(" AS ")
            stages.append(Stage(image, name, []))
        else:
            stages[-1].instructions.append(Instruction(keyword, text, flags))
    return stages


KERNEL, IMAGE = read()
ENTRYPOINT: list[str] = json.loads(IMAGE.only("ENTRYPOINT"))
COMMAND: list[str] = json.loads(IMAGE.only("CMD"))


def health_command(config: Path) -> list[str]:
    """Command of the health check, with the file that is mounted as the configuration."""
    command: list[str] = json.loads(IMAGE.only("HEALTHCHECK").removeprefix("CMD "))
    return [word.replace(CONFIG, str(config)) for word in command]
