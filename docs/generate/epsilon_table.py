"""The tables of docs/guides/choosing-epsilon.md: `python -m docs.generate.epsilon_table`; with `--write` into the page.

What they say is what `shoal plan` says of the same configurations. A test compares the page with what this makes.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from shoal.agents.plan.planners import PLANNERS
from shoal.mechanisms.forecast.plan import Plan
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.words import number
from shoal.mechanisms.workload import Stated
from shoal.models.config.file import load

PAGE = Path(__file__).parents[1] / "guides/choosing-epsilon.md"
BEGIN, END = "<!-- tables: make reference -->\n", "<!-- end of tables -->\n"

EPSILONS = ("0.1", "0.5", "1", "2", "4")
USERS = (100, 1_000, 10_000, 100_000)
CAPS = (1, 4, 16, 64)
WIDTHS = (10, 100, 1_000, 10_000)  # of ranges
CAP, MANY = 16, 10_000  # where a table does not vary them

# A release every day for a year; a range of 100 has errors in per cent of it.
COMMON = """
[privacy]
epsilon = 4
[[metric]]
name = "example"
topic = "events"
user = "user"
time = "at"
epsilon = {epsilon}
max_contributions = {cap}
"""
STATISTICS = {"mean": 'statistic = "mean"\nvalue = "value"\nrange = [0, {width}]\n', "count": 'statistic = "count"\n'}
RELATIONS = {
    "values": 'every = "1d"\nusers = {users}\n',
    "add-remove": 'relation = "add-remove"\nevery = "1d"\nstart = "2027-01-01"\nend = "2028-01-01"\n',
}


def metric_of(relation: str, statistic: str, epsilon: str, cap: int, users: int, width: int = 100) -> Metric:
    """Metric of one cell of the tables, read from a configuration."""
    text = COMMON + STATISTICS[statistic] + RELATIONS[relation]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shoal.toml"
        file.write_text(text.format(epsilon=epsilon, cap=cap, users=users, width=width))
        return load(file).metrics[0]


def noise(relation: str, statistic: str, epsilon: str, cap: int, users: int, width: int = 100) -> float | None:
    """The noise of the last release, if every user has given as many samples as count."""
    metric = metric_of(relation, statistic, epsilon, cap, users, width)
    return PLANNERS[kind_of(metric)].final_noise(metric, users).noise_sd


def errors_of_caps(relation: str) -> dict[int, float]:
    """The error of the last release by cap, if every user has CAP samples: noise, and bias of what is left out."""
    metric = metric_of(relation, "mean", "1", CAP, MANY)
    (plan,) = PLANNERS[kind_of(metric)].plans(metric, Stated(MANY, float(CAP), None), lambda part: None)
    return dict(_errors(plan))


def _errors(plan: Plan) -> Iterator[tuple[int, float]]:
    for row in plan.fields["by_max_contributions"]:
        yield row["max_contributions"], row["error"]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def means(relation: str) -> str:
    """The noise of a mean, by people and epsilon."""

    def row(users: int) -> list[str]:
        return [f"{users:,}", *(number(noise(relation, "mean", epsilon, CAP, users)) for epsilon in EPSILONS)]

    rows = map(row, USERS)
    return table(["people", *(f"epsilon {each}" for each in EPSILONS)], rows)


def ranges() -> str:
    """The noise of a mean under add-remove in the units of its values, by range, people and epsilon."""

    def row(width: int, users: int) -> list[str]:
        cells = (noise("add-remove", "mean", epsilon, CAP, users, width) for epsilon in EPSILONS)
        return [f"0 to {width:,}", f"{users:,}", *map(number, cells)]

    rows = (row(width, users) for width in WIDTHS for users in USERS[1:])
    return table(["range", "people", *(f"epsilon {each}" for each in EPSILONS)], rows)


def counts() -> str:
    """The noise of a count under add-remove, by cap and epsilon."""
    rows = ([str(cap), *(number(noise("add-remove", "count", each, cap, MANY)) for each in EPSILONS)] for cap in CAPS)
    return table(["cap", *(f"epsilon {each}" for each in EPSILONS)], rows)


def caps() -> str:
    """The error of a mean by cap, under both relations."""
    values, presence = errors_of_caps("values"), errors_of_caps("add-remove")
    rows = ([str(cap), number(values[cap]), number(presence[cap])] for cap in sorted(values.keys() & presence.keys()))
    return table(["cap", "values", "add-remove"], rows)


def tables() -> str:
    """All that stands between the marks of the page."""
    return f"""
**A mean under `values`**, noise in per cent of the range; {CAP} samples of each person count:

{means("values")}
**A mean under `add-remove`**, the same; a dash: there are too few samples to release a mean at all:

{means("add-remove")}
**A mean under `add-remove`, by its range**, noise in the unit of the values, such as dollars:

{ranges()}
**A count under `add-remove`**, noise in samples, by the cap, for any number of people:

{counts()}
**What a cap costs**: the error of a mean in per cent of the range, for {MANY:,} people with {CAP} samples each and an
epsilon of 1:

{caps()}
"""


def publish(page: Path, made: str) -> None:
    """Print the tables of a page, or with `--write` put them between its marks."""
    if sys.argv[1:] == ["--write"]:
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text(before + BEGIN + made + END + rest.partition(END)[2])
    else:
        print(made.strip())


if __name__ == "__main__":
    publish(PAGE, tables())
