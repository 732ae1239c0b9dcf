"""Keys of the library: other streams have other noise, and a second input under one key is refused."""

import copy
import pickle
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms import (
    Counter,
    DecayedCounter,
    DecayedStatistic,
    Exponential,
    FewUsersMean,
    GaussianMechanism,
    Key,
    KeyReused,
    KeySelection,
    LaplaceMechanism,
    PresenceStatistic,
    SharpMean,
    SlotMean,
    Window,
)
from shoal.mechanisms.library import keys
from tests.support.cover import in_a_loop
from tests.support.effort import examples

SECRET = bytes(range(32))
NEITHER: dict[str, Any] = {"low": 0, "high": 1, "epsilon": 1, "max_contributions": 2}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test stands for a process of its own."""
    keys._RELEASED.clear()
    yield
    keys._RELEASED.clear()


def numbers() -> LaplaceMechanism:
    return LaplaceMechanism(epsilon=Fraction(1, 10**9))


def test_a_key_is_32_bytes_and_has_a_name() -> None:
    with pytest.raises(ValueError, match="32 bytes, such as"):
        Key(bytes(16))
    with pytest.raises(TypeError, match="not str"):
        Key("a" * 32)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs a name"):
        Key(SECRET).named()
    with pytest.raises(ValueError, match="has its name already"):
        Key.of_metric(SECRET, "speed", 1, "00").named("speed")


def test_a_key_shows_itself_to_nobody() -> None:
    key = Key(SECRET)
    assert "0" not in repr(key)
    assert repr(key) == str(key.named("one")) == "Key(...)"
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled"):
            leave(key)


@examples(40)
@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), min_size=2, max_size=2, unique=True))
def test_names_and_secrets_make_noise_of_their_own(names: list[tuple[str, int]]) -> None:
    keys._RELEASED.clear()
    key = Key(SECRET)
    one, other = (numbers().open(key.named(*name)).release(0) for name in names)
    assert one != other
    assert one == numbers().open(Key(SECRET).named(*names[0])).release(0)
    assert one != numbers().open(Key(bytes(32)).named(*names[0])).release(0)


FOUND = KeySelection(epsilon=1, delta=Fraction(1, 2), horizon=9)
OF_USERS = PresenceStatistic(statistic="users", epsilon=1, max_contributions=1)
# Of each class streams that differ in one parameter: what would be released under one key with other noise.
DIFFERENT: list[list[Any]] = [
    [LaplaceMechanism(epsilon=1), LaplaceMechanism(epsilon=2), LaplaceMechanism(epsilon=1, sensitivity=2)],
    [GaussianMechanism(rho=1), GaussianMechanism(rho=2), GaussianMechanism(rho=1, sensitivity=2)],
    [
        Counter(epsilon=1), Counter(epsilon=2), Counter(epsilon=1, width=2), Counter(epsilon=1, horizon=9),
        Counter(epsilon=1, horizon=9, algorithm="binary"),
        Counter(epsilon=1, horizon=9, algorithm="square-root", delta=Fraction(1, 9)),
        Counter(epsilon=1, horizon=9, algorithm="square-root", delta=Fraction(1, 8)),
    ],
    [
        DecayedCounter(decay=Window(3), epsilon=1), DecayedCounter(decay=Window(4), epsilon=1),
        DecayedCounter(decay=Exponential(Fraction(1, 2)), epsilon=1), DecayedCounter(decay=Window(3), epsilon=2),
        DecayedCounter(decay=Window(3), epsilon=1, width=2),
    ],
    [
        SharpMean(**NEITHER), SharpMean(**NEITHER | {"low": -1}), SharpMean(**NEITHER | {"high": 2}),
        SharpMean(**NEITHER | {"epsilon": 2}), SharpMean(**NEITHER | {"max_contributions": 3}),
        SharpMean(**NEITHER, users=9), SharpMean(**NEITHER, horizon=9), SharpMean(**NEITHER, max_groups=1),
        SharpMean(**NEITHER, grid=4),
    ],
    [
        DecayedStatistic(statistic="sum", decay=Window(3), **NEITHER),
        DecayedStatistic(statistic="mean", decay=Window(3), **NEITHER),
        DecayedStatistic(statistic="sum", decay=Window(4), **NEITHER),
        DecayedStatistic(statistic="sum", decay=Window(3, of_updates=True), **NEITHER),
        DecayedStatistic(statistic="sum", decay=Window(3), **NEITHER | {"low": -1}),
        DecayedStatistic(statistic="sum", decay=Window(3), **NEITHER, max_groups=2),
        DecayedStatistic(statistic="sum", decay=Window(3), **NEITHER, grid=4),
    ],
    [
        SlotMean(**NEITHER), SlotMean(**NEITHER, algorithm="baseline"), SlotMean(**NEITHER, max_groups=2),
        SlotMean(**NEITHER | {"epsilon": 2}), SlotMean(**NEITHER | {"max_contributions": 3}),
        FewUsersMean(**NEITHER, delta=Fraction(1, 9)), FewUsersMean(**NEITHER, delta=Fraction(1, 8)),
        FewUsersMean(**NEITHER, delta=Fraction(1, 9), sigma=Fraction(1, 9)),
    ],
    [
        OF_USERS, PresenceStatistic(statistic="count", epsilon=1, max_contributions=1),
        PresenceStatistic(statistic="users", epsilon=2, max_contributions=1),
        PresenceStatistic(statistic="users", epsilon=1, max_contributions=2),
        PresenceStatistic(statistic="users", epsilon=1, max_contributions=1, decay=Window(1)),
        PresenceStatistic(statistic="users", epsilon=1, max_contributions=1, groups=("a",)),
        PresenceStatistic(statistic="users", epsilon=1, max_contributions=1, groups=("b",)),
        PresenceStatistic(statistic="users", epsilon=1, max_contributions=1, groups=("a", "b")),
        PresenceStatistic(statistic="users", epsilon=1, max_contributions=1, selection=FOUND),
        PresenceStatistic(
            statistic="users", epsilon=1, max_contributions=1,
            selection=KeySelection(epsilon=1, delta=Fraction(1, 2), horizon=9, ends=True),
        ),
        PresenceStatistic(statistic="sum", **NEITHER), PresenceStatistic(statistic="sum", **NEITHER | {"low": -1}),
        PresenceStatistic(statistic="mean", **NEITHER),
    ],
]  # fmt: skip


def test_streams_of_other_parameters_share_no_noise_under_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    # given streams of every kind under one key, each with parameters of its own
    opened: list[bytes] = []
    transcript = keys.Transcript.__init__

    def noted(self: keys.Transcript, secret: bytes) -> None:
        opened.append(secret)
        transcript(self, secret)

    monkeypatch.setattr(keys.Transcript, "__init__", noted)
    streams = [stream for alike in DIFFERENT for stream in alike]
    for parameters in streams:
        parameters.open(Key(SECRET))
    # then no two draw from the same bytes, and the key itself is used by none
    assert len(set(opened)) == len(streams)
    assert SECRET not in opened


def test_equal_parameters_are_one_stream_however_they_are_written() -> None:
    key = Key(SECRET)
    one, other = Counter(epsilon=Fraction(2, 2)).open(key), Counter(epsilon=1).open(key)
    assert one.add(5) == other.add(5)


@examples(60)
@given(st.lists(st.integers(-2, 2), max_size=6), st.lists(st.integers(-2, 2), max_size=6))
def test_a_second_input_under_a_key_is_refused_where_it_begins_to_differ(one: list[int], other: list[int]) -> None:
    keys._RELEASED.clear()
    # given a stream that was released
    counter, key = Counter(epsilon=Fraction(1, 10)), Key(SECRET)
    first, second = counter.open(key), counter.open(key)
    released = [first.add(x) for x in one]
    # when another is opened under its key
    for t, x in enumerate(other):
        is_same = one[: t + 1] == other[: t + 1] or (t >= len(one) and one == other[: len(one)])
        # then the same input is released again, and any other is refused before it is
        if not is_same:
            with pytest.raises(KeyReused, match=f"releases number {t + 1} would have no noise"):
                second.add(x)
            break
        made = second.add(x)
        assert t >= len(one) or made == released[t]


def open_streams() -> list[Any]:
    return [
        lambda key: lambda x: LaplaceMechanism(epsilon=1).open(key).release(x),
        lambda key: lambda x: GaussianMechanism(rho=1).open(key).release(x),
        lambda key: lambda x: DecayedCounter(decay=Window(3), epsilon=1).open(key).add(x),
        lambda key: lambda x: of_users(SharpMean(**NEITHER), key, x),
        lambda key: lambda x: of_users(DecayedStatistic(statistic="sum", decay=Window(3), **NEITHER), key, x),
        lambda key: lambda x: of_users(SlotMean(**NEITHER), key, x),
        lambda key: lambda x: of_users(PresenceStatistic(statistic="sum", **NEITHER), key, x),
    ]


def of_users(statistic: Any, key: Key, x: float) -> Any:
    stream = statistic.open(key)
    stream.add("ann", x)
    return stream.close()


@in_a_loop
@pytest.mark.parametrize("opened", open_streams())
def test_every_stream_refuses_a_second_input(opened: Any) -> None:
    release = opened(Key(SECRET))
    assert release(0) == release(0)
    with pytest.raises(KeyReused):
        release(1)


def test_users_and_ticks_are_part_of_an_input() -> None:
    statistic, key = PresenceStatistic(statistic="count", epsilon=1, max_contributions=9), Key(SECRET)
    for user, first in (("ann", 0), ("ben", 0), ("ann", 1)):
        stream = statistic.open(key, first=first)
        stream.add(user)
        if (user, first) == ("ann", 0):
            stream.close()
            continue
        with pytest.raises(KeyReused):
            stream.close()
