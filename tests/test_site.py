# SPDX-License-Identifier: Apache-2.0
"""The site of the documentation holds every page once (``make docs`` makes it)."""

from collections import Counter
from pathlib import Path
import re

DOCS = Path(__file__).resolve().parent.parent / "docs"


def listed(index):
    """Return the paths of the pages in the lists of a page, relative to ``docs``."""
    lists = re.findall(
        r"^(:::+)\{toctree\}\n(.*?)^\1$", index.read_text(), re.DOTALL | re.MULTILINE
    )
    assert lists, f"{index} lists no page"
    names = [line for _, text in lists for line in text.splitlines() if re.match(r"[\w*]", line)]
    pages = [
        page for name in names for page in sorted(index.parent.glob(f"{name}.md")) if page != index
    ]
    assert all((index.parent / f"{name}.md").is_file() for name in names if name != "*"), names
    return [page.relative_to(DOCS).as_posix() for page in pages]


def test_every_page_is_in_one_list():
    counted = Counter(page for index in sorted(DOCS.rglob("index.md")) for page in listed(index))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"index.md"}
    missing = sorted(pages - {*counted})
    assert missing == [], "list these pages in docs/index.md"
    assert [page for page, count in counted.items() if count > 1] == []
