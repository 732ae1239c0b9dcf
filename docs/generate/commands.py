"""Prints docs/reference/commands.md: the table of `commands.md.in`, then the help of each command as it prints it.

`make reference` writes the page, and a test compares it with what this prints.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from shoal.agents.cli.main import app

TEMPLATE = Path(__file__).with_name("commands.md.in")
MARK = "<!-- each command -->\n"


def page() -> str:
    """The whole page."""
    return TEMPLATE.read_text("utf-8").replace(MARK, "\n".join(map(section, found())))


def found() -> Iterator[tuple[str, Any]]:
    """All commands by their words, in the order of the list of all commands."""
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from ((f"{name} {word}", member) for word, member in command.commands.items())
        else:
            yield name, command


def section(named: tuple[str, Any]) -> str:
    """What a command's help says: its words, its example, and a row for each argument and option."""
    name, command = named
    words, _, example = command.help.partition("\n\nExample: ")
    context = typer.Context(command, info_name=f"shoal {name}")
    usage = re.sub(r"[{}]", "", " ".join(command.collect_usage_pieces(context)))
    parts = [f"## shoal {name}", plain(words), f"Usage: `shoal {name} {usage}`"]
    if example:
        parts.append(f"Example: `{' '.join(example.split())}`")
    rows = [row(parameter, context) for parameter in command.params if getattr(parameter, "hidden", False) is False]
    if rows:
        parts.append("\n".join(["| | default | |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def row(parameter: Any, context: typer.Context) -> str:
    """An argument or option: its names, its default, what it means."""
    names, meaning = parameter.get_help_record(context) or (parameter.human_readable_name, parameter.help or "")
    meaning = re.sub(r" *\[(?:default: [^\]]*|required)\]$", "", meaning.replace("  ", " ").strip())
    default = parameter.default() if callable(parameter.default) else parameter.default
    shown = "required" if parameter.required else "" if default in (None, False, "", (), []) else f"`{default}`"
    return f"| `{names.replace('|', '/')}` | {shown} | {plain(meaning)} |"


def plain(text: str) -> str:
    """Text in which nothing outside of code is a mark of Markdown by chance.

    >>> plain("`a<b` a<b")
    '`a<b` a&lt;b'
    """
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([*|])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
