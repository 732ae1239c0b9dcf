"""The locked packages: pip refuses what is not in the locks, or has other bytes."""

import re

from distribution.locks import LOCKS, ORDER, PINNED, lock_file


def test_each_package_is_in_one_lock_with_its_hashes() -> None:
    names = [name for lock in ORDER for name, _ in PINNED.findall(lock_file(lock).read_text("utf-8"))]
    assert len(names) == len({*names}) > 100
    for file in LOCKS.glob("*.lock"):
        for package in re.split(r"^(?=\S)", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            assert re.fullmatch(r"\S+==\S+( ; [^\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n", package), package
