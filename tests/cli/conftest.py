"""What tests of commands share."""

from pathlib import Path

import pytest

from tests.support.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
