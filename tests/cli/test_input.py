"""`shoal run` and its input: every form of a file, what is refused before anything is charged, and in which order."""

import gzip
import json
import random
import time
from typing import Any

import orjson
import pytest

from shoal.models.errors import ConfigError, InputError
from tests.support.desk import CONFIG, EVENTS, MEAN, OPTIONS, PLACES, changed, lines, seconds, table

# ---------------------------------------------------------------- forms


FORMS: dict[str, tuple[str, bytes]] = {
    "table": ("in.csv", table(EVENTS)),
    "semicolons": ("in.csv", table(EVENTS, ";")),
    "tabs": ("in.csv", table(EVENTS, "\t")),
    "tab-separated by name": ("in.tsv", table(EVENTS, "\t")),
    "packed under another name": ("in.jsonl", gzip.compress(lines(EVENTS))),
    "packed": ("in.csv.gz", gzip.compress(table(EVENTS))),
    "a list": ("in.json", json.dumps(EVENTS).encode()),
    "a list, one event a line": ("in.jsonl", b"[\n" + b",\n".join(lines([one]).strip() for one in EVENTS) + b"\n]\n"),
    "an indented list": ("in.json", json.dumps(EVENTS, indent=2).encode()),
    "indented objects": ("in.jsonl", "\n".join(json.dumps(event, indent=1) for event in EVENTS).encode()),
    "a packed list with a byte order mark": ("in.json", gzip.compress(b"\xef\xbb\xbf" + json.dumps(EVENTS).encode())),
    "byte order mark": ("in.jsonl", b"\xef\xbb\xbf" + lines(EVENTS)),
    "byte order mark in a table": ("in.csv", b"\xef\xbb\xbf" + table(EVENTS)),
    "NaN in another field": ("in.jsonl", lines(changed(other=lambda _: float("nan")))),
    "seconds": ("in.jsonl", lines(changed(at=seconds))),
    "milliseconds": ("in.jsonl", lines(changed(at=lambda one: seconds(one) * 10**3))),
    "microseconds": ("in.jsonl", lines(changed(at=lambda one: seconds(one) * 10**6))),
    "nanoseconds": ("in.jsonl", lines(changed(at=lambda one: seconds(one) * 10**9))),
    "seconds as text": ("in.jsonl", lines(changed(at=lambda one: str(seconds(one))))),
    "milliseconds as text": ("in.jsonl", lines(changed(at=lambda one: f"{seconds(one)}000"))),
    "milliseconds in a table": ("in.csv", table(changed(at=lambda one: seconds(one) * 10**3))),
    "a blank between date and time": ("in.csv", table(changed(at=lambda one: one["at"].replace("T", " ")[:-1]))),
}


@pytest.mark.slow
def test_every_form_of_the_same_events_makes_the_same_bytes(desk):
    desk.put("plain.jsonl", lines(EVENTS))
    expected, made = desk.run("plain.jsonl"), {}
    assert len(expected.splitlines()) == 8
    for form, (name, content) in FORMS.items():
        desk.forget()
        desk.put(name, content)
        made[form] = desk.run(name)
    assert [form for form, found in made.items() if found != expected] == []


@pytest.mark.parametrize("form", ["table", "semicolons"])
def test_a_table_has_places_and_several_values_as_json_has(desk, form):
    name, content = FORMS[form]
    desk.put("plain.jsonl", lines(EVENTS))
    desk.put(name, content)
    several = MEAN.replace('value = "x"', 'value = ["x", "lat"]').replace("[0, 100]", "[[0, 100], [0, 90]]")
    for config in (PLACES, MEAN, several):
        desk.say(config)
        expected = desk.run("plain.jsonl")
        desk.forget()
        assert desk.run(name) == expected != b""
        desk.forget()


def test_ids_that_a_program_made_floats_are_the_same_people(desk):
    desk.put("whole.jsonl", lines(changed(who=lambda one: int(one["who"][1:]))))
    expected = desk.run("whole.jsonl")
    desk.forget()
    desk.put("floats.jsonl", lines(changed(who=lambda one: float(one["who"][1:]))))
    assert desk.run("floats.jsonl") == expected


@pytest.mark.parametrize("form", [lines, table], ids=["lines", "table"])
def test_ids_that_are_floats_in_texts_are_other_people_and_are_told(desk, form):
    desk.put("in.csv" if form is table else "in.jsonl", form(changed(who=lambda one: f"{one['who'][1:]}.0")))
    result = desk.call("--input", "in.csv" if form is table else "in.jsonl", *OPTIONS)
    assert "users in field 'who' are texts such as 12.0, who are other people than 12" in result.stderr
    assert result.exit_code == 0


def test_standard_input_may_be_any_form(desk):
    desk.put("plain.jsonl", lines(EVENTS))
    expected = desk.run("plain.jsonl")
    for content in (lines(EVENTS), table(EVENTS), json.dumps(EVENTS).encode(), gzip.compress(table(EVENTS, ";"))):
        desk.forget()
        result = desk.call("--input", "-", "--output", "-", stdin=content)
        assert result.stdout_bytes == expected


STRANGE: dict[str, tuple[str, bytes, str]] = {
    "UTF-16": ("in.jsonl", lines(EVENTS).decode().encode("utf-16"), "iconv -f UTF-16"),
    "UTF-16 without a mark": ("in.csv", table(EVENTS).decode().encode("utf-16-le"), "iconv -f UTF-16"),
    "UTF-16 with foreign letters": (
        "in.jsonl",
        ("名" + lines(EVENTS).decode()).encode("utf-16-le"),
        "it has zero bytes",
    ),
    "UTF-32": ("in.jsonl", lines(EVENTS).decode().encode("utf-32"), "iconv -f UTF-32"),
    "UTF-32 of big machines": ("in.csv", table(EVENTS).decode().encode("utf-32-be"), "iconv -f UTF-32"),
    "UTF-32 without a mark": ("in.csv", table(EVENTS).decode().encode("utf-32-le"), "iconv -f UTF-32"),
    "a binary file": ("in.csv", b"\x7fELF\x02\x01\x00\x00" + bytes(range(256)), "it has zero bytes"),
    "a table with zero bytes": ("in.csv", table(EVENTS).replace(b"u7", b"u\x00", 1), "it has zero bytes"),
    "lines with zero bytes": ("in.jsonl", b" " * 9000 + bytes(100) + b"\n", "remove them, say by `tr -d"),
    "a spreadsheet": ("in.csv", b"PK\x03\x04....", "save it as CSV"),
    "Parquet": ("in.jsonl", b"PAR1....", "Parquet"),
    "no header": ("in.csv", table(EVENTS).partition(b"\n")[2], "add a header"),
    "blanks in the header": ("in.csv", table(EVENTS).replace(b"who,at,x", b"who, at, x", 1), "has blanks around"),
    "a column is missing": ("in.csv", table(EVENTS).replace(b"who,at,x", b"who,at,y", 1), "no column 'x'"),
    "numbers in texts": ("in.jsonl", lines(changed(x=lambda one: str(one["x"]))), "write it without quotes"),
    "decimal commas": (
        "in.csv",
        table(changed(x=lambda one: f"{one['x']:.2f}".replace(".", ",")), ";"),
        "decimal comma",
    ),
    "amounts": ("in.jsonl", lines(changed(x=lambda one: f"${one['x']}")), "currency or unit"),
    "thousands": ("in.jsonl", lines(changed(x=lambda _: "1,234.5")), "commas between thousands"),
    "booleans": ("in.jsonl", lines(changed(x=lambda _: True)), "a boolean"),
    "a typing error": ("in.jsonl", lines([{"y": 1, **one, "x": None} for one in EVENTS]), "null"),
    "no value": ("in.jsonl", lines([{"who": "a", "at": one["at"], "room": "a"} for one in EVENTS]), "no field 'x'"),
    "no user": ("in.jsonl", lines(changed(who=lambda _: "")), "an empty text"),
    "a list as user": ("in.jsonl", lines(changed(who=lambda _: [1])), "a list"),
    "fractions as ids": ("in.jsonl", lines(changed(who=lambda _: 1.5)), "no id"),
    "American dates": ("in.csv", table(changed(at=lambda _: "01/31/2024 18:30")), "slashes or points"),
    "dates of a log": ("in.jsonl", lines(changed(at=lambda _: "31/Jan/2024:18:30:00 +0000")), "name of a month"),
    "names of zones": ("in.jsonl", lines(changed(at=lambda _: "2024-01-31T18:30:00 Europe/Berlin")), "name of a zone"),
    "digits that may be a date": ("in.jsonl", lines(changed(at=lambda _: "20240131")), "could be a date"),
    "dates as numbers": ("in.csv", table(changed(at=lambda _: "20240131")), "calendar dates of eight digits"),
    "beyond every calendar": ("in.jsonl", lines(changed(at=lambda _: 10**21)), "no calendar has"),
    "a group that is an object": ("in.jsonl", lines(changed(room=lambda _: {})), "an object"),
    "no JSON": ("in.jsonl", b"who,at\n" * 5, "no JSON object on a line"),
    "lists": ("in.jsonl", b"[1]\n[2]\n[3]\n", "no object with named fields"),
    "nothing": ("in.jsonl", b"\n\n", "there is no event in it"),
    "only a header": ("in.csv", table(EVENTS).partition(b"\n")[0], "there is no event in it"),
    "cut off": ("in.jsonl.gz", gzip.compress(lines(EVENTS * 20))[:-3000], "cut off); copy or make it again"),
    "damaged": ("in.jsonl.gz", b"\x1f\x8b" + b"damaged" * 9, "its data is not"),
    "a list that is cut off": ("in.json", json.dumps(EVENTS).encode()[:-1], "the list of events is cut off"),
    "a list with an error": ("in.json", b'[{"who": 1}, {"who": 2,, }]', "record 2 is not JSON"),
    "a list without commas": ("in.json", b'[{"who": 1}\n {"who": 2}]', "record 2 is not JSON"),
    "more after a list": ("in.json", b'[{"who": 1},\n{"who": 2}]\n{"who": 3}', "something follows the list"),
}


FOLLOWED = [*STRANGE][::8]  # by a good file; a refusal leaves the same folder behind in all of them


@pytest.mark.slow
@pytest.mark.parametrize("form", STRANGE, ids=str)
def test_what_cannot_be_used_is_refused_by_its_name_and_costs_nothing(desk, form):
    name, content, said = STRANGE[form]
    desk.put(name, content)
    # when the file is run, then the refusal names the form, and no value of it
    message = desk.refused(name)
    assert said in message
    assert not any(secret in message for secret in ("u7", "2024-01-01T", "1,234.5", "18:30:00 "))
    # and the good file is the first input of version 1
    assert desk.charged() == 0
    assert not (desk.folder / "out.jsonl").exists()
    if form in FOLLOWED:
        desk.put("good.jsonl", lines(EVENTS))
        assert len(desk.run("good.jsonl").splitlines()) == 8


def test_the_first_three_reasons_stand_with_their_lines(desk):
    bad = [lines([one]) for one in EVENTS[:4]]
    bad[1] = b"\n\n"
    bad[0], bad[2], bad[3] = b"no JSON\n", lines([EVENTS[0] | {"who": None}]), lines([EVENTS[0] | {"x": "1"}])
    desk.put("in.jsonl", b"".join(bad) + lines([EVENTS[0] | {"x": []}]) * 9)
    message = desk.refused("in.jsonl")
    assert "line 1: it is no JSON object" in message
    assert "line 4: field 'who' is null" in message
    assert "line 5: field 'x' is a number in a text" in message
    assert "line 6" not in message


def test_an_input_that_is_still_empty_may_be_left_open_and_costs_nothing(desk):
    desk.put("in.jsonl", b"")
    assert desk.run("in.jsonl", "--open", "--dead-letters", "dead.jsonl") == b""
    assert (desk.folder / "dead.jsonl").read_bytes() == b""
    assert desk.charged() == 0


# ---------------------------------------------------------------- shares


def test_a_larger_share_of_refused_records_is_told_and_may_be_refused(desk):
    events = [event | ({"x": "free"} if n % 10 == 0 else {}) for n, event in enumerate(EVENTS)]
    desk.put("in.jsonl", lines(events))
    assert "24 of 240 records (10 %) can be used by no metric: line 1" in desk.refused(
        "in.jsonl", "--max-refused", "0.09"
    )
    assert desk.charged() == 0
    result = desk.call("--input", "in.jsonl", *OPTIONS, "--max-refused", "0.1")
    assert result.exit_code == 0
    assert "24 of 240 records (10 %) can be used by no metric: line 1, line 11, line 21: field 'x'" in result.stderr


def test_a_few_refused_records_are_counted_and_not_told(desk):
    desk.put("in.jsonl", lines([*EVENTS, EVENTS[-1] | {"x": "free"}]))
    assert desk.call("--input", "in.jsonl", *OPTIONS).stderr.splitlines() == [
        "241 events, 8 releases; dead_letters.level.bad-value 1"
    ]


def test_fields_that_stand_twice_are_told(desk):
    desk.put("in.jsonl", lines(EVENTS).replace(b'"x":', b'"x": 5, "x":'))
    result = desk.call("--input", "in.jsonl", *OPTIONS)
    assert "240 of the first events name a field twice; what comes last counts" in result.stderr
    assert result.exit_code == 0


def test_a_metric_that_can_use_nothing_beside_one_that_can_is_told(desk):
    desk.say(CONFIG + CONFIG[CONFIG.index("[[metric]]") :].replace('"level"', '"other"').replace('"x"', '"y"'))
    desk.put("in.jsonl", lines(EVENTS))
    assert 'metric "other" can use none of the records' in desk.call("--input", "in.jsonl", *OPTIONS).stderr


def test_a_dry_run_reads_everything_and_changes_nothing(desk):
    desk.put("in.jsonl", lines([*EVENTS, EVENTS[-1] | {"x": "free"}]))
    result = desk.call("--input", "in.jsonl", "--dry-run", "--json")
    assert orjson.loads(result.stdout) == {
        "events": 241, "usable": {"level": 240}, "refused": 1, "late": 0, "would_charge": {"level/1": "1"},
    }  # fmt: skip
    assert "a run would charge: level/1 epsilon 1" in desk.call("--input", "in.jsonl", "--dry-run").stderr
    assert desk.charged() == 0
    assert not (desk.folder / "shoal.key.used").exists()
    desk.put("bad.jsonl", b"{}\n")
    assert isinstance(desk.call("--input", "bad.jsonl", "--dry-run").exception, InputError)
    assert desk.call("--input", "in.jsonl").exit_code == 2, "a run needs an output"


# ---------------------------------------------------------------- order


def shuffled(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return random.Random(2).sample(events, len(events))


@pytest.mark.parametrize(
    "config", [CONFIG, MEAN, PLACES, CONFIG + 'late = "drop"\n'], ids=["slots", "means", "places", "dropped"]
)
def test_a_shuffled_file_is_refused_with_its_share_and_runs_sorted(desk, config):
    desk.say(config)
    desk.put("in.jsonl", lines(EVENTS))
    expected = desk.run("in.jsonl")
    desk.forget()
    desk.put("in.jsonl", lines(shuffled(EVENTS)))
    message = desk.refused("in.jsonl")
    assert "is not in order of time" in message
    assert "of 240 records (" in message
    assert desk.charged() == 0
    # when it is sorted, then it makes the bytes of the file that was in order, and ends the version with its input
    assert desk.run("in.jsonl", "--sort") == expected
    desk.put("in.jsonl", lines(EVENTS))
    assert desk.run("in.jsonl") == expected


def test_sorting_keeps_the_order_of_equal_times_and_puts_those_without_a_time_last(desk):
    events = [{"who": "a", "at": "2024-01-01T00:00:00Z", "x": n, "room": "a"} for n in range(6)]
    events = [{"who": "a", "at": "soon", "x": 1, "room": "a"}, EVENTS[60], *events]
    desk.put("in.jsonl", lines(events))
    desk.put("sorted.jsonl", lines([*events[2:], events[1], events[0]]))
    desk.call("--input", "in.jsonl", *OPTIONS, "--sort", "--dead-letters", "dead.jsonl")
    first = (desk.folder / "out.jsonl").read_bytes()
    (letter,) = (desk.folder / "dead.jsonl").read_bytes().splitlines()
    assert orjson.loads(letter)["offset"] == 7
    assert desk.run("sorted.jsonl") == first != b""


SUM = MEAN.replace('"mean"', '"sum"').replace(
    'every = "1h"\n', 'every = "1h"\ndecay = { kind = "window", length = "1d" }\n'
)
SUM = SUM.replace('algorithm = "naive"\n', "").replace("max_per_group", "max_contributions")


@pytest.mark.parametrize("place", [0, 100, 239])
@pytest.mark.parametrize("option", [(), ("--sort",)], ids=["as it is", "sorted"])
def test_an_absurd_date_does_not_make_a_run_step_through_millennia(desk, place, option):
    desk.say(SUM)
    events = list(EVENTS)
    events[place] = events[place] | {"at": "9898-01-01T00:00:00Z"}
    desk.put("in.jsonl", lines(events))
    message = desk.refused("in.jsonl", *option)
    assert " years lie between the times of line " in message
    assert f"line {place + 1}" in message
    assert "9898" not in message
    assert desk.charged() == 0


def test_a_gap_of_centuries_may_be_meant(desk):
    desk.say(MEAN + 'max_ahead = "400000d"\n')
    desk.put("in.jsonl", lines([EVENTS[0] | {"at": "1066-10-14"}, *EVENTS]))
    result = desk.call("--input", "in.jsonl", *OPTIONS)
    assert result.exit_code == 0
    assert "more than 956 years lie between the times of line 1 and line 2, and no record in between" in result.stderr


def test_a_gap_of_a_few_years_is_nothing_to_tell(desk):
    desk.say(MEAN)
    desk.put("in.jsonl", lines([EVENTS[0] | {"at": "2016-01-01"}, *EVENTS]))
    assert "years" not in desk.call("--input", "in.jsonl", *OPTIONS).stderr


def test_times_after_today_are_counted_and_told(desk):
    desk.say(MEAN)
    desk.put("in.jsonl", lines([*EVENTS, EVENTS[-1] | {"at": f"{time.gmtime().tm_year + 2}-01-01"}]))
    result = desk.call("--input", "in.jsonl", *OPTIONS)
    assert result.exit_code == 0
    assert "it has times after today; a file run counts them" in result.stderr
    desk.put("in.jsonl", lines(EVENTS))
    assert "after today" not in desk.call("--input", "in.jsonl", *OPTIONS).stderr


def test_metrics_by_different_times_have_no_common_order(desk):
    other = MEAN[MEAN.index("[[metric]]") :].replace('"level"', '"other"').replace('"at"', '"booked"')
    desk.say(MEAN + other)
    desk.put("in.jsonl", lines(EVENTS))
    assert "a file has one order" in desk.refused("in.jsonl", "--sort", error=ConfigError)


def test_lateness_is_no_disorder(desk):
    desk.say(MEAN + 'lateness = "4h"\n')
    desk.put("in.jsonl", lines(shuffled(EVENTS)))
    assert desk.run("in.jsonl") != b""
    # nor is what comes in its own tick, whatever its place in it
    desk.forget()
    desk.say(MEAN)
    hours = [random.Random(n).sample(EVENTS[60 * n : 60 * n + 60], 60) for n in range(4)]
    desk.put("in.jsonl", lines(event for hour in hours for event in hour))
    assert "late" not in desk.call("--input", "in.jsonl", *OPTIONS).stderr


def test_much_lateness_of_which_the_configuration_speaks_is_no_disorder(desk):
    # given events that come up to ten minutes late, and a metric that drops them
    order = sorted(range(240), key=lambda n: n + 10 * random.Random(n).random())
    desk.put("in.jsonl", lines(EVENTS[n] for n in order))
    desk.say(MEAN.replace('"1h"', '"contribution"') + 'late = "drop"\n')
    result = desk.call("--input", "in.jsonl", *OPTIONS)
    assert result.exit_code == 0
    assert "come so late" in result.stderr
    # then a metric that says nothing of it is refused the file, and so is this one, if that is asked for
    desk.forget()
    assert "not in order" in desk.refused("in.jsonl", "--max-late", "0.05")
    desk.say(MEAN.replace('"1h"', '"contribution"'))
    assert "not in order" in desk.refused("in.jsonl")


def test_a_few_late_records_run_as_they_are_configured_and_are_told(desk):
    late = [*EVENTS[:100], EVENTS[3], *EVENTS[100:]]
    desk.say(CONFIG + 'late = "drop"\n')
    desk.put("in.jsonl", lines(late))
    result = desk.call("--input", "in.jsonl", *OPTIONS)
    assert result.exit_code == 0
    assert "1 of 241 records (0.41 %) come so late" in result.stderr
    assert "dead_letters.level.late 1" in result.stderr
    desk.forget()
    assert "0.41 %" in desk.refused("in.jsonl", "--max-late", "0.004")
    desk.put("in.jsonl", lines(shuffled(EVENTS)))
    assert desk.run("in.jsonl", "--max-late", "1") != b""


@pytest.mark.parametrize("opened", [0, 100, 239])
def test_a_quote_that_is_not_closed_swallows_no_rows_without_a_word(desk, opened):
    rows = table(EVENTS).split(b"\n")
    rows[1 + opened] = rows[1 + opened].replace(b",51.5", b',"51.5')
    desk.put("in.csv", b"\n".join(rows))
    assert f"row {2 + opened} is not CSV (a quote is not closed)" in desk.refused("in.csv")
    assert desk.charged() == 0


def test_a_row_may_say_what_ends_a_table(desk):
    desk.put("in.csv", table(EVENTS).replace(b"\n", b"\nend\n"))
    assert b"end" not in desk.run("in.csv")
    desk.forget()
    desk.put("cut.csv", table(EVENTS).rstrip(b"\n"))
    assert len(desk.run("cut.csv").splitlines()) == 8


@pytest.mark.parametrize("name", ["IN.JSONL", "IN.CSV", "In.Csv.GZ"])
def test_a_name_in_capitals_says_the_same(desk, name):
    content = lines(EVENTS) if "JSON" in name else table(EVENTS)
    desk.put(name, gzip.compress(content) if name.endswith("GZ") else content)
    assert len(desk.run(name).splitlines()) == 8
