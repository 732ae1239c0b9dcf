"""The events of a case, made by integer arithmetic alone: no library's random numbers, whose streams may change.

Units differ: few of them have many events. Values lie inside and outside of the range, on the grid and half way between
its points. Times come in every notation; some are late, some at the very end of a tick, and twice there is a silence.
Groups outnumber what a unit may have. Once in a while comes a record that must be refused, one for every reason.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Stream:
    """What comes, and how fast."""

    count: int = 700
    start: int = 1_709_251_200  # seconds since the epoch: 2024-03-01T00:00:00Z
    pace: int = 600  # mean seconds between two events
    silence: int = 100_000  # seconds; half as long a second time
    units: int = 150
    alike: bool = False  # every unit has about as many events as any other
    in_order: bool = False  # no late events, and nothing that Kafka alone would refuse: a file run sees the same
    refusals: bool = True
    odd_forms: bool = False  # with records that few producers write
    beats: bool = False  # every ten events comes a beat, to all partitions


@dataclass(frozen=True)
class Event:
    """A record of the source topic, and where it goes."""

    value: bytes | None
    user: bytes  # names the partition
    stamp: int  # of the Kafka record, milliseconds
    headers: tuple[tuple[str, bytes], ...] = ()
    astray: bool = False  # it comes to another partition than its user's
    in_files: bool = True  # False: only Kafka has such records


class Numbers:
    """A linear congruence modulo 2**64 (Knuth's MMIX), of which the upper bits are used."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        """The next number of 0 .. limit - 1."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % limit


@cache
def events_of(stream: Stream) -> tuple[Event, ...]:
    """All of them, in the order in which they come."""
    return tuple(_events(stream, Numbers(stream.start + stream.count)))


def end_of(stream: Stream) -> str:
    """A time after all events, when every tick of at most a day is over, as ISO 8601 has it."""
    latest = stream.start + stream.pace * (stream.count + 1) + 2 * stream.silence
    return _iso((latest // 86400 + 2) * 86400 * SECOND)


def _events(stream: Stream, numbers: Numbers) -> Iterator[Event]:
    refused = list(_refusals()) if stream.refusals else []
    now = stream.start * SECOND
    for index in range(stream.count):
        now += _step(stream, numbers)
        if index == stream.count * 2 // 5:
            now += stream.silence * SECOND
        if index == stream.count * 7 // 10:
            now += stream.silence * SECOND // 2
        time = now if stream.in_order else _shifted(now, stream, numbers)
        if stream.beats and index % 10 == 0:
            yield Event(None, b"", now // 1000, (("shoal-beat", _iso(now).encode()),), in_files=False)
        yield _event(index, time, now, stream, numbers)
        if stream.odd_forms and index % 7 == 3:
            yield _odd(index // 7, now)
        if index % 23 == 11 and refused:
            yield _refused(now, refused.pop(0))
    if not stream.in_order:
        yield from _of_kafka_alone(now)


def _step(stream: Stream, numbers: Numbers) -> int:
    """Microseconds until the next event; one in ten comes at the same time as the one before it."""
    if numbers.below(10) == 0:
        return 0
    return numbers.below(2 * stream.pace * SECOND)


def _shifted(now: int, stream: Stream, numbers: Numbers) -> int:
    """Some are a little late, some very; some fall on the last microsecond of an hour, or on the first of the next."""
    hour = 3600 * SECOND
    match numbers.below(20):
        case 0:
            return now - numbers.below(4 * stream.pace * SECOND)
        case 1:
            return now - numbers.below(100 * stream.pace * SECOND)
        case 2:
            return now // hour * hour
        case 3:
            return now // hour * hour - 1
        case _:
            return now


# ---------------------------------------------------------------- one event


def _event(index: int, time: int, now: int, stream: Stream, numbers: Numbers) -> Event:
    unit = min(numbers.below(stream.units) for _ in range(1 if stream.alike else 3))
    user = _user(unit)
    fields = {
        "u": user, "x": _value(unit, numbers), "t": _time(time, numbers), "g": _group(unit, numbers),
        "y": str(numbers.below(4001) - 2000), "z": f'{{"w":{numbers.below(1001)}.5e-1}}',
        "v": str(numbers.below(10)), "w": str(numbers.below(7)),
        "lat": f"{52_000 + 40 * (unit % 9) + numbers.below(60)}e-3",
        "lon": f"{13_000 + 60 * (unit % 7) + numbers.below(90)}e-3",
    }  # fmt: skip
    name = json.loads(user)
    stamp = _stamp(now)
    return Event(_object(fields, numbers), (name if isinstance(name, str) else user).encode(), stamp)


def _object(fields: dict[str, str], numbers: Numbers) -> bytes:
    """JSON, now with spaces and now without."""
    between = numbers.below(2) * " "
    return ("{" + f",{between}".join(f'"{name}":{between}{value}' for name, value in fields.items()) + "}").encode()


def _user(unit: int) -> str:
    """As JSON: texts of several alphabets, integers, and some beyond 64 bits."""
    match unit % 7:
        case 0:
            return f'"zoë-{unit}"'
        case 1:
            return str(unit)
        case 2:
            return f'"用户{unit}"'
        case 3:
            return str(2**64 + unit)
        case 4:
            return f'"\\u00fc{unit}"'
        case _:
            return f'"user{unit}"'


def _value(unit: int, numbers: Numbers) -> str:
    """Mostly near what the unit usually has, in hundredths, which lie on a grid of tenths or half way between."""
    match numbers.below(25):
        case 0:
            return ("1e400", "-1e400", "-0.0", "100000000000000000000000")[numbers.below(4)]
        case 1:
            return ("0", "100", "99.95", "0.05", "0.049999999999")[numbers.below(5)]
        case 2:
            return str(numbers.below(300) - 100)
        case _:
            hundredths = 2000 + unit * 37 % 30 * 100 + numbers.below(1500)
            return f"{hundredths // 100}.{hundredths % 100:02}"


def _group(unit: int, numbers: Numbers) -> str:
    choice = unit + max(0, numbers.below(8) - 4)
    return ('"north"', '"süd"', '"東"', "7", "true", '"a|b"')[choice % 6]


def _time(time: int, numbers: Numbers) -> str:
    """As JSON: ISO 8601 with and without an offset, seconds, milliseconds, decimals."""
    seconds, micros = divmod(time, SECOND)
    match numbers.below(5):
        case 0 if micros % 1000 == 0 and time >= 10**14:
            return str(time // 1000)
        case 1 if micros == 0:
            return str(seconds)
        case 2 if seconds >= 0:
            return f"{seconds}.{micros:06}"
        case 3:
            local = EPOCH + timedelta(microseconds=time, hours=5, minutes=30)
            return f'"{local.isoformat().removesuffix("+00:00")}+05:30"'
        case _:
            return f'"{_iso(time)}"'


def _iso(time: int) -> str:
    return (EPOCH + timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")


# ---------------------------------------------------------------- what is refused


def _refusals() -> Iterator[str]:
    """Records that some metric or other refuses; {t} stands for a time."""
    place = '"lat":52.01,"lon":13.02'
    yield '{{"u":"lost","x":1,"t":{t},"g":"north",' + place  # no JSON
    yield '["u","x"]'
    yield '{{"x":1,"t":{t},"g":"north",' + place + "}}"
    yield '{{"u":[1],"x":1,"t":{t},"g":"north",' + place + "}}"
    yield '{{"u":1.5,"x":1,"t":{t},"g":"north",' + place + "}}"
    yield '{{"u":"user5","t":{t},"g":"north",' + place + "}}"
    yield '{{"u":"user5","x":"1","y":null,"t":{t},"g":"north",' + place + "}}"
    yield '{{"u":"user5","x":1,"g":"north",' + place + "}}"
    yield '{{"u":"user5","x":1,"t":"yesterday","g":"north",' + place + "}}"
    yield '{{"u":"user5","x":1,"t":{t},"lat":52.01}}'
    yield '{{"u":"user5","x":1,"t":{t},"g":"","lon":13.02}}'
    yield '{{"u":"user5","x":1,"t":{t},"g":null,"lat":95,"lon":13.02}}'
    yield '{{"u":"user5","x":1,"t":{t},"g":[],"lat":52,"lon":181}}'
    yield '{{"u":"user5","x":NaN,"t":{t},"g":"north",' + place + "}}"
    yield '{{"u":"user5","x":1,"t":{t},"g":"north",' + place + ',"deep":' + "[" * 201 + "]" * 201 + "}}"
    yield '{{"u":"user5","x":null,"t":{t},"g":"north","long":"' + "ab" * 35_000 + '"}}'


def _odd(index: int, now: int) -> Event:
    """Odd forms: whole floats, NaN, a byte order mark, digits as text."""
    seconds, place = now // SECOND, '"lat":"52.01","lon":" 13.02"'
    user, time, before, after = (
        ("12.0", f'"{seconds}"', "", ""),
        ("1.2e1", f'"{seconds}000"', "", ',"other":NaN'),
        ("12", f"{seconds}000000", "\ufeff", ""),
        ('"user5"', f"{seconds}000000000", "", ',"y":Infinity'),
        ("12.5", str(seconds), "", ""),
        ('"user5"', '"20240301"', "", ""),
    )[index % 6]
    fields = f'"u":{user},"x":{40 + index % 20},"t":{time},"g":{index % 3}.0,{place}{after}'
    name = user.strip('"') if user[0] == '"' else "12"
    return Event(f"{before}{{{fields}}}".encode(), name.encode(), _stamp(now))


def _refused(now: int, fields: str) -> Event:
    return Event(fields.format(t=now // SECOND).encode(), b"user5", _stamp(now))


def _of_kafka_alone(now: int) -> Iterator[Event]:
    """Too far ahead; in a partition that is not its user's; a clock that cannot be read; no value at all."""
    stamp = _stamp(now)
    ahead = {"u": '"user6"', "x": "3", "t": str(now // SECOND + 40 * 86400), "g": '"north"', "lat": "52", "lon": "13"}
    astray = ahead | {"u": '"astray"', "t": str(now // SECOND)}
    always = Numbers(1)
    yield Event(_object(ahead, always), b"user6", stamp, in_files=False)
    yield Event(_object(astray, always), b"astray", stamp, astray=True, in_files=False)
    yield Event(None, b"user5", stamp, headers=(("shoal-clock", b"soon"),), in_files=False)
    yield Event(None, b"user5", stamp, in_files=False)


def _stamp(now: int) -> int:
    """Timestamp in milliseconds of a record sent a second later; brokers take none before 1970."""
    return max(0, now // 1000 + 1000)
