"""The configuration that answers make: it loads, says what was answered, and a run takes the sample with it."""

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.agents.init.answers import (
    ends,
    field_of,
    field_or_none,
    instant,
    instant_or_never,
    keys,
    number,
    one_of,
    positive,
    span,
    topic,
    whole,
)
from shoal.agents.init.answers import name as name_of
from shoal.agents.init.choices import STATISTICS, has_value, relations
from shoal.agents.init.draft import Unanswered, completed, draft
from shoal.agents.init.fields import IDS, NUMBERS, TIMES, Field, Form
from shoal.agents.init.questions import QUESTIONS, Known
from shoal.mechanisms.parts import per
from shoal.mechanisms.parts.of import PublicCount
from shoal.models.config import forms
from shoal.models.errors import ConfigError
from tests.support.cover import in_a_loop
from tests.support.effort import examples

PATH = Path("shoal.toml")
SAID = {"user": "who", "value": "paid", "time": "at", "relation": "values", "range": "0 200"}
HIDDEN = SAID | {"relation": "add-remove", "start": "2024-01-01", "end": "2024-02-01"}
FIELDS = (
    Field("who", Form.TEXT, 1), Field("paid", Form.NUMBER, 1), Field("at", Form.TIME, 1), Field("due", Form.SLASHED, 1),
    Field("a.b", Form.NUMBER, 1, "its name has a dot"),
)  # fmt: skip


@in_a_loop
@pytest.mark.parametrize(
    ("reader", "typed", "answer"),
    [
        (one_of("values", "add-remove"), "2", "add-remove"), (one_of("values", "add-remove"), "Values", "values"),
        (number, ".5", "0.5"), (positive, "1e-9", "1e-9"), (whole, "1,000", "1000"), (whole, "007", "7"),
        (span, "12 h", "12h"), (instant, "2024-01-31", "2024-01-31T00:00:00Z"), (instant_or_never, "Never", "never"),
        (instant_or_never, "2024-01-31T18:30:00+01:00", "2024-01-31T17:30:00Z"), (ends, "[0, 200]", "0 200"),
        (ends, "-5..5", "-5 5"), (ends, "0 to 1", "0 1"), (keys, "a, b", '["a", "b"]'), (keys, "FOUND", "found"),
        (keys, "[a", '["[a"]'), (keys, '["a, b"]', '["a, b"]'),
        (name_of, "a-1", "a-1"), (topic, "A.b", "A.b"), (field_of(FIELDS, "user", IDS), "who", "who"),
        (field_of((), "user", IDS), "any thing", "any thing"),
        (field_or_none(field_of(FIELDS, "group", IDS)), "None", "none"),
    ],
)  # fmt: skip
def test_an_answer_has_one_spelling(reader: Any, typed: str, answer: str) -> None:
    assert reader(typed) == answer
    assert reader(answer) == answer


@in_a_loop
@pytest.mark.parametrize(
    ("reader", "typed", "words"),
    [
        (one_of("values", "add-remove"), "3", "write values or add-remove"), (number, "one", "a number"),
        (number, "1e99999", "number"), (positive, "0", "above 0"), (whole, "0", "from 1 on"),
        (whole, "-1", "from 1 on"),
        (span, "1w", "7d"), (span, "0d", "longer"), (instant, "31.1.2024", "2026-01-31"), (ends, "5", "two numbers"),
        (ends, "5 5", "smaller"), (ends, "a b", "a number"), (keys, "a,,b", "different"), (keys, "a,a", "different"),
        (name_of, "A b", "small letters"), (topic, "a/b", "letters"),
        (field_of(FIELDS, "user", IDS), "Who", "name one of 'who', 'paid'"),
        (field_of(FIELDS[3:4], "user", IDS), "Who", "none that fits"),
        (field_of(FIELDS, "value", NUMBERS), "who", "a value is of numbers"),
        (field_of(FIELDS, "time", TIMES), "due", "slashes"), (field_of(FIELDS, "user", IDS), "a.b", "dot"),
        (field_of(FIELDS, "group", (Form.BOOLEAN,)), "who", "cannot be that"),
        (field_of((), "value", NUMBERS), "paid > 5", "comparison"), (field_of((), "user", IDS), "a\0b", "zero"),
    ],
)  # fmt: skip
def test_what_is_no_answer_says_what_to_write(reader: Any, typed: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        reader(typed)


@in_a_loop
@pytest.mark.parametrize("span_", ["each", "all"])
@pytest.mark.parametrize("every", ["1h", "1d", "7d", "12h"])
@pytest.mark.parametrize("group", ["none", "shop"])
@pytest.mark.parametrize(("relation", "statistic"), [
    (relation, name) for name in STATISTICS for relation in relations({"statistic": name, "span": "each"})
])  # fmt: skip
@pytest.mark.parametrize("groups", ["north,south", "found"])
def test_every_combination_loads_and_predicts(
    relation: str, statistic: str, span_: str, every: str, group: str, groups: str
) -> None:
    weeks = {"start": "2024-01-04", "end": "2024-02-01"}  # Thursdays, as the first day of 1970
    said = {**(SAID if relation == "values" else HIDDEN | weeks)}
    said |= {"statistic": statistic, "span": span_, "every": every, "group": group}
    if relation not in relations(said):  # as a distribution since the beginning has only one
        return
    if group != "none" and relation == "add-remove":
        said["groups"] = groups
    if not has_value(said):
        del said["value"], said["range"]
    found = draft(completed(said, Known()), PATH)
    metric = found.metric
    place = None if group == "none" else per.Field("shop")
    assert (metric.source.user, metric.hides.relation, metric.place) == ("who", relation, place)
    assert metric.unit.period == (metric.length and metric.length.microseconds if span_ == "each" else None)
    assert "noise of about" in found.prediction
    assert all(len(line) <= 140 for line in found.text.splitlines())
    assert found.text == draft(completed(found.answers, Known()), PATH).text  # answers in their spelling say the same


def test_answers_are_what_the_file_says() -> None:
    said = HIDDEN | {"group": "shop", "groups": "found", "epsilon": "0.5", "delta": "1e-6", "max-contributions": "3"}
    found = draft(completed(said | {"name": "spent", "topic": "Sales"}, Known()), PATH).metric
    assert (float(found.budget.epsilon), float(found.budget.delta), found.samples) == (0.5, 1e-6, 3)
    assert (found.name, found.source.topic, list(map(float, found.ranges[0]))) == ("spent", "Sales", [0, 200])


@in_a_loop
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_the_first_sentence_of_each_question_stands_for_it_where_an_option_is_missing(question: Any) -> None:
    said = HIDDEN | {"group": "shop", "groups": "found", "span": "each", "every": "1d", "statistic": "mean"}
    assert question.words(said, Known())
    if question.default(said, Known()) is None and question.applies(said):
        with pytest.raises(Unanswered, match=f"--{question.name} is missing. .*"):
            completed({name: text for name, text in said.items() if name != question.name}, Known())


def test_an_option_without_a_question_and_an_answer_that_is_none_are_named() -> None:
    with pytest.raises(Unanswered, match="--start is for other answers than these"):
        completed(SAID | {"start": "2024-01-01"}, Known())
    with pytest.raises(Unanswered, match="--epsilon is not to be used: write a number above 0"):
        completed(SAID | {"epsilon": "-1"}, Known())
    with pytest.raises(Unanswered, match="--time is not to be used: field 'who' is the user already"):
        completed(SAID | {"time": "who"}, Known())
    with pytest.raises(Unanswered, match="distribution since the beginning is not for relation values; write"):
        completed(SAID | {"statistic": "distribution", "span": "all"}, Known())


def test_what_exists_under_one_relation_alone_has_it() -> None:
    hidden = {name: answer for name, answer in HIDDEN.items() if name not in ("relation", "value", "range")}
    for statistic in ("count", "users"):
        assert completed(hidden | {"statistic": statistic}, Known())["relation"] == "add-remove"


def test_every_statistic_of_the_configuration_can_be_asked_for() -> None:
    asked = {cls for classes in STATISTICS.values() for cls in classes}
    assert {cls for form in forms.ALL for cls in form.statistics.values()} - asked == {PublicCount}  # costs nothing


def test_what_only_the_configuration_refuses_is_said_in_its_words() -> None:
    with pytest.raises(ConfigError, match="start is not a multiple of slot"):
        draft(completed(HIDDEN | {"every": "7d"}, Known()), PATH)


def test_too_few_people_are_said(tmp_path: Path) -> None:
    said = HIDDEN | {"users": "1", "statistic": "mean", "span": "all"}
    assert "too few" in draft(completed(said, Known()), PATH).prediction


LETTERS = st.text("abcxyzÄß金 -'\"\\#[]{}_", min_size=1, max_size=8)
NAMES = st.lists(
    LETTERS.map(lambda text: f"n{text}").filter(lambda name: name.lower() != "none"),
    min_size=4,
    max_size=4,
    unique=True,
)
TEXTS = st.text("abcdefg", min_size=1, max_size=5)
SECOND_2024 = 1_704_067_200
DAYS = 3 * 86_400
TIMES_AS = {
    "ISO": lambda at: f"2024-01-{1 + at // 86_400:02d}T{at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}Z",
    "s": lambda at: SECOND_2024 + at,
    "ms": lambda at: (SECOND_2024 + at) * 1_000,
    "µs": lambda at: (SECOND_2024 + at) * 1_000_000,
}


@st.composite
def samples(draw: st.DrawFn) -> tuple[list[str], str, str, list[list[dict[str, Any]]]]:
    """Names, the form of times, that of the file, and two lists of records alike in names and forms."""
    names, as_, is_table = draw(NAMES), draw(st.sampled_from(list(TIMES_AS))), draw(st.booleans())
    user, value, time, group = names
    users = draw(st.sampled_from([TEXTS, st.integers(0, 99)]))
    lists = []
    for _ in range(2):
        times = sorted(draw(st.lists(st.integers(0, DAYS - 1), min_size=1, max_size=12)))
        lists.append([
            {user: draw(users), value: draw(st.floats(-1e6, 1e6) | st.integers(-(10**9), 10**9)),
             time: TIMES_AS[as_](at), group: draw(TEXTS)}
            for at in times
        ])  # fmt: skip
    return names, as_, "csv" if is_table else "jsonl", lists


def file_of(records: list[dict[str, Any]], form: str) -> str:
    if form == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records)
    text = io.StringIO()
    rows = csv.DictWriter(text, list(records[0]))
    rows.writeheader()
    rows.writerows(records)
    return text.getvalue()


@pytest.mark.slow
@examples(16)
@given(samples(), st.data())
def test_a_run_takes_the_sample_and_no_value_of_it_is_in_the_configuration(
    sample: tuple[list[str], str, str, list[list[dict[str, Any]]]], data: st.DataObject
) -> None:
    """For any flat records and answers; two samples with the same names and forms make the same bytes."""
    (user, value, time, group), _, form, lists = sample
    relation = "values" if form == "csv" else data.draw(st.sampled_from(["values", "add-remove"]))
    span_ = data.draw(st.sampled_from(["each", "all"]))
    statistic = data.draw(
        st.sampled_from([name for name in STATISTICS if relation in relations({"statistic": name, "span": span_})])
    )
    said = {
        "relation": relation, "statistic": statistic, "user": user, "time": time,
        "group": data.draw(st.sampled_from(["none", group])), "span": span_,
        "every": data.draw(st.sampled_from(["6h", "1d"])), "epsilon": data.draw(st.sampled_from(["0.1", "1", "3"])),
    }  # fmt: skip
    if has_value(said):
        said |= {"value": value, "range": data.draw(st.sampled_from(["0 1", "-100 100", "0 1e6"]))}
    if relation == "add-remove":
        said |= {"start": "2024-01-01", "end": "2024-01-08"}
        if said["group"] != "none":
            said["groups"] = data.draw(st.sampled_from(["a,b", "found"]))
    options = [part for name, text in said.items() for part in (f"--{name}", text)]
    texts = []
    for records in lists:
        with TemporaryDirectory() as folder:
            config, events = Path(folder) / "shoal.toml", Path(folder) / f"events.{form}"
            events.write_text(file_of(records, form), "utf-8")
            made = CliRunner().invoke(app, ["init", str(config), "--sample", str(events), "--yes", *options])
            assert made.exit_code == 0, (made.output, made.exception)
            texts.append(config.read_bytes())
            refused = Path(folder) / "refused.jsonl"
            run = ["run", str(config), "--input", str(events), "--output", str(Path(folder) / "out.jsonl")]
            done = CliRunner().invoke(app, [*run, "--dead-letters", str(refused)])
            assert done.exit_code == 0, (done.output, done.exception, config.read_text())
            assert refused.read_bytes() == b""
    assert texts[0] == texts[1]
