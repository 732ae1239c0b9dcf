"""Whether a record is accepted is a function of its form: no number may decide it, however it is written.

orjson reads a record, the json module what orjson refuses, so a number beyond a double's range decides who reads the
rest. Whatever one of them refuses and the other takes would publish that a value was so large.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.input.event_file import EventFile
from shoal.agents.input.forms import describe
from shoal.models.events import MAX_DEPTH, Refusal, group_reader, parse, time_reader, user_reader
from shoal.stream.survey import Survey
from shoal.stream.topic import plan_topic
from tests.privacy.observing import SPELLINGS, watch_file, without_record
from tests.stream.simulation import config
from tests.support.cover import FULL, in_a_loop
from tests.support.effort import examples

pytestmark = pytest.mark.slow

CFG = config({"algorithm": "naive"}, {"epsilon": 4000, "group": "g", "every": "contribution"})
PLAN = plan_topic(CFG, "events", b"k" * 32, source_partitions=1, contributions_partitions=1)
GOOD = b'"u": "anna", "t": 5, "g": "a"'

# `@` is the number. What is around it is strange in every way that one parser or the other may mind.
FORMS = {
    "plain": b'{%s, "x": @}' % GOOD,
    "first": b'{"x": @, %s}' % GOOD,
    "twice": b'{"x": "no", %s, "x": @}' % GOOD,
    "twice, the other way": b'{"x": @, %s, "x": "no"}' % GOOD,
    "twice a number": b'{"x": 1, %s, "x": @}' % GOOD,
    "user twice": b'{"u": 5, %s, "x": @}' % GOOD,
    "in a list": b'{%s, "x": [@]}' % GOOD,
    "in an object": b'{%s, "x": {"x": @}}' % GOOD,
    "in a text": b'{%s, "x": "@"}' % GOOD,
    "beside null": b'{%s, "x": null, "y": @}' % GOOD,
    "beside nothing": b'{%s, "y": @}' % GOOD,
    "beside NaN": b'{%s, "x": @, "y": NaN}' % GOOD,
    "beside -Infinity": b'{%s, "x": @, "y": -Infinity}' % GOOD,
    "beside a huge number": b'{%s, "x": @, "y": 1e999}' % GOOD,
    "beside a long number": b'{%s, "x": @, "y": %s}' % (GOOD, b"7" * 6000),
    "beside 01": b'{%s, "x": @, "y": 01}' % GOOD,
    "lone surrogate beside": b'{%s, "x": @, "y": "\\ud800"}' % GOOD,
    "lone surrogate as a name": b'{%s, "x": @, "\\udc00": 1}' % GOOD,
    "lone surrogate as user": b'{"u": "\\ud800", "t": 5, "g": "a", "x": @}',
    "pair of surrogates": b'{"u": "\\ud83d\\ude00", "t": 5, "g": "a", "x": @}',
    "surrogates in the wrong order": b'{"u": "a", "t": 5, "g": "\\ude00\\ud83d", "x": @}',
    "surrogate in UTF-8": b'{"u": "\xed\xa0\x80", "t": 5, "g": "a", "x": @}',
    "not UTF-8": b'{"u": "\xff", "t": 5, "g": "a", "x": @}',
    "overlong UTF-8": b'{"u": "\xc0\x80", "t": 5, "g": "a", "x": @}',
    "byte order mark before a float": b'\xef\xbb\xbf{"u": 12.0, "t": "1704067200000", "g": 3.0, "x": @, "y": NaN}',
    "two byte order marks": b'\xef\xbb\xbf\xef\xbb\xbf{%s, "x": @}' % GOOD,
    "user and group of whole floats": b'{"u": 12.0, "t": 5, "g": 1.2e1, "x": @}',
    "user of a whole float with many digits": b'{"u": 12.%s, "t": 5, "g": "a", "x": @}' % (b"0" * 5000),
    "time of digits": b'{"u": 1, "t": "1704067200000", "g": "a", "x": @}',
    "time of microseconds": b'{"u": 1, "t": 1704067200000000, "g": "a", "x": @}',
    "NaN in every field but the value": b'{"u": NaN, "t": NaN, "g": Infinity, "x": @}',
    "NUL escaped": b'{"u": "a\\u0000b", "t": 5, "g": "\\u0000", "x": @}',
    "NUL raw": b'{"u": "a\x00b", "t": 5, "g": "a", "x": @}',
    "tab raw": b'{"u": "a\tb", "t": 5, "g": "a", "x": @}',
    "DEL raw": b'{"u": "a\x7fb", "t": 5, "g": "a", "x": @}',
    "bad escape": b'{"u": "a\\xb", "t": 5, "g": "a", "x": @}',
    "slash escaped": b'{"u": "a\\/b", "t": 5, "g": "a", "x": @}',
    "byte order mark": b'\xef\xbb\xbf{%s, "x": @}' % GOOD,
    "UTF-16": '{"u": "anna", "t": 5, "g": "a", "x": @}'.encode("utf-16"),
    "UTF-16 LE": '{"u": "anna", "t": 5, "g": "a", "x": @}'.encode("utf-16-le"),
    "blanks": b' \t\r\n{ %s ,\n"x"\r:\t@ } \n' % GOOD,
    "no-break space": b'\xc2\xa0{%s, "x": @}' % GOOD,
    "form feed": b'{%s, \x0c"x": @}' % GOOD,
    "more after it": b'{%s, "x": @} {}' % GOOD,
    "NUL after it": b'{%s, "x": @}\x00' % GOOD,
    "comma at the end": b'{%s, "x": @,}' % GOOD,
    "comment": b'{%s, "x": @ /* */}' % GOOD,
    "single quotes": b"{'u': 1, 'x': @}",
    "cut off": b'{%s, "x": @' % GOOD,
    "a list": b"[@]",
    "a number alone": b"@",
    "minus minus": b'{%s, "x": -@}' % GOOD.replace(b"5", b"5"),
    "plus": b'{%s, "x": +@}' % GOOD,
    "user of a float": b'{"u": 1.0, "t": 5, "g": "a", "x": @}',
    "user of a long int": b'{"u": 123456789012345678901234567890, "t": 5, "g": "a", "x": @}',
    "user of a longer int": b'{"u": %s, "t": 5, "g": "a", "x": @}' % (b"1" * 300),
    "user of minus zero": b'{"u": -0, "t": 5, "g": -0, "x": @}',
    "user too long": b'{"u": "%s", "t": 5, "g": "a", "x": @}' % (b"u" * 257),
    "group of a float": b'{"u": 1, "t": 5, "g": 1.5, "x": @}',
    "group of a long int": b'{"u": 1, "t": 5, "g": 18446744073709551616, "x": @}',
    "group empty": b'{"u": 1, "t": 5, "g": "", "x": @}',
    "time of a float": b'{"u": 1, "t": 5.000000000000000001, "g": "a", "x": @}',
    "time beyond a double": b'{"u": 1, "t": 1e400, "g": "a", "x": @}',
    "time of a long int": b'{"u": 1, "t": %s, "g": "a", "x": @}' % (b"1" * 5000),
    "time below every double": b'{"u": 1, "t": 1e-400, "g": "a", "x": @}',
    "time of a text": b'{"u": 1, "t": "2024-01-01T00:00:00+01:00", "g": "a", "x": @}',
    "time missing": b'{"u": 1, "g": "a", "x": @}',
} | {
    f"{depth} deep": b'{%s, "x": @, "y": %s}' % (GOOD, b"[" * (depth - 1) + b"]" * (depth - 1))
    for depth in (2, 50, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 500, 950, 990, 1000, 1010, 1023, 1024, 1025, 5000)
} | {
    "wide": b'{%s, "x": @, "y": [%s]}' % (GOOD, b",".join([b"{}"] * 1000)),
    "brackets in texts": b'{%s, "x": @, "y": "%s\\"["}' % (GOOD, b"[{" * 1000),
}  # fmt: skip


def spellings_for(form: str) -> list[str]:
    """Ways to write a number: all of them with full effort, else every third, beginning at another for each form."""
    return SPELLINGS if FULL else SPELLINGS[list(FORMS).index(form) % 3 :: 3]


@in_a_loop
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_no_number_decides_whether_its_record_is_accepted(form):
    # given a record, with every way to write a number in it
    expected = watch_file(CFG, [FORMS[form].replace(b"@", b"1")]).pattern()
    looked = looked_through(FORMS[form].replace(b"@", b"1"))
    for spelling in spellings_for(form):
        if form in ("minus minus", "in a text") and spelling.startswith("-"):
            continue
        # then all of it that is public is the same, what a run says of its input before it begins included
        assert looked_through(FORMS[form].replace(b"@", spelling.encode())) == looked, spelling[:40]
        assert watch_file(CFG, [FORMS[form].replace(b"@", spelling.encode())]).pattern() == expected, spelling[:40]


def looked_through(raw: bytes) -> list[object]:
    survey = Survey(PLAN)
    for number in range(2):
        survey.look(number, raw)
    said = [(one.number, one.reason, describe(one)) for one in survey.troubles]
    return [survey.records, survey.by_metric, survey.late, survey.disordered, said]


def test_the_depth_of_a_record_is_judged_the_same_by_both_parsers():
    """Regression: 1,000 levels were JSON to orjson and too many for the json module, which read on at 1e400."""
    for depth, accepted in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False), (1000, False)):
        for number in ("1", "1e400", "9" * 5000):
            raw = b'{"x": %s, "y": %s}' % (number.encode(), b"[" * (depth - 1) + b"]" * (depth - 1))
            assert reads(raw) is accepted


def test_a_deep_stack_of_python_does_not_decide_either():
    raw = b'{"x": 1e400, "y": %s}' % (b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1))

    def below(calls: int) -> bool:
        return below(calls - 1) if calls else reads(raw)

    assert below(400)


def reads(raw: bytes) -> bool:
    return not isinstance(parse(raw), Refusal)


# ---------------------------------------------------------------- any record at all

texts = st.text(alphabet=st.sampled_from('ab"\\/é\ud800\udc00\x00\x1f\x7f\u2028{}[],:0'), max_size=4)
scraps = st.sampled_from([*'{}[],:"\\-.e01 \n\ufeff', "\\u", "d800", "NaN", "null", "true"])


def quoted(text: str) -> str:
    """A JSON text, escaped where it must be and sometimes where it must not."""
    escaped = (f"\\u{ord(one):04x}" if ord(one) in range(0xD800, 0xE000) else one for one in text)
    return f'"{"".join(escaped)}"'


leaves = st.one_of(st.sampled_from(SPELLINGS), texts.map(quoted), st.sampled_from(["null", "true", "NaN", "@", '"u"']))
names = st.one_of(st.sampled_from(['"u"', '"t"', '"g"', '"x"', '"y"']), texts.map(quoted))
documents = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
        st.lists(st.tuples(names, inner).map(":".join), max_size=5).map(lambda pairs: f"{{{','.join(pairs)}}}"),
    ),
    max_leaves=12,
)


@examples(100)
@given(documents, st.lists(st.tuples(st.integers(0, 200), scraps), max_size=2), st.sampled_from(SPELLINGS))
def test_no_number_decides_whether_any_record_at_all_is_accepted(document, errors, spelling):
    # given a record of random structure, with a number somewhere in it, and random damage
    template = f'{{"u":"anna","t":5,"g":"a","x":@,"rest":{document}}}'
    for place, scrap in errors:
        if "@" not in template[max(0, place - 1) : place + 1] and "@" in template:
            template = template[:place] + scrap + template[place:]
    if any(next_to in template for next_to in ("-@", "@.", "@e", "@0", "@1", ".@", "e@", "0@", "1@", '@"', "u@")):
        return  # the damage became part of the number
    one, other = (template.replace("@", number).encode("utf-8", "surrogatepass") for number in ("1", spelling))
    # then it is accepted with the one number if and only if with the other
    assert watch_file(CFG, [one]).pattern() == watch_file(CFG, [other]).pattern()


IDS = [*SPELLINGS, "12.0", "1.2e1", "12.5", "1e256", "NaN", '"1704067200000"', '"20240101"', '"2024-01-01"']


@given(st.sampled_from(IDS), st.sampled_from(SPELLINGS), st.sampled_from(["", "\ufeff"]), st.sampled_from(["1", "NaN"]))
def test_user_time_and_group_are_read_alike_beside_every_number(user, number, mark, other):
    def fields(beside: str) -> list[object]:
        raw = f'{mark}{{"u": {user}, "x": {beside}, "y": {other}}}'.encode()
        event = parse(raw)
        readers = user_reader("u"), group_reader("u"), time_reader("u")
        return [event] if isinstance(event, Refusal) else [read(event, raw) for read in readers]

    assert fields("1") == fields(number)


# ---------------------------------------------------------------- CSV

ROWS = [
    "u,t,g,x\nanna,5,a,@\n", "x,u,t,g\n@,anna,5,a\n", 'u,t,g,x\nanna,5,a,"@"\n', "u,t,g,x\nanna, 5 ,a,  @ \n",
    "u,t,g,x,y\nanna,5,a,@\n", "u,t,g,x\nanna,5,a,@,\n", "u,t,g,x\nanna,5,a,@,more\n", "u,t,g,y\nanna,5,a,@\n",
    "u,t,x\nanna,,@\n", "u,t,g,x\nanna,.5,a,@\n", "\ufeffu,t,g,x\r\nanna,5,a,@\r\n", "u,t,g,x\nanna,5,a,@x\n",
]  # fmt: skip
# As other programs write numbers: some begin 0.5 with its point, end 5. with it, or pad to one width.
CELLS = [*SPELLINGS, ".5", "-.5", "5.", "+5", "+.5e3", "007", "-007.50", "  5", "   100", "00", "-0.", "1.e5"]


def events_of(folder: Path, content: str) -> list[bytes]:
    (folder / "events.csv").write_text(content, "utf-8")
    return [line.value or b"" for line in EventFile(str(folder / "events.csv"), CFG, "events").lines()]


@in_a_loop
@pytest.mark.parametrize("rows", ROWS)
def test_no_number_decides_whether_a_row_of_csv_is_accepted(tmp_path, rows):
    expected = watch_file(CFG, events_of(tmp_path, rows.replace("@", "1"))).pattern()
    for cell in CELLS if FULL else CELLS[ROWS.index(rows) % 3 :: 3]:
        assert watch_file(CFG, events_of(tmp_path, rows.replace("@", cell))).pattern() == expected, cell[:40]


@in_a_loop
@pytest.mark.parametrize(("cell", "number"), [(".5", 0.5), ("+.25", 0.25), (" 1 ", 1), ("-7.", 0), ("007", 1)])
def test_a_number_in_csv_is_that_number_however_it_is_written(tmp_path, cell, number):
    """Regression: `.5` was a text, so of a program that writes 0.5 so, all values below 1 were dead letters."""
    cfg = config({"algorithm": "naive"})
    one = watch_file(cfg, events_of(tmp_path, f"u,t,x\nanna,5,{cell}\n"))
    assert one.releases == watch_file(cfg, [b'{"u":"anna","t":5,"x":%r}' % number]).releases != []


@in_a_loop
@pytest.mark.parametrize(
    "cell", ["", "-", ".", "e5", "+", "1,5", "1 5", "--1", "0x10", "inf", "-inf", "nan", "1_0", "٣", "½"]
)
def test_what_is_no_number_in_any_of_these_is_refused(tmp_path, cell):
    seen = watch_file(config({"algorithm": "naive"}), events_of(tmp_path, f'u,t,x\nanna,5,"{cell}"\n'))
    assert (seen.releases, len(seen.dead_letters)) == ([], 1)


def test_a_decimal_comma_does_not_become_another_column(tmp_path):
    """Regression: `3,5` pushed its 5 into the next column, the time, which is public."""
    (event,) = events_of(tmp_path, "u,x,t,g\nanna,3,5,1700000000,a\n")
    seen = watch_file(CFG, [event])
    assert seen.releases == []
    assert {without_record(letter)["reason"] for letter in seen.dead_letters} == {"not-json-object"}
