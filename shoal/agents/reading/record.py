"""One release, or one activation, as Python has it: frozen, typed, with the names that its JSON has.

Release      what was published about a metric, or one of its groups, at one time
Activation   what begins to count: a level, a key that is shown, the end of a clip range
Number       one number of either, with its noise interval: a value may have many
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from shoal.agents.reading.digits import interval, when
from shoal.agents.reading.fields import MOST_WHOLE, is_activation, is_release, number, object_of, part_of
from shoal.agents.reading.source import LengthOf
from shoal.models.times import MICROSECOND

Value = float | int | tuple[float | int | None, ...] | Mapping[str, Any] | None
VALUE, QUANTILE = "value", "quantile"
OF_BINS = ("histogram", "cdf")


class Number(NamedTuple):
    """One number. `part` is what of the value it is: value, mean, variance, quantile, histogram or cdf."""

    part: str
    coordinate: int | None  # of several, from 1
    quantile: float | None  # which one
    bin: int | None  # of a histogram or cdf, from 1
    value: float | int | None
    noise_sd: float | int | None
    low: float | int | None
    high: float | int | None
    error: float | int | None = None  # of a cell

    @property
    def name(self) -> str:
        """What tells it from the other numbers of its release: nothing, if it is the only one."""
        named = "" if self.part == VALUE else self.part
        which = next((each for each in (self.coordinate, self.quantile, self.bin) if each is not None), "")
        return f"{named} {which}".strip()


NO_NUMBER = Number(VALUE, None, None, None, None, None, None, None)  # of a value that is an empty list or object


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release; docs/reference/releases.md explains the fields. What its metric does not have is None.

    A value with several coordinates is a tuple, and one of several parts a dict: so are its noise and interval then.
    """

    metric: str
    version: int
    group: str | None
    seq: int
    id: str
    since: datetime | None  # the begin of a slot or window that ends at `at`, where the source says how long they are
    at: datetime
    value: Value
    noise_sd: Value
    low: Value
    high: Value
    samples: float | int | None
    count: float | int | None
    count_sd: float | int | None
    epsilon: float | None
    delta: float | None
    unit: str | None
    relation: str | None
    algorithm: str | None
    mechanism: str | None
    users: int | None
    dropped: int | None
    cell_epsilon: float | None
    error: Value
    degradation: float | None
    clip: float | None
    withheld_samples: int | None
    withheld_share: float | None
    nodes: tuple[float | int, ...] | None
    waits_until: datetime | None  # the latest time at which a sharp mean begins that has not

    @property
    def released(self) -> bool:
        """Whether there is a value; without one the release says that there is none."""
        return any(number.value is not None for number in self.numbers)

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Every number in it, at least one: of several coordinates, or parts, one for each."""
        return tuple(_numbers(self)) or (NO_NUMBER,)

    def __str__(self) -> str:
        """One line for people, with as many digits as the noise leaves meaning in."""
        parts = [f"{each.name} {interval(part_of(each.value, each.low, each.high))}" for each in self._shown()]
        name = self.metric if self.group is None else f"{self.metric} {self.group}"
        return f"{when(iso_of(self.at))}  {name}  " + "; ".join(part.strip() for part in parts)

    def _shown(self) -> list[Number]:
        """The numbers without the bins of a distribution."""
        numbers = self.numbers
        return [each for each in numbers if each.part not in OF_BINS] or [numbers[0]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """What begins to count at a time, and what that choice alone loses of epsilon."""

    metric: str
    version: int
    group: str | None
    at: datetime
    kind: str  # level, shown or clip
    level: int | None
    prior: Value
    high: float | None  # of a clip range
    epsilon: float | None
    samples: Value


def record_of(raw: bytes | None, length_of: LengthOf = lambda metric, version: None) -> Release | Activation | None:
    """What a record holds; None if it is neither. `length_of` gives the length of slots or windows in microseconds.

    >>> record_of(b'{"metric":"a","version":1,"at":"2026-01-05T00:00:00Z","kind":"shown","epsilon":1}').kind
    'shown'
    """
    fields = object_of(raw)
    if fields is None:
        return None
    if is_release(fields):
        return _release(fields, length_of(fields["metric"], fields["version"]))
    return _activation(fields) if is_activation(fields) else None


def _release(fields: dict[str, Any], length: int | None) -> Release:
    get = fields.get
    at, withheld = _time(fields["at"]), _object(get("withheld"))
    return Release(
        metric=fields["metric"], version=fields["version"], group=fields["group"], seq=fields["seq"],
        id=_text(get("id")) or "", since=None if length is None else _before(at, length), at=at,
        value=_value(fields["value"]), noise_sd=_value(get("noise_sd")), low=_value(get("low")),
        high=_value(get("high")), samples=_number(get("samples")), count=_number(get("count")),
        count_sd=_number(get("count_sd")), epsilon=number(get("epsilon")), delta=number(get("delta")),
        unit=_text(get("unit")), relation=_text(get("relation")), algorithm=_text(get("algorithm")),
        mechanism=_text(get("mechanism")), users=_whole(get("users")), dropped=_whole(get("dropped")),
        cell_epsilon=number(get("cell_epsilon")), error=_value(get("error")), degradation=number(get("degradation")),
        clip=number(get("clip")), withheld_samples=_whole(withheld.get("samples")),
        withheld_share=number(withheld.get("share")), nodes=_nodes(get("nodes")),
        waits_until=_until(_object(get("waiting")).get("until")),
    )  # fmt: skip


def _activation(fields: dict[str, Any]) -> Activation:
    get = fields.get
    version = _whole(get("version"))
    return Activation(
        metric=fields["metric"], version=1 if version is None else version, group=_text(get("group")),
        at=_time(fields["at"]), kind=_text(get("kind")) or "level", level=_whole(get("level")),
        prior=_value(get("prior")), high=number(get("high")), epsilon=number(get("epsilon")),
        samples=_value(get("samples")),
    )  # fmt: skip


def _numbers(release: Release) -> Iterator[Number]:
    sides = release.value, release.noise_sd, release.low, release.high, release.error
    shape = next((side for side in sides[:4] if isinstance(side, tuple | dict)), None)
    if isinstance(shape, tuple):
        for place in range(len(shape)):
            yield Number(VALUE, place + 1, None, None, *(_item(side, place) for side in sides))
    elif isinstance(shape, dict):
        for name, part in shape.items():
            yield from _parts(name, part, [side.get(name) if isinstance(side, dict) else None for side in sides])
    else:
        yield Number(VALUE, None, None, None, *(_number(side) for side in sides))


def _parts(name: str, shape: Any, sides: list[Any]) -> Iterator[Number]:
    if isinstance(shape, dict):
        for key in shape:
            yield Number(QUANTILE, None, _quantile(key), None, *(_item(side, key) for side in sides))
    elif isinstance(shape, list):
        for place in range(len(shape)):
            yield Number(name, None, None, place + 1, *(_item(side, place) for side in sides))
    else:
        yield Number(name, None, None, None, *(_number(side) for side in sides))


def _quantile(key: str) -> float | None:
    try:
        return float(key)
    except ValueError:
        return None


def _item(side: Any, key: Any) -> float | int | None:
    if isinstance(side, dict):
        return _number(side.get(key))
    return _number(side[key]) if isinstance(side, list | tuple) and isinstance(key, int) and key < len(side) else None


def _value(found: Any) -> Value:
    if isinstance(found, list):
        return tuple(_number(each) for each in found)
    return found if isinstance(found, dict) else _number(found)


def _nodes(found: Any) -> tuple[float | int, ...] | None:
    return tuple(each for each in found if number(each) is not None) if isinstance(found, list) else None


def _number(found: Any) -> float | int | None:
    """A finite number, as whole as it came."""
    return None if number(found) is None else found


def _whole(found: Any) -> int | None:
    """A whole number that a column of whole numbers can hold."""
    return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) <= MOST_WHOLE else None


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _until(text: Any) -> datetime | None:
    try:
        return _time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _object(found: Any) -> dict[str, Any]:
    """A JSON object, or an empty one in place of anything else."""
    return found if isinstance(found, dict) else {}


def iso_of(at: datetime) -> str:
    """A time as releases write it."""
    return at.isoformat().replace("+00:00", "Z")


def _before(at: datetime, length: int) -> datetime | None:
    try:
        return at - length * MICROSECOND
    except OverflowError:
        return None
