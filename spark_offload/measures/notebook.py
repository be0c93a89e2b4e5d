# SPDX-License-Identifier: Apache-2.0
"""Tables as notebooks show them."""

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_rows", "html_table"]


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of numbers, the first of them headings, as a table."""
    head, *body = rows
    return _table(
        [
            _row(head, "th"),
            *(_row(row, "td") for row in body),
        ],
        "right",
    )


def html_rows(rows: Iterable[tuple[str, str]]) -> str:
    """Return headings, each with a text of one or more lines, as a table."""
    return _table(
        (
            f"<tr><th>{escape(name)}</th><td>{escape(text).replace(chr(10), '<br>')}</td></tr>"
            for name, text in rows
        ),
        "left",
    )


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _table(rows: Iterable[str], align: str) -> str:
    return f'<table style="text-align: {align}">{"".join(rows)}</table>'
