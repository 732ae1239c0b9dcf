"""The kernel's crates: its bill of materials (CycloneDX), and the licence texts that its wheel has to carry.

    python -m distribution.crates     write both again, after a change of kernel/Cargo.lock; it needs cargo

Crates that are linked into the kernel are in it. Those that only take part in the build, such as procedural macros and
what tests use, are not.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseAcknowledgement, LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from distribution import ROOT
from shoal import __version__

KERNEL = ROOT / "kernel"
SBOM = KERNEL / "shoal-kernel.cdx.json"
TEXTS = KERNEL / "THIRD-PARTY-LICENSES.txt"
PLATFORM = "x86_64-unknown-linux-gnu"
PERMISSIVE = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "MIT", "MIT-0", "Zlib"}
LINE = "=" * 100


def linked() -> list[dict[str, Any]]:
    """What cargo says of each crate that is linked into the kernel, by name."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={PLATFORM}"]
    done = subprocess.run(command, cwd=KERNEL, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    packages = {package["id"]: package for package in told["packages"]}
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    found: set[str] = set()
    waiting = [told["resolve"]["root"]]
    while waiting:
        name = waiting.pop()
        if name in found or any("proc-macro" in target["kind"] for target in packages[name]["targets"]):
            continue
        found.add(name)
        waiting += [each["pkg"] for each in nodes[name]["deps"] if any(k["kind"] is None for k in each["dep_kinds"])]
    found.remove(told["resolve"]["root"])
    return sorted((packages[each] for each in found), key=lambda package: str(package["name"]))


def checksums() -> dict[tuple[str, str], str]:
    """SHA-256 of each locked crate, by name and version."""
    locked = tomllib.loads((KERNEL / "Cargo.lock").read_text("utf-8"))["package"]
    return {(one["name"], one["version"]): one["checksum"] for one in locked if "checksum" in one}


def is_permissive(expression: str) -> bool:
    """Whether one may choose a licence that asks for no more than its text.

    >>> is_permissive("CC0-1.0 OR MIT-0"), is_permissive("MIT AND GPL-3.0-only"), is_permissive("LGPL-3.0-only OR MIT")
    (True, False, True)
    """
    parts = expression.replace("/", " OR ").replace("(", "").replace(")", "").split(" AND ")
    return all(any(choice.strip() in PERMISSIVE for choice in part.split(" OR ")) for part in parts)


def bill_of_materials(crates: Iterable[dict[str, Any]]) -> str:
    """The bill, as JSON."""
    ours = Component(
        type=ComponentType.LIBRARY, name="shoal-kernel", version=__version__, bom_ref="shoal-kernel",
        purl=PackageURL("pypi", name="shoal-kernel", version=__version__),
        licenses=[LicenseExpression("Apache-2.0", acknowledgement=LicenseAcknowledgement.DECLARED)],
    )  # fmt: skip
    hashes = checksums()
    components = [
        Component(
            type=ComponentType.LIBRARY, name=one["name"], version=one["version"], bom_ref=f"cargo:{one['name']}",
            scope=ComponentScope.REQUIRED, purl=PackageURL("cargo", name=one["name"], version=one["version"]),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashes[one["name"], one["version"]])],
            licenses=[LicenseExpression(one["license"], acknowledgement=LicenseAcknowledgement.DECLARED)],
        )
        for one in crates
    ]  # fmt: skip
    bom = Bom(components=components)
    bom.metadata.component = ours
    bom.metadata.timestamp = None  # type: ignore[assignment]  # a build's would differ
    bom.register_dependency(ours, components)
    bom.serial_number = uuid5(NAMESPACE_URL, "shoal-kernel")
    bom.serial_number = uuid5(NAMESPACE_URL, sha256(_json(bom).encode()).hexdigest())
    return _json(bom)


def _json(bom: Bom) -> str:
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1) + "\n"


def texts(crates: Iterable[dict[str, Any]]) -> str:
    """The licences under which we pass the crates on, with whom they are by."""
    parts = [f"shoal-kernel {__version__} contains these crates of Rust."]
    for one in crates:
        head = f"{LINE}\n{one['name']} {one['version']}, {one['license']}\n{one['repository'] or ''}\n{LINE}"
        parts.append(f"{head}\n\n{_text(one)}")
    return "\n\n".join(parts) + "\n"


def _text(crate: dict[str, Any]) -> str:
    files = sorted(path for path in Path(crate["manifest_path"]).parent.iterdir() if path.is_file())
    held = [path for path in files if re.match(r"(LICEN[CS]E|COPYING|UNLICENSE)", path.name, re.IGNORECASE)]
    chosen = [path for path in held if "MIT" in path.name.upper()] or held
    if chosen:
        return chosen[0].read_text("utf-8").strip()
    return f"By {', '.join(crate['authors']) or 'its authors'}; the crate names its licence and carries no text of it."


def main() -> int:
    """Write both.

    Raises:
        SystemExit: a crate asks for more than its licence's text.
    """
    crates = linked()
    if bad := [f"{one['name']}: {one['license']}" for one in crates if not is_permissive(one["license"] or "")]:
        raise SystemExit(f"not permissive: {'; '.join(bad)}")
    SBOM.write_text(bill_of_materials(crates), "utf-8")
    TEXTS.write_text(texts(crates), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
