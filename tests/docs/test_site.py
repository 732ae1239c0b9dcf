"""The site of the documents: what `make docs` builds is whole, says what the pages say, and asks no other host.

All tests are long, and what only they need is imported inside them.
"""

import functools
import http.server
import importlib
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.browser import Browser, open_browser

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
DOCS, ELSEWHERE = "docs/", "repository/"
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
# Home, a page to learn from, a guide with tables.
LOOKED_AT = ("index.html", "guides/examples.html", "guides/choosing-epsilon.html")
COUNTED = frozenset("h1 h2 h3 li ul ol table tr pre blockquote em strong hr a img".split())


class Reader(HTMLParser):
    """What is in a page: addresses, anchors, and of its text (all of it, or its article) words and elements."""

    def __init__(self, html: str, *, is_article: bool = False) -> None:
        super().__init__()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.menu: list[str] = []
        self.anchors: set[str] = set()
        self.elements: Counter[str] = Counter()
        self.words: list[str] = []
        self._is_text, self._left_out = not is_article, False
        self.feed(html)

    @property
    def text(self) -> str:
        return "".join("".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            self.menu += [given["href"]] if "md-nav__link" in given.get("class", "").split() else []
        self.assets += [given[name] for name in ("src", "href") if name in given and tag != "a"]
        self._is_text |= tag == "article"
        self._left_out |= given.get("class") == "headerlink"
        if self._is_text and not self._left_out and tag in COUNTED:
            self.elements[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self._is_text &= tag != "article"
        self._left_out &= tag != "a"

    def handle_data(self, data: str) -> None:
        if self._is_text and not self._left_out:
            self.words.append(data)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The site and what the build said."""
    site = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return site, done.stderr


@pytest.fixture(scope="module")
def site(built: tuple[Path, str]) -> Path:
    return built[0]


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Reader]:
    return {file: Reader(file.read_text("utf-8")) for file in site.rglob("*.html") if file.name != "404.html"}


def source(site: Path, page: Path) -> Path:
    """The file of the repository that a page shows."""
    path = page.relative_to(site).as_posix()
    path = path.removeprefix(ELSEWHERE) if path.startswith(ELSEWHERE) else DOCS + path
    path = re.sub(r"\bindex\.html$", "README.html", path).removesuffix(".html")
    return ROOT / (f"{path}.md" if (ROOT / f"{path}.md").exists() else path)


def test_it_is_built_without_a_warning(built: tuple[Path, str]) -> None:
    assert "WARNING" not in built[1]


def test_every_document_has_a_page(site: Path, pages: dict[Path, Reader]) -> None:
    shown = {source(site, page) for page in pages}
    assert [page for page in shown if not page.is_file()] == []
    assert set((ROOT / "docs").rglob("*.md")) <= shown
    assert {ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")} <= shown


def test_every_document_is_in_the_menu_once(site: Path, pages: dict[Path, Reader]) -> None:
    # given the menu of a page that lies in no folder of it, so that addresses are from the root
    home = pages[site / "index.html"]
    listed = Counter((site / link).resolve() for link in home.menu if link and not link.startswith("#"))
    documents = {page for page in pages if source(site, page).suffix == ".md"} - {site / "index.html"}
    # then it has each document once, and no text of a program
    assert listed.keys() - {(site / "index.html").resolve(), site.resolve()} == documents
    assert {page: number for page, number in listed.items() if number > 1 and page in documents} == {}


def test_every_link_anchor_and_asset_is_there(site: Path, pages: dict[Path, Reader]) -> None:
    broken = []
    for page, reader in pages.items():
        for address in [*reader.links, *reader.assets]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            to = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file() or (parts.fragment and unquote(parts.fragment) not in pages[to].anchors):
                broken.append(f"{page.relative_to(site)}: {address}")
    assert broken == []


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[Path, Reader]) -> None:
    # given pages and styles; that scripts ask nobody either is seen in the browser
    assert [asset for reader in pages.values() for asset in reader.assets if urlsplit(asset).netloc] == []
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)\"']+", style.read_text("utf-8")) == []


def test_it_says_what_the_pages_say(site: Path, pages: dict[Path, Reader]) -> None:
    """Dialects of Markdown differ in lists, blocks and emphasis: both must come out the same."""
    from markdown_it import MarkdownIt

    markdown, differ = MarkdownIt("gfm-like", {"linkify": False}), []
    for page in pages:
        file = source(site, page)
        if file.suffix != ".md":
            continue
        meant, shown = (
            Reader(markdown.render(file.read_text("utf-8"))),
            Reader(page.read_text("utf-8"), is_article=True),
        )
        if (meant.text, meant.elements) != (shown.text, shown.elements):
            same = os.path.commonprefix([meant.text, shown.text])
            near = [text[max(0, len(same) - 40) : len(same) + 40] for text in (meant.text, shown.text)]
            differ.append((str(file.relative_to(ROOT)), near, meant.elements - shown.elements))
    assert differ == [], "a blank line before a list, and a line of prose that begins like one, are what to look for"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine alone."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *said: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def axe() -> str:
    """The program that looks for what people with disabilities cannot read."""
    package = Path(str(importlib.import_module("axe_core_python").__file__)).parent
    return (package / "axe.min.js").read_text("utf-8")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_pages_can_be_read_by_everyone(browser: Browser, address: str, axe: str, size: str, theme: str) -> None:
    with browser.tab(*SIZES[size], prefers_color_scheme=theme) as tab:
        for page in LOOKED_AT:
            # when a page is looked at
            tab.open(address + page)
            tab.until(f"document.body.dataset.mdColorScheme === '{'slate' if theme == 'dark' else 'default'}'")
            # then nothing is wider than the screen, and axe finds nothing serious
            assert tab.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0, page
            tab.run(f"{axe}; 0")
            found = tab.run("axe.run(document).then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes[0].html]))")
            assert [violation for violation in found if violation[0] in ("serious", "critical")] == [], page
        # and the page complains of nothing, and has asked nobody else
        assert tab.complaints() == []
        assert [url for url in tab.requests() if not url.startswith((address, "data:"))] == []


def test_the_search_finds_a_page(browser: Browser, address: str) -> None:
    with browser.tab() as tab:
        tab.open(f"{address}?q=fail-stop")
        tab.until(
            "[...document.querySelectorAll('.md-search-result__link')].some((a) => a.href.includes('runbook.html'))"
        )
