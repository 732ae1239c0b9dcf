"""The page of a file, in a real browser: what it shows, to whom, and that it asks nobody for anything."""

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.dashboard.file import page_of
from shoal.agents.dashboard.page import page, script, style
from shoal.models.config.file import load
from shoal.models.errors import InputError
from tests.support.browser import Browser, Tab
from tests.support.cover import covered
from tests.support.releases import INHERITED, lines, release, town

AXE = (Path(str(importlib.import_module("axe_core_python").__file__)).parent / "axe.min.js").read_text("utf-8")
SIZES = {"desk": (1280, 900), "tablet": (820, 1100), "phone": (390, 844)}
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=alert(1)>\u202e\"'&amp;"
CONFIG = """
[privacy]
epsilon = 4
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "mean"
range = [0, 200]
every = "1d"
max_contributions = 64
epsilon = 1.5
[[metric]]
name = "wait"
topic = "purchases"
user = "customer"
value = "wait"
time = "at"
statistic = "sum"
range = [0, 60]
every = "1d"
epsilon = 1
max_contributions = 4
"""
Write = Callable[[list[dict[str, Any]]], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the page of these releases; its address."""

    def made(releases: list[dict[str, Any]]) -> str:
        (tmp_path / "page.html").write_text(page_of(lines(releases).splitlines(), "some.jsonl").text, "utf-8")
        return (tmp_path / "page.html").as_uri()

    return made


def violations(tab: Tab) -> list[str]:
    """What axe finds wrong for people who do not see, or use no mouse."""
    tab.run(f"{AXE}; 0")
    found = tab.run("axe.run(document).then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")
    return [f"{rule}: {nodes[:2]}" for rule, nodes in found]


def test_the_page_without_data_is_small() -> None:
    assert len(page().encode()) < 100_000


def test_the_policy_lets_in_its_own_style_and_script_alone() -> None:
    (policy,) = re.findall('Content-Security-Policy" content="([^"]+)"', page({"metrics": []}))
    assert "unsafe" not in policy
    assert "http" not in policy
    assert policy.startswith("default-src 'none'; connect-src 'none'")
    assert "connect-src 'self'" in page()
    assert "http" not in style()
    assert set(re.findall(r"https?://[\w./]+", script())) == {"http://www.w3.org/2000/svg"} | set(
        re.findall(r"http://HOST", script())
    )


@pytest.mark.slow
@covered(strength=1)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_is_drawn_whole_at_every_size_without_complaint(
    browser: Browser, town_page: Path, size: str, theme: str
) -> None:
    with browser.tab(*SIZES[size], prefers_color_scheme=theme) as tab:
        tab.open(town_page.as_uri())
        tab.run("views.forEach((v) => v.draw())")
        assert tab.complaints() == []
        assert tab.requests() == [town_page.as_uri()]
        assert tab.run("document.querySelectorAll('article').length") == 5
        assert tab.run("document.documentElement.scrollWidth") == SIZES[size][0]
        assert tab.run(
            "[...document.querySelectorAll('.plot path.line')].every((p) => p.getAttribute('d').length > 20)"
        )
        assert "NaN" not in tab.run("document.documentElement.outerHTML.replace(/<script[^]*?<\\/script>/g, '')")
        assert violations(tab) == []


def test_the_last_period_of_a_file_is_never_the_headline(browser: Browser, write: Write) -> None:
    # given sixteen groups by day, of which all have a number on the last whole day, and three on the day cut off
    names = [f"g{number:02}" for number in range(16)]
    days = [
        release("visits", day, 50.0 if day < 4 else -50.0, 5, group=name, users=9, samples=20 if day < 4 else 1)
        for day in range(1, 5)
        for name in (names if day < 4 else names[:3])
    ]
    with browser.tab() as tab:
        tab.open(write(days))
        # then number and groups are those of the whole day, also where nobody looks at the page and it has no frames
        tab.run("requestAnimationFrame = () => 0; views.forEach((v) => { v.build(); plan(v); }); 0")
        tab.until("document.querySelectorAll('#m-visits .multiples button em').length >= 16")
        said = tab.text("#m-visits .now").splitlines()
        assert said[0] == "50 ± 5"
        assert said[-1] == "the last period may be cut off; the chart has it"
        assert "3 Mar 2026" in said[1] or "4 Mar 2026" in said[1]
        assert tab.run("document.querySelectorAll('#m-visits .multiples button').length") == 16


def test_a_metric_says_its_number_as_its_noise_leaves_it(browser: Browser, town_page: Path) -> None:
    with browser.tab() as tab:
        tab.open(town_page.as_uri())
        tab.until("document.querySelector('#m-basket .now b')")
        assert tab.text("#m-basket .now").splitlines()[0] == "36 ± 4"
        assert "hatched: nothing known yet" in tab.text("#m-basket")
        assert "exact and public" in tab.text("#m-orders")
        assert "60 releases" not in tab.text("#m-orders .now")


def test_arrow_keys_read_a_chart_to_screen_readers(browser: Browser, town_page: Path) -> None:
    with browser.tab() as tab:
        tab.open(town_page.as_uri())
        tab.until("document.querySelector('#m-basket svg path')")
        tab.run("document.querySelector('#m-basket svg[role=slider]:not(.rank)').focus()")
        said = "document.querySelector('#m-basket svg[role=slider]:not(.rank)').getAttribute('aria-valuetext')"
        tab.key("Home")
        assert tab.run(said) == "nothing known yet, 2 Mar 2026"
        tab.key("End")
        last = tab.run(said)
        assert re.fullmatch(r"36 ± 4, noise 32 to 41, 7,200 samples, 30 Apr 2026", last)
        tab.key("ArrowLeft")
        assert "29 Apr 2026" in tab.run(said)
        assert tab.run("document.getElementById('tip').hidden") is False


def test_a_thousand_groups_are_ranked_found_and_shown(browser: Browser, town_page: Path) -> None:
    with browser.tab() as tab:
        tab.open(town_page.as_uri())
        tab.run("document.getElementById('m-visit').scrollIntoView()")
        tab.until("document.querySelector('#m-visit .rank path')")
        assert re.search(
            r"1,000 groups, lowest first: \d+ clear of the median, where noise alone", tab.text("#m-visit")
        )
        # all of them
        assert tab.run("document.querySelectorAll('#m-visit .multiples button').length") == 24
        tab.run(
            "[...document.querySelectorAll('#m-visit button')].find((b) => /all 1,000/.test(b.textContent)).click()"
        )
        for _ in range(60):
            tab.run("document.querySelector('#m-visit .frame').scrollTo(0, 1e6)")
            if tab.run("document.querySelectorAll('#m-visit .multiples button').length") == 1000:
                break
            tab.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")
        assert tab.run("document.querySelectorAll('#m-visit .multiples button').length") == 1000
        # one of them, by name
        tab.run("(() => { const i = document.querySelector('#m-visit input[type=search]'); i.value = 'store-0042';"
                " i.dispatchEvent(new Event('input')); })()")  # fmt: skip
        assert tab.run("document.querySelectorAll('#m-visit .multiples button').length") == 1
        tab.run("document.querySelector('#m-visit .multiples button').click()")
        assert tab.text("#m-visit .now small").startswith("store-0042")
        # and by key, from the ranking
        tab.run("document.querySelector('#m-visit svg.rank').focus()")
        tab.key("Home", "Enter")
        assert tab.text("#m-visit .now small").startswith(tab.run("views.get('m-visit').ranking.rows[0].g"))
        assert tab.complaints() == []


def test_cells_are_a_map_by_slot(browser: Browser, town_page: Path) -> None:
    with browser.tab() as tab:
        tab.open(town_page.as_uri())
        tab.run("document.getElementById('m-speed').scrollIntoView()")
        tab.until("document.querySelector('#m-speed .map polygon.withheld')")
        assert tab.run("document.querySelectorAll('#m-speed .map g polygon').length") == 5
        assert "4 cells" in tab.text("#m-speed .map")
        tab.run("(() => { const s = document.querySelector('#m-speed input[type=range]'); s.value = 0;"
                " s.dispatchEvent(new Event('input')); })()")  # fmt: skip
        assert "1 Mar 2026, 01:00" in tab.text("#m-speed .map")
        tab.run("document.querySelector('#m-speed .map svg').focus()")
        tab.key("Home")
        assert re.search(
            "881f1d48", tab.run("document.querySelector('#m-speed .map svg').getAttribute('aria-valuetext')")
        )


def test_names_out_of_events_are_text_and_nothing_else(browser: Browser, write: Write) -> None:
    hostile = [release("m", 1, float(i), group=f"{HOSTILE}{i}") for i in range(30)]
    plain = release(HOSTILE, 1, 1.0, unit=HOSTILE, algorithm=HOSTILE)
    with browser.tab() as tab:
        tab.open(write([*hostile, plain]))
        tab.run("views.forEach((v) => v.draw())")
        assert tab.complaints() == []
        assert tab.run("document.title") == "some.jsonl · shoal"
        assert tab.run("document.querySelectorAll('img, article script').length") == 0
        assert HOSTILE in tab.run("document.querySelector('#metrics').textContent")


def test_groups_with_names_that_objects_inherit_are_drawn_like_any_other(browser: Browser, write: Write) -> None:
    # given a metric with so many groups that they are ranked; those with inherited names have most samples. And metrics
    # with such names, of which one has a distribution
    groups = [*INHERITED, *(f"group {number}" for number in range(30))]
    many = [
        release("m", seq, 5.0 + rank, group=name, samples=1000 - rank)
        for seq in (1, 2) for rank, name in enumerate(groups)
    ]  # fmt: skip
    histogram = {
        "value": {"histogram": [0.5, 0.5]},
        "low": {"histogram": [0.4, 0.4]},
        "high": {"histogram": [0.6, 0.6]},
    }
    alone = [release(name, 1, 7.0, group="constructor") for name in INHERITED]
    shared = release("shares", 1, None, group="__proto__") | histogram
    with browser.tab() as tab:
        tab.open(write([*many, *alone, shared]))
        tab.run("dispatchEvent(new Event('beforeprint'))")  # draws everything, also what is not scrolled to
        # when all small charts are asked for
        tab.run("document.querySelector('#m-m button[aria-expanded]').click()")
        scrolled = "(() => { const f = document.querySelector('#m-m .frame'); f.scrollTop = f.scrollHeight; })()"
        tab.until(f"{scrolled}, document.querySelectorAll('#m-m .multiples button').length === {len(groups)}")
        # then every group has one, in the order of their samples, with the number released for it
        said = "(b) => [b.title, +b.querySelector('b').textContent]"
        found = tab.run(f"[...document.querySelectorAll('#m-m .multiples button')].map({said})")
        assert found == [[name, 5 + rank] for rank, name in enumerate(groups)]
        assert f"{len(groups)} groups, lowest first" in tab.text("#m-m")
        # and each can be chosen, and is in the big chart
        for name in INHERITED:
            tab.run(f"views.get('m-m').choose('{name}')")
            assert tab.run("document.querySelector('#m-m .plot svg:not(.rank)').ariaLabel").startswith(
                f"m {name}: 2 releases"
            )
        assert tab.run("document.querySelectorAll('#m-shares .bin').length") == 2
        # and metrics with such names are drawn, also on paper
        numbers = [
            tab.run(f"document.getElementById('m-{name}').querySelector('.now b').textContent") for name in INHERITED
        ]
        assert numbers == ["7.0"] * len(INHERITED)
        assert tab.pdf().startswith(b"%PDF")
        assert tab.complaints() == []


def test_every_kind_of_value_is_drawn(browser: Browser, write: Write) -> None:
    shares = {"cdf": [0.4, 1], "histogram": [0.4, 0.6], "quantiles": {"0.05": 1, "0.5": 3}}
    kinds = [
        release("coordinates", 1, [1.0, 2.0], low=[0.0, 1.0], high=[2.0, 3.0]),
        release("spread", 1, {"mean": 1, "variance": 2}, low={"mean": 0, "variance": 0}, high={"variance": 4}),
        release("distribution", 1, shares, low=shares, high=shares),
        release("nothing", 1, None), release("nothing", 2, None),
        release("huge", 1, 1e300, 1e299), release("tiny", 1, 1e-12, 1e-13), release("one", 1, 1.0, group="a"),
        release("presence", 1, 2.0, samples=None, count=30.0, count_sd=4.0, relation="add-remove"),
        release("clipped", 1, 2.0, clip=90.0), release("clipped", 2, 2.0, clip=110.49),
        release("held", 1, 2.0, withheld={"samples": 30, "share": 0.75}),
    ]  # fmt: skip
    with browser.tab() as tab:
        tab.open(write(kinds))
        tab.run("views.forEach((v) => v.draw())")
        assert tab.complaints() == []
        assert "NaN" not in tab.run("document.querySelector('main').outerHTML")
        assert tab.run("document.querySelectorAll('#m-distribution rect.bin').length") == 2
        assert "coordinate 2" in tab.text("#m-coordinates")
        assert "no release" in tab.text("#m-nothing .now")
        assert "about 30 ± 8 samples" in tab.text("#m-presence .now")
        assert "clipped at 110.5, an end that was chosen in private" in tab.text("#m-clipped .now")
        assert "30 further samples (75 %) came and do not count" in tab.text("#m-held .now")
        assert violations(tab) == []
        # another part of a value
        tab.run("(() => { const s = document.querySelector('#m-spread select'); s.value = 1;"
                " s.dispatchEvent(new Event('change')); })()")  # fmt: skip
        assert tab.text("#m-spread .now").startswith("2 ± 2")
        assert "zero is within the noise" in tab.text("#m-spread .now")


def test_a_configuration_adds_what_was_promised(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_text(CONFIG)
    of_it = [release("basket", day, 35.0, 3.0) for day in range(1, 9)]
    made = page_of(lines(of_it).splitlines(), "some.jsonl", load(tmp_path / "shoal.toml"))
    (tmp_path / "page.html").write_text(made.text, "utf-8")
    with browser.tab() as tab:
        tab.open((tmp_path / "page.html").as_uri())
        said = tab.text("#privacy")
        assert "by at most a factor of 12.2. Someone who thought something" in said
        assert "One person loses up to epsilon = 2.5 in a week, in a year and for ever." in said
        assert "ε 2.5 of ε 4 per person, for ever" in said
        assert "amount, wait" in said
        assert "That they were there, when and how often, is not protected (fields customer and at)." in said
        assert "mean of amount; released every day; epsilon = 1.5 per person, for ever; clipped" in tab.text(
            "#m-basket"
        )
        assert "Nothing is released yet of wait." in tab.text("#note")
        assert violations(tab) == []


def test_what_was_left_out_is_said(browser: Browser, tmp_path: Path) -> None:
    half = lines([release("m", 1, 1.0), release("m", 2, 2.0)])[:-30]
    made = page_of(half.splitlines(), "some.jsonl")
    (tmp_path / "page.html").write_text(made.text, "utf-8")
    with browser.tab() as tab:
        tab.open((tmp_path / "page.html").as_uri())
        assert "Left out: 1 of another kind." in tab.text("footer")
    assert made.fields == {"releases": 1, "metrics": 1, "left_out": {"of another kind": 1}}


def test_a_file_without_a_release_is_refused() -> None:
    with pytest.raises(InputError, match=r"empty\.jsonl: there is no release in it"):
        page_of([b"{}"], "empty.jsonl")


def test_on_paper_there_is_all_of_it_in_ink(browser: Browser, town_page: Path) -> None:
    with browser.tab(prefers_color_scheme="dark") as tab:
        tab.open(town_page.as_uri())
        pdf = tab.pdf()
        assert pdf.startswith(b"%PDF")
        assert tab.run("[...views.values()].every((v) => !v.dirty)")
        tab.media("print", {"prefers-color-scheme": "dark"})
        assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.run("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_a_hundred_thousand_releases_are_thinned_to_a_page_that_says_so(browser: Browser, tmp_path: Path) -> None:
    many = [release("m", seq, float(seq % 50), 4.0, every=60) for seq in range(1, 30_001)]
    made = page_of(lines(many).splitlines(), "many.jsonl")
    assert len(made.text) < 400_000
    (tmp_path / "page.html").write_text(made.text, "utf-8")
    with browser.tab() as tab:
        tab.open((tmp_path / "page.html").as_uri())
        tab.until("document.querySelector('#m-m path.line')")
        assert re.search(r"one release in \d+ is drawn", tab.text("#m-m"))


def test_the_towns_releases_have_every_kind_of_metric() -> None:
    assert {each["metric"] for each in town(days=2, groups=2)} == {"basket", "orders", "sales", "visit", "speed"}
