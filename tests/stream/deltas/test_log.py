"""A successor finds all that there is in the part of the log that is needed, which is never much longer than that."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.stores import packed
from shoal.models.errors import FailStop
from shoal.stream.deltas import rolling, writing
from shoal.stream.deltas.record import PREFIX
from shoal.stream.deltas.restoring import Restoring
from shoal.stream.kernel import stores
from shoal.stream.state_mark import FORMAT, MARK
from tests.stream.deltas.histories import PERIOD, History, Make, Plain, native, twin
from tests.support.backends import HAS_KERNEL
from tests.support.cover import covered, in_a_loop
from tests.support.effort import examples

LANES: list[Make] = [twin, *([native] if HAS_KERNEL else [])]
LEAST, BESIDE = rolling.LEAST, rolling.BESIDE
NAMES = [b"a", b"b", b"bb", b"x" * 200, b"", *(b"user-%d" % n for n in range(30))]

puts = st.tuples(st.integers(0, 2), st.sampled_from(NAMES), st.integers(0, 255), st.integers(0, 25))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(puts, min_size=1, max_size=12)),
        st.tuples(st.just("commit"), st.none()),
        st.tuples(st.just("clock"), st.integers(0, 12)),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=60,
)


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Little at a time, in many records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "LEAST", 30)
        patch.setattr(rolling, "CHUNK", 40)
        patch.setattr(rolling, "BESIDE", 1)
        patch.setattr(packed, "CHUNK", 40)
        patch.setattr(stores, "CHUNK", 40)
        patch.setattr(writing, "MOST_BYTES", 120)
        yield


def play(history: History, found: list[Any]) -> None:
    """Do the steps; at each restart all that was committed is there, and nothing else."""
    committed = history.accounts.state()
    for step, what in found:
        match step:
            case "put":
                for store, name, number, time in what:
                    history.accounts.put(store, name, number, max(time, history.promise or 0))
            case "commit":
                history.commit()
                committed = history.accounts.state()
            case "clock":
                history.promise = (history.promise or 0) + what
            case _:
                if history.log:
                    history.restart()
                    assert history.accounts.state() == committed
    history.commit()
    committed = history.accounts.state()
    history.restart()
    assert history.accounts.state() == committed


@examples(150)
@given(steps)
def test_what_is_needed_holds_everything(found) -> None:
    play(History(), found)


def test_each_name_is_written_again_before_its_record_is_deleted() -> None:
    # given names that came in ten transactions, whose records are no longer in the log
    history = History()
    for number in range(30):
        history.accounts.put(0, b"user-%d" % number, 1, 0)
        if number % 3 == 2:
            history.commit()
    for _ in range(12):
        history.commit()
    assert history.end.needs > 10
    # when somebody else takes over, then all names are there
    state = history.accounts.state()
    history.restart()
    assert history.accounts.state() == state


def test_a_period_that_is_over_does_not_come_back_with_a_restart() -> None:
    # given so many names that the log still has those of the period when it is over
    others = [(0, b"user-%d" % number, 1, 0) for number in range(30)]
    history = History()
    play(history, [("put", others), ("put", [(2, b"a", 1, 0)]), ("commit", None), ("clock", PERIOD)])
    assert len(history.accounts.state()) == len(others)


@examples(60)
@given(steps)
def test_what_is_wanted_alone_is_restored(found) -> None:
    history = History()
    play(history, found)
    accounts = Plain(twin)
    restoring = Restoring("here", [accounts], lambda _: None, lambda *_: None, is_wanted=lambda name: b"1" in name)
    for key, value in history.log:
        restoring.take(key, value)
    restoring.done()
    assert accounts.state() == [one for one in history.accounts.state() if b"1" in one[2]]


@pytest.mark.parametrize("make", LANES[-1:])
@examples(150)
@given(steps)
def test_both_lanes_write_the_same_bytes(make: Make, found) -> None:
    histories = History(twin), History(make)
    for history in histories:
        play(history, found)
    assert histories[0].log == histories[1].log
    assert histories[0].commit() == histories[1].commit()


@in_a_loop
@covered(strength=1)
@pytest.mark.parametrize("make", LANES)
@pytest.mark.parametrize("restarts", [0, 0.3, 0.01])
@pytest.mark.parametrize("most_puts", [30, 3000, 1])
def test_what_is_needed_is_about_twice_what_there_is(make: Make, restarts: float, most_puts: int) -> None:
    # given the sizes of every day, and transactions of few changes or of many, in which some users come often
    choose = random.Random(most_puts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "LEAST", LEAST)
        patch.setattr(rolling, "BESIDE", BESIDE)
        for module in (packed, stores, rolling):
            patch.setattr(module, "CHUNK", 5_000)
        patch.setattr(writing, "MOST_BYTES", 50_000)
        history, ratios = History(make), []
        state = largest = 0
        for number in range(400):
            for _ in range(choose.randint(0, most_puts)):
                often = choose.random() < 0.5
                who = choose.randrange(100 if often else 12_000)
                history.accounts.put(choose.randrange(3), b"user-%d" % who, choose.randrange(200), 3 + number // 100)
            history.promise = number // 10 if choose.random() < 0.1 else history.promise
            largest = max(largest, sum(len(value or b"") for _, value in history.commit()))
            # when it is restarted rarely, or much more often than a round takes
            if choose.random() < restarts:
                history.restart()
            if number >= 50 and number % 10 == 0:
                held = sum(len(value) for key, value in history.log if key.startswith(PREFIX))
                state = max(state, history.bytes_of_state)
                ratios.append((held - 2 * largest) / state)
    # then what is needed has about twice the bytes, and those of a transaction or two
    assert max(ratios) <= 2.1


CASES = ["lost", "twice", "moved", "altered", "format", "cut", "foreign", "tail", "mark", "other"]


def whole() -> History:
    history = History()
    for number in range(60):
        history.accounts.put(number % 3, b"user-%d" % (number % 17), number, 3)
        history.commit()
    return history


def refused(history: History, log: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(FailStop, match="users would start again at count 0"):
        history.restart(log)


@pytest.mark.parametrize("periods", [50, 500])
def test_many_open_periods_are_looked_through_once_a_transaction(periods: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: they were once for each that was written again: minutes, where there were some thousands."""
    looks = 0

    class Counted(rolling.Shelf):
        @property
        def oldest(self) -> int:
            nonlocal looks
            looks += 1
            return super().oldest

    monkeypatch.setattr(rolling, "Shelf", Counted)
    history = History()
    for _ in range(3):
        for period in range(periods):
            history.accounts.put(2, b"a", 1, PERIOD * period)
        looks = 0
        history.commit()
    # of all before anything is written again and after it, and of each that was
    assert looks <= 3 * periods
    assert len({start for start, *_ in history.accounts.state()}) == periods


def test_a_record_of_a_newer_format_is_refused_with_what_to_run() -> None:
    history = whole()
    key, value = history.log[0]
    with pytest.raises(FailStop, match=f"has format {FORMAT + 1}, this version of shoal reads up to {FORMAT}"):
        history.restart([(key, bytes((FORMAT + 1,)) + value[1:]), *history.log[1:]])


@pytest.mark.parametrize("case", CASES)
@examples(20)
@given(st.data())
def test_a_log_that_is_not_what_was_written_is_refused(case, data) -> None:
    history = whole()
    log, choose = history.log, st.integers(0, len(history.log) - 1)
    records = [at for at, (key, _) in enumerate(log) if key.startswith(PREFIX)]
    at = data.draw(st.sampled_from(records))
    key, value = log[at]
    match case:
        case "lost":
            refused(history, log[:at] + log[at + 1 :])
        case "twice":
            other = data.draw(choose)
            refused(history, [*log[:other], (key, value), *log[other:]])
        case "moved":
            other = data.draw(st.sampled_from([one for one in records if one != at]))
            swapped = list(log)
            swapped[at], swapped[other] = swapped[other], swapped[at]
            refused(history, swapped)
        case "altered":
            place = data.draw(st.integers(1, len(value) - 1))
            changed = value[:place] + bytes((value[place] ^ data.draw(st.integers(1, 255)),)) + value[place + 1 :]
            refused(history, [*log[:at], (key, changed), *log[at + 1 :]])
        case "format":
            changed = bytes((data.draw(st.integers(0, FORMAT - 1)),)) + value[1:]
            refused(history, [*log[:at], (key, changed), *log[at + 1 :]])
        case "cut":
            refused(history, log[at + 1 :])
        case "foreign":
            refused(history, [*log[: at + 1], (b"am/1\x00stranger", b"\x00\x01"), *log[at + 1 :]])
        case "tail":
            refused(history, log[: records[-1]] + log[-1:])
        case "mark":
            refused(history, [*log, (MARK, log[-1][1].replace(b'"promise":null', b'"promise":7777'))])
        case _:
            another = whole()
            another.accounts.put(0, b"somebody", 1, 1)
            another.commit()
            another.accounts.put(0, b"somebody", 1, 1)
            another.commit()
            history.accounts.put(0, b"else", 1, 1)
            history.commit()
            refused(history, [*history.log, *another.log[-2:]])
