"""The first pass over a file: whether metrics can use enough of it, and whether it is in order of time.

It comes before anything is registered, charged or published. Its result is remarks for the operator, or a refusal; both
are functions of pattern. It decides which shares are too much.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from typing import Any

from shoal.agents.input.event_file import EventFile, events_in
from shoal.agents.input.forms import AS_UTF8, describe
from shoal.agents.input.read_ahead import read_ahead
from shoal.models.errors import InputError
from shoal.models.events import Refusal, getter, parse
from shoal.stream.file_run import beat_of, has_beat
from shoal.stream.survey import YEAR, Gap, Survey, Trouble
from shoal.stream.topic import TopicPlan

REMARK_FROM = 0.05  # a larger share of refused records gets a remark
CENTURY = 100 * YEAR  # a longer gap is a wrong date, and a sum would be released at each step of it
GAP_FROM = 10  # years; a longer gap gets a remark
MAX_LATE = 0.05  # a file in order of time has few that are late; one that is not has most
REMEDIES = "add --sort to run it in order of time, give the metrics a `lateness`, or accept it with --max-late SHARE"
WHOLE_TEXT = re.compile(r"[+-]?\d+\.0*")
NOTHING_DONE = "nothing was registered, charged or published"


@dataclass(frozen=True)
class Limits:
    """Largest shares of the records, from 0 to 1."""

    refused: float = 1.0
    late: float | None = None  # None: MAX_LATE, of those that no metric's `late` or `lateness` speaks of


def survey_file(file: EventFile, plan: TopicPlan, on_bytes: Callable[[int], None], kernel: Any = None) -> Survey:
    """Read the whole file once; in the kernel, if its module is given and knows the metrics.

    Raises:
        InputError: it cannot be read.
    """
    survey = Survey(plan, kernel)
    if survey.takes_blocks and file.is_in_lines():
        for first, block in read_ahead(file.whole_lines(on_bytes)):
            lines, _, has_blanks = kernel.RecordBatch.lines(block, 0)
            if has_blanks or (plan.protects_presence and has_beat(block)):
                _look_at(survey, plan, events_in(BytesIO(block), first))
            else:
                survey.look_through(lines, first)
        return survey
    for chunk in file.chunks(on_bytes):
        _look_at(survey, plan, chunk)
    return survey


def _look_at(survey: Survey, plan: TopicPlan, events: Iterable[tuple[int, bytes]]) -> None:
    look = survey.look
    for number, raw in events:
        if not plan.protects_presence or beat_of(raw) is None:
            look(number, raw)


def judge(survey: Survey, file: EventFile, limits: Limits) -> None:
    """Refuse a file that the metrics cannot use.

    Raises:
        InputError: no record can be used, more are refused or late than may be, or a table is in another encoding.
    """
    if not survey.records:
        raise InputError(f"{file.path}: there is no event in it; {NOTHING_DONE}")
    if not survey.usable and file.fault is not None:
        raise InputError(f"{file.path}: {file.fault}; {NOTHING_DONE}")
    if not survey.usable or survey.refused > limits.refused * survey.records:
        whole = "no record can be used by any metric" if not survey.usable else _refused(survey)
        raise InputError(f"{file.path}: {whole}: {first_reasons(survey.troubles, file)}; {NOTHING_DONE}")
    if survey.garbled and file.is_table:
        raise InputError(
            f"{file.path}: {_garbled(survey, file)}, and would be left out; {AS_UTF8}, or take these rows out; "
            f"{NOTHING_DONE}"
        )
    if survey.reads_dates_as_seconds:
        raise InputError(
            f"{file.path}: the times are calendar dates of eight digits, which as numbers are seconds in 1970; write "
            f"them as 2024-01-31; {NOTHING_DONE}"
        )
    gap = survey.longest_gap
    if gap is not None and gap.years * YEAR > max(CENTURY, survey.max_ahead):
        raise InputError(
            f"{file.path}: {_gap(gap, file)}; correct the time that is wrong, or set `max_ahead` above so many years; "
            f"{NOTHING_DONE}"
        )
    late, limit = (survey.disordered, MAX_LATE) if limits.late is None else (survey.late, limits.late)
    if late > limit * survey.records:
        raise InputError(f"{file.path} is not in order of time: {_late(survey)}; {NOTHING_DONE}: {REMEDIES}")


def remarks(survey: Survey, file: EventFile) -> Iterator[str]:
    """Remarks for the operator about a file that is run, a line each."""
    if survey.refused > REMARK_FROM * survey.records:
        yield f"{file.path}: {_refused(survey)}: {first_reasons(survey.troubles, file)}"
    elif survey.garbled:
        yield f"{file.path}: {_garbled(survey, file)}, and left out; {AS_UTF8}"
    for name, count in survey.by_metric.items():
        if not count:
            yield f'{file.path}: metric "{name}" can use none of the records'
    beginning = [raw for _, raw in next(file.chunks(), [])]
    repeats = sum(map(_names_twice, beginning))
    if repeats:
        yield f"{file.path}: {repeats} of the first events name a field twice; what comes last counts"
    if any(map(_reads_whole_text(survey.user), beginning)):
        yield (
            f"{file.path}: users in field {survey.user!r} are texts such as 12.0, who are other people than 12; "
            "write whole numbers without a point"
        )
    gap = survey.longest_gap
    if gap is not None and gap.years > GAP_FROM:
        yield f"{file.path}: {_gap(gap, file)}; is that so? A sum is released at each of its steps in between"
    if survey.latest is not None and survey.latest > time.time() * 10**6:
        yield (
            f"{file.path}: it has times after today; a file run counts them, and a worker refuses those that are ahead "
            "of their record by more than `max_ahead` (`too-far-ahead`)"
        )
    if survey.late:
        yield f"{file.path}: {_late(survey)}; --sort counts each in its own"


def _names_twice(raw: bytes) -> bool:
    """Whether an object in an event has two fields of one name, which JSON parsers do not report."""
    repeats = False

    def look(pairs: list[tuple[str, object]]) -> None:
        nonlocal repeats
        repeats = repeats or len({name for name, _ in pairs}) < len(pairs)

    try:
        json.loads(raw, object_pairs_hook=look, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return repeats


def _reads_whole_text(path: str) -> Callable[[bytes], bool]:
    """Whether an event's user is the text of a float that holds a whole number."""
    get = getter(path)

    def look(raw: bytes) -> bool:
        event = parse(raw)
        user = None if isinstance(event, Refusal) else get(event)
        return type(user) is str and WHOLE_TEXT.fullmatch(user) is not None

    return look


def _gap(gap: Gap, file: EventFile) -> str:
    return (
        f"more than {gap.years:,} years lie between the times of {file.places} {gap.before} and {file.places} "
        f"{gap.after}, and no record in between"
    )


def _refused(survey: Survey) -> str:
    return f"{_share(survey.refused, survey.records)} can be used by no metric"


def _garbled(survey: Survey, file: EventFile) -> str:
    """The records that one file in one encoding would not have."""
    share = _share(survey.garbled, survey.records)
    return (
        f"{share} are not UTF-8 text where a metric reads them, the first one in {file.places} {survey.first_garbled}"
    )


def _late(survey: Survey) -> str:
    return f"{_share(survey.late, survey.records)} come so late that they are left out or counted in a later tick"


def _share(part: int, whole: int) -> str:
    """As it is said.

    >>> _share(534, 600), _share(1, 30_000)
    ('534 of 600 records (89 %)', '1 of 30,000 records (0.0033 %)')
    """
    return f"{part:,} of {whole:,} records ({float(f'{100 * part / whole:.2g}'):g} %)"


def first_reasons(troubles: list[Trouble], file: EventFile) -> str:
    """The first reasons, each with where it occurred."""
    reasons = [(f"{file.places} {trouble.number}", f"{describe(trouble)} ({trouble.reason})") for trouble in troubles]
    parts = []
    for sentence, group in groupby(reasons, key=lambda pair: pair[1]):
        parts.append(f"{', '.join(place for place, _ in group)}: {sentence}")
    return "; ".join(parts)
