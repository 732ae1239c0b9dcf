"""The kernel's own tests, and the properties of kernel/fuzz, interpreted by Miri, which sees undefined behaviour.

python -m tests.long.miri [--cases N]

No line of the kernel is unsafe, but crates that it stands on have some: tables, checksums, hashes. Miri needs neither
Python nor a broker, so what Python sees of the kernel is not in it; nor is memory that is mapped, which it does not
know, or instructions that only some processors have. It takes minutes for what otherwise takes a second. Where
it is missing, this fails: what was not tried has not passed.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from tests.long.rust import version_of

KERNEL = Path(__file__).parents[2] / "kernel"
MIRI = ("cargo", "+nightly", "miri")
INSTALL = "`rustup toolchain install nightly --component miri,rust-src` brings it"
# The tests read seeds from files; and a number that is made of an address, as crates of tests do, is no finding.
FLAGS = "-Zmiri-disable-isolation -Zmiri-permissive-provenance"


def main(cases: Annotated[int, typer.Option(help="Random cases of each property, beside the seeds.")] = 3) -> None:
    """Run both crates' tests."""
    version = version_of(MIRI, INSTALL)
    environment = os.environ | {"MIRIFLAGS": FLAGS, "PROPTEST_CASES": str(cases)}
    for folder, arguments in ((KERNEL, ("--no-default-features",)), (KERNEL / "fuzz", ())):
        if subprocess.run(
            [*MIRI, "test", *arguments], cwd=folder, env=environment, stderr=subprocess.STDOUT
        ).returncode:
            sys.exit(f"{folder.name}: Miri found something, or a test failed: see above")
    print(f"no undefined behaviour ({version})")


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
