"""Drafts: the configuration that answers make, checked as a file would be, and the error that it would have."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.agents.init.answers import Answers
from shoal.agents.init.choices import has_group, is_each, tick
from shoal.agents.init.questions import QUESTIONS, Known, Question
from shoal.agents.init.toml import written
from shoal.agents.plan.planners import PLANNERS
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.words import number
from shoal.models.config.file import read
from shoal.models.errors import ConfigError


class Unanswered(Exception):
    """A question has no answer, or one that is none; `name` is its option's."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"--{name} {why}")
        self.name, self.why = name, why


@dataclass(frozen=True)
class Draft:
    """Answers to all questions that apply, and what they make."""

    answers: Answers
    text: str
    metric: Metric

    @property
    def prediction(self) -> str:
        """The noise of a late release, in a line."""
        noise_sd, beside, what = PLANNERS[kind_of(self.metric)].final_noise(self.metric, int(self.answers["users"]))
        people = f"{int(self.answers['users']):,} people"
        when = f" in each {tick(self.answers)}" if is_each(self.answers) else ""
        where = " and group" if has_group(self.answers) else ""
        if noise_sd is None or noise_sd > 1e300:
            return f"with {people}{when}{where} there are too few to release anything; more people, or more epsilon"
        part = f", beside a {what} of {number(beside)}" if beside else ""
        return f"with {people}{when}{where}: noise of about {number(noise_sd)} (standard deviation){part}"


def completed(given: Mapping[str, str], known: Known) -> Answers:
    """The answers, with defaults for those that nobody gave.

    Raises:
        Unanswered: one is missing that has no default, is not what the question asks for, or has no question.
    """
    said: dict[str, str] = {}
    for question in QUESTIONS:
        if not question.applies(said):
            continue
        text = given.get(question.name) or question.default(said, known)
        if text is None:
            raise Unanswered(question.name, f"is missing. {asked_for(question, said, known)}")
        said[question.name] = checked(question, text, said, known)
    for name in given:
        if name not in said:
            raise Unanswered(name, "is for other answers than these; leave it out")
    return said


def checked(question: Question, text: str, said: Answers, known: Known) -> str:
    """The answer in its one spelling.

    Raises:
        Unanswered: it is none.
    """
    try:
        return question.read(text, said, known)
    except ValueError as error:
        raise Unanswered(question.name, f"is not to be used: {error}") from None


def asked_for(question: Question, said: Answers, known: Known) -> str:
    """The first sentence of a question, for whom it is an option, and what stands in the way of an answer."""
    asked = question.words(said, known).partition("?")[0].replace("\n", " ") + "?"
    return " ".join([asked, *known.unreadable(question.name)])


def stem_of(path: Path) -> str:
    """What key and audit log beside a configuration are called: its name, with characters that a URL takes.

    >>> stem_of(Path("a/my shop?.toml"))
    'my-shop'
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).strip("-.") or "shoal"


def draft(said: Answers, path: Path) -> Draft:
    """The draft of these answers.

    Raises:
        ConfigError: they make no configuration that would be accepted.
    """
    text = written(said, shlex.quote(path.name), stem_of(path))
    (metric,) = read(text, path).metrics
    try:
        PLANNERS[kind_of(metric)].final_noise(metric, int(said["users"]))
    except ValueError as error:
        raise ConfigError(f'{path}: metric "{metric.name}": {error}') from None
    return Draft(said, text, metric)
