"""What the audit finds without the key. Each test tampers with a sound log as an attacker with SQL would."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.verify import compare_topic, verify
from shoal.models.digests import chain
from tests.agents.audit.audit_examples import APP, activation, register, release, version

TOPIC = [release(1), release(1, "BE"), release(2), release(2, "BE"), release(3), release(4)]


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A sound log: two groups, activations, a metric without groups."""
    with Ledger.open(database_url, migrate=True) as opened:
        register(opened, version("basket", every="1h"), version("visits"), partitions={"purchases": 4})
        opened.of(APP).append(TOPIC, activations=[activation(0), activation(1)])
        yield opened


def tamper(ledger: Ledger, *statements: str, **values: object) -> None:
    with ledger.database.write() as connection:
        for statement in statements:
            connection.execute(text(statement), values)


def kinds(ledger: Ledger) -> list[str]:
    found = verify(ledger)
    assert all(one.failure for one in found)
    return [one.kind for one in found]


def test_a_sound_log_has_no_findings(ledger: Ledger) -> None:
    assert verify(ledger) == []
    assert compare_topic(ledger.of(APP), TOPIC) == []


def test_a_ledger_that_counts_by_the_wrong_relation_is_found(ledger: Ledger) -> None:
    # given a metric of values in a ledger that hides presence
    tamper(ledger, "UPDATE ledger_budget SET relation = 'add-remove'")
    assert kinds(ledger) == ["relation", "relation"]
    # or one that hides presence, and was charged once where it costs twice
    tamper(ledger, "UPDATE ledger_budget SET relation = 'values'")
    tamper(ledger, "UPDATE metric_version SET relation = 'add-remove' WHERE metric = 'visits'")
    [finding] = verify(ledger)
    assert (finding.kind, finding.message) == ("budget", "the charge is less than what the metric uses")
    tamper(ledger, "UPDATE metric_version SET charge_epsilon = '2' WHERE metric = 'visits'")
    assert verify(ledger) == []


def test_an_empty_log_has_no_findings(database_url: str) -> None:
    with Ledger.open(database_url, migrate=True) as ledger:
        assert verify(ledger) == []
        assert compare_topic(ledger.of(APP), []) == []


def test_a_changed_value_is_found(ledger: Ledger) -> None:
    tamper(
        ledger, "UPDATE release SET body = :body WHERE \"group\" = 'NL' AND seq = 2", body=release(2, value=9).decode()
    )
    [finding] = verify(ledger)
    assert (finding.kind, finding.where) == ("changed", 'app "shoal" metric "basket" version 1 group "NL" release 2')
    assert [one.kind for one in compare_topic(ledger.of(APP), TOPIC)] == ["changed"]


def test_a_changed_value_with_its_digest_breaks_the_chain(ledger: Ledger) -> None:
    forged = release(2, value=9.0)
    tamper(
        ledger,
        "UPDATE release SET body = :body, hash = :hash WHERE \"group\" = 'NL' AND seq = 2",
        body=forged.decode(),
        hash=chain(chain(bytes(32), release(1)), forged),
    )
    [finding] = verify(ledger)
    assert (finding.kind, finding.where[-9:]) == ("chain", "release 3")


def test_only_the_topic_shows_that_the_newest_release_was_rewritten(ledger: Ledger) -> None:
    forged = release(2, "BE", value=9.0)
    digest = chain(chain(bytes(32), release(1, "BE")), forged)
    where = "WHERE \"group\" = 'BE' AND seq = 2"
    tamper(ledger, f"UPDATE release SET body = :body, hash = :hash {where}", body=forged.decode(), hash=digest)
    assert verify(ledger) == []
    [finding] = compare_topic(ledger.of(APP), TOPIC)
    assert (finding.kind, finding.message) == ("changed", "it has another value in the topic than in the log")


@pytest.mark.slow
@pytest.mark.parametrize("seq", [1, 2, 3])
def test_a_missing_row_is_found(ledger: Ledger, seq: int) -> None:
    tamper(ledger, "DELETE FROM release WHERE \"group\" = 'NL' AND seq = :seq", seq=seq)
    [finding] = verify(ledger)
    assert (finding.kind, finding.message) == ("missing", "1 before it are missing")
    [finding] = compare_topic(ledger.of(APP), TOPIC)
    assert (finding.kind, finding.failure, finding.where[-9:]) == ("missing", True, f"release {seq}")


def test_a_missing_row_may_be_written_again(ledger: Ledger) -> None:
    tamper(ledger, "DELETE FROM release WHERE \"group\" = 'NL' AND seq = 3")
    ledger.of(APP).append(TOPIC)
    assert verify(ledger) == []


def test_a_log_that_ends_before_the_topic_is_behind_which_is_no_failure(ledger: Ledger) -> None:
    assert verify(ledger) == []
    [finding] = compare_topic(ledger.of(APP), [*TOPIC, release(5), release(1, "FR")])
    assert (finding.kind, finding.failure, finding.message) == (
        "behind",
        False,
        "the log is 2 releases behind the topic",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topic", "message"),
    [
        (TOPIC[:-1], "it is in the log, and the topic ends at 3"),
        (TOPIC[1:], "it comes after 0 in the topic"),
        ([*TOPIC, release(2)], "it comes again in the topic"),
    ],
)
def test_a_topic_that_lost_or_repeats_a_release_is_found(ledger: Ledger, topic: list[bytes], message: str) -> None:
    assert [(one.kind, one.message) for one in compare_topic(ledger.of(APP), topic)] == [("topic", message)]


def test_what_a_file_run_publishes_is_in_no_topic(ledger: Ledger) -> None:
    register(ledger, version("of-a-file", topic="orders"), file_run=True)
    ledger.of(APP).append([release(1, None, metric="of-a-file")])
    assert compare_topic(ledger.of(APP), TOPIC) == []


def test_two_values_for_one_id_are_found(ledger: Ledger) -> None:
    # given a log whose constraint someone took away, and the views with it, to have a second value beside the first
    columns = 'app, metric, version, "group", seq, id, at, body, previous_hash, hash'
    tamper(
        ledger,
        "DROP VIEW releases",
        "DROP VIEW estimates",
        "CREATE TABLE copy AS SELECT * FROM release",
        "DROP TABLE release",
        "ALTER TABLE copy RENAME TO release",
        f"INSERT INTO release SELECT {columns} FROM release WHERE \"group\" = 'BE' AND seq = 2",
    )
    assert kinds(ledger) == ["equivocation"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ("at = '1999-01-01T00:00:00Z'", "differ in at"),
        ("id = 'basket/1/NL/5'", "differ in id"),
        ("id = 'basket/1/NL/5', body = replace(body, 'basket/1/NL/4', 'basket/1/NL/5')", "its id is not that of"),
        ("body = 'no JSON'", "differ in at, group, id, metric, seq, version"),
        ("body = '[]'", "differ in at, group, id, metric, seq, version"),
        ("body = replace(body, '\"seq\"\\:4', '\"seq\"\\:5')", "differ in seq"),
    ],
)
def test_a_row_that_is_not_its_release_is_found(ledger: Ledger, change: str, columns: str) -> None:
    tamper(ledger, f"UPDATE release SET {change} WHERE \"group\" = 'NL' AND seq = 4")
    found = verify(ledger)
    assert any(columns in one.message for one in found if one.kind == "columns"), found


@pytest.mark.parametrize(
    ("change", "name"), [("prior = '30.0'", "prior"), ("at = '1999'", "at"), ("body = 'no JSON'", "at, group, level")]
)
def test_a_changed_activation_is_found(ledger: Ledger, change: str, name: str) -> None:
    tamper(ledger, f"UPDATE activation SET {change} WHERE level = 1")
    [finding] = verify(ledger)
    assert finding.where.endswith('group "NL" activation of level 1')
    assert f"differ in {name}" in finding.message


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        (
            "UPDATE metric_version SET charge_epsilon = '9' WHERE metric = 'visits'",
            "budget",
            "epsilon 10 is charged of 4",
        ),
        (
            "UPDATE metric_version SET charge_epsilon = '0.5' WHERE metric = 'visits'",
            "budget",
            "the charge is less than",
        ),
        ("UPDATE ledger_budget SET epsilon = '8'", "budget", "the budget is not what its last logged change made it"),
        ("DELETE FROM budget_change", "lost", "there is a budget, and no record of how it came"),
        ("DELETE FROM ledger_budget", "lost", "metric versions are charged, and to no budget"),
        (
            "UPDATE metric_version SET parameters = replace(parameters, '3600000000', '60000000')",
            "parameters",
            "the parameters are not those of the digest",
        ),
    ],
)
def test_a_ledger_that_does_not_add_up_is_found(ledger: Ledger, statement: str, kind: str, message: str) -> None:
    tamper(ledger, statement)
    [finding] = verify(ledger)
    assert finding.kind == kind
    assert message in finding.message
