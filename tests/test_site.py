# SPDX-License-Identifier: Apache-2.0
"""The site of the documentation holds every page once (``make docs`` makes it)."""

from collections import Counter
from pathlib import Path
import re

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

#: Folders whose pages commands write, but for the index of each; of other pages, commands write
#: what stands between two comments.
GENERATED = {"boards", "reference", "routing"}
WRITTEN = re.compile(
    r"<!-- generated: .*?<!-- end -->|<!-- (mutation|proofs): begin.*?<!-- \1: end -->", re.DOTALL
)
#: Words that hands have written, at the most.
SITE, README, CHANGELOG, DECISION, ENTRIES = 70_000, 600, 2_500, 600, 25


def words(page):
    """Return how many words of a page hands have written."""
    if page.parent.name in GENERATED and page.name != "index.md":
        return 0
    return len(WRITTEN.sub("", page.read_text("utf-8")).split())


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


def test_a_reader_can_finish_the_site():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    assert sum(map(words, pages)) <= SITE
    assert words(ROOT / "README.md") <= README
    assert words(ROOT / "CHANGELOG.md") <= CHANGELOG


def test_a_decision_is_at_most_a_page():
    lengths = {page.name: words(page) for page in (DOCS / "decisions").glob("0*.md")}
    assert {name: length for name, length in lengths.items() if length > DECISION} == {}


def test_a_picture_is_one_that_the_site_copies():
    """Sphinx copies the pictures of Markdown; those of HTML would be missing in the site."""
    written = [page.name for page in DOCS.rglob("*.md") if "<img" in page.read_text("utf-8")]
    assert written == []


def test_the_glossary_is_short():
    rows = re.findall(r"^\| (?!word |--)", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    assert 0 < len(rows) <= ENTRIES


def test_the_first_page_shows_three_paths_of_five_pages_at_the_most():
    index = (DOCS / "index.md").read_text("utf-8")
    table = re.findall(r"^\| ([\w ]+?) \| (.*\)) \|$", index, re.MULTILINE)
    assert [reader for reader, _ in table] == ["join data", "design FPGAs", "take over"]
    assert all(len(re.findall(r"\]\(", pages)) <= 5 for _, pages in table)


def test_a_measured_figure_has_a_command_and_a_commit():
    text = (DOCS / "measured.md").read_text("utf-8")
    for section in text.split("\n## ")[1:]:
        title = section.partition("\n")[0]
        assert re.search(r"`(make|python -m) ", section), title
        assert re.search(r"\b(\d+ Nov(ember)?)\b", section), title
        assert re.search(r"\b[0-9a-f]{7,8}\b", section), title
