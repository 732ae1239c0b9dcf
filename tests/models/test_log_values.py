"""What the audit log writes into its columns, and that it reads the same back."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url

from shoal.models.digests import FIRST, chain
from shoal.models.exact import exact_text
from shoal.models.tables import Exact, Label, Table, escape, unescape

DIALECTS = [make_url(url).get_dialect()() for url in ("sqlite://", "postgresql+psycopg://")]


@given(st.fractions())
def test_any_amount_is_read_back_exactly(amount: Fraction) -> None:
    assert Fraction(exact_text(amount)) == amount
    for dialect in DIALECTS:
        assert Exact().process_result_value(Exact().process_bind_param(amount, dialect), dialect) == amount


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_are_written_as_decimals(amount: object) -> None:
    text = exact_text(Fraction(str(amount)))
    assert "/" not in text
    assert "e" not in text.lower()


@given(st.text())
def test_any_label_is_read_back_and_holds_no_nul(label: str) -> None:
    assert "\0" not in escape(label)
    assert unescape(escape(label)) == label
    for dialect in DIALECTS:
        assert Label().process_result_value(Label().process_bind_param(label, dialect), dialect) == label


@given(st.text(alphabet="\\0\0ab"), st.text(alphabet="\\0\0ab"))
def test_no_two_labels_are_written_alike(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)


def test_nothing_stays_nothing() -> None:
    for kind in (Exact(), Label()):
        for dialect in DIALECTS:
            assert kind.process_bind_param(None, dialect) is None
            assert kind.process_result_value(None, dialect) is None


def test_a_chain_depends_on_every_release_and_on_their_order() -> None:
    chains = {chain(chain(FIRST, one), two) for one in (b"1", b"2") for two in (b"1", b"2")}
    assert len(chains) == 4
    assert FIRST == bytes(32)


def test_every_constraint_has_a_name_by_which_a_migration_can_drop_it() -> None:
    for table in Table.metadata.sorted_tables:
        assert all(constraint.name for constraint in table.constraints)
