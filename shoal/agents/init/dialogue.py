"""Asks a person: one question after the other, each until it is answered, and any of them once more at the end."""

import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from shoal.agents.init.answers import Answers
from shoal.agents.init.choices import finds_groups, loss_of
from shoal.agents.init.draft import Draft, Unanswered, checked, completed, draft
from shoal.agents.init.questions import QUESTIONS, Known, Question, belief
from shoal.models.errors import ConfigError, ShoalError

Ask = Callable[[str], str]  # a prompt -> what was typed
Say = Callable[[str], None]
LEAVE = ("n", "no", "q", "quit")
AGREE = ("", "y", "yes")
WIDTH = 100
ITEM = re.compile(r"  (\d \S+ +)?")  # of a list, which goes on where its words began
ENOUGH = 4  # unusable answers to one question


class Left(ShoalError):
    """The person left before anything was written."""


def converse(options: Mapping[str, str], known: Known, path: Path, ask: Ask, say: Say) -> Draft:
    """Ask all that options did not answer, and what is to be changed, until a configuration is agreed on.

    Raises:
        Left: the person wants none.
    """
    said, assumed = _asked(options, None, known, path, ask, say)
    for name in options:
        if name not in said:
            say(f"(--{name} is for other answers than these, and is left out.)")
    while True:
        found = _drafted(said, path, say)
        if found is not None:
            say("\n" + found.text)
            say(f"Prediction: {found.prediction}.")
        change = _change(said, path, ask, say, may_write=found is not None)
        if change is None and found is not None:
            return found
        kept = {name: text for name, text in said.items() if name not in assumed}
        said, assumed = _asked(kept, change, known, path, ask, say)


def wrapped(text: str) -> str:
    """The text in lines that are easily read.

    >>> print(wrapped("  1 all   " + "everything, " * 9))
      1 all   everything, everything, everything, everything, everything, everything, everything,
              everything, everything,
    """
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent=" " * (found.end() if (found := ITEM.match(line)) else 0))
        for line in text.splitlines()
    )


def _asked(
    kept: Mapping[str, str], again: str | None, known: Known, path: Path, ask: Ask, say: Say
) -> tuple[dict[str, str], set[str]]:
    """Answers to all questions that apply, and the names of those that nobody gave, which follow from the others.

    An answer in `kept` is not asked for unless it is `again`, or fits no more.
    """
    said: dict[str, str] = {}
    assumed: set[str] = set()
    for question in QUESTIONS:
        if not question.applies(said):
            continue
        default = kept.get(question.name) or question.default(said, known)
        is_settled = question.name in kept or (question.is_quiet and default is not None)
        if default is not None and is_settled and question.name != again:
            try:
                said[question.name] = checked(question, default, said, known)
                assumed |= {question.name} - kept.keys()
                continue
            except Unanswered as error:
                say(f"shoal: {error}")
                default = question.default(said, known)
        said[question.name] = _answer(question, default, said, known, ask, say)
        _comment(question, said, known, path, say)
    return said, assumed


def _answer(question: Question, default: str | None, said: Answers, known: Known, ask: Ask, say: Say) -> str:
    say("\n" + wrapped(question.words(said, known)))
    for _ in range(ENOUGH):
        text = ask(f"{question.name}{'' if default is None else f' [{default}]'}: ").strip() or default
        if text is None:
            say("An answer is needed here: nothing can be assumed for it.")
            continue
        try:
            return question.read(text, said, known)
        except ValueError as error:
            say(f"{error}.")
    raise Left(f"no usable answer for {question.name}; nothing was written; it can be given as --{question.name}, too")


def _comment(question: Question, said: Answers, known: Known, path: Path, say: Say) -> None:
    """Say what an answer means for belief, and for the error."""
    if question.name == "epsilon":
        say(belief(said["epsilon"]))
    if question.name == ("delta" if finds_groups(said) else "epsilon"):
        say(wrapped(loss_of(said).several))
    if question.decides_noise:
        try:
            predicted = draft(completed(said, known), path)
        except (Unanswered, ConfigError):
            return  # an answer that is still to come decides it
        say(f"Prediction: {predicted.prediction}.")


def _drafted(said: Answers, path: Path, say: Say) -> Draft | None:
    try:
        return draft(said, path)
    except ConfigError as error:
        say(f"\nshoal: {error}")
        return None


def _change(said: Answers, path: Path, ask: Ask, say: Say, *, may_write: bool) -> str | None:
    """The name of the answer to be changed; None if the configuration is to be written."""
    names = ", ".join(said)
    say(f"\nTo change an answer, type its name: {names}.")
    for _ in range(ENOUGH):
        text = (
            ask(f"Write {path}? [yes, no or a name; Enter: yes]: " if may_write else "Which one? [a name, or no]: ")
            .strip()
            .lower()
        )
        if text in said:
            return text
        if text in LEAVE:
            raise Left("nothing was written")
        if text in AGREE and may_write:
            return None
        say(f"There is no such answer; type one of: {names}.")
    raise Left("nothing was written")
