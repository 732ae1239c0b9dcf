"""What was published is written once, in its chain, whatever comes twice, early or wrong."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.agents.audit.app_ledger import End
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.log import Equivocation, Group, Head, MissingSeq, StreamEnded
from shoal.agents.audit.verify import verify
from shoal.mechanisms.statistic import OF_CLIP, OF_KEY
from shoal.models.digests import FIRST, chain
from shoal.models.errors import AuditError
from shoal.models.records import clip_bytes, shown_bytes
from shoal.models.version import VersionId
from tests.agents.audit.audit_examples import APP, activation, register, release, version
from tests.support.effort import tries

NL = Group(VersionId(APP, "basket", 1), "NL")
END = End(VersionId(APP, "basket", 1), "1997-02-01T00:00:00Z", "d1")


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url, migrate=True) as opened:
        register(opened, version("basket"), version("visits"))
        yield opened


def chained(*releases: bytes) -> bytes:
    digest = FIRST
    for one in releases:
        digest = chain(digest, one)
    return digest


def test_releases_are_kept_byte_for_byte_in_the_chain_of_their_group(ledger: Ledger) -> None:
    # given releases of two groups and of a metric without groups
    rows = [release(1), release(1, "BE"), release(2), release(1, None, metric="visits"), release(3)]
    assert ledger.of(APP).append(rows).written == 5
    # then each is there as it was published, at the end of its own chain
    assert ledger.of(APP).release(Group(VersionId(APP, "basket", 1), "NL"), 2) == release(2)
    assert ledger.of(APP).release(Group(VersionId(APP, "visits", 1), ""), 1) == release(1, None, metric="visits")
    assert ledger.of(APP).release(Group(VersionId(APP, "basket", 1), "NL"), 4) is None
    assert ledger.of(APP).heads() == {
        NL: Head(3, chained(release(1), release(2), release(3))),
        Group(VersionId(APP, "basket", 1), "BE"): Head(1, chained(release(1, "BE"))),
        Group(VersionId(APP, "visits", 1), ""): Head(1, chained(release(1, None, metric="visits"))),
    }
    assert ledger.of("other").heads() == {}


def test_nothing_is_appended_from_nothing(ledger: Ledger) -> None:
    assert ledger.of(APP).append([]).written == 0


def test_repeats_are_compared_and_skipped(ledger: Ledger) -> None:
    ledger.of(APP).append([release(1), release(2)])
    again = ledger.of(APP).append([release(2), release(3), release(3), release(1)])
    assert (again.written, again.repeated) == (1, 3)
    assert ledger.of(APP).heads()[NL].seq == 3


@pytest.mark.parametrize("together", [True, False])
def test_two_values_for_one_id_are_refused_and_hold_up_no_other_group(ledger: Ledger, together: bool) -> None:
    # given a release, and another value under its id, in the same batch or later
    honest, forged = [release(1), release(2)], release(2, value=9.0)
    batch = [forged, release(3), release(1, "BE")]
    if together:
        batch = honest + batch
    else:
        ledger.of(APP).append(honest)
    # then it is an equivocation
    with pytest.raises(Equivocation, match='metric "basket" version 1 group "NL": release 2 has two values') as caught:
        ledger.of(APP).append(batch)
    # and nothing of the batch was written for this group, everything for the other
    assert caught.value.group == NL
    assert caught.value.written == 1
    heads = ledger.of(APP).heads()
    assert heads.pop(Group(VersionId(APP, "basket", 1), "BE")).seq == 1
    assert heads == ({} if together else {NL: Head(2, chained(*honest))})


def test_a_release_that_comes_too_early_waits(ledger: Ledger) -> None:
    ledger.of(APP).append([release(1)])
    # when 2 is missing, 3 and 4 are handed back; the other group goes on
    with pytest.raises(MissingSeq, match="release 3 came while 2 is missing") as caught:
        ledger.of(APP).append([release(4), release(3), release(1, "BE")])
    assert (caught.value.group, caught.value.expected, caught.value.got) == (NL, 2, 3)
    assert caught.value.waiting == (release(3), release(4))
    # and once 2 is there they follow
    ledger.of(APP).append([release(2), *caught.value.waiting])
    assert ledger.of(APP).heads()[NL] == Head(4, chained(*map(release, range(1, 5))))
    with pytest.raises(MissingSeq, match="release 9 came while 5 is missing"):
        ledger.of(APP).append([release(9)])


def test_equivocation_is_told_before_a_gap(ledger: Ledger) -> None:
    ledger.of(APP).append([release(1)])
    with pytest.raises(Equivocation) as caught:
        ledger.of(APP).append([release(3, "BE"), release(1, value=9.0)])
    assert caught.value.waiting == (release(3, "BE"),)


def test_a_stream_that_ended_takes_no_new_release(ledger: Ledger) -> None:
    ledger.of(APP).append([release(1)], activations=[activation(0)], ends=[END])
    assert ledger.of(APP).append([release(1)]).repeated == 1
    with pytest.raises(StreamEnded, match='group "NL": the stream ended and this input goes on; raise its version'):
        ledger.of(APP).append([release(2)])
    assert ledger.of(APP).heads()[NL].seq == 1


def test_a_batch_with_a_fault_does_not_end_its_stream(ledger: Ledger) -> None:
    with pytest.raises(MissingSeq):
        ledger.of(APP).append([release(2)], ends=[END])
    assert {row.state for row in ledger.of(APP).versions()} == {"active"}


def test_a_release_of_an_unknown_version_is_refused(ledger: Ledger) -> None:
    with pytest.raises(AuditError, match='metric "basket" version 7 is not registered under app'):
        ledger.of(APP).append([release(1), release(1, number=7)])
    assert ledger.of(APP).heads() == {}


@pytest.mark.parametrize("record", [b"not JSON", b"[1]", b'{"metric": "basket"}'])
def test_a_foreign_record_is_refused(ledger: Ledger, record: bytes) -> None:
    with pytest.raises(AuditError, match="neither release nor activation"):
        ledger.of(APP).append([record])


@pytest.mark.slow
@pytest.mark.parametrize("group", ["a\0b", "a\\0b", "\\", "\\\\0", "é|/'\"", "٣", "x" * 256])
def test_any_text_can_be_a_group(ledger: Ledger, group: str) -> None:
    rows = [release(1, group), release(2, group)]
    ledger.of(APP).append(rows[:1])
    assert ledger.of(APP).append(rows).repeated == 1
    assert ledger.of(APP).heads() == {Group(VersionId(APP, "basket", 1), group): Head(2, chained(*rows))}


def test_activations_are_kept_once(ledger: Ledger) -> None:
    assert ledger.of(APP).append_activations([activation(0), activation(1), activation(1)]).written == 2
    assert ledger.of(APP).append_activations([activation(1), activation(0)]).repeated == 2
    with pytest.raises(Equivocation, match="the activation of level 1 has two values"):
        ledger.of(APP).append_activations([activation(1, prior=30.0), activation(2)])
    with ledger.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT level, prior, at FROM activation ORDER BY level").all()
    assert [tuple(row) for row in rows] == [(level, "20.0", "1970-01-01T00:00:00Z") for level in range(3)]


def test_a_key_that_is_shown_is_kept_once_and_holds_against_its_bytes(ledger: Ledger) -> None:
    shown = shown_bytes("basket", 1, "NL", 0, 0.2)
    ledger.of(APP).append([release(1, "NL")])
    assert ledger.of(APP).append_activations([shown, shown]).written == 1
    assert ledger.of(APP).activation(NL, OF_KEY) == shown
    assert not [one for one in verify(ledger) if one.kind == "columns"]
    with pytest.raises(Equivocation, match="the activation that shows it has two values"):
        ledger.of(APP).append_activations([shown_bytes("basket", 1, "NL", 1, 0.2)])
    with ledger.database.write() as connection:
        connection.exec_driver_sql("UPDATE activation SET at = '1999-01-01T00:00:00Z'")
    [found] = [one for one in verify(ledger) if one.kind == "columns"]
    assert found.where.endswith('group "NL" activation that shows it')


def test_a_clip_range_is_kept_beside_what_shows_its_key(ledger: Ledger) -> None:
    shown, clip = shown_bytes("basket", 1, "NL", 0, 0.2), clip_bytes("basket", 1, "NL", 0, 42.5, 0.15)
    ledger.of(APP).append([release(1, "NL")])
    assert ledger.of(APP).append_activations([shown, clip, clip, shown]).written == 2
    assert ledger.of(APP).activation(NL, OF_CLIP) == clip
    assert not [one for one in verify(ledger) if one.kind == "columns"]
    with ledger.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT level, prior FROM activation ORDER BY level").all()
    assert [tuple(row) for row in rows] == [(-2, "42.5"), (-1, "null")]
    with pytest.raises(Equivocation, match="the activation of its clip range has two values"):
        ledger.of(APP).append_activations([clip_bytes("basket", 1, "NL", 0, 43.5, 0.15)])


@settings(max_examples=tries(6), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_interleaving_with_repeats_ends_in_the_same_rows(ledger: Ledger, data: st.DataObject) -> None:
    """The stream delivers from some earlier offset again, in batches of any size; the log does not show it."""
    # given the releases of three groups as their partitions hold them, in a version nobody has used
    number = max(row.version for row in ledger.of(APP).versions()) + 1
    register(ledger, version("basket", number, epsilon="0"), version("visits"))
    groups = ["NL", "BE", None]
    topic = {group: [release(seq, group, number=number) for seq in range(1, 9)] for group in groups}
    reached = dict.fromkeys(groups, 0)
    # when they come in any batches, each beginning anywhere up to where the log stands
    while min(reached.values()) < 8:
        group = data.draw(st.sampled_from([group for group in groups if reached[group] < 8]))
        start = data.draw(st.integers(0, reached[group]))
        stop = data.draw(st.integers(reached[group] + 1, 8))
        batch = data.draw(st.permutations(topic[group][start:stop]))
        ledger.of(APP).append(batch)
        reached[group] = stop
    # then every chain is that of its releases in order
    expected = {
        Group(VersionId(APP, "basket", number), group or ""): Head(8, chained(*topic[group])) for group in groups
    }
    assert {
        group: head for group, head in ledger.of(APP).heads().items() if group.version.version == number
    } == expected


def test_speed(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed, not asserted: the machine is shared."""
    rows = [release(seq, f"group-{group}") for seq in range(1, 11) for group in range(1_000)]
    start = time.perf_counter()
    for first in range(0, len(rows), 5_000):
        ledger.of(APP).append(rows[first : first + 5_000])
    with capsys.disabled():
        print(f" {ledger.database.url.get_backend_name()}: {len(rows) / (time.perf_counter() - start):,.0f} releases/s")
