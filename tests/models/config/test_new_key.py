"""A new key of a metric: four files of the package know it, and schema, refusals and digest follow."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# File, and a text in it with the line that a key `damping` of metrics under add-remove adds.
ADDED = {
    "models/config/metric_keys.py": (
        "    grid: int | None = Field(",
        '    damping: Exact | None = Field(None, ge=0, description="how much is damped")\n'
        "    grid: int | None = Field(",
    ),
    "models/config/forms.py": ('"clip"), f"is for relation', '"clip", "damping"), f"is for relation'),
    "models/config/adapter.py": (
        '        "withheld": bool(keys.withheld),\n',
        '        "withheld": bool(keys.withheld),\n        "damping": keys.damping,\n',
    ),
    "mechanisms/parts/by.py": (
        '    name = "two-sided"\n    clamps = True\n',
        '    name = "two-sided"\n    clamps = True\n    damping: Fraction | None = None\n',
    ),
}  # fmt: skip
PROGRAM = """
from fractions import Fraction
from jsonschema import Draft202012Validator
from docs.generate.config_schema import schema
from shoal.models.config.metric import MetricSection
from shoal.stream.parameters import canonical

usual = {"name": "m", "topic": "t", "user": "u", "statistic": "count", "every": "1h", "max_contributions": 1}
usual |= {"epsilon": 1}
hidden = usual | {"relation": "add-remove", "start": "2026-01-01"}
damped = MetricSection.model_validate(hidden | {"damping": "0.5"})
assert damped.parts.by.damping == Fraction(1, 2)
usually = canonical(MetricSection.model_validate(hidden).parts)
assert "damping" not in usually["by"]
assert canonical(damped.parts)["by"] == usually["by"] | {"damping": "1/2"}
assert {name: part for name, part in canonical(damped.parts).items() if usually[name] != part}.keys() == {"by"}
try:
    MetricSection.model_validate(usual | {"damping": "0.5"})
except ValueError as error:
    assert "damping is for relation add-remove; remove it" in str(error), error
else:
    raise AssertionError("taken under relation values")
check = Draft202012Validator(schema())
tree = {"privacy": {"epsilon": 1}, "metric": [hidden | {"damping": 0.5}]}
assert check.is_valid(tree), list(check.iter_errors(tree))
assert not check.is_valid({"privacy": {"epsilon": 1}, "metric": [usual | {"damping": 0.5}]})
"""


@pytest.mark.slow
def test_a_new_key_is_added_in_four_files(tmp_path: Path) -> None:
    # given a copy of the package with a key more
    shutil.copytree(ROOT / "shoal", tmp_path / "shoal", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copytree(
        ROOT / "docs" / "generate", tmp_path / "docs" / "generate", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, (before, after) in ADDED.items():
        file = tmp_path / "shoal" / name
        text = file.read_text()
        assert text.count(before) == 1, name
        file.write_text(text.replace(before, after))
    # then it is a field of a part, refused where it means nothing, in the digest where it is set, and in the schema
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
