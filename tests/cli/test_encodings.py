"""`shoal run` and files that are not UTF-8, or not all of them: what is refused, what is only said."""

import pytest

from shoal.models.errors import InputError
from tests.support.desk import EVENTS, OPTIONS, changed, lines, table


@pytest.mark.parametrize("name", ["in.csv", "-"])
def test_users_of_a_table_that_is_not_utf8_are_not_made_one(desk, name):
    """Replaced letters would make one user of Jörg and Järg."""
    content = table(changed(who=lambda event: f"J{'äö'[event['who'] == 'u1']}rg")).decode().encode("latin-1")
    desk.put("in.csv", content)
    refused = desk.call("--input", name, *OPTIONS, stdin=content)
    assert isinstance(refused.exception, InputError)
    assert "it is not UTF-8 text; write the file as UTF-8" in str(refused.exception)
    assert desk.charged() == 0


@pytest.mark.parametrize("options", [(), ("--sort",)], ids=["as it is", "sorted"])
def test_a_table_of_which_a_few_rows_are_not_utf8_is_not_charged_without_them(desk, options):
    """One letter in 240 rows: the file is in another encoding, and who has an umlaut would be left out."""
    named = changed(who=lambda event: event["who"].replace("u1", "Jörg"))
    desk.put("in.csv", table(named[:40] + EVENTS[40:]).decode().encode("latin-1"))
    said = desk.refused("in.csv", *options)
    assert "of 240 records" in said
    assert "are not UTF-8 text where a metric reads them, the first one in line 3, and would be left out" in said
    assert "iconv" in said
    assert desk.charged() == 0
    # what is said helps
    desk.put("in.csv", table(named[:40] + EVENTS[40:]))
    assert desk.run("in.csv", *options)


def test_lines_that_are_not_utf8_are_said_however_few(desk):
    raw = lines(EVENTS).replace(b'"u1"', b'"J\xf6rg"', 1)
    desk.put("in.jsonl", raw)
    result = desk.call("--input", "in.jsonl", *OPTIONS)
    assert result.exit_code == 0
    assert (
        "1 of 240 records (0.42 %) are not UTF-8 text where a metric reads them, the first one in line 2"
        in result.stderr
    )


def test_a_column_that_no_metric_uses_may_hold_any_bytes(desk):
    desk.put("in.csv", table(EVENTS))
    expected = desk.run("in.csv")
    desk.forget()
    desk.put("noted.csv", table(changed(nöte=lambda _: "ö")).decode().encode("latin-1"))
    assert desk.run("noted.csv") == expected
    desk.put("shifted.csv", table(EVENTS).replace(b",b,", b",b,\xf6,", 1))
    assert "not-json-object" in desk.refused("shifted.csv", "--max-refused", "0")
