"""The kernel goes with its package: one version, one licence, and a bill of its crates that is true.

What makes the bill needs packages that only a release needs: those tests are long, and import them inside.
"""

import shutil
import tomllib

import orjson
import pytest

from distribution import ROOT
from shoal import __version__

KERNEL = ROOT / "kernel"
BILL = orjson.loads((KERNEL / "shoal-kernel.cdx.json").read_bytes())


def test_the_extra_names_the_kernel_of_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["optional-dependencies"]["kernel"] == [f"shoal-kernel=={__version__}"]


@pytest.mark.long
def test_the_bill_is_valid_cyclonedx():
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    from distribution.crates import SBOM

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(SBOM.read_text("utf-8")) is None


def test_the_bill_is_about_this_version():
    assert BILL["metadata"]["component"]["purl"] == f"pkg:pypi/shoal-kernel@{__version__}"
    assert "timestamp" not in BILL["metadata"]


@pytest.mark.long
def test_every_crate_of_the_bill_is_locked_permissive_and_has_its_licence_in_the_wheel():
    from distribution.crates import TEXTS, checksums, is_permissive

    held, said = checksums(), TEXTS.read_text("utf-8")
    assert {"pyo3", "hashbrown", "foldhash"} <= {one["name"] for one in BILL["components"]}
    for one in BILL["components"]:
        assert one["hashes"] == [{"alg": "SHA-256", "content": held[one["name"], one["version"]]}]
        (licence,) = one["licenses"]
        assert is_permissive(licence["expression"])
        assert f"\n{one['name']} {one['version']}, {licence['expression']}\n" in said


def test_what_the_kernel_is_built_from_directly_is_in_the_bill():
    wanted = tomllib.loads((KERNEL / "Cargo.toml").read_text("utf-8"))["dependencies"]
    assert set(wanted) <= {one["name"] for one in BILL["components"]}


def test_it_is_under_the_licence_of_shoal():
    assert (KERNEL / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    files = tomllib.loads((KERNEL / "pyproject.toml").read_text("utf-8"))["project"]["license-files"]
    assert all((KERNEL / name).is_file() for name in files)


@pytest.mark.long
@pytest.mark.parametrize("expression", ["GPL-3.0-only", "MIT AND LGPL-2.1-only", "MPL-2.0", ""])
def test_what_asks_for_more_than_its_text_is_refused(expression: str):
    from distribution.crates import is_permissive

    assert not is_permissive(expression)


@pytest.mark.long
def test_both_are_what_cargo_says():
    from distribution.crates import SBOM, TEXTS, bill_of_materials, linked, texts

    if shutil.which("cargo") is None:  # who has none has built no kernel, and changed no crate
        return
    crates = linked()
    assert (SBOM.read_text("utf-8"), TEXTS.read_text("utf-8")) == (bill_of_materials(crates), texts(crates))
