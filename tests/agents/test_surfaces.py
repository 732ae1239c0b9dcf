"""What is said about loss on all surfaces: check, label, registry, page, notebook, plan, `init` and README agree."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from html import unescape
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.cli.main import app
from shoal.agents.dashboard.file import page_of
from shoal.agents.guarantee import guarantee, words_of
from shoal.agents.init.draft import completed, draft
from shoal.agents.init.questions import Known
from shoal.agents.reading.chart import html_of
from shoal.mechanisms.privacy.accounting import Loss
from shoal.models.config.file import Config, load
from shoal.models.releases.record import Release, record_of
from tests.agents.loss_claims import Claim, claims, disagreements, kinds
from tests.support.browser import Browser, open_browser
from tests.support.releases import lines, release

ROOT = Path(__file__).parents[2]
HEAD = '[audit]\nurl = "sqlite:///log.db"\n[privacy]\nepsilon = 100\ndelta = 0.01\nkey_file = "shoal.key"\n'
SHARED = '[[metric]]\nname = "m{number}"\ntopic = "t"\nuser = "who"\nvalue = "x"\ntime = "at"\nrange = [0, 10]\n'
TIMES = 'relation = "add-remove"\nstart = 2026-01-01\nend = 2026-03-02\n'
PERIODS = {"user-hour": (168, 8760), "user-12h": (14, 730), "user-day": (7, 365), "user-week": (2, 53)}
SUM, SLOT = (
    'statistic = "sum"\nevery = "1d"\n',
    'statistic = "mean"\nslot = "1h"\nalgorithm = "few-users"\nsigma = 1\n',
)
GAUSSIAN = 'delta = 1e-6\ndecay = { kind = "window", length = "2d" }\n'


@dataclass(frozen=True)
class Case:
    """A configuration, and the loss of one unit of its first metric."""

    unit: str
    relation: str
    delta: str
    count: int

    def __str__(self) -> str:
        return f"{self.unit}-{self.relation}-{self.delta}-{self.count}"

    @property
    def text(self) -> str:
        return HEAD + "".join(self._metric(number) for number in range(1, self.count + 1))

    def _metric(self, number: int) -> str:
        shared = SHARED.format(number=number) + f"epsilon = 0.{number}\n"
        unit, _, most = self.unit.partition(" ")
        shared += f'unit = "{unit}"\n' + (f"max_events_per_user = {most}\n" if most else "")
        if unit != "event":
            shared += "max_contributions = 4\n"
        if self.relation == "add-remove":
            found = f'group = "g"\ndelta = {self.delta}\n' if self.delta != "0" else ""
            slot = unit == "user-slot"
            return shared + TIMES + ('statistic = "mean"\nslot = "1h"\n' if slot else SUM) + found
        if unit == "user-slot":
            return shared + (SLOT + f"delta = {self.delta}\n" if self.delta != "0" else SLOT.partition("algorithm")[0])
        return shared + SUM + (GAUSSIAN if self.delta != "0" else "")

    def expected(self, number: int) -> set[Claim]:
        """What every surface may claim of a metric, by the accounting alone."""
        loss, (name, _, most) = Loss(Fraction(number, 10), Fraction(self.delta)), self.unit.partition(" ")
        whom = {"user": "person", "user-slot": "person and hour"}.get(name, name.replace("user-", "person and "))
        unit = {Claim("unit", loss.epsilon, loss.delta, whom)}
        if name == "event" and not most:
            return unit
        if name == "user-slot" and self.relation == "values":  # slots have releases of their own
            week, year = (Loss(k * loss.epsilon, k * loss.delta) for k in PERIODS["user-hour"])
        elif name in ("user-slot", *PERIODS):
            week, year = map(loss.of_group, PERIODS.get(name, PERIODS["user-hour"]))
        else:
            week = year = loss.of_group(int(most or 1))
        return unit | {_span("week", week), _span("year", year)}


def _span(kind: str, loss: Loss) -> Claim:
    return Claim(kind, loss.epsilon, _short(loss.delta))


def _short(delta: Fraction) -> Fraction:
    """Three digits, rounded up, as a person would."""
    if not delta or delta >= 1:
        return min(delta, Fraction(1))
    power = Fraction(10) ** (2 - int(f"{float(delta):e}".partition("e")[2]))
    return Fraction(-((-delta * power) // 1)) / power


UNITS = ["user", "user-hour", "user-12h", "user-day", "user-week", "user-slot", "event", "event 5"]
CASES = [
    Case(unit, relation, delta, count)
    for unit, relation, delta, count in product(UNITS, ("values", "add-remove"), ("0", "1e-6"), (1, 3))
    # event counts of a person are unlimited under add-remove
    if not (relation == "add-remove" and unit == "event 5")
]


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 30


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    key_file.new(tmp_path / "shoal.key")
    return tmp_path


def ran(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None:
        raise result.exception
    return str(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_two_surfaces_disagree(folder: Path, browser: Browser, case: Case) -> None:
    # given a configuration, and releases as it makes them
    (folder / "shoal.toml").write_text(case.text)
    config = load(folder / "shoal.toml")
    # when all surfaces are rendered
    said = [checked(config), labelled(), paged(folder, config, browser), planned(config), charted(config)]
    # then each says of every metric what accounting says, and all say one thing of their sum
    subjects = [metric.name for metric in config.metric] + ["all"]
    for subject in subjects:
        texts = {name: text for surface in said for name, text in surface.get(subject, {}).items()}
        assert disagreements(texts) == []
        assert not [text for text in texts.values() if re.search(r"(epsilon|ε)[^.;]*together", text)]
        if subject != "all":
            expected = case.expected(int(subject[1:]))
            assert {claim for text in texts.values() for claim in claims(text)} == expected
            assert [name for name in WHOLE if kinds(texts[name]) != {claim.kind for claim in expected}] == []
    total = {name: text for surface in said for name, text in surface.get("all", {}).items()}
    (epsilon,) = {claim.epsilon for claim in claims(total["check"]) if claim.kind == "unit"}
    assert epsilon == sum((metric.epsilon for metric in config.metric), Fraction(0))
    assert {"check", "label", "page"} <= {name for name, text in total.items() if kinds(text) >= {"unit"}}


WHOLE = ("check", "label", "page", "notebook")
Surface = dict[str, dict[str, str]]  # by subject, then by name: what is said


def checked(config: Config) -> Surface:
    """`shoal check`, whose text has the sentences of its JSON."""
    text, fields = ran("check", "shoal.toml"), json.loads(ran("check", "shoal.toml", "--json"))
    for sentences in [fields["guarantee"], *(metric["guarantee"] for metric in fields["metrics"])]:
        assert sentences in text
    said = {metric["metric"]: {"check": metric["guarantee"]} for metric in fields["metrics"]}
    without = re.sub(r"m\d protects .*?counted here\.", "", fields["guarantee"])
    del config
    return said | {"all": {"check": without}}


def labelled() -> Surface:
    """`shoal label`, whose text and page have the sentences of its JSON, and the record for the registry."""
    fields = json.loads(ran("label", "shoal.toml", "--json"))
    text = " ".join(ran("label", "shoal.toml").split())
    page = " ".join(unescape(re.sub("<[^>]+>", " ", ran("label", "shoal.toml", "--html", "-"))).split())
    for sentence in [*fields["loss"], *(metric["guarantee"] for metric in fields["metrics"])]:
        assert " ".join(sentence.split()) in text
        assert " ".join(sentence.split()) in page
    said = {metric["metric"]: {"label": metric["guarantee"]} for metric in fields["metrics"]}
    record = " ".join(ran("label", "shoal.toml", "--registry", "-").split())
    stated = record.partition("release_type_details:")[2].partition("data_source_type:")[0]
    return said | {"all": {"label": " ".join(fields["loss"]), "registry": stated}}


def paged(folder: Path, config: Config, browser: Browser) -> Surface:
    """The dashboard's page as a person reads it, with the part that is folded away."""
    made = page_of(lines(released(config)).splitlines(), "some.jsonl", config)
    (folder / "page.html").write_text(made.text, "utf-8")
    with browser.tab() as tab:
        tab.open((folder / "page.html").as_uri())
        tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; }); 0")
        full = tab.run("[...document.querySelectorAll('#privacy details p')].map((each) => each.textContent)")
        said = {metric.name: {"page": tab.text(f"#m-{metric.name} .top p")} for metric in config.metric}
        for metric in config.metric:
            (said[metric.name]["page in full"],) = [text for text in full if text.startswith(f"{metric.name} version")]
        return said | {"all": {"page": tab.text("#privacy .say"), "page in full": full[0]}}


def charted(config: Config) -> Surface:
    """The chart of a notebook, with the configuration and without."""
    found = [record_of(json.dumps(each).encode()) for each in released(config)]
    releases = [each for each in found if isinstance(each, Release)]
    said: Surface = {metric.name: {} for metric in config.metric}
    for name, metrics in (("notebook", {m.name: m for m in config.metrics}), ("releases", {})):
        chart = html_of(releases, lambda metric, _, metrics=metrics: metrics.get(metric))  # type: ignore[misc]
        for each in ElementTree.fromstring(chart).iter("span"):
            text = "".join(each.itertext())
            if "epsilon" in text:
                metric = config.metric[sum(name in texts for texts in said.values())].name
                said[metric][name] = "" if name == "releases" and "person and slot" in text else text
    return said


def planned(config: Config) -> Surface:
    """The first line of each plan."""
    text = ran("plan", "shoal.toml", "--users", "1000")
    parts = re.split(r"^(m\d): ", text, flags=re.MULTILINE)[1:]
    return {name: {"plan": " ".join(part.split())} for name, part in zip(parts[::2], parts[1::2], strict=True)}


def released(config: Config) -> list[dict[str, object]]:
    return [
        release(
            metric.name, day, 5.0, epsilon=float(metric.epsilon), delta=float(metric.delta), unit=metric.unit,
            relation=metric.relation, mechanism="steps",
        )
        for metric in config.metric
        for day in (1, 2)
    ]  # fmt: skip


# ---------------------------------------------------------------- init and README

ANSWERS = {
    "user": "who", "value": "x", "time": "at", "range": "0 10", "group": "none", "epsilon": "0.5",
    "max-contributions": "4", "users": "1000",
}  # fmt: skip
HIDDEN = {"relation": "add-remove", "start": "2026-01-01", "end": "2026-02-26", "group": "g", "groups": "found"}
DRAFTS = [
    ({"relation": "values"} if relation == "values" else HIDDEN)
    | {"statistic": statistic, "span": span, "every": every}
    for relation, statistic, span, every in product(
        ("values", "add-remove"), ("mean", "sum"), ("each", "all"), ("1h", "1d", "7d")
    )
]


@pytest.mark.parametrize("more", DRAFTS, ids=lambda more: "-".join([more["relation"], *list(more.values())[-3:]]))
def test_a_draft_says_of_its_loss_what_check_says(tmp_path: Path, more: dict[str, str]) -> None:
    delta = {"delta": "1e-9"} if more["relation"] == "add-remove" else {}
    drafted = draft(completed(ANSWERS | more | delta, Known()), tmp_path / "shoal.toml")
    loss = "epsilon = 0.5" + (", delta = 1e-9" if delta else "")
    comments = re.findall(r"^epsilon = 0\.5 +# (per [^;\n]*|the budget, [^;]*)", drafted.text, re.MULTILINE)
    head = drafted.text.partition("shoal plan")[0].replace("\n# ", " ")
    said = {"init": head, "check": guarantee(drafted.metric)}
    said |= {each: f"{loss} {each.removeprefix('the budget, ')}" for each in comments}
    assert len(comments) == 2
    assert disagreements(said) == []
    assert claims(said["init"]) == claims(said["check"])


def test_the_readme_says_what_its_own_example_costs_in_a_year() -> None:
    readme = " ".join((ROOT / "README.md").read_text().replace("`", "").split())
    (metric,) = load(ROOT / "examples" / "visits.toml").metric
    words = words_of(metric.parts)
    assert words.several in readme
    assert words.bound in readme
    assert disagreements({"README": readme, "words": words.brief}) == []


# ---------------------------------------------------------------- the test itself


@pytest.mark.parametrize(
    ("said", "planted"),
    [
        ("epsilon = 1 per person and day", "ε 1 per user, for all of it together"),
        (
            "epsilon = 1 per person and day, in a week (any 7 days) up to epsilon = 7",
            "Per person and day: epsilon = 2.",
        ),
        ("epsilon = 1 per person and day", "epsilon 1 of each person"),
        ("in a year (any 365 days) up to epsilon = 365", "One person: in a year up to epsilon = 52."),
        ("in a year (any 365 days) up to epsilon = 365", "ε 1 for all of it together"),
        (
            "in a week up to epsilon = 7, delta = 1e-8",
            "in a week up to epsilon = 7, with a delta that promises nothing",
        ),
    ],
)
def test_a_contradiction_is_found(said: str, planted: str) -> None:
    assert disagreements({"one": said}) == []
    assert disagreements({"one": said, "other": planted}) != []


def texts_of(path: Path) -> Iterator[str]:
    """Lines that a module can show: string literals without docstrings, or all lines of a script or page."""
    if path.suffix != ".py":
        yield from path.read_text("utf-8").splitlines()
        return
    tree = ast.parse(path.read_text("utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            yield from (
                f"{ast.unparse(key)} {ast.unparse(value)}"
                for key, value in zip(node.keys, node.values, strict=True)
                if key
            )
        is_text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if is_text and not isinstance(parents[node], ast.Expr):
            yield from ast.unparse(node).split("\\n")


def test_no_module_says_together_beside_epsilon() -> None:
    """Docstrings of mechanisms state theorems about releases, and are shown to nobody."""
    found = [
        f"{path}: {text}"
        for pattern in ("*.py", "*.js", "*.html", "*.in")  # `make quick` reads patterns, and not what makes them
        for path in (ROOT / "shoal").rglob(pattern)
        for text in texts_of(path)
        if re.search(r"\btogether\b", text) and re.search(r"epsilon|ε", text)
    ]
    assert found == []
