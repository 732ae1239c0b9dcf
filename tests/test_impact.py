"""`make quick` runs the tests that a change can affect: by imports, by names in strings, by rules for some files."""

import ast
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.impact import STORE, Unknown, changes, environment, left_out, told
from tests.support.selection import BROKERS, Project
from tests.support.source_facts import ROOTS, facts_of

ROOT = Path(__file__).parents[1]
MAIN = 'HERE = "shoal.commands"\nCOMMANDS = {"plan": f"{HERE}.plan:plan", "run": f"{HERE}.run:run"}\n'
LAZY = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.one import read as read
    from shoal.two import Release as Release

__version__ = "1"


def __getattr__(name):
    from importlib import import_module
    return getattr(import_module({"read": "shoal.one", "Release": "shoal.two"}[name]), name)
"""

Write = Callable[..., Project]


@pytest.fixture
def project(tmp_path: Path) -> Write:
    """Writer of a small project: texts by path, and paths that were deleted."""

    def write(files: Mapping[str, str], *deleted: str) -> Project:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return Project(tmp_path, [*files, *deleted], deleted)

    return write


@pytest.mark.parametrize(
    "text",
    [
        "import shoal.sums.noise",
        "from shoal.sums import noise",
        "from shoal.sums.noise import Laplace",
        "def test():\n    import shoal.sums.noise as used",
        'import_module("shoal.sums.noise")',
        'monkeypatch.setattr("shoal.sums.noise.Laplace", None)',
        'run([python, "-m", "shoal.sums.noise"])',
        'run([python, "-c", "import shoal.sums.noise; print(1)"])',
        'HERE = "shoal.sums"\nrun(f"{HERE}.noise:main")',
        "import pkgutil\nimport shoal.sums\npkgutil.walk_packages(shoal.sums.__path__)",
        "from tests.helper import help",
        "from .helper import help",
        "from . import helper",
    ],
)
def test_a_module_affects_the_tests_that_import_or_name_it(text: str, project: Write) -> None:
    # given a module, a helper that imports it, and a module beside it
    helper = "def help():\n    from shoal.sums import noise"
    modules = {"shoal/sums/__init__.py": "", "shoal/sums/noise.py": "", "shoal/other.py": ""}
    made = project({**modules, "tests/helper.py": helper, "tests/test_it.py": text})
    # then the test depends on the module, on the package above it, and on nothing else
    assert made.affected("shoal/sums/noise.py") == {"tests/test_it.py"}
    assert made.affected("shoal/sums/__init__.py") == {"tests/test_it.py"}
    assert made.affected("shoal/other.py") == set()


@pytest.mark.parametrize(
    "text",
    [
        '"""Like shoal.sums.noise, and shoal/sums/noise.py."""',
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shoal.sums import noise",
        "import shoal.sums.other",
        'write("shoal.key")',
    ],
)
def test_a_docstring_a_type_and_the_name_of_a_file_are_not_imports(text: str, project: Write) -> None:
    made = project({"shoal/__init__.py": LAZY, "shoal/sums/noise.py": "", "tests/test_it.py": text})
    assert made.affected("shoal/sums/noise.py") == set()


@pytest.mark.parametrize(
    ("text", "affecting"),
    [
        ("from shoal import read", {"shoal/one.py"}),
        ("from shoal import Release as R, __version__", {"shoal/two.py"}),
        ("import shoal", {"shoal/one.py", "shoal/two.py"}),
        ("from shoal import *", {"shoal/one.py", "shoal/two.py"}),
        ("from shoal import __version__", set()),
        ("import shoal.three", {"shoal/three.py"}),
        ("from shoal import made_elsewhere", {"shoal/one.py", "shoal/two.py", "shoal/three.py"}),
        ('run([python, "-c", "import sys; from shoal import read; shoal.read()"])', {"shoal/one.py"}),
    ],
)
def test_a_package_that_imports_on_demand_leads_to_what_is_asked_of_it(
    text: str, affecting: set[str], project: Write
) -> None:
    modules = {f"shoal/{name}.py": "" for name in ("one", "two", "three")}
    made = project({"shoal/__init__.py": LAZY, **modules, "tests/test_it.py": text})
    assert {path for path in modules if made.affected(path)} == affecting
    assert made.affected("shoal/__init__.py")


@pytest.mark.parametrize(
    "text", ["from shoal.main import app", 'run([python, "-m", "shoal", "plan"])', 'run("cd x && bin/shoal plan")']
)
def test_a_test_that_starts_the_command_line_depends_on_all_commands(text: str, project: Write) -> None:
    commands = {"shoal/main.py": MAIN, "shoal/__main__.py": "import shoal.main"}
    commands |= {f"shoal/commands/{name}.py": f"def {name}():\n    import shoal.slow" for name in ("plan", "run")}
    made = project({**commands, "shoal/slow.py": "", "tests/test_cli.py": text, "tests/test_it.py": ""})
    for path in ("shoal/commands/plan.py", "shoal/commands/run.py", "shoal/slow.py"):
        assert made.affected(path) == {"tests/test_cli.py"}


@pytest.mark.parametrize(
    ("text", "affecting"),
    [
        ('Path(__file__).with_name("said.toml")', {"tests/cli/said.toml"}),
        ('(Path(__file__).parents[2] / "examples" / "said.toml")', {"examples/said.toml", "examples/deep/said.toml"}),
        ('ROOT / "examples/deep"', {"examples/deep/said.toml"}),
        ('ROOT.glob("*/*.toml")', {"examples/said.toml"}),
        ('(ROOT / "examples").rglob("*.toml")', {"examples/said.toml", "examples/deep/said.toml"}),
        ('ROOT.glob("**/*.toml")', {"examples/said.toml", "examples/deep/said.toml", "tests/cli/said.toml"}),
        ('(tmp_path / "folder" / "other.toml").write_text("examples")', set()),
        ('Path("said.json")', set()),
    ],
)
def test_a_file_that_is_not_python_affects_the_tests_that_name_it(
    text: str, affecting: set[str], project: Write
) -> None:
    data = {"tests/cli/said.toml": "", "examples/said.toml": "", "examples/deep/said.toml": ""}
    made = project({**data, "tests/cli/test_it.py": text})
    assert {path for path in data if made.affected(path)} >= affecting
    assert affecting or not {path for path in data if made.affected(path)}


def test_a_file_of_the_product_affects_the_tests_of_the_module_that_reads_it(project: Write) -> None:
    page = 'WEB = Path(__file__).with_name("web")\nread(WEB / f"{name}.js")'
    modules = {"shoal/page.py": page, "shoal/web/chart.js": "", "shoal/other.py": 'KEY = "web"'}
    tests = {"tests/test_page.py": "import shoal.page", "tests/test_other.py": "import shoal.other"}
    assert project(modules | tests).affected("shoal/web/chart.js") == {"tests/test_page.py"}


def test_a_test_that_reads_sources_depends_on_them(project: Write) -> None:
    reader = '(ROOT / "shoal" / "agents").rglob("*.py")'
    made = project({"shoal/agents/a/b.py": "", "benchmarks/c.py": "", "tests/test_log.py": reader})
    assert made.affected("shoal/agents/a/b.py") == {"tests/test_log.py"}
    assert made.affected("benchmarks/c.py") == set()


def test_a_test_that_reads_the_folder_of_a_module_depends_on_all_that_is_in_it(project: Write) -> None:
    reader = 'from shoal.agents.a import one\nPath(one.__file__).parent.parent.rglob("*.py")'
    sources = {"shoal/agents/a/one.py": "", "shoal/agents/b/two.py": "", "benchmarks/c.py": ""}
    made = project(sources | {"tests/test_log.py": reader})
    assert {path for path in sources if made.affected(path)} == {"shoal/agents/a/one.py", "shoal/agents/b/two.py"}


def test_a_package_affects_the_tests_in_it(project: Write) -> None:
    made = project({"tests/stream/__init__.py": "", "tests/stream/test_a.py": "", "tests/test_b.py": ""})
    assert made.affected("tests/stream/__init__.py") == {"tests/stream/test_a.py"}


def test_a_test_that_a_page_names_affects_the_test_of_blocks(project: Write) -> None:
    page = "<!-- tested by: tests/test_readme.py -->\n\n```sh\nshoal demo\n```"
    made = project(
        {"README.md": page, "tests/test_readme.py": "", "tests/test_it.py": "", "tests/docs/test_blocks.py": ""}
    )
    assert made.affected("tests/test_readme.py") == {"tests/test_readme.py", "tests/docs/test_blocks.py"}
    assert made.affected("tests/test_it.py") == {"tests/test_it.py"}


def test_a_deleted_file_affects_the_tests_that_still_name_it(project: Write) -> None:
    # given a module, a package, a page and a test that are gone, and tests that mention them
    tests = {
        "tests/test_module.py": "from shoal.sums import gone",
        "tests/test_package.py": "from shoal.left.inner import thing",
        "tests/test_docs.py": "",
    }
    gone = ("shoal/sums/gone.py", "shoal/left/inner.py", "docs/page.md", "tests/test_gone.py")
    made = project({"shoal/sums/kept.py": "", **tests}, *gone)
    # then these tests are selected, those of links too, and nothing that is not there
    assert made.affected(gone[0]) == {"tests/test_module.py", "tests/test_docs.py"}
    assert made.affected(gone[1]) == {"tests/test_package.py", "tests/test_docs.py"}
    assert made.select(gone[2:]).tests == ["tests/test_docs.py"]


def test_what_all_tests_need_affects_all(project: Write) -> None:
    # given a fixture of all tests, which starts commands, and one of a folder
    made = project(
        {
            "tests/conftest.py": "from tests.support import nursery",
            "tests/support/nursery.py": 'import pkgutil\nSHOAL = "shoal.commands."',
            "tests/support/desk.py": "import shoal.commands.plan",
            "shoal/commands/plan.py": "",
            "tests/cli/conftest.py": "from tests.support.desk import Desk",
            "tests/cli/test_plan.py": "",
            "tests/cli/deep/test_run.py": "",
            "tests/test_it.py": "",
        }
    )
    # then a change of what the first conftest.py imports affects all tests, but a command only its own
    for path in (
        "pyproject.toml",
        "requirements/core.lock",
        "Makefile",
        "tests/conftest.py",
        "tests/support/nursery.py",
    ):
        assert made.affected(path) == made.tests
    of_folder = {"tests/cli/test_plan.py", "tests/cli/deep/test_run.py"}
    for path in ("tests/cli/conftest.py", "tests/support/desk.py", "shoal/commands/plan.py"):
        assert made.affected(path) == of_folder


def test_the_kernel_and_the_pages_have_rules_of_their_own(project: Write) -> None:
    names = ("stream/kernel/test_rules", "docs/test_site", "test_docs", "test_documents", "test_readme", "test_it")
    tests = {f"tests/{name}.py": "" for name in names}
    tests["tests/test_both.py"] = "def test_both(backend): ..."
    tests["tests/test_each.py"] = '@pytest.mark.usefixtures("backend")\ndef test_each(): ...'
    tests["tests/test_named.py"] = "from tests.support.backends import HAS_KERNEL"
    tests["tests/test_page.py"] = 'PAGE = ROOT / "docs/guides/a.md"'
    made = project(tests)
    native = {f"tests/{name}.py" for name in ("stream/kernel/test_rules", "test_both", "test_each", "test_named")}
    assert made.affected("kernel/src/lib.rs") == native
    pages = {f"tests/{name}.py" for name in names[1:5]}
    assert made.affected("docs/guides/b.md") == pages
    assert made.affected("docs/guides/a.md") == pages | {"tests/test_page.py"}


def test_a_message_says_what_is_selected_and_what_needs_a_broker(project: Write, tmp_path: Path) -> None:
    # given two tests of a module, one with a broker
    with_broker = "import shoal.a\n\n\ndef test_b(kafka): ..."
    made = project({"shoal/a.py": "", "tests/test_a.py": "import shoal.a", "tests/test_b.py": with_broker})
    _commit(tmp_path)
    (tmp_path / "shoal/a.py").write_text("A = 1")
    # when a file changes that both import, then the message counts both
    changed = changes(tmp_path)
    text = told(changed, made.select(changed.paths))
    assert "2 of 2 test files for 1 changed file" in text
    assert "2 for shoal/a.py" in text
    assert "tests that need a broker are in 1 of these" in text
    # and when one changes that no test needs, then it says so
    assert "0 of 2 test files" in told(changed, made.select(["LICENSE"]))
    assert "no test runs" in told(changed, made.select(["LICENSE"]))


def test_pytest_leaves_out_what_is_not_selected_by_folders_where_it_can() -> None:
    tests = ["tests/a/b/test_c.py", "tests/a/test_d.py", "tests/e/test_f.py", "tests/e/test_g.py"]
    assert left_out(tests, tests) == []
    assert left_out(tests, tests[2:3]) == ["--ignore=tests/a", "--ignore=tests/e/test_g.py"]
    assert left_out(tests, tests[1:]) == ["--ignore=tests/a/b"]


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=environment(), check=True, capture_output=True)


def _commit(folder: Path) -> None:
    if not (folder / ".git").is_dir():
        _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message=a")


def test_changes_are_all_that_differs_from_the_merge_base(tmp_path: Path) -> None:
    # given two commits on main
    for name in ("kept", "edited", "staged", "moved", "deleted"):
        (tmp_path / name).write_text(name * 20)
    (tmp_path / ".gitignore").write_text("ignored")
    _commit(tmp_path)
    (tmp_path / "second").write_text("")
    _commit(tmp_path)
    # when the working tree is clean, then the changes are those of the last commit
    assert changes(tmp_path).paths == ["second"]
    # and on a branch, they are commits, staged and unstaged files, renamed, deleted and new ones
    _git(tmp_path, "checkout", "--quiet", "-b", "branch")
    (tmp_path / "committed").write_text("")
    _git(tmp_path, "mv", "moved", "here")
    _commit(tmp_path)
    (tmp_path / "staged").write_text("")
    _git(tmp_path, "add", "staged")
    (tmp_path / "edited").write_text("")
    (tmp_path / "deleted").unlink()
    (tmp_path / "new and ünnamed").write_text("")
    (tmp_path / "ignored").write_text("")
    found = changes(tmp_path)
    assert found.paths == ["committed", "deleted", "edited", "here", "moved", "new and ünnamed", "staged"]
    assert found.deleted == {"moved", "deleted"}
    # and from another base, more or fewer
    assert changes(tmp_path, "HEAD~2").paths == sorted([*found.paths, "second"])
    assert "here" not in changes(tmp_path, "HEAD").paths
    with pytest.raises(Unknown, match="no commit 'nothing'; give one, such as BASE=HEAD~3"):
        changes(tmp_path, "nothing")


# ---------------------------------------------------------------- this checkout


@pytest.fixture(scope="module")
def checkout() -> Project:
    files = (file for folder in ROOTS for file in (ROOT / folder).rglob("*.py"))
    return Project(ROOT, [str(file.relative_to(ROOT)) for file in files], store=STORE)


def test_a_mechanism_affects_the_tests_in_its_mirror_folder(checkout: Project) -> None:
    for folder in ("noise", "selection", "counters"):
        mirror = {test for test in checkout.tests if test.startswith(f"tests/mechanisms/{folder}/")}
        modules = [path for path in checkout.graph.paths if path.startswith(f"shoal/mechanisms/{folder}/")]
        assert mirror
        assert mirror <= set(checkout.select(modules).tests)


def test_a_command_affects_the_tests_of_the_command_line(checkout: Project) -> None:
    affected = checkout.affected("shoal/agents/cli/commands/window.py")
    assert {"tests/cli/test_window.py", "tests/cli/test_lazy.py", "tests/test_nursery.py"} <= affected
    assert "tests/mechanisms/noise/test_laplace.py" not in affected
    assert len(affected) < len(checkout.tests) / 2


def test_data_affect_the_tests_that_read_them(checkout: Project) -> None:
    assert "tests/cli/test_messages.py" in checkout.affected("tests/cli/messages.toml")
    assert len(checkout.affected("tests/cli/messages.toml")) < 20
    assert "tests/golden/test_golden.py" in checkout.affected("tests/golden/bytes/full/messages.jsonl")
    assert "tests/test_data.py" in checkout.affected("shoal/agents/demo/data/purchases.csv.gz")
    assert "tests/stream/kernel/test_reader.py" in checkout.affected("kernel/src/json/mod.rs")


def test_fixtures_of_brokers_are_those_of_conftest(checkout: Project) -> None:
    said = re.search(r"^BROKERS = (.*?)(?:#|$)", (ROOT / "tests/conftest.py").read_text("utf-8"), re.MULTILINE)
    assert said
    assert ast.literal_eval(said[1].strip()) == BROKERS
    assert "tests/support/nursery.py" in checkout.for_all


def test_attributes_that_a_library_adds_to_syntax_trees_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = ast.parse

    def with_parents(source: str, path: str) -> ast.Module:
        tree = parse(source, path)
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                child.parent = node  # type: ignore[attr-defined]
        return tree

    monkeypatch.setattr(ast, "parse", with_parents)
    assert facts_of("import shoal.read\nnames = [one for one in ('a',)]", "tests/test_a.py").names == {"shoal.read"}
