"""The kernel goes with its package: one version, one licence, and a bill of its crates that is true."""

import shutil
import tomllib

import orjson
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from distribution.crates import KERNEL, SBOM, TEXTS, bill_of_materials, checksums, is_permissive, linked, texts
from distribution.environment import ROOT
from shoal import __version__

BILL = orjson.loads(SBOM.read_bytes())


def test_the_extra_names_the_kernel_of_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["optional-dependencies"]["kernel"] == [f"shoal-kernel=={__version__}"]


def test_the_bill_is_cyclonedx_and_about_this_version():
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(SBOM.read_text("utf-8")) is None
    assert BILL["metadata"]["component"]["purl"] == f"pkg:pypi/shoal-kernel@{__version__}"
    assert "timestamp" not in BILL["metadata"]


def test_every_crate_of_the_bill_is_locked_permissive_and_has_its_licence_in_the_wheel():
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


@pytest.mark.parametrize("expression", ["GPL-3.0-only", "MIT AND LGPL-2.1-only", "MPL-2.0", ""])
def test_what_asks_for_more_than_its_text_is_refused(expression: str):
    assert not is_permissive(expression)


def test_both_are_what_cargo_says():
    if shutil.which("cargo") is None:  # who has none has built no kernel, and changed no crate
        return
    crates = linked()
    assert (SBOM.read_text("utf-8"), TEXTS.read_text("utf-8")) == (bill_of_materials(crates), texts(crates))
