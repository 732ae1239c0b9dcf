"""Lost records: what a topic lacks for a state is named, and an accepted loss holds for one state alone."""

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.lost_records import accepted, digest_of, gap, seal, unseal, way_on
from shoal.models.errors import FailStop
from shoal.models.losses import AcceptedLoss, Place
from shoal.stream.machine import StagePartition

HERE = StagePartition("bound", "events", 3)
SECRET = bytes(32)
offsets = st.integers(0, 50)


@given(offsets, offsets, offsets, st.sampled_from([None, "a", "b"]), st.booleans())
def test_a_topic_lacks_something_unless_it_is_the_one_that_was_read_and_has_the_next_offset(
    position: int, first: int, length: int, was: str | None, discreet: bool
) -> None:
    said = gap(HERE, position, was, "a", (first, first + length), discreet=discreet)
    assert (said is None) == (was != "b" and first <= position <= first + length)
    assert said is None or said.startswith("events[3]: ")
    # and where presence is protected, nothing that is said tells how many records there were
    others = gap(HERE, position + 7, was, "a", (first + 9, first + length + 9), discreet=True)
    assert not discreet or said is None or others is None or said.split()[1] != others.split()[1] or said == others


def test_offsets_are_named_only_where_presence_is_not_protected() -> None:
    said = [gap(HERE, position, "a", "a", (10, 20), discreet=False) or "" for position in (9, 21)]
    assert ["offsets 9 to 9 are gone" in said[0], "ends at 20 but 21 were read" in said[1]] == [True, True]
    hidden = [gap(HERE, position, "a", "a", (10, 20), discreet=True) or "" for position in (9, 21)]
    assert not any(character.isdigit() for text in hidden for character in text.removeprefix("events[3]"))


def test_only_what_others_wrote_can_be_given_up() -> None:
    assert "`shoal accept-loss a.toml events --by NAME`" in way_on(Path("a.toml"), "events", ["events"])
    assert "accept-loss" not in way_on(Path("a.toml"), "app.contributions", ["events"])


def mark(offset: int, **more: int) -> bytes:
    return orjson.dumps({"offset": offset} | more)


def loss(number: int, at: bytes, partition: int = 3, topic: str = "events") -> AcceptedLoss:
    return AcceptedLoss(number, topic, partition, Place(digest_of(SECRET, at), "b", first=1, next=9), "operator", "now")


def test_an_accepted_loss_holds_for_the_state_that_it_names_and_the_last_one_counts() -> None:
    rows = [loss(1, mark(5)), loss(2, mark(5)), loss(3, mark(5), partition=2), loss(4, mark(5), topic="others")]
    assert accepted(rows, HERE, mark(5), SECRET) == rows[1]
    assert accepted(rows, HERE, mark(6), SECRET) is None
    assert accepted(rows, HERE, mark(5), bytes(31) + b"1") is None
    assert accepted([], HERE, mark(5), SECRET) is None


def test_a_state_behind_a_loss_that_the_log_lacks_is_refused() -> None:
    assert accepted([loss(1, mark(5))], HERE, mark(12, turn=1), SECRET) is None
    with pytest.raises(FailStop, match="restore the newer log"):
        accepted([loss(1, mark(5))], HERE, mark(12, turn=2), SECRET)
    with pytest.raises(FailStop, match="restore the newer log"):
        accepted([loss(1, mark(5), partition=0)], HERE, mark(12, turn=1), SECRET)


nothing = st.none()
beats = st.integers(0, 4_000_000_000_000_000)
places = st.one_of(
    st.builds(Place, st.text(), st.text(), offsets, offsets, nothing, nothing),
    st.builds(Place, st.text(), st.text(), nothing, nothing, st.text("0123456789abcdef"), beats | nothing),
)


@given(places)
def test_a_place_comes_back_from_the_ledger(place: Place) -> None:
    assert Place.decode(place.encode()) == place
    # and says no offset that is sealed
    assert place.sealed is None or "next" not in place.encode()


@given(offsets, st.text())
def test_a_sealed_offset_is_read_with_the_key_alone(offset: int, digest: str) -> None:
    sealed = [seal(SECRET, digest, offset) for _ in range(2)]
    assert [unseal(SECRET, digest, one) for one in sealed] == [offset, offset]
    assert len({one[16:] for one in sealed}) == 2
    assert unseal(bytes(31) + b"1", digest, sealed[0]) != offset
    # and a loss that was accepted brings it back
    state = mark(5)
    place = Place(digest_of(SECRET, state), "id", sealed=seal(SECRET, digest_of(SECRET, state), offset))
    found = accepted([AcceptedLoss(1, "events", 3, place, "operator", "now")], HERE, state, SECRET)
    assert found is not None
    assert found.place.next == offset
