"""What a replay is made of, without Kafka: matching what is expected with what is found, and what it says."""

import hashlib
from collections.abc import Sequence

import orjson
import pytest
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.audit.log import Group
from shoal.agents.audit.replay import matching
from shoal.agents.audit.replay.matching import (
    KEPT,
    ActivationMatcher,
    ExpectedRecord,
    Findings,
    FoundRecord,
    ReleaseMatcher,
    name_of,
)
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topics import kafka_errors
from shoal.mechanisms.statistic import OF_KEY
from shoal.models.digests import FIRST
from shoal.models.errors import KafkaError
from shoal.models.records import shown_bytes
from shoal.models.version import VersionId

ALL = 10**9


def release(number: int, metric: str = "m", value: float = 1.0) -> ExpectedRecord:
    group = "ab"[number % 2]
    fields = {
        "metric": metric,
        "version": 1,
        "group": group,
        "seq": number // 2 + 1,
        "at": f"t{number}",
        "value": value,
    }
    return ExpectedRecord(
        (Group(VersionId("shoal", metric, 1), group), number // 2 + 1),
        f"{metric}|{group}".encode(),
        orjson.dumps(fields),
    )


def published(releases: Sequence[ExpectedRecord]) -> tuple[list[FoundRecord], int, str]:
    """As the release stage writes them; how many, and their chain."""
    digest, found = FIRST, []
    for count, one in enumerate(releases, 1):
        digest = hashlib.sha256(digest + one.value).digest()
        found.append(
            FoundRecord(count * 2, one.key, one.value, (("n", b"%d" % count), ("chain", digest.hex().encode())))
        )
    return found, len(found), digest.hex()


def match(
    expected: list[ExpectedRecord], found: list[FoundRecord], count: int, chain: str, *, end: int = ALL, step: int = 1
) -> tuple[Findings, ReleaseMatcher, set[tuple[bytes, str]]]:
    """Feed both in steps, as they come from Kafka."""
    findings = Findings()
    matcher = ReleaseMatcher(
        "shoal", "r[0]", findings, frozenset({VersionId("shoal", "old", 1)}), end=end, count=count, chain=chain
    )
    rest = list(found)
    for first in range(0, len(expected), step):
        matcher.expect(expected[first : first + step])
        matcher.settle()
        while matcher.hungry and rest:
            matcher.find([rest.pop(0)])
            matcher.settle()
        if not rest:
            matcher.skip_missing(0)
    matcher.settle(complete=True)
    while not matcher.over and rest:
        matcher.find([rest.pop(0)])
        matcher.settle(complete=True)
    return findings, matcher, matcher.finish(len(expected))


tampers = st.lists(
    st.tuples(st.sampled_from(["drop", "double", "swap", "change", "forge", "header"]), st.integers(0, 30))
)


@given(st.integers(0, 30), tampers, st.integers(1, 40))
def test_a_topic_matches_if_and_only_if_it_is_what_is_expected(
    count: int, changes: list[tuple[str, int]], step: int
) -> None:
    expected = [release(number) for number in range(count)]
    truth, state, chain = published(expected)
    found = list(truth)
    for change, where in changes:
        at = where % len(found) if found else 0
        match change:
            case "drop":
                del found[at : at + 1]
            case "double":
                found[at:at] = found[at : at + 1]
            case "swap":
                found[at : at + 2] = reversed(found[at : at + 2])
            case "change":
                found[at : at + 1] = [one._replace(value=release(where, value=2.0).value) for one in found[at : at + 1]]
            case "forge":
                found.insert(at, FoundRecord(3, b"x|", release(where, metric="x").value, ()))
            case "header":
                found[at : at + 1] = [one._replace(headers=(("n", b"7"),)) for one in found[at : at + 1]]
    findings, matcher, _ = match(expected, found, state, chain, step=step)
    assert bool(findings.all()) == (found != truth)
    if found == truth:
        assert matcher.confirmed == matcher.found == count
        assert [one for one, _ in matcher.take_accepted()] == expected
        assert not matcher.take_accepted()


def test_one_lost_and_one_forged_release_are_two_findings() -> None:
    expected = [release(number) for number in range(10)]
    found, count, chain = published(expected)
    found[4] = FoundRecord(9, b"m|x", b"{}", ())
    findings, matcher, _ = match(expected, found, count, chain)
    assert [one.kind for one in findings.all()] == ["forged", "missing"]
    assert (matcher.found, matcher.confirmed) == (10, 9)


def test_a_forged_header_is_told_once() -> None:
    # given a header of another history, from which the next ones go on
    expected = [release(number) for number in range(6)]
    found, count, _ = published(expected)
    digest = bytes(32)
    for number in range(2, 6):
        digest = hashlib.sha256(digest + expected[number].value).digest()
        headers = (("n", b"%d" % (number + 1)), ("chain", digest.hex().encode()))
        found[number] = found[number]._replace(headers=headers)
    findings, _, _ = match(expected, found, count, digest.hex())
    assert [(one.kind, one.where[-9:]) for one in findings.all()] == [("header", "release 2")]


def test_what_is_younger_than_the_state_is_left_for_the_next_audit() -> None:
    # given four releases in the state, of which the topic gained two more since, and one to come that was due
    expected = [release(number) for number in range(7)]
    found, _, _ = published(expected[:6])
    _, count, chain = published(expected[:4])
    findings = Findings()
    matcher = ReleaseMatcher("shoal", "r[0]", findings, frozenset(), end=found[4].offset, count=count, chain=chain)
    matcher.expect(expected)
    matcher.find(found)
    assert matcher.finish(4) == {(one.key, orjson.loads(one.value)["at"]) for one in expected[4:]}
    assert not findings.all()
    assert matcher.confirmed == 4
    # but what was there before the state was read is in the state
    findings = Findings()
    matcher = ReleaseMatcher("shoal", "r[0]", findings, frozenset(), end=ALL, count=count, chain=chain)
    matcher.expect(expected[:5])
    matcher.find(found)
    matcher.finish(4)
    assert [one.kind for one in findings.all()] == ["forged", "state"]


def test_retired_versions_are_passed_by_in_the_chain() -> None:
    both = [release(0), release(0, "old"), release(1), release(1, "old")]
    found, count, chain = published(both)
    findings, matcher, _ = match([both[0], both[2]], found, count, chain)
    assert not findings.all()
    assert (matcher.found, matcher.confirmed) == (2, 2)
    findings, _, _ = match([both[0], both[2]], [found[0], found[1]._replace(headers=()), *found[2:]], count, chain)
    assert [one.kind for one in findings.all()] == ["header"]


def test_a_stranger_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "AHEAD", 5)
    expected = [release(number) for number in range(5)]
    found, count, chain = published(expected)
    findings = Findings()
    matcher = ReleaseMatcher("shoal", "r[0]", findings, frozenset(), end=ALL, count=count, chain=chain)
    matcher.expect(expected)
    matcher.find([FoundRecord(1, None, None, ()), *found])
    matcher.settle()
    assert [one.message[-8:] for one in findings.all()] == ["offset 1"]
    assert matcher.confirmed == 5


def test_a_key_that_is_shown_has_the_name_of_a_level_that_there_is_not() -> None:
    shown = shown_bytes("m", 1, "g", 0, 0.2)
    assert name_of("shoal", shown, "level") == (Group(VersionId("shoal", "m", 1), "g"), OF_KEY)
    assert name_of("shoal", shown, "seq") is None


def test_activations_of_releases_to_come_are_not_missing() -> None:
    def activation(level: int) -> ExpectedRecord:
        fields = {"metric": "m", "version": 1, "group": None, "level": level, "at": f"t{level}"}
        return ExpectedRecord((Group(VersionId("shoal", "m", 1), ""), level), b"m|", orjson.dumps(fields))

    expected = [activation(level) for level in range(4)]
    found = [FoundRecord(level, one.key, one.value, ()) for level, one in enumerate(expected)]
    # given three in the topic, one of which is younger than the state, and of the other two one is not published yet
    findings = Findings()
    matcher = ActivationMatcher("shoal", "a[0]", findings, frozenset({VersionId("shoal", "old", 1)}), 3)
    matcher.expect(expected[:3])
    old = orjson.loads(found[0].value or b"") | {"metric": "old"}
    matcher.find([found[0], FoundRecord(1, b"old|", orjson.dumps(old), ()), found[3]])
    matcher.finish({(b"m|", "t2")})
    assert [(one.kind, one.where) for one in findings.all()] == [
        ("missing", 'a[0] metric "m" version 1 activation of level 1')
    ]


def test_findings_of_a_kind_are_counted_after_the_first_ones() -> None:
    findings = Findings()
    for number in range(KEPT + 3):
        findings.add("forged", str(number), "it is")
    assert len(findings.all()) == KEPT + 1
    assert findings.all()[-1].message == "3 more of this kind"


@pytest.mark.parametrize(
    "value", [None, b"no", b"[]", b"7", b"{}", b'{"metric":[],"version":1,"group":"","seq":1}',
              b'{"metric":"m","version":1,"group":"","seq":"1"}', b'{"metric":"m","version":1,"group":7,"seq":1}'],
)  # fmt: skip
def test_what_is_no_release_has_no_name(value: bytes | None) -> None:
    assert name_of("shoal", value, "seq") is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KafkaConnectionError("refused"), "no broker answers"),
        (TopicAuthorizationFailedError("t"), "TopicAuthorization"),
    ],
)
def test_errors_of_the_client_are_one_line(error: Exception, message: str) -> None:
    with pytest.raises(KafkaError, match=f"^somewhere: {message}"), kafka_errors(KafkaSettings("somewhere", "app")):
        raise error
