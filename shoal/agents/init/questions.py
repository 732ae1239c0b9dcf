"""What `shoal init` asks, in plain words, in the order in which one answer stands on another.

A question without a default has to be answered: range, groups, times and relation are what data must not decide.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from shoal.agents.init import answers as read
from shoal.agents.init.answers import FOUND, NEVER, NONE, Answers, Reader
from shoal.agents.init.fields import GROUPS, IDS, NUMBERS, TIMES, Field, Form
from shoal.agents.init.roles import Proposal, is_clearly_time
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.unit import PERSON, Unit, parse_unit
from shoal.models.loss_words import EACH_PERIOD, FOR_EVER, LossWords, beliefs, loss_words

STATISTICS = {VALUES: ("mean", "sum"), ADD_REMOVE: ("mean", "sum", "count", "users")}
EACH, ALL = "each", "all"
FIELDS = ("user", "value", "time", "group")
UNREADABLE_AS = {
    "value": (Form.THOUSANDS, Form.COMMA, Form.MONEY), "time": (Form.SLASHED, Form.LOGGED, Form.ZONED),
}  # fmt: skip
EXAMPLES = ("0.1", "0.5", "1", "2", "4")  # epsilons
OF_STATISTIC = {
    "mean": "the average of a value over records",
    "sum": "the sum of a value",
    "count": "how many records there are, with noise",
    "users": "how many people there are, with noise",
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
    is_quiet: bool = False  # has a default that hardly anybody changes, and is not asked
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


def has_value(said: Answers) -> bool:
    """Whether the statistic is one of values."""
    return said["statistic"] in ("mean", "sum")


def is_hidden(said: Answers) -> bool:
    """Whether presence is protected."""
    return said["relation"] == ADD_REMOVE


def has_group(said: Answers) -> bool:
    """Whether records are divided into groups."""
    return said["group"] != NONE


def is_each(said: Answers) -> bool:
    """Whether each tick is told by itself."""
    return said["span"] == EACH


def finds_groups(said: Answers) -> bool:
    """Whether groups that nobody declared are found in private."""
    return said.get("groups") == FOUND


def asks_max_groups(said: Answers) -> bool:
    """Whether a person's groups are limited by a number of their own."""
    if not has_group(said) or said["statistic"] == "sum":
        return False
    return said["statistic"] == "users" if is_hidden(said) else said["statistic"] == "mean"


def tick(said: Answers) -> str:
    """What a tick is called: `day`, `hour`, `week`, or `12h`."""
    return {"1d": "day", "24h": "day", "1h": "hour", "60m": "hour", "7d": "week"}.get(said["every"], said["every"])


def whose(said: Answers) -> str:
    """The unit that is protected."""
    return f"one person in one {tick(said)}" if is_each(said) else "one person"


def loss_of(said: Answers) -> LossWords:
    """Sentences on the loss of one unit."""
    delta = Fraction(said["delta"]) if finds_groups(said) else Fraction(0)
    needs_max_slots = is_each(said) and said["statistic"] == "mean" and not is_hidden(said)
    return loss_words(unit_of(said), Loss(Fraction(said["epsilon"]), delta), needs_max_slots=needs_max_slots)


def unit_of(said: Answers) -> Unit:
    """The unit that is protected: a person, or a person and the time of one tick."""
    return parse_unit(f"user-{said['every']}") if is_each(said) else PERSON


def _always(reader: Reader) -> Callable[[Answers, Known], Reader]:
    return lambda said, known: reader


def _constant(text: str) -> Callable[[Answers, Known], str]:
    return lambda said, known: text


def _relation(said: Answers, known: Known) -> str:
    return (
        "Is it a secret who is in your data?\n"
        f"  1 {VALUES:11} no: that somebody is in it, when and in which group, may be known to anyone, and counts of "
        "people and records are exact. Protected is what the records say: the values.\n"
        f"  2 {ADD_REMOVE:11} yes: whether somebody is in it at all is protected, and all that their records say. "
        "Counts have noise, and you say beforehand when the data begins and ends."
    )


def _statistic(said: Answers, known: Known) -> str:
    lines = [f"  {number} {name:6} {OF_STATISTIC[name]}" for number, name in enumerate(STATISTICS[said["relation"]], 1)]
    public = "" if is_hidden(said) else "\n(Counts are exact, and no secret, with relation values.)"
    return "\n".join(["What is to be published?", *lines]) + public


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
        "small delta."
    )


def _span(said: Answers, known: Known) -> str:
    return (
        f"Of which time is a {said['statistic']}?\n"
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
    when = f" in a {tick(said)}" if is_each(said) else ""
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
    when = f" in a {tick(said)}" if is_each(said) else ""
    where = " and group" if has_group(said) and not is_hidden(said) and said["statistic"] == "mean" else ""
    return (
        f"How many records of one person{when}{where} may count, at most? Further ones are left out. A limit above "
        "what people have costs noise, one below it leaves records out: `shoal plan` compares several."
    )


def _max_groups(said: Answers, known: Known) -> str:
    when = f" in a {tick(said)}" if is_each(said) else ""
    shared = "They share epsilon: twice the groups, twice the noise."
    return f"In how many groups may one person count{when}, at most? {shared}"


def _default_statistic(said: Answers, known: Known) -> str:
    return "count" if is_hidden(said) and known.fields and known.proposed("value") is None else "mean"


def _default_name(said: Answers, known: Known) -> str:
    of = said.get("value", said["statistic"])
    slug = re.sub(r"[^a-z0-9_]+", "-", of.lower()).strip("-_")
    return slug or said["statistic"]


def _default_topic(said: Answers, known: Known) -> str:
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", known.stem).strip("-.") or "events"


def _default_limit(said: Answers, known: Known) -> str:
    return "4" if is_each(said) else "16"


QUESTIONS = (
    Question("relation", _relation, _always(read.one_of(VALUES, ADD_REMOVE))),
    Question(
        "statistic", _statistic, lambda said, known: read.one_of(*STATISTICS[said["relation"]]), _default_statistic
    ),
    Question(
        "user",
        _field_words("Which field says whose record it is?", "user", "a person is one value of it"),
        lambda said, known: read.field_of(known.fields, "user", IDS),
        lambda said, known: known.proposed("user"),
    ),
    Question(
        "value",
        _field_words("Which field has the numbers?", "value"),
        lambda said, known: read.field_of(known.fields, "value", NUMBERS),
        lambda said, known: known.proposed("value"),
        has_value,
    ),
    Question(
        "time",
        _field_words("Which field says when it was?", "time"),
        lambda said, known: read.field_of(known.fields, "time", TIMES),
        lambda said, known: known.proposed("time"),
    ),
    Question(
        "group",
        _field_words(
            "Which field divides the records into groups, with a result for each?", "group", "none: there are none"
        ),
        lambda said, known: read.field_or_none(read.field_of(known.fields, "group", GROUPS)),
        lambda said, known: known.proposed("group") or NONE,
    ),
    Question("groups", _groups, _always(read.keys), applies=lambda said: has_group(said) and is_hidden(said)),
    Question("span", _span, _always(read.one_of(EACH, ALL)), _constant(EACH)),
    Question(
        "every",
        _constant("How long is such a time? Write 1h, 1d, 7d or the like."),
        _always(read.span),
        _constant("1d"),
    ),
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
    Question("range", _range, _always(read.ends), applies=has_value, decides_noise=True),
    Question("users", _users, _always(read.whole), _constant("1000"), decides_noise=True),
    Question("epsilon", _epsilon, _always(read.positive), _constant("1"), decides_noise=True),
    Question("delta", _delta, _always(read.positive), _constant("1e-9"), finds_groups, decides_noise=True),
    Question(
        "max-contributions",
        _max_contributions,
        _always(read.whole),
        _default_limit,
        lambda said: said["statistic"] != "users",
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
