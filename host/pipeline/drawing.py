# SPDX-License-Identifier: Apache-2.0
"""Draw a pipeline as DOT for Graphviz, or as SVG."""

from html import escape
from itertools import groupby
import json

from host.pipeline.execution import Execution
from host.pipeline.explanation import Line, lines_of
from host.pipeline.source import Source

__all__ = ["dot", "svg"]

_WIDTH, _HEIGHT, _GAP, _MARGIN = 420, 46, 22, 16


def _boxes(source: Source, execution: Execution) -> list[list[Line]]:
    """Return the lines of each box: all operations of a pass. Steps that vanish are left out."""
    lines = [line for line in lines_of(source, execution) if line[0] != "-"]
    numbered = [(line[0] if line[0].startswith("pass") else f"{index}", line)
                for index, line in enumerate(lines)]  # fmt: skip
    return [[line for _, line in group] for _, group in groupby(numbered, key=lambda pair: pair[0])]


def dot(source: Source, execution: Execution) -> str:
    """Return the plan in the DOT language: a box per stream, with the flags on the arrows."""
    boxes = _boxes(source, execution)
    text = ["digraph pipeline {", "  rankdir=TB;", "  node [shape=box, fontname=sans];"]
    for number, box in enumerate(boxes):
        label = "\n".join([box[0][0], *(line[1] for line in box)])
        text.append(f"  n{number} [label={json.dumps(label)}];")
    text.append('  reader [label="reader", shape=plaintext];')
    names = [f"n{number}" for number in range(len(boxes))] + ["reader"]
    for number, box in enumerate(boxes):
        flags = json.dumps(box[-1][2])
        text.append(f"  {names[number]} -> {names[number + 1]} [label={flags}];")
    return "\n".join([*text, "}"])


def svg(source: Source, execution: Execution) -> str:
    """Return the plan as an SVG picture: a box per stream, with the flags beside the arrows."""
    parts, top = [], _MARGIN
    for box in _boxes(source, execution):
        height = _HEIGHT + 16 * (len(box) - 1)
        parts.append(
            f'<rect x="{_MARGIN}" y="{top}" width="{_WIDTH}" height="{height}" rx="6" '
            f'fill="none" stroke="currentColor"/>'
        )
        parts.append(_text(_MARGIN + 10, top + 18, box[0][0], "bold"))
        for index, line in enumerate(box):
            words = f"{line[1]}   {line[3]}".rstrip()
            parts.append(_text(_MARGIN + 10, top + 36 + 16 * index, words))
        top += height
        middle = _MARGIN + 30
        parts.append(
            f'<path d="M{middle} {top} v{_GAP} m-4 -6 l4 6 l4 -6" fill="none" '
            f'stroke="currentColor"/>'
        )
        parts.append(_text(middle + 12, top + 15, box[-1][2], "italic"))
        top += _GAP
    parts.append(_text(_MARGIN + 10, top + 14, "reader", "bold"))
    width, height = _WIDTH + 2 * _MARGIN, top + _MARGIN + 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12" fill="currentColor">'
        + "".join(parts)
        + "</svg>"
    )


def _text(x: int, y: int, words: str, style: str = "") -> str:
    look = {"bold": ' font-weight="bold"', "italic": ' font-style="italic"'}.get(style, "")
    return f'<text x="{x}" y="{y}"{look}>{escape(words)}</text>'
