# SPDX-License-Identifier: Apache-2.0
"""Draws the timing diagrams of the documents: each JSON file here becomes an SVG in images."""

from pathlib import Path

import wavedrom

__all__ = ["rendered"]

#: Behind a drawing, whose lines are black: it is read on dark pages too.
PAPER = '<rect width="100%" height="100%" fill="#fff"/>'
HERE = Path(__file__).resolve().parent
IMAGES = HERE.parent / "images"


def rendered():
    """Return the SVG text of every diagram, by the path that it belongs to."""
    texts = {}
    for path in sorted(HERE.glob("*.json")):
        head, end, body = wavedrom.render(path.read_text("utf-8")).tostring().partition(">")
        texts[IMAGES / f"{path.stem}.svg"] = f"{head}{end}{PAPER}{body}\n"
    return texts


if __name__ == "__main__":
    for path, text in rendered().items():
        path.write_text(text, encoding="utf-8")
        print(path)
