"""The page of one metric by place, in a browser: its label, what it says first, and all of its slots."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.dashboard.book import MOST_OF_ONE
from shoal.agents.dashboard.cells import FIRST, FIRST_OF_PRESENCE
from shoal.agents.dashboard.file import page_by_place
from tests.support.browser import Browser, Tab
from tests.support.releases import CELLS, HOUR, lines, release

HOSTILE = "</script><script>document.title='taken'</script><b>km/h"
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the page of these releases; its address."""

    def made(releases: list[dict[str, Any]], label: str = "speed, km/h", note: str = "") -> str:
        (tmp_path / "map.html").write_text(page_by_place(lines(releases).splitlines(), label, note), "utf-8")
        return (tmp_path / "map.html").as_uri()

    return made


def speed(hour: int, cell: int, value: Any = 30.0, **more: Any) -> dict[str, Any]:
    """What a cell has in an hour."""
    return release("speed", hour, value, 4.0, group=CELLS[cell], every=HOUR, **({"users": 12, "error": 1.5} | more))


def read(tab: Tab, hour: int, cell: int) -> list[str]:
    """What is said of a cell that is pointed at, with the slider on that hour."""
    tab.run(
        f"(() => {{ const p = views.get('m-speed').places; p.slider.value = {hour - 1}; p.draw();"
        f" p.read('{CELLS[cell]}', 9, 9); }})()"
    )
    return tab.text("#tip").splitlines()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_map_says_first_what_is_protected_and_every_cell_what_it_has(
    browser: Browser, write: Write, theme: str
) -> None:
    address = write([speed(1, 0), speed(1, 1, None), speed(2, 2, 41.0, samples=1)], note="All were confirmed.")
    with browser.tab(prefers_color_scheme=theme) as tab:
        tab.open(address)
        tab.run("views.forEach((v) => v.draw())")
        assert (tab.complaints(), tab.requests()) == ([], [address])
        assert tab.text("h1") == "speed, km/h, by place"
        assert tab.text("#note") == "All were confirmed."
        assert tab.text("#m-speed .first") == FIRST
        assert tab.text("#m-speed .map button") == "speed, km/h"
        assert read(tab, 1, 0) == ["30 ± 4", "expected error at worst 1.5", "10 samples, 12 users", CELLS[0]]
        assert read(tab, 1, 1) == ["not released", "10 samples, 12 users", CELLS[1]]
        assert read(tab, 1, 2) == ["nothing in this slot", CELLS[2]]
        assert "outlined: nothing in this slot\n1 cell" in tab.text("#m-speed .map dl")
        assert read(tab, 2, 2) == ["41 ± 4", "expected error at worst 1.5", "1 sample, 12 users", CELLS[2]]


def test_where_presence_is_protected_it_says_that(browser: Browser, write: Write) -> None:
    hidden = {"relation": "add-remove", "samples": None, "count": 1201.0, "count_sd": 4.0, "users": None, "error": None}
    with browser.tab() as tab:
        tab.open(write([speed(1, 0, **hidden), speed(2, 1, **hidden)]))
        tab.run("views.forEach((v) => v.draw())")
        assert tab.text("#m-speed .first") == FIRST_OF_PRESENCE
        assert read(tab, 1, 0) == ["30 ± 4", "about 1,201 ± 8 samples", CELLS[0]]
        assert read(tab, 1, 1) == ["not shown in this slot", CELLS[1]]


def test_of_mean_and_variance_the_label_is_that_of_the_mean(browser: Browser, write: Write) -> None:
    parts = {"value": {"mean": 30.0, "variance": 9.0}, "low": {"mean": 26.0, "variance": 1.0}}
    more = {"high": {"mean": 34.0, "variance": 17.0}, "error": {"mean": 1.5, "variance": 11.0}}
    with browser.tab() as tab:
        tab.open(write([speed(1, 0, **parts, **more)]))
        tab.run("views.forEach((v) => v.draw())")
        assert tab.text("#m-speed .map button") == "speed, km/h"
        assert read(tab, 1, 0)[:2] == ["30 ± 4", "expected error at worst 1.5"]
        tab.run("(() => { const s = document.querySelector('#m-speed select'); s.value = 1;"
                " s.dispatchEvent(new Event('change')); })()")  # fmt: skip
        assert tab.text("#m-speed .map button") == "variance"
        assert read(tab, 1, 0)[:2] == ["9 ± 8", "expected error at worst 11"]


def test_no_slot_is_thinned_and_a_label_is_never_markup(browser: Browser, write: Write) -> None:
    hours = MOST_OF_ONE + 1
    with browser.tab() as tab:
        tab.open(write([speed(hour, 0) for hour in range(1, hours + 1)], HOSTILE, HOSTILE))
        tab.run("views.forEach((v) => v.draw())")
        assert tab.run("+views.get('m-speed').places.slider.max") == hours - 1
        assert tab.text("h1") == f"{HOSTILE}, by place"
        assert tab.text("#note") == HOSTILE
        assert tab.run("document.querySelectorAll('script').length") == 2
