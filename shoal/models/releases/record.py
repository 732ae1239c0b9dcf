"""Releases and activations as Python has them: frozen, typed, with the names that their JSON has.

Release      what was published about a metric, or one of its groups, at one time
Activation   what begins to count: a level, a key that is shown, the end of a clip range
Number       one number of a release, with its noise interval: a value may have many

`record_of` is the only reader of their JSON. The bytes may be anybody's, and reading never fails because of them. A
record without what all records have is None; so is a field that its metric does not have, or that has another type.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from shoal.mechanisms.statistic import OF_CLIP, OF_KEY
from shoal.models.records import CLIP, SHOWN
from shoal.models.releases.digits import interval, when
from shoal.models.releases.numbers import Part, as_it_came, is_count, item, number, part_of, text, whole
from shoal.models.times import EPOCH, MICROSECOND, iso, time_of_text

LengthOf = Callable[[str, int], int | None]  # of metric and version
Value = float | int | tuple[float | int | None, ...] | Mapping[str, Any] | None
VALUE, QUANTILE, QUANTILES = "value", "quantile", "quantiles"
OF_BINS = ("histogram", "cdf")
LEVEL = "level"  # the kind of an activation that states none
T = TypeVar("T")


class Number(NamedTuple):
    """One number. `part` is what of the value it is: value, mean, variance, quantile, histogram or cdf."""

    part: str
    coordinate: int | None  # index from 1 in a value with several coordinates; None: the value has one
    quantile: float | None  # which one
    bin: int | None  # of a histogram or cdf, from 1
    value: float | int | None
    noise_sd: float | int | None
    low: float | int | None
    high: float | int | None
    error: float | int | None = None  # of a cell

    @property
    def name(self) -> str:
        """Name of the number within its release, such as "quantile 0.5"; "" for the only number."""
        named = "" if self.part == VALUE else self.part
        which = next((each for each in (self.coordinate, self.quantile, self.bin) if each is not None), "")
        return f"{named} {which}".strip()


NO_NUMBER = Number(VALUE, None, None, None, None, None, None, None)  # of a value that is an empty list or object


# ---------------------------------------------------------------- fields


def _value(found: Any) -> Value:
    if isinstance(found, list):
        return tuple(map(as_it_came, found))
    return found if isinstance(found, dict) else as_it_came(found)


def _nodes(found: Any) -> tuple[int, ...] | None:
    """Integers; those beyond 64 bits are texts in the JSON."""
    if not isinstance(found, list) or not all(type(each) in (int, str) for each in found):
        return None
    try:
        return tuple(map(int, found))
    except ValueError:
        return None


def _object(found: Any) -> dict[str, Any]:
    """A JSON object, or an empty one in place of anything else."""
    return found if isinstance(found, dict) else {}


def _checked(found: Any) -> Any:
    """The value itself: `record_of` has checked it."""
    return found


class Field(Generic[T]):
    """A field of a record, converted on each access: whoever reads a million records needs few fields of each."""

    def __init__(self, convert: Callable[[Any], T], name: str = "") -> None:
        self._convert, self._name = convert, name

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = self._name or name

    def __get__(self, record: Any, owner: type | None = None) -> T:
        return self._convert(record.fields.get(self._name))


# ---------------------------------------------------------------- records


@dataclass(frozen=True)
class Record:
    """Fields that releases and activations share."""

    fields: Mapping[str, Any] = field(hash=False)  # the JSON object
    time: int  # `at`, in microseconds since 1970

    metric = Field[str](_checked)
    version = Field[int](_checked)
    group = Field[str | None](_checked)
    epsilon = Field(number)

    @property
    def at(self) -> datetime:
        """The end of the tick, in UTC."""
        return EPOCH + self.time * MICROSECOND


@dataclass(frozen=True)
class Release(Record):
    """One release; docs/reference/releases.md explains the fields. What its metric does not have is None.

    A value with several coordinates is a tuple, and one of several parts a dict: so are its noise and interval then.
    """

    length: int | None = None  # of the slot or window that ends at `at`, in microseconds, where the source states it

    seq = Field[int](_checked)
    id = Field(lambda found: text(found) or "")
    value = Field(_value)
    noise_sd = Field(_value)
    low = Field(_value)
    high = Field(_value)
    samples = Field(as_it_came)
    count = Field(as_it_came)
    count_sd = Field(as_it_came)
    delta = Field(number)
    unit = Field(text)
    relation = Field(text)
    algorithm = Field(text)
    mechanism = Field(text)
    users = Field(whole)
    dropped = Field(whole)
    cell_epsilon = Field(number)
    error = Field(_value)
    degradation = Field(number)
    clip = Field(number)
    withheld = Field(_object)
    nodes = Field(_nodes)
    _waiting = Field(_object, "waiting")

    @property
    def since(self) -> datetime | None:
        """The begin of the slot or window that ends at `at`; None without a length, or before the year 1."""
        try:
            return None if self.length is None else self.at - self.length * MICROSECOND
        except OverflowError:
            return None

    @property
    def withheld_samples(self) -> int | None:
        return whole(self.withheld.get("samples"))

    @property
    def withheld_share(self) -> float | None:
        return number(self.withheld.get("share"))

    @property
    def waits_until(self) -> datetime | None:
        """The latest time at which a sharp mean begins that has not."""
        until = text(self._waiting.get("until"))
        time = None if until is None else time_of_text(until)
        return None if time is None else EPOCH + time * MICROSECOND

    @property
    def counted(self) -> tuple[float | None, float | None]:
        """Number of samples, and its standard deviation; None for the deviation of an exact number."""
        exact = number(self.fields.get("samples"))
        return (
            (number(self.fields.get("count")), number(self.fields.get("count_sd"))) if exact is None else (exact, None)
        )

    @property
    def released(self) -> bool:
        """Whether there is a value; without one the release says that there is none."""
        return any(number.value is not None for number in self.numbers)

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Every number in it, at least one: of several coordinates, or parts, one for each."""
        return tuple(_numbers(self)) or (NO_NUMBER,)

    def parts(self) -> tuple[list[Part], list[str]]:
        """The numbers for a chart with their intervals, and their names; of a distribution its quantiles.

        >>> Release({"value": [1.5, None], "low": [1, None], "high": [2, None]}, 0).parts()
        ([(1.5, 1.0, 2.0), (None, None, None)], ['1', '2'])
        >>> Release({"value": {"mean": 3.25, "variance": 1}, "low": {"mean": 3, "variance": 0}}, 0).parts()[1]
        ['mean', 'variance']
        """
        value, low, high = map(self.fields.get, ("value", "low", "high"))
        if isinstance(value, list) and value:
            keys: list[Any] = list(range(len(value)))
            names = [str(place + 1) for place in keys]
        elif isinstance(value, dict) and isinstance(value.get(QUANTILES), dict) and value[QUANTILES]:
            value, low, high = (item(side, QUANTILES) for side in (value, low, high))
            keys = sorted(value, key=lambda name: _quantile(name) or 0.0)
            names = [f"{QUANTILE} {name}" for name in keys]
        elif isinstance(value, dict) and value:
            keys = names = list(value)
        else:
            return [part_of(value, low, high)], [""]
        return [part_of(value[key], item(low, key), item(high, key)) for key in keys], names

    def __str__(self) -> str:
        """One line for people, with as many digits as the noise leaves meaning in."""
        parts = [f"{each.name} {interval(part_of(each.value, each.low, each.high))}" for each in self._shown()]
        name = self.metric if self.group is None else f"{self.metric} {self.group}"
        return f"{when(iso(self.time))}  {name}  " + "; ".join(part.strip() for part in parts)

    def _shown(self) -> list[Number]:
        """The numbers without the bins of a distribution."""
        numbers = self.numbers
        return [each for each in numbers if each.part not in OF_BINS] or [numbers[0]]


@dataclass(frozen=True)
class Activation(Record):
    """What begins to count at a time, and what that choice alone loses of epsilon."""

    kind = Field(lambda found: text(found) or LEVEL)  # level, shown or clip
    level = Field(whole)
    prior = Field(_value)
    high = Field(as_it_came)  # of a clip range
    samples = Field(_value)

    @property
    def number(self) -> int:
        """The level, or what stands for it in the audit log if the kind has none."""
        return {SHOWN: OF_KEY, CLIP: OF_CLIP}.get(self.kind, self.level or 0)

    @property
    def around(self) -> Value:
        """What values are clipped to: around a prior, or the end of a range."""
        return self.high if self.kind == CLIP else self.prior


def record_of(raw: bytes | None, length_of: LengthOf = lambda metric, version: None) -> Release | Activation | None:
    """What a record holds; None if it is neither. `length_of` gives the length of slots or windows in microseconds.

    >>> raw = b'{"metric":"a","version":1,"group":"x","at":"2026-01-05T00:00:00Z","kind":"shown","epsilon":1}'
    >>> record_of(raw).kind
    'shown'
    """
    try:
        fields = orjson.loads(raw or b"")
    except orjson.JSONDecodeError:
        return None
    time = _time(fields) if isinstance(fields, dict) else None
    if time is None:
        return None
    if VALUE not in fields:
        begins = whole(fields.get("level")) is not None or fields.get("kind") in (SHOWN, CLIP)
        return Activation(fields, time) if begins else None
    if not is_count(fields.get("seq")) or not _is_value(fields[VALUE]):
        return None
    return Release(fields, time, length_of(fields["metric"], fields["version"]))


def _time(fields: dict[str, Any]) -> int | None:
    """The time of what has a metric, a version and a group; None of anything else."""
    at, group = fields.get("at"), fields.get("group", 0)
    is_named = isinstance(fields.get("metric"), str) and (group is None or isinstance(group, str))
    return time_of_text(at) if isinstance(at, str) and is_named and is_count(fields.get("version")) else None


def _is_value(found: Any) -> bool:
    return found is None or isinstance(found, list | dict) or number(found) is not None


# ---------------------------------------------------------------- numbers


def _numbers(release: Release) -> Iterator[Number]:
    sides = release.value, release.noise_sd, release.low, release.high, release.error
    shape = next((side for side in sides[:4] if isinstance(side, tuple | dict)), None)
    if isinstance(shape, tuple):
        for place in range(len(shape)):
            yield Number(VALUE, place + 1, None, None, *(_item(side, place) for side in sides))
    elif isinstance(shape, dict):
        for name, part in shape.items():
            yield from _parts(name, part, [item(side, name) for side in sides])
    else:
        yield Number(VALUE, None, None, None, *map(as_it_came, sides))


def _parts(name: str, shape: Any, sides: list[Any]) -> Iterator[Number]:
    if isinstance(shape, dict):
        for key in shape:
            yield Number(QUANTILE, None, _quantile(key), None, *(_item(side, key) for side in sides))
    elif isinstance(shape, list):
        for place in range(len(shape)):
            yield Number(name, None, None, place + 1, *(_item(side, place) for side in sides))
    else:
        yield Number(name, None, None, None, *map(as_it_came, sides))


def _quantile(key: str) -> float | None:
    try:
        return float(key)
    except ValueError:
        return None


def _item(side: Any, key: Any) -> float | int | None:
    return as_it_came(item(side, key))
