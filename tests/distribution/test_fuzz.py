"""What tries the kernel (`kernel/fuzz`) tries the kernel: the same files and crates, and each property in every way."""

import re
import tomllib
from typing import Any

from distribution import ROOT

KERNEL = ROOT / "kernel"
FUZZ = KERNEL / "fuzz"
MANIFEST, OURS = (tomllib.loads((folder / "Cargo.toml").read_text("utf-8")) for folder in (FUZZ, KERNEL))
PYTHONS = {"python", "spec"}  # modules that only Python has a use for


def locked(folder: Any) -> dict[str, set[str]]:
    """Versions of each crate."""
    found: dict[str, set[str]] = {}
    for one in tomllib.loads((folder / "Cargo.lock").read_text("utf-8"))["package"]:
        found.setdefault(one["name"], set()).add(one["version"])
    return found


def test_it_has_the_crates_of_the_kernel_in_its_versions() -> None:
    for name, wanted in OURS["dependencies"].items():
        assert name == "pyo3" or MANIFEST["dependencies"][name] == wanted
    kernel, fuzz = locked(KERNEL), locked(FUZZ)
    for name in OURS["dependencies"].keys() - {"pyo3"}:
        assert kernel[name] <= fuzz[name], (
            f"cargo update --manifest-path kernel/fuzz/Cargo.toml {name} --precise VERSION"
        )


def test_it_has_all_modules_of_the_kernel_but_those_of_python() -> None:
    declared = re.findall(r"^mod (\w+);", (KERNEL / "src" / "lib.rs").read_text("utf-8"), re.MULTILINE)
    taken = re.findall(
        r'^#\[path = "../../src/(\w+)(?:/mod)?.rs"\]', (FUZZ / "src" / "lib.rs").read_text("utf-8"), re.M
    )
    assert {*declared} - PYTHONS == {*taken}


def test_each_property_has_a_target_and_seeds_and_is_tried_without_a_guide_too() -> None:
    properties = re.findall(r"^pub use \w+::(\w+);", (FUZZ / "src/properties/mod.rs").read_text("utf-8"), re.MULTILINE)
    (tried,) = re.findall(r"properties_hold!\((.*)\);", (FUZZ / "tests/properties.rs").read_text("utf-8"))
    assert properties == tried.split(", ") == [target["name"] for target in MANIFEST["bin"]]
    for folder, suffix in (("targets", ".rs"), ("seeds", "")):
        assert sorted(path.name.removesuffix(suffix) for path in (FUZZ / folder).iterdir()) == properties
    assert all(any((FUZZ / "seeds" / name).iterdir()) for name in properties)
