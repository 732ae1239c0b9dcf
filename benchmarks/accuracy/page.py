"""The tables of accuracy, and the page that they make."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.accuracy import picture
from benchmarks.accuracy.comparators import BY_ELEMENT, BY_RELEASE, OPENDP
from benchmarks.accuracy.picture import Line
from benchmarks.accuracy.scoring import Score
from benchmarks.page import Page, number, verdict

TITLE = "Accuracy"
SHARP = "sharp"
WORSE = 1.05  # than the better naive + BLUE: what is allowed
RULES = """\
Measured with `make bench-accuracy`; the figures are those of [accuracy.json](accuracy.json), and a short account is
[accuracy](../../docs/explanation/accuracy.md). Epsilon is 1 for all values of a person, for all releases together.

## What is measured

* **Error**: a release less the mean of *all* events so far, as they are: none clipped, none left out by the cap, none
  withheld in an open block. Root mean square over keys (and looks), as a part of the range. `final` is the last release
  of the stream, `late` the last three quarters of the stream.
* **Same for everyone**: inputs, range, cap m, users n; every estimate is clamped to the range (`sharp` clamps its own
  to its clip range); before its first
  release an algorithm counts as the middle of the range; what counts at an instant is the latest release.
* **Cadence**: a release per contribution, 32 releases, or 365 releases (purchases: one a day, 546). Per contribution,
  releases are looked at at some 400 instants. A binary tree is at its best after 2^k elements, which is where the
  synthetic streams end: read `late`.
* **wishful, single-tree, multi-tree** need a prior; they get the true mean, and pay nothing for it.
* **naive + BLUE** is the naive sum in the best counter there is, by element or by release: closed form, noise taken
  as normal. **OpenDP** is called anew for each release with epsilon / releases, on per-user sums within m times the
  range. **MF** is the matrix factorisation for users (arXiv 2601.22320), its 1/(i+1) and its square root, by element,
  at epsilon = 1 and delta = 1e-6, in closed form, for users who take part m times at *equal distances*. Arrival in
  random order has no such distances: it is a bound on how well MF could do, under a weaker guarantee.
* **Driven** as the pure objects on arrays: contributions per tick as workers send them, `close`, `estimate`. A test
  holds the releases against those of `shoal run`, byte for byte. Inputs and keys are fixed; OpenDP's noise is its own.

"""


@dataclass(frozen=True)
class Found:
    """All about one input."""

    name: str
    about: str
    users: int
    cap: int
    events: int
    bound: float | None  # the lower bound's order, for samples of one law
    scores: dict[str, list[Score]]  # by cadence
    lines: dict[str, list[Line]]  # what the picture may show

    def score(self, cadence: int, name: str) -> Score | None:
        """Of one algorithm at the first, second or third cadence."""
        return next((one for one in list(self.scores.values())[cadence] if one.name == name), None)


def tables(found: Sequence[Found]) -> str:
    """All tables."""
    sections = (_targets, _weak, _errors, _ratios, _noise, _bounds, _inputs)
    return "\n\n".join(part for section in sections for part in section(found))


def _number(value: float | None) -> str:
    return number(value, digits=2)


def _names(found: Sequence[Found], cadence: int) -> list[str]:
    return [one.name for one in list(found[0].scores.values())[cadence]]


def _title(found: Sequence[Found], cadence: int) -> str:
    return ("A release per contribution", "32 releases", "365 releases, or one a day")[cadence]


def _grid(found: Sequence[Found], cadence: int, of: Callable[[Score], str]) -> str:
    """A row per input, a column per algorithm."""
    names = _names(found, cadence)
    rows = []
    for one in found:
        scores = [one.score(cadence, name) for name in names]
        rows.append((one.name, *("–" if score is None else of(score) for score in scores)))
    return figures.table(("", *names), rows)


def _errors(found: Sequence[Found]) -> Iterator[str]:
    for cadence in range(3):
        yield f"## {_title(found, cadence)}"
        yield "RMSE over the last three quarters of the stream:"
        yield _grid(found, cadence, lambda score: _number(score.late))
        yield "RMSE at the final release:"
        yield _grid(found, cadence, lambda score: _number(score.final))
        yield "First useful release (noise interval below a quarter of the range), in per cent of the stream:"
        yield _grid(found, cadence, lambda score: "never" if score.useful is None else _number(100 * score.useful))


def _noise(found: Sequence[Found]) -> Iterator[str]:
    yield "## Noise, measured over stated"
    yield (
        "Standard deviation over keys of what was released over the last three quarters, over `noise_sd`; "
        "in brackets the keys. Few keys, and noise that stays for long, make it uncertain; `full` and `sharp` choose "
        "clip ranges by private outputs too, whose effect on the estimate is no part of `noise_sd`."
    )
    rows = []
    for one in found:
        for cadence, (title, scores) in enumerate(one.scores.items()):
            drawn = {score.name: score for score in scores if score.keys}
            cells = [f"{_number(score.measured)} ({score.keys})" for score in drawn.values()]
            if not cadence:
                names = list(drawn)
            rows.append((one.name, title, *cells))
    yield figures.table(("", "cadence", *names), rows)


def _ratios(found: Sequence[Found]) -> Iterator[str]:
    if not _has_sharp(found):
        return
    yield "## What sharp gains"
    yield (
        "RMSE of `sharp` over that of the comparator, late and final; below 1 is better. ± is one standard error of an "
        "RMSE of `sharp`, as far as the number of keys goes."
    )
    rows = []
    for one in found:
        for cadence, title in enumerate(one.scores):
            sharp = one.score(cadence, SHARP)
            if sharp is not None:
                cells = (_ratio(sharp, one.score(cadence, name)) for name in (BY_ELEMENT, BY_RELEASE))
                gains = (_gain(sharp, one.score(cadence, name)) for name in ("naive", "full", OPENDP))
                rows.append((one.name, title, *cells, f"{100 * sharp.uncertain:.0f} %", *gains))
    header = (
        "",
        "cadence",
        f"of {BY_ELEMENT}",
        f"of {BY_RELEASE}",
        "±",
        "naive / sharp",
        "full / sharp",
        "OpenDP / sharp",
    )
    yield figures.table(header, rows)


def _ratio(sharp: Score, other: Score | None) -> str:
    return "–" if other is None else f"{sharp.late / other.late:.2f}, {sharp.final / other.final:.2f}"


def _gain(sharp: Score, other: Score | None) -> str:
    return "–" if other is None else f"{_number(other.late / sharp.late)}, {_number(other.final / sharp.final)}"


TARGETS = (  # input, cadence, RMSE at the final release at most
    ("beta-1024-1024", 0, 0.0090),
    ("beta-1024-1024", 1, 0.0015),
    ("beta-4096-4096", 0, 8.7e-4),
    ("beta-4096-4096", 1, 1.75e-4),
)


def _targets(found: Sequence[Found]) -> Iterator[str]:
    by_name = {one.name: one for one in found}
    rows = []
    for name, cadence, most in TARGETS:
        sharp = by_name[name].score(cadence, SHARP) if name in by_name else None
        if sharp is not None:
            rows.append(
                (name, _title(found, cadence), f"{most:.2g}", f"{sharp.final:.2g}", verdict(sharp.final <= most))
            )
    gains = [
        (other.late / sharp.late, other.final / sharp.final)
        for one in found
        if (sharp := one.score(2, SHARP)) and (other := one.score(2, OPENDP))
    ]
    if not rows or not gains:
        return
    least = min(map(min, gains))
    rows.append(("all", "365 releases", "OpenDP / sharp at least 10", _number(least), verdict(least >= 10)))
    worst = max(_worst(found))
    row = (
        "all",
        "all",
        f"sharp / best naive + BLUE at most {WORSE}, beyond two standard errors",
        f"{worst[0]:.2f} ({worst[1]})",
        verdict(worst[0] <= WORSE),
    )
    yield "## Targets of sharp"
    yield "RMSE at the final release; for the ratios, the worst of all inputs, late and final."
    yield figures.table(("input", "cadence", "target", "measured", ""), [*rows, row])


def _worst(found: Sequence[Found]) -> Iterator[tuple[float, str]]:
    for one, _, title, sharp, other in _rivals(found):
        yield _surely(sharp, sharp.late / other.late), f"{one.name}, {title}, late"
        yield _surely(sharp, sharp.final / other.final), f"{one.name}, {title}, final"


def _surely(sharp: Score, ratio: float) -> float:
    """What a ratio is at least, by twice its standard error: with few keys most of it is chance."""
    return ratio / (1 + 2 * sharp.uncertain)


def _rivals(found: Sequence[Found]) -> Iterator[tuple[Found, int, str, Score, Score]]:
    """Sharp and the better of the naive means with a BLUE counter, everywhere."""
    for one in found:
        for cadence, title in enumerate(one.scores):
            sharp = one.score(cadence, SHARP)
            others = [other for name in (BY_ELEMENT, BY_RELEASE) if (other := one.score(cadence, name))]
            if sharp and others:
                yield one, cadence, title, sharp, min(others, key=lambda other: other.late)


def _weak(found: Sequence[Found]) -> Iterator[str]:
    """Where sharp loses, and whether it is to noise."""
    rows = [
        (one.name, title, f"{sharp.late / other.late:.2f}", f"{sharp.final / other.final:.2f}",
         _number(sharp.late), _number(sharp.noise), f"{100 * sharp.uncertain:.0f} %")
        for one, _, title, sharp, other in _rivals(found)
        if _surely(sharp, max(sharp.late / other.late, sharp.final / other.final)) > WORSE
    ]  # fmt: skip
    if _has_sharp(found):
        yield "## Where sharp is worse"
        yield (
            f"By more than {100 * (WORSE - 1):.0f} % than the better naive + BLUE, late or final, beyond two standard "
            "errors (±, as far as the number of keys goes). Where its RMSE is more than the noise that it states, the "
            "rest is what its clip range, its cap and its waiting cost."
        )
        header = ("", "cadence", "late ratio", "final ratio", "late RMSE", "late noise sd", "±")
        yield figures.table(header, rows) if rows else "Nowhere."


def _has_sharp(found: Sequence[Found]) -> bool:
    """Whether sharp was measured."""
    return any(one.score(0, SHARP) for one in found)


def _bounds(found: Sequence[Found]) -> Iterator[str]:
    lines = [one for one in found if one.bound is not None]
    if not lines:
        return
    yield "## Distance to the lower bound"
    yield (
        "George et al. prove that no algorithm of this kind has an error of lower order than 1/√(nm) + 1/(√m n ε) at "
        "the end of nm samples of one law, without constants, and for the error against the law's mean. Here: that "
        "expression with all constants 1, and the pure algorithm with the least such error at the final release, the "
        "ones with a prior for free left out. A quotient below 1 says that the constants are smaller than 1."
    )
    rows = []
    for one in lines:
        for cadence, title in enumerate(one.scores):
            best = min(_candidates(one, cadence))
            rows.append(
                (
                    one.name,
                    title,
                    _number(one.bound),
                    _number(best[0]),
                    best[1],
                    _number(best[0] / (one.bound or math.nan)),
                )
            )
    yield figures.table(("input", "cadence", "bound", "least RMSE", "of", "quotient"), rows)


def _candidates(one: Found, cadence: int) -> Iterator[tuple[float, str]]:
    for name in ("naive", "full", SHARP):
        score = one.score(cadence, name)
        if score is not None and score.to_law is not None:
            yield score.to_law, name


def _inputs(found: Sequence[Found]) -> Iterator[str]:
    yield "## Inputs"
    yield figures.table(("name", "what it is", "events", "n", "m"), [
        (one.name, one.about, f"{one.events:,}", f"{one.users:,}", one.cap) for one in found
    ])  # fmt: skip


def page(found: Sequence[Found], seconds: float, keys: int) -> Page:
    """All that is shown of a run."""
    effort = f"{seconds / 60:.0f} minutes on one core, at most {keys} keys"
    data = {"seconds": round(seconds), "keys": keys, "inputs": [as_json(one) for one in found]}

    def draw(folder: Path) -> None:
        picture.draw({one.name: one.lines for one in found}, folder / "accuracy.png")

    return Page("accuracy", TITLE, RULES, tables(found), effort, data, draw)


def as_json(one: Found) -> dict[str, object]:
    """Names and scores."""
    scores = {cadence: [asdict(score) for score in scores] for cadence, scores in one.scores.items()}
    about = {"name": one.name, "about": one.about, "users": one.users, "cap": one.cap, "events": one.events}
    return {**about, "lower_bound": one.bound, "scores": scores}


def from_json(data: Mapping[str, Any]) -> list[Found]:
    """What was written, without the lines that only the picture needs."""
    return [
        Found(
            one["name"], one["about"], one["users"], one["cap"], one["events"], one["lower_bound"],
            {cadence: [Score(**score) for score in scores] for cadence, scores in one["scores"].items()}, {},
        )
        for one in data["inputs"]
    ]  # fmt: skip
