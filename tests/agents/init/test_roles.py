"""Which fields are proposed, by name and form."""

import pytest

from shoal.agents.init.fields import Field, Form
from shoal.agents.init.questions import Known
from shoal.agents.init.roles import propose, words_of
from tests.support.cover import in_a_loop

N, T, AT, D, B = Form.NUMBER, Form.TEXT, Form.TIME, Form.DIGITS, Form.BOOLEAN


def proposed(**forms: Form) -> dict[str, str]:
    """The proposals for fields of these names, in which __ stands for a dot."""
    fields = [Field(name.replace("__", "."), form, 1.0) for name, form in forms.items()]
    return {role: proposal.path for role, proposal in propose(fields).items()}


@in_a_loop
@pytest.mark.parametrize(
    ("forms", "roles"),
    [
        ({"customer": N, "at": AT, "amount": N}, ("customer", "amount", "at", None)),
        (
            {"userId": T, "createdAt": AT, "orderTotal": N, "country": T},
            ("userId", "orderTotal", "createdAt", "country"),
        ),
        ({"order_id": N, "CUSTOMER_ID": N, "ts": Form.EPOCH, "Price": N}, ("CUSTOMER_ID", "Price", "ts", None)),
        ({"user__id": T, "user__name": T, "when": AT, "x": N}, ("user.id", "x", "when", None)),
        ({"user_agent": T, "user": T, "timestamp": D, "bytes": N}, ("user", "bytes", "timestamp", None)),
        ({"patient": T, "heart_rate": N, "measured": AT, "ward": T}, ("patient", "heart_rate", "measured", None)),
        ({"bus": T, "speed": N, "at": AT, "lat": N, "lon": N}, ("bus", "speed", "at", None)),
        ({"device_id": T, "account": T, "date": AT, "duration": N}, ("account", "duration", "date", None)),
        ({"id": N, "date": AT, "value": N}, (None, "value", "date", None)),
        ({"customer_id": N, "customer_type": T, "day": AT, "paid": N}, ("customer_id", "paid", "day", "customer_type")),
        ({"patient": N, "day": N, "age": N}, ("patient", "age", None, None)),
        ({"Kunde": N, "Datum": AT, "Betrag": N}, ("Kunde", "Betrag", "Datum", None)),
        ({"who": T, "x": N, "y": N}, (None, None, None, None)),
        ({"user": T, "paid": Form.COMMA, "date": Form.SLASHED}, ("user", None, None, None)),
        ({"member": B, "visitor": T, "is_paid": B, "plan": T, "at": AT}, ("visitor", None, "at", "plan")),
        ({"players": T, "scores": N, "dates": AT, "teams": T}, ("players", "scores", "dates", "teams")),
    ],
)
def test_fields_are_proposed_by_name_and_form(forms: dict[str, Form], roles: tuple[str | None, ...]) -> None:
    found = proposed(**forms)
    assert tuple(found.get(role) for role in ("user", "value", "time", "group")) == roles


def test_reasons_are_said_and_a_field_that_cannot_be_named_is_not_proposed() -> None:
    fields = [
        Field("user.id", N, 1, "its name has a dot"),
        Field("client", N, 0.95),
        Field("x", N, 1),
        Field("t", AT, 0.5),
    ]
    found = {role: proposal.reason for role, proposal in propose(fields).items()}
    assert found == {
        "user": "its name says so; numbers; in most records",
        "value": "the only field with numbers that are nothing else; in every record",
        "time": "the only field with times; missing in many records",
    }


def test_two_fields_that_fit_equally_well_are_left_to_the_person() -> None:
    assert "user" not in proposed(user=T, User=T, at=AT)


def test_names_in_other_scripts_are_words_too() -> None:
    assert words_of("größe-der_bestellung") == ["größe", "der", "bestellung"]
    assert words_of("金額") == ["金額"]


def test_a_number_as_long_as_a_time_is_proposed_as_time_and_not_as_value() -> None:
    fields = [Field("Mitglied Nr", N, 1), Field("Zeitpunkt", Form.EPOCH, 1), Field("Gebühr", Form.COMMA, 1)]
    assert {role: proposal.path for role, proposal in propose(fields).items()} == {"time": "Zeitpunkt"}


def test_a_table_of_visits_by_day_number_has_no_dates() -> None:
    fields = (Field("patient", N, 1), Field("day", N, 1), Field("bilirubin", N, 1))
    (said,) = Known(fields, propose(fields)).unreadable("time")
    assert said.startswith("No field has dates, or numbers of seconds since 1970. A number of a day is not a time")
    for form in (AT, Form.EPOCH, D):
        assert Known((*fields, Field("seen", form, 1)), {}).unreadable("time") == []
    assert Known((), {}).unreadable("time") == []
