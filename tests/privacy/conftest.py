"""What several stories about file runs share."""

import pytest

from shoal.stream import file_run


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file run appends to the audit log after every second record."""
    monkeypatch.setattr(file_run, "CHUNK", 2)
