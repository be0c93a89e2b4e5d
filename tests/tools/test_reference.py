# SPDX-License-Identifier: Apache-2.0
"""The generated pages and tables of the documentation are those of the code."""

from dataclasses import fields
import re

from hdl.families.family import input_names
from hdl.presets import PRESETS
from hdl.registers.table import shell_table
from host.devices.link.frames import Kind
from host.query.ordering import FORMS
from host.query.queries import Query
from tools.reference import COUNTERS, DOCS, address_map, prose, written


def test_the_pages_are_those_of_the_code():
    stale = [path.name for path, text in written().items() if path.read_text("utf-8") != text]
    assert stale == [], "write them again: make reference"


def test_every_comment_of_a_generated_table_has_a_table():
    pages = written()
    for path in DOCS.rglob("*.md"):
        if "<!-- generated: " in path.read_text("utf-8"):
            assert path in pages


def test_the_address_map_has_every_register_at_its_address():
    rows = re.findall(r"^\| (0x\w+)(?: to (0x\w+))? \| (\w+)(?: to (\w+))? \|", address_map(), re.M)
    stated = {
        name: int(address, 16)
        for first, last, *names in rows
        for name, address in zip(names, (first, last), strict=True)
        if name
    }
    many = shell_table(PRESETS["tiny"], merged=input_names(64))
    actual = {register.name: register.address for register in many.registers}
    assert {name: stated[name] for name in stated if name in actual} == {
        name: actual[name] for name in stated if name in actual
    }
    assert {"ID", "CONTROL", "ERRORS", "MANIFEST_HASH_7", "STALLS_S31"} <= set(stated)
    assert COUNTERS in address_map()


def rows_of(page, pattern):
    """Return what a pattern finds in the rows of the tables of a page."""
    return re.findall(rf"^\| {pattern}", (DOCS / page).read_text("utf-8"), re.MULTILINE)


def test_tables_that_explain_what_code_names_leave_nothing_out():
    assert rows_of("link.md", r"(\d) \| ([A-Z]+) \|") == [(str(k.value), k.name) for k in Kind]
    forms = {form.split(":")[0] for form in re.split(", | or ", FORMS.split(", where")[0])}
    assert {*rows_of("ordering.md", r"(\w+) \| `Ordering\.")} == forms
    extras = set(rows_of("installing.md", r"`(\w+)` \| "))
    assert {"host", "simulator", "spark", "connect", "hdl", "sim"} <= extras
    words = {"time", "on", "band", "within", "rows", "how"}
    assert words <= extras & {field.name for field in fields(Query)}


def test_prose_has_no_markdown_but_options_as_code():
    assert prose(r"all *.csv, \: <= --one-in, a-b") == r"all \*.csv, \\: \<= `--one-in`, a-b"
