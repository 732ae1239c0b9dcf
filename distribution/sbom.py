"""The wheel's bill of materials (CycloneDX), which lies in its `.dist-info/sboms`.

    python -m distribution.sbom     write distribution/shoal.cdx.json again, after a change of requirements/*.lock

It names what the wheel carries that is not ours, and all that an installation of it takes, in the locked versions:
`required` is what everyone installs, `optional` what an extra adds (property `shoal:extras`), with Kafka's jars.
The same tree makes the same bytes.
"""

import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseAcknowledgement, LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from distribution import ROOT
from distribution.licences import field, licences_of
from distribution.locks import locked
from shoal import __version__
from shoal.agents.broker import jars
from shoal.agents.demo.shop.purchases import FILE

SBOM = ROOT / "distribution" / "shoal.cdx.json"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CORE = ""  # the extra of what has none
# What requirements are meant for: a list for each platform would be true of none of the others.
PLATFORM = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "sys_platform": "linux",
}


def bill_of_materials() -> str:
    """The bill, as JSON."""
    needed_by, edges = _closures()
    versions = locked()
    ours = Component(
        type=ComponentType.LIBRARY, name="shoal", version=__version__, description=PROJECT["description"],
        bom_ref="shoal", purl=PackageURL("pypi", name="shoal", version=__version__),
        licenses=[LicenseExpression(PROJECT["license"], acknowledgement=LicenseAcknowledgement.DECLARED)],
    )  # fmt: skip
    packages = {name: _package(name, versions[name], needed_by[name]) for name in sorted(needed_by)}
    kafka = [_jar(jar) for jar in jars.locked()]
    bom = Bom(components=[*packages.values(), *kafka, _purchases()])
    bom.metadata.component = ours
    bom.metadata.timestamp = None  # type: ignore[assignment]  # the format leaves it open, and a build's would differ
    direct = {name for extra in _extras() for name in _wanted(_requirements(extra))}
    bom.register_dependency(ours, [packages[name] for name in sorted(direct)] + kafka)
    for name, component in packages.items():
        bom.register_dependency(component, [packages[other] for other in sorted(edges[name])])
    bom.serial_number = uuid5(NAMESPACE_URL, "shoal")
    bom.serial_number = uuid5(NAMESPACE_URL, sha256(_json(bom).encode()).hexdigest())
    return _json(bom)


def _json(bom: Bom) -> str:
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1) + "\n"


def _extras() -> list[str]:
    """All that a package index is asked for; the kernel has a bill of its own (`crates.py`)."""
    others = ("all", "docs", "kernel", "test", "tools")
    return [CORE, *(extra for extra in PROJECT["optional-dependencies"] if extra not in others)]


def _requirements(extra: str) -> Iterable[str]:
    """What the project itself asks for, with an extra of it or without."""
    listed: list[str] = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for text in listed:
        asked = Requirement(text)
        if asked.name != "shoal":
            yield text
        for other in sorted(asked.extras) if asked.name == "shoal" else ():
            yield from _requirements(other)


def _wanted(requirements: Iterable[str], extras: Iterable[str] = ()) -> dict[str, set[str]]:
    """Names of packages that are asked for on our platform, with their extras."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({**PLATFORM, "extra": extra}) for extra in (CORE, *extras)):
            wanted[canonicalize_name(requirement.name)] |= requirement.extras
    return wanted


def _closures() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """(which extras bring a package, what a package asks for)."""
    needed_by: dict[str, set[str]] = defaultdict(set)
    edges: dict[str, set[str]] = defaultdict(set)
    for extra in _extras():
        waiting = list(_wanted(_requirements(extra)).items())
        seen: dict[str, set[str]] = {}
        while waiting:
            name, extras = waiting.pop()
            if name in seen and extras <= seen[name]:
                continue
            seen[name] = seen.get(name, set()) | extras
            needed_by[name].add(extra)
            asked = _wanted(distribution(name).requires or (), seen[name])
            edges[name].update(asked)
            waiting.extend(asked.items())
    return needed_by, edges


def _package(name: str, version: str, extras: set[str]) -> Component:
    found = distribution(name)
    return Component(
        type=ComponentType.LIBRARY, name=found.name, version=version, bom_ref=f"pypi:{name}",
        scope=ComponentScope.REQUIRED if CORE in extras else ComponentScope.OPTIONAL,
        purl=PackageURL("pypi", name=name, version=version), licenses=_licences(found),
        properties=[] if CORE in extras else [Property(name="shoal:extras", value=" ".join(sorted(extras)))],
    )  # fmt: skip


def _licences(package: Distribution) -> list[LicenseExpression | DisjunctiveLicense]:
    declared = LicenseAcknowledgement.DECLARED
    if field(package, "License-Expression"):
        return [LicenseExpression(expression, acknowledgement=declared) for expression in licences_of(package)]
    return [DisjunctiveLicense(name=name, acknowledgement=declared) for name in licences_of(package)]


def _jar(jar: jars.Jar) -> Component:
    """A part of Kafka, which `python -m shoal.agents.broker.jars` downloads."""
    return Component(
        type=ComponentType.LIBRARY, group=jar.group, name=jar.artifact, version=jar.version,
        bom_ref=f"maven:{jar.group}:{jar.artifact}", scope=ComponentScope.OPTIONAL,
        purl=PackageURL("maven", jar.group, jar.artifact, jar.version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)],
        properties=[Property(name="shoal:extras", value="demo")],
    )  # fmt: skip


def _purchases() -> Component:
    """The demo's purchases, which are in the wheel."""
    return Component(
        type=ComponentType.DATA, name=str(FILE.relative_to(ROOT)), bom_ref="data:purchases",
        description="The CDNOW purchase history, published for research by Peter Fader and Bruce Hardie",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256(FILE.read_bytes()).hexdigest())],
        licenses=[DisjunctiveLicense(id="MIT", acknowledgement=LicenseAcknowledgement.DECLARED)],
    )  # fmt: skip


def main(path: Path = SBOM) -> int:
    """Write the bill."""
    path.write_text(bill_of_materials(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
