"""The wheel: how it is built, what an installation of it takes, and its bill of materials."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
