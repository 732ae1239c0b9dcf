"""What Taplo, which editors run, makes of the schema: examples are right, mistakes are flagged."""

import subprocess
import sys
from pathlib import Path

import pytest

from shoal.models import schemas
from tests.support.cover import in_a_loop

ROOT = Path(__file__).parents[3]
TAPLO = str(Path(sys.executable).with_name("taplo"))
EXAMPLES = sorted(ROOT.glob("examples/*.toml"))
DIRECTIVE = "#:schema ./shoal.schema.json\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shoal.schema.json").write_text(schemas.text("configuration"), "utf-8")
    return tmp_path


def lint(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TAPLO, "lint", file.name], cwd=file.parent, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
def test_every_example_is_right(folder: Path) -> None:
    for example in EXAMPLES:
        file = folder / example.name
        file.write_text(DIRECTIVE + example.read_text("utf-8"), "utf-8")
        assert lint(file).returncode == 0, example
    assert len(EXAMPLES) > 4


@in_a_loop
@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("max_contributions =", "max_contribution =", "'max_contribution' was unexpected"),
        ('statistic = "mean"', 'statistic = "median"', '"median" is not one of'),
        ('every = "1d"', 'every = "1 day"', "is not valid under any of the schemas"),
        ('every = "1d"', 'every = "1d"\nbins = 8', "False schema does not allow"),
    ],
)
def test_a_mistake_is_flagged(folder: Path, right: str, wrong: str, said: str) -> None:
    text = (ROOT / "examples/shoal.toml").read_text("utf-8")
    assert right in text
    file = folder / "shoal.toml"
    file.write_text(DIRECTIVE + text.replace(right, wrong), "utf-8")
    done = lint(file)
    assert done.returncode != 0
    assert said in done.stderr
