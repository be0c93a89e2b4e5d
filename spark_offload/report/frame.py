# SPDX-License-Identifier: Apache-2.0
"""The frame of every report: one HTML file with its style in it, which opens offline."""

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from host.files.writing import atomic_output

__all__ = ["NOTHING", "filled", "section", "write_page"]

NOTHING = '<p class="soft">Nothing to draw: the device gave no such figures in this run.</p>'


def filled(name: str, **values: str) -> str:
    """Return a template that lies beside this file, with HTML in its places."""
    text = files("spark_offload.report").joinpath(name).read_text("utf-8")
    return Template(text).substitute(values)


def section(title: str, text: str, body: str) -> str:
    """Return a section: a title and a text, which are escaped, above its body."""
    return (
        f"<section>\n<h2>{escape(title)}</h2>\n"
        f'<p class="soft">{escape(text)}</p>\n{body}\n</section>'
    )


def write_page(title: str, body: str, path: Path) -> None:
    """Write a page to ``path``, whole or not at all."""
    page = filled("frame.html", title=escape(title), body=body)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(path) as place:
        place.write_text(page, "utf-8")
