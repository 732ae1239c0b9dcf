"""However much a slot has, or one user in it: transactions and records stay as small as a broker wants them."""

from collections import Counter

import orjson

from shoal.mechanisms.slot import accounts as slot_accounts
from shoal.models.config.cell import MOST_BINS
from shoal.stream.contributions import _cells_cost
from shoal.stream.file_run import Line
from tests.stream.simulation import config, event, run_file
from tests.stream.test_slots import SURE, counted, messages, slots, slotted
from tests.stream.units import Event, Stage, plan_of


def test_a_user_in_very_many_cells_counts_in_the_first_ones(monkeypatch):
    """What release chooses of them takes a time that grows with their square, and one user is enough for it."""
    monkeypatch.setattr(slot_accounts, "MOST_CELLS", 3)
    events = [*(Event("a", 1, cell) for cell in "vwxyzv"), Event("b", 1, "z")]
    for most, found in ((1, "vwxzv"), (4, "vwxyzv")):
        stage = Stage(plan_of(slots(max_groups=most))).run(*events, Event("b", 11, "z"))
        assert counted(stage) == Counter((0, cell) for cell in found)
        assert stage.counters["cells_left_out"] == len("vwxyzvz") - len(found)


def test_a_slot_of_many_samples_is_not_sent_in_one_transaction(monkeypatch):
    """It would take longer than a transaction may, again after every restart."""
    monkeypatch.setattr(slot_accounts, "KEPT_SAMPLES", 10)
    stage = Stage(plan_of(slots(max_contributions=40)))
    stage.run(*(Event("ab"[n % 2], 1, "xy"[n % 3 > 0], n % 2) for n in range(100)), Event("a", 11), every=7)
    samples = [
        sum(row[4] for _, message in taken.messages for rows in message.contributions.values() for row in rows)
        for taken in stage.taken
    ]
    assert sum(samples) == 100
    assert 10 < max(samples) <= 17
    # and what was sent is not kept
    assert stage.machine.accounts[0].sizes[2] == 1
    assert sum(name.startswith(b"s") for name in stage.state) == 1


def test_long_names_of_cells_do_not_make_records_too_long_for_a_broker():
    """One user is enough: all those cells count, up to the choice of those in which it does."""
    name = "\\u0001" * 250  # six bytes each, in the event and out of it
    stage = Stage(plan_of(slots(max_contributions=9)))
    stage.run(*(Event("a", 1, f"{name}{n}") for n in range(800)), Event("a", 2, name, value=0.5))
    records = [len(value) for value in stage.changelog.values()]
    stage.run(Event("a", 11))
    assert len(messages(stage)) > 2
    assert max(records) < 850_000
    assert max(len(message.encode()) for message in messages(stage)) < 500_000
    assert sum(counted(stage).values()) == 801
    # then a takeover finds all of it
    stage = Stage(plan_of(slots(max_contributions=9)))
    stage.run(*(Event("a", 1, f"{name}{n}") for n in range(80)))
    stage.crash()
    stage.run(Event("a", 11))
    assert sum(counted(stage).values()) == 80


def test_messages_have_a_bounded_size(monkeypatch):
    monkeypatch.setattr("shoal.stream.contributions.MESSAGE_BYTES", 2000)
    stage = Stage(plan_of(slots(max_contributions=100)))
    stage.run(*(Event(f"u{n}", 1, f"cell {n}") for n in range(100)), Event("a", 11))
    assert len(messages(stage)) > 5
    assert max(len(message.encode()) for message in messages(stage)) < 2500
    assert sum(counted(stage).values()) == 100


def test_many_samples_of_one_user_are_cut_into_records_of_bounded_size(monkeypatch):
    monkeypatch.setattr(slot_accounts, "PIECE_BYTES", 3 * 20)  # a sample and its cell have 20
    stage = Stage(plan_of(slots(max_contributions=100)))
    stage.run(*(Event("a", 1, "xy"[n % 2], n % 3) for n in range(20)), Event("a", 11))
    rows = [row for message in messages(stage) for rows in message.contributions.values() for row in rows]
    assert [row[4] for row in rows] == [3] * 6 + [2]
    assert [row[2] for row in rows] == [1, 4, 7, 10, 13, 16, 19]
    assert counted(stage) == {(0, "x"): 10, (0, "y"): 10}


def test_samples_of_several_values_are_cut_by_how_many_they_are(monkeypatch):
    monkeypatch.setattr(slot_accounts, "PIECE_BYTES", 3 * (6 + 3 * 14))
    names = ("x", "y", "z")
    cfg = config(slotted(
        value=names, range=((0, 1),) * 3, grid=1 << 32, algorithm="few-users", delta="0.1", max_contributions=99,
    ))  # fmt: skip
    stage = Stage(plan_of(cfg))
    stage.log += [Line(n, event("a", 1, 1, y=n / 19, z=0)) for n in range(20)]
    stage.run(Event("b", 11))
    rows = [row for message in messages(stage) for rows in message.contributions.values() for row in rows]
    assert [row[4] for row in rows] == [3] * 6 + [2]
    sent = [sample for row in rows for sample in row[5][""]]
    assert [(x, z) for x, _, z in sent] == [(1 << 32, 0)] * 20
    assert [y for _, y, _ in sent] == [round((1 << 32) * n / 19) for n in range(20)]
    for row in rows:
        assert len(orjson.dumps(row)) <= _cells_cost(row[5])
        assert len(orjson.dumps([piece for sample in row[5][""] for piece in ("", sample)])) <= 3 * (6 + 3 * 14)


def test_the_largest_distribution_fits_into_a_record():
    quantiles = [f"{n}/1009" for n in range(1, 1009, 100)]
    whole = slotted(statistic="distribution", algorithm="best", grid=1 << 20, range=(-142857143, 333333333))
    cfg = config(whole | {"bins": MOST_BINS, "quantiles": quantiles, "epsilon": SURE})
    (found,) = run_file(cfg, [event(f"u{n}", n * 1e6, 1) for n in range(99)])
    assert len(found) < 1_000_000  # what a broker takes, with room to spare
