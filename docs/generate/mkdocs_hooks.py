"""What the site of the documents needs besides mkdocs.yml: its navigation, and pages for what lies outside docs/.

Pages link to files of the repository as they do on its host: to other documents, examples, tests. On the site such a
document is a page like the others, and any other file a page with its text, so that a copy of the site needs nothing
else. The navigation follows docs/README.md, which lists every page: who adds one lists it there and nowhere else.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
ELSEWHERE = "repository/"  # where the site has what the repository has outside docs/
STYLE = "assets/site.css"
SEARCH = 'data-md-component="search" role="dialog"'  # which the theme gives no name that is read aloud
FENCE = re.compile(r"^( *)(```+)(\w*)[^\n]*\n.*?^\1\2$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")
# Sections of the navigation, in this order, and what is in them: folders of the repository.
SECTIONS = {
    "Guides": ("docs/guides", "docker", "docker/kubernetes"),
    "Reference": ("docs/reference",),
    "Explanation": ("docs/explanation", "shoal/mechanisms"),
    "Algorithms": ("docs/explanation/algorithms",),
    "Measurements": ("benchmarks/results",),
    "Proofs": ("docs/proofs",),
    "Project": ("", "tests", "shoal/agents/demo/data"),
}
WITHIN = {"Algorithms": "Explanation", "Measurements": "Explanation"}
MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})
MARKER = re.compile(r"^ *(?:[-+*]|\d+[.)]) +")
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".jsonl": "json", ".yaml": "yaml"}


def slug(heading: str, _separator: str = "-") -> str:
    """The anchor of a heading, as hosts of repositories make it.

    >>> slug("What ends a worker, and `why`")
    'what-ends-a-worker-and-why'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def outside_fences(markdown: str) -> Iterator[tuple[bool, str]]:
    """The parts of a text in turn, and whether each is prose, not a block of code."""
    end = 0
    for fence in FENCE.finditer(markdown):
        yield True, markdown[end : fence.start()]
        yield False, fence[0]
        end = fence.end()
    yield True, markdown[end:]


def links(path: str) -> Iterator[str]:
    """Files of the repository that a document links to."""
    for is_prose, part in outside_fences((ROOT / path).read_text("utf-8")):
        for target in LINK.findall(part) if is_prose else ():
            if "://" not in target:
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Anchors are those of the repository's host, and colours can be read."""
    config.mdx_configs["toc"]["slugify"] = slug
    config.extra_css = [STYLE]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what pages link to, and what that links to; then list all pages for the navigation."""
    files.append(File.generated(config, STYLE, abs_src_path=str(Path(__file__).with_name("site.css"))))
    documents = [DOCS + file.src_uri for file in files.documentation_pages()]
    waiting = list(documents)
    while waiting:
        for path in links(waiting.pop()):
            if path.startswith(DOCS) or files.get_file_from_path(address(path)):
                continue
            files.append(generated(path, config))
            if path.endswith(".md"):
                documents.append(path)
                waiting.append(path)
    config.nav = navigation(documents)
    return files


def address(path: str) -> str:
    """Where the site's sources have a file of the repository."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return ELSEWHERE + (path if path.endswith(".md") else f"{path}.md")


def generated(path: str, config: MkDocsConfig) -> File:
    """A page for a file outside docs/: a document as it is, any other in a block of code."""
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".md"):
        return File.generated(config, address(path), content=text)
    language = LANGUAGES.get(Path(path).suffix, "text")
    page = f"---\nsearch: {{exclude: true}}\n---\n# `{path}`\n\n``````{language}\n{text}\n``````\n"
    return File.generated(config, address(path), content=page, inclusion=InclusionLevel.NOT_IN_NAV)


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Links out of docs/ lead to those pages."""
    source = page.file.src_uri
    path = source.removeprefix(ELSEWHERE) if source.startswith(ELSEWHERE) else DOCS + source
    if not (ROOT / path).is_file():
        return markdown  # the text of a file that is no document

    def target(link: re.Match[str]) -> str:
        if "://" in link[0]:
            return link[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[0]))
        return posixpath.relpath(address(meant), posixpath.dirname(source) or ".")

    linked = (LINK.sub(target, part) if is_prose else part for is_prose, part in outside_fences(markdown))
    return indented_by_four("".join(linked))


def on_post_page(output: str, **_: Any) -> str:
    """Name the search for those who hear the page."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')


def indented_by_four(markdown: str) -> str:
    r"""The same text with what belongs to an item of a list four spaces deep, as the site's dialect wants it.

    >>> print(indented_by_four("* a\n\n  b\n* c\n  1. d"))
    * a
    <BLANKLINE>
        b
    <BLANKLINE>
    * c
        1. d
    """
    lines = markdown.split("\n")
    items = [token.map for token in MARKDOWN.parse(markdown) if token.type == "list_item_open" and token.map]
    depth, offset = [0] * len(lines), [0] * len(lines)  # items around a line; where the innermost one's text begins
    for first, end in items:
        marker = MARKER.match(lines[first])
        offset[first] = len(lines[first]) - len(lines[first].lstrip())
        for number in range(first + 1, end):
            depth[number] += 1
            offset[number] = len(marker[0]) if marker else 0
    # Of two items without a blank line between them the second would be text of the first, had that several paragraphs.
    spaced = {end for first, end in items if not all(lines[first:end])} & {first for first, _ in items}
    for number, line in enumerate(lines):
        text = line.lstrip()
        if depth[number] and text:
            lines[number] = " " * (4 * depth[number] + max(0, len(line) - len(text) - offset[number])) + text
        if number in spaced and lines[number - 1]:
            lines[number] = "\n" + lines[number]
    return "\n".join(lines)


def navigation(documents: list[str]) -> list[Any]:
    """All pages, by section; within one as docs/README.md lists them, and then the list of the folder."""
    listed = [*links("docs/README.md")]
    for path in documents:
        if path.endswith("/README.md") and path.startswith(DOCS) and path != "docs/README.md":
            listed += [path, *links(path)]
    order = {path: number for number, path in reversed([*enumerate(listed)])}
    sections: dict[str, list[Any]] = {name: [] for name in SECTIONS}
    for path in sorted(documents, key=lambda path: (order.get(path, len(order)), path)):
        for name, folders in SECTIONS.items():
            if posixpath.dirname(path) in folders:
                sections[name].append({title(path): address(path)})
    for name, parent in WITHIN.items():
        if sections[name]:
            sections[parent].append({name: sections[name]})
    first = [{title: path} for title, path in (("Home", "README.md"), ("Tutorial", "tutorial.md"))]
    return [page for page in first if all((ROOT / DOCS / path).exists() for path in page.values())] + [
        {name: pages} for name, pages in sections.items() if pages and name not in WITHIN
    ]


def title(path: str) -> str:
    """The first words of a document's heading, short enough for a menu."""
    heading = re.search(r"^# (.+)$", (ROOT / path).read_text("utf-8"), re.MULTILINE)
    if heading is None:
        raise PluginError(f"{path}: there is no heading of the form `# ...`, which the menu needs")
    return re.split(r": |, ", heading[1])[0]
