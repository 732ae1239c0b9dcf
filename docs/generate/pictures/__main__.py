"""Write the pictures of docs/explanation/algorithms: `python -m docs.generate.pictures`, or with names only some."""

import sys
from pathlib import Path

from docs.generate.pictures.card import svg
from docs.generate.pictures.catalogue import PICTURES

FOLDER = Path(__file__).parents[2] / "images/algorithms"


def main() -> None:
    """Write the pictures that are named, or all."""
    for name in sys.argv[1:] or PICTURES:
        (FOLDER / f"{name}.svg").write_text(svg(PICTURES[name]))


if __name__ == "__main__":
    main()
