"""What a text claims about a loss: per what, how much, and how much in a week and in a year.

The patterns know phrases of English, and no function of the package: what another module words is read as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:/\d+)?"
DELTA = rf"(?:, (?:delta|δ)(?: =)? (?P<delta>{NUMBER})|, with a (?P<none>delta) that)?"
LOSS = rf"(?:epsilon|ε)(?: =)? (?P<epsilon>{NUMBER}){DELTA}"
WHOM = r"(?P<whom>(?:person|user|event)(?: and \w+)?)"
NOTHING = Fraction(1)  # a delta that promises nothing
EVER = (  # all that there is, and so the loss of a week and of a year
    rf"up to {LOSS} in a week, in a year and for ever",
    rf"{LOSS} per (?:person|user), for ever",
    rf"per person up to {LOSS}, for ever",
    rf"{LOSS}[^.;]* together",
    rf"{LOSS} for all of it",
)
CLAIMS = {
    "unit": (
        rf"{LOSS} per {WHOM}\b",
        rf"{LOSS} of each {WHOM}\b",
        rf"\bPer {WHOM}(?:, for ever)?(?:, in \d+ metrics)?: {LOSS}",
    ),
    "week": (rf"in a week[^,;:]*? up to {LOSS}", *EVER),
    "year": (rf"in a year[^,;:]*? up to {LOSS}", *EVER),
}


@dataclass(frozen=True)
class Claim:
    """One thing that is said of a loss; `whom` where it is of one unit."""

    kind: str
    epsilon: Fraction
    delta: Fraction
    whom: str | None = None


def claims(text: str) -> set[Claim]:
    """All that a text claims.

    >>> sorted(claim.kind for claim in claims("epsilon = 1 per person and day, in a week up to epsilon = 7"))
    ['unit', 'week']
    """
    plain = " ".join(text.split())
    return {
        _claim(kind, found)
        for kind, patterns in CLAIMS.items()
        for each in patterns
        for found in re.finditer(each, plain)
    }


def _claim(kind: str, found: re.Match[str]) -> Claim:
    said = found.groupdict()
    delta = NOTHING if said["none"] else Fraction(said["delta"] or 0)
    whom = said.get("whom")
    return Claim(kind, Fraction(said["epsilon"]), delta, None if whom is None else whom.replace("user", "person"))


def disagreements(surfaces: Mapping[str, str]) -> list[str]:
    """What two surfaces, or two sentences of one, say differently of one loss; `surfaces` are texts by name."""
    said: dict[str, dict[Claim, list[str]]] = {}
    for name, text in surfaces.items():
        for claim in claims(text):
            said.setdefault(claim.kind, {}).setdefault(claim, []).append(name)
    return [f"{kind}: {told}" for kind, told in said.items() if len(told) > 1]


def kinds(text: str) -> set[str]:
    """Which kinds of claims a text has."""
    return {claim.kind for claim in claims(text)}
