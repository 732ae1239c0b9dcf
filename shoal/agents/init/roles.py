"""Which field is the user, the value, the time and the group: proposed by names and forms, each with its reason.

A proposal is a guess that its owner confirms. Where two fields fit equally well, or none does, nothing is proposed.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from shoal.agents.init.fields import GROUPS, IDS, Field, Form, can_be_value

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# Words of names by what they mean, the plainest first. In English, and what is common in German, French and Spanish.
PERSONS = (
    "user customer client member person visitor patient subscriber employee student passenger player rider driver "
    "guest buyer owner household account uid userid username login email phone kunde benutzer nutzer person "
    "utilisateur cliente usuario"
).split()
THINGS = "device vehicle bus car card bike phone sensor meter session cookie ip".split()  # that stand for one
VALUES = (
    "amount value price cost total revenue sales spend spent paid sum fee fare tip balance salary income duration "
    "seconds minutes hours ms latency delay distance km speed score rating points quantity qty weight height age "
    "temperature temp pressure level size bytes steps heart rate consumption usage kwh dollars euros usd eur betrag "
    "preis wert montant prix importe precio valor"
).split()
TIME_WORDS = (
    "at time timestamp ts datetime date when occurred created started day zeit zeitpunkt uhrzeit datum heure fecha "
    "hora updated ended"
).split()
GROUP_WORDS = (
    "kind type category country region state city district zone area shop store branch site station line route "
    "product plan tier segment group class department team channel campaign source platform browser os status "
    "gender language currency brand model page link room floor cell"
).split()
IDENTIFIERS = "id key no nr number num code uuid guid".split()
PLACES = "lat latitude lon lng longitude".split()
ALMOST = 2  # how much more a better name is worth than a form


@dataclass(frozen=True)
class Proposal:
    """A field for a role, and why."""

    path: str
    reason: str


Score = Callable[[Field], int]


def propose(fields: Iterable[Field]) -> dict[str, Proposal]:
    """The field of each role, where one stands out; no field has two roles.

    >>> fields = [Field("userId", Form.NUMBER, 1), Field("amount", Form.NUMBER, 1), Field("at", Form.TIME, 1)]
    >>> {role: proposal.path for role, proposal in propose(fields).items()}
    {'user': 'userId', 'time': 'at', 'value': 'amount'}
    """
    left = [field for field in fields if field.fault is None]
    found: dict[str, Proposal] = {}
    for role, (by_name, by_form, words) in ROLES.items():
        named = _best(left, by_name)
        alone = None if named is not None else _only(left, by_form)
        field = named or alone
        if field is not None:
            reason = f"its name says so; {field.form.value}" if named else f"the only field with {words}"
            found[role] = Proposal(field.path, f"{reason}; {field.often}")
            left.remove(field)
    return found


def words_of(path: str) -> list[str]:
    """The words of a name, in small letters; of a nested field the words of its own name come first.

    >>> words_of("customer.homeCity"), words_of("USER_ID"), words_of("Kunden-Nr")
    (['home', 'city', 'customer'], ['user', 'id'], ['kunden', 'nr'])
    """
    *above, own = path.split(".")
    return [word.lower() for part in (own, *reversed(above)) for word in WORD.findall(part)]


def _best(fields: Iterable[Field], score: Score) -> Field | None:
    """The field that scores best, and better than all others; None if there is none."""
    ranked = sorted(((score(field), field) for field in fields), key=lambda pair: -pair[0])
    if not ranked or ranked[0][0] <= 0 or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][1]


def _only(fields: Iterable[Field], fits: Callable[[Field], bool]) -> Field | None:
    fitting = [field for field in fields if fits(field)]
    return fitting[0] if len(fitting) == 1 else None


def _says(words: Iterable[str], *vocabularies: list[str]) -> bool:
    return any(_rank(words, vocabulary) for vocabulary in vocabularies)


def _rank(words: Iterable[str], vocabulary: list[str]) -> int:
    """How plainly the words say it: more for a word that stands earlier in the vocabulary; 0 for none."""
    known = (word if word in vocabulary else word.removesuffix("s") for word in words)
    return max((len(vocabulary) - vocabulary.index(word) for word in known if word in vocabulary), default=0)


def _own(field: Field) -> list[str]:
    """The words of the field's own name, without those of the objects around it."""
    return words_of(field.path.rpartition(".")[2])


def _user(field: Field) -> int:
    own = _own(field)
    if field.form not in IDS or _says(own, VALUES, TIME_WORDS, GROUP_WORDS, PLACES):
        return 0
    words = words_of(field.path)
    rank = _rank(words, PERSONS) * len(THINGS) or _rank(words, THINGS)
    if not rank or not _says(own[-1:], PERSONS, THINGS, IDENTIFIERS):
        return 0  # a name of something that a user has, as a user's agent
    return rank + ALMOST * _says(own, IDENTIFIERS)


def _time(field: Field) -> int:
    own = _own(field)
    rank = _rank(own[-1:], TIME_WORDS) or _rank(own, TIME_WORDS)
    is_time = is_clearly_time(field)
    # a short number under such a name counts days or hours from some beginning
    if not rank or (not is_time and (field.form is not Form.DIGITS or _says(own, VALUES))):
        return 0
    return rank + len(TIME_WORDS) * is_time


def is_clearly_time(field: Field) -> bool:
    """Whether the form of a field is that of a time."""
    return field.form in (Form.TIME, Form.EPOCH)


def _value(field: Field) -> int:
    own = _own(field)
    if not can_be_value(field) or _says(own, IDENTIFIERS, PLACES):
        return 0
    return _rank(own, VALUES)


def _is_other_number(field: Field) -> bool:
    own = _own(field)
    return (
        can_be_value(field)
        and field.form is not Form.EPOCH
        and not _says(own, IDENTIFIERS, PLACES, PERSONS, THINGS, GROUP_WORDS, TIME_WORDS)
    )


def _group(field: Field) -> int:
    own = _own(field)
    if field.form not in GROUPS or _says(own, VALUES, TIME_WORDS, PLACES):
        return 0
    return _rank(own, GROUP_WORDS)


ROLES: Mapping[str, tuple[Score, Callable[[Field], bool], str]] = {
    "user": (_user, lambda field: False, ""),
    "time": (_time, is_clearly_time, "times"),
    "value": (_value, _is_other_number, "numbers that are nothing else"),
    "group": (_group, lambda field: False, ""),
}
