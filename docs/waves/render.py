# SPDX-License-Identifier: Apache-2.0
"""Draws the timing diagrams of the documents: each JSON file here becomes an SVG in images."""

from pathlib import Path

import wavedrom

__all__ = ["rendered"]

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parent / "images"


def rendered():
    """Return the SVG text of every diagram, by the path that it belongs to."""
    return {
        IMAGES / f"{path.stem}.svg": wavedrom.render(path.read_text(encoding="utf-8")).tostring()
        + "\n"
        for path in sorted(HERE.glob("*.json"))
    }


if __name__ == "__main__":
    for path, text in rendered().items():
        path.write_text(text, encoding="utf-8")
        print(path)
