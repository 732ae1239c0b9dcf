"""Questions of `shoal init`: what is published, of whom, where, when, and how it is protected.

`shoal init` proposes no range, groups, start or end, as these must not be chosen by looking at the data.
Relation has a default only where a statistic exists under one relation alone.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from shoal.agents.init import answers as read
from shoal.agents.init.answers import FOUND, NEVER, NONE, Answers, Reader
from shoal.agents.init.choices import (
    ALL,
    EACH,
    STATISTICS,
    asks_max_groups,
    counts_users,
    finds_groups,
    form_of,
    has_group,
    has_value,
    in_a_tick,
    is_each,
    is_hidden,
    limits_each_group,
    relations,
    whose,
)
from shoal.agents.init.fields import GROUPS, IDS, NUMBERS, TIMES, Field, Form
from shoal.agents.init.roles import Proposal, is_clearly_time
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.loss_words import EACH_PERIOD, FOR_EVER, beliefs

FIELDS = ("user", "value", "time", "group")
UNREADABLE_AS = {
    "value": (Form.THOUSANDS, Form.COMMA, Form.MONEY), "time": (Form.SLASHED, Form.LOGGED, Form.ZONED),
}  # fmt: skip
FOUND_ANEW = " Groups are found anew in each of these times, with half of epsilon."
EXAMPLES = ("0.1", "0.5", "1", "2", "4")  # epsilons
OF_STATISTIC = {
    "mean": "the average of a value over records",
    "sum": "the sum of a value",
    "count": "how many records there are, with noise: who is in them is protected",
    "users": "how many people there are, with noise: who they are is protected",
    "variance": "the average of a value, and how far its values are from that",
    "distribution": "how the values are distributed: a histogram, and quantiles such as the median",
}


@dataclass(frozen=True)
class Known:
    """What is known before anything is asked."""

    fields: tuple[Field, ...] = ()
    proposals: Mapping[str, Proposal] | None = None
    stem: str = ""  # of the sample's name

    def proposed(self, role: str) -> str | None:
        proposal = (self.proposals or {}).get(role)
        return None if proposal is None else proposal.path

    def unreadable(self, role: str) -> list[str]:
        """What has to be corrected before a field can have the role, a sentence each."""
        forms = UNREADABLE_AS.get(role, ())
        found = [f"Field {field.path!r} holds {field.form.value}." for field in self.fields if field.form in forms]
        return found or (self._without_dates() if role == "time" else [])

    def _without_dates(self) -> list[str]:
        """The sentence on a sample that has no dates, such as a table of visits by the number of their day."""
        if not self.fields or any(is_clearly_time(field) or field.form is Form.DIGITS for field in self.fields):
            return []
        return [
            "No field has dates, or numbers of seconds since 1970. A number of a day is not a time: add a field with "
            "the date of each record, such as 2024-01-31."
        ]


@dataclass(frozen=True)
class Question:
    """One question; its name is that of the option that answers it."""

    name: str
    words: Callable[[Answers, Known], str]
    reader: Callable[[Answers, Known], Reader]
    default: Callable[[Answers, Known], str | None] = lambda said, known: None
    applies: Callable[[Answers], bool] = lambda said: True
    is_quiet: bool = False  # is not asked where it has a default
    decides_noise: bool = False

    def read(self, text: str, said: Answers, known: Known) -> str:
        """The answer in its one spelling.

        Raises:
            ValueError: it is none; the message says what to write.
        """
        answer = self.reader(said, known)(text if self.name in FIELDS else text.strip())
        taken = [role for role in FIELDS if role != self.name and said.get(role) == answer]
        if self.name in FIELDS and answer != NONE and taken:
            raise ValueError(f"field {answer!r} is the {taken[0]} already; name another one")
        return answer


def _always(reader: Reader) -> Callable[[Answers, Known], Reader]:
    return lambda said, known: reader


def _constant(text: str) -> Callable[[Answers, Known], str]:
    return lambda said, known: text


def _statistic(said: Answers, known: Known) -> str:
    lines = [f"  {number} {name:12} {OF_STATISTIC[name]}" for number, name in enumerate(STATISTICS, 1)]
    return "\n".join(["What is to be published?", *lines])


def _relation(said: Answers, known: Known) -> str:
    return (
        "Is it a secret who is in your data?\n"
        f"  1 {VALUES:11} no: that somebody is in it, when and in which group, may be known to anyone, and counts of "
        "people and records are exact. Protected is what the records say: the values.\n"
        f"  2 {ADD_REMOVE:11} yes: whether somebody is in it at all is protected, and all that their records say. "
        "Counts have noise, and you say beforehand when the data begins and ends."
    )


def _relation_of(said: Answers, known: Known) -> Reader:
    possible, reader = relations(said), read.one_of(VALUES, ADD_REMOVE)

    def checked(text: str) -> str:
        answer = reader(text)
        if answer not in possible:
            when = "" if is_each(said) else " since the beginning"
            raise ValueError(
                f"statistic {said['statistic']}{when} is not for relation {answer}; write {possible[0]}, or choose "
                "another statistic"
            )
        return answer

    return checked


def _only_relation(said: Answers, known: Known) -> str | None:
    possible = relations(said)
    return possible[0] if len(possible) == 1 else None


def _field_words(question: str, role: str, remark: str = "") -> Callable[[Answers, Known], str]:
    def words(said: Answers, known: Known) -> str:
        proposal = (known.proposals or {}).get(role)
        lines = [question] + ([f"({remark})"] if remark else [])
        if proposal is not None:
            lines.append(f"Proposed is {proposal.path!r}: {proposal.reason}.")
        lines += known.unreadable(role)
        return "\n".join(lines)

    return words


def _groups(said: Answers, known: Known) -> str:
    return (
        "Which groups are there? They are not looked up: that a group exists may tell that somebody is in it. Write "
        "their names with commas between them: all of these are published, also the empty ones, and no others. Or "
        f"write {FOUND}: a group is then published once enough people are in it, which takes part of epsilon and a "
        "small delta." + (FOUND_ANEW if form_of(said).is_slotted else "")
    )


def _span(said: Answers, known: Known) -> str:
    return (
        "Over which time is each result taken?\n"
        f"  1 {EACH:5} each day, or hour, by itself. {EACH_PERIOD}\n"
        f"  2 {ALL:5} everything since the beginning, told anew each day, or hour. {FOR_EVER}"
    )


def _range(said: Answers, known: Known) -> str:
    return (
        f"Between which two numbers do values of {said['value']!r} lie? Smaller and larger ones are moved to the "
        "nearest end. The range is published, and decides how much noise there is: twice as wide, twice the noise. No "
        "program can take it from the data: the largest number in a file is somebody's number, and a range that was "
        "chosen by it would tell it. Say what you know without looking: a scale's ends, usual prices, what a person "
        "can do."
    )


def _users(said: Answers, known: Known) -> str:
    when = in_a_tick(said)
    where = ", and in a group that matters" if has_group(said) else ""
    return (
        f"How many people, about, have records{when}{where}? The prediction is for so many. They are not counted in "
        "the data either; a wrong number costs no privacy."
    )


def _epsilon(said: Answers, known: Known) -> str:
    examples = "\n".join(f"  {epsilon:4} {belief(epsilon)}" for epsilon in EXAMPLES)
    return (
        f"How much may all that is published tell about {whose(said)}? That is epsilon; half of it is twice the "
        f"noise.\n{examples}"
    )


def belief(epsilon: str) -> str:
    """The sentence of belief for an epsilon.

    >>> belief("1")
    'Someone who thought something about it 10 % likely could come to think it at most 23.2 % likely.'
    """
    return next(beliefs(Loss(Fraction(epsilon))))


def _delta(said: Answers, known: Known) -> str:
    return (
        "What chance may there be that a group is published because of one person? That is delta: far below one in "
        "the number of people."
    )


def _max_contributions(said: Answers, known: Known) -> str:
    when = in_a_tick(said)
    where = " and group" if has_group(said) and limits_each_group(said) else ""
    return (
        f"How many records of one person{when}{where} may count, at most? Further ones are left out. A limit above "
        "what people have costs noise, one below it leaves records out: `shoal plan` compares several."
    )


def _max_groups(said: Answers, known: Known) -> str:
    when = in_a_tick(said)
    shared = "They share epsilon: twice the groups, twice the noise."
    return f"In how many groups may one person count{when}, at most? {shared}"


def _default_statistic(said: Answers, known: Known) -> str:
    return "count" if known.fields and known.proposed("value") is None else "mean"


def _default_name(said: Answers, known: Known) -> str:
    of = said.get("value", said["statistic"])
    slug = re.sub(r"[^a-z0-9_]+", "-", of.lower()).strip("-_")
    return slug or said["statistic"]


def _default_topic(said: Answers, known: Known) -> str:
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", known.stem).strip("-.") or "events"


def _default_limit(said: Answers, known: Known) -> str:
    return "4" if is_each(said) else "16"


QUESTIONS = (
    # what
    Question("statistic", _statistic, lambda said, known: read.one_of(*STATISTICS), _default_statistic),
    Question(
        "value",
        _field_words("Which field has the numbers?", "value"),
        lambda said, known: read.field_of(known.fields, "value", NUMBERS),
        lambda said, known: known.proposed("value"),
        has_value,
    ),
    Question("range", _range, _always(read.ends), applies=has_value),
    # of whom
    Question(
        "user",
        _field_words("Which field says whose record it is?", "user", "a person is one value of it"),
        lambda said, known: read.field_of(known.fields, "user", IDS),
        lambda said, known: known.proposed("user"),
    ),
    # where
    Question(
        "group",
        _field_words(
            "Which field divides the records into groups, with a result for each?", "group", "none: there are none"
        ),
        lambda said, known: read.field_or_none(read.field_of(known.fields, "group", GROUPS)),
        lambda said, known: known.proposed("group") or NONE,
    ),
    # when
    Question(
        "time",
        _field_words("Which field says when it was?", "time"),
        lambda said, known: read.field_of(known.fields, "time", TIMES),
        lambda said, known: known.proposed("time"),
    ),
    Question("span", _span, _always(read.one_of(EACH, ALL)), _constant(EACH)),
    Question(
        "every",
        _constant("How long is such a time? Write 1h, 1d, 7d or the like."),
        _always(read.span),
        _constant("1d"),
    ),
    # how it is protected
    Question("relation", _relation, _relation_of, _only_relation, is_quiet=True),
    Question("groups", _groups, _always(read.keys), applies=lambda said: has_group(said) and is_hidden(said)),
    Question(
        "start",
        _constant("When does the data begin? (a public date, in UTC, at which a day or hour begins)"),
        _always(read.instant),
        applies=is_hidden,
    ),
    Question(
        "end",
        _constant(f"When does it end? ({NEVER}: on Kafka it need not; a run over a file needs an end)"),
        _always(read.instant_or_never),
        applies=is_hidden,
    ),
    Question("users", _users, _always(read.whole), _constant("1000"), decides_noise=True),
    Question("epsilon", _epsilon, _always(read.positive), _constant("1"), decides_noise=True),
    Question("delta", _delta, _always(read.positive), _constant("1e-9"), finds_groups, decides_noise=True),
    Question(
        "max-contributions",
        _max_contributions,
        _always(read.whole),
        _default_limit,
        lambda said: not counts_users(said),
        decides_noise=True,
    ),
    Question("max-groups", _max_groups, _always(read.whole), _constant("1"), asks_max_groups, decides_noise=True),
    Question("name", _constant("What is the statistic called?"), _always(read.name), _default_name, is_quiet=True),
    Question(
        "topic",
        _constant("What is the topic of the events called?"),
        _always(read.topic),
        _default_topic,
        is_quiet=True,
    ),
)
