# SPDX-License-Identifier: Apache-2.0
"""The texts that are written from a table: C header, SystemRDL, Markdown."""

import re
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.parameters import JoinParameters
from hdl.registers.documents import c_header, markdown, system_rdl
from hdl.registers.table import ACCESSES, Field, Register, RegisterTable, shell_table
from sim.verilated.toolchain import find_toolchain

TABLE = shell_table(
    JoinParameters.of(
        cores=3, sub_window=8, timestamp_bits=16, failure_cycles=10_000, parity=True,
        result_streams=2,
    )
)  # fmt: skip


@st.composite
def tables(draw):
    """Strategy for small tables of any shape."""
    registers, address = [], 0
    for number in range(draw(st.integers(1, 4))):
        fields, offset = [], 0
        for n in range(draw(st.integers(1, 4))):
            offset += draw(st.integers(0, 3))
            bits = draw(st.integers(1, 5))
            access = draw(st.sampled_from(list(ACCESSES)))
            known = access == "rw" or (access == "ro" and draw(st.booleans()))
            reset = draw(st.integers(0, (1 << bits) - 1)) if known else None
            fields.append(
                Field(
                    name=f"F{n}", offset=offset, bits=bits, access=access, reset=reset,
                    description='It "is" \\ a | field.',
                )
            )  # fmt: skip
            offset += bits
        address += 4 * draw(st.integers(0, 5))
        registers.append(
            Register(
                name=f"R{number}",
                address=address,
                fields=tuple(fields),
                description="A | register.",
            )
        )
        address += 4
    return RegisterTable("some", tuple(registers))


def defines(header):
    """Return the numbers that a C header defines."""
    found = re.findall(r"^#define (\w+) (0x[0-9A-F]+|\d+)u$", header, re.MULTILINE)
    values = {name: int(value, 0) for name, value in found}
    assert len(values) == len(found), "a name is defined twice"
    return values


def expected_defines(table):
    values = {}
    for register in table.registers:
        name = f"{table.name}_{register.name}".upper()
        values[name] = register.address
        for field in register.fields:
            values[f"{name}_{field.name}_OFFSET"] = field.offset
            values[f"{name}_{field.name}_MASK"] = field.mask
            if field.reset is not None:
                values[f"{name}_{field.name}_RESET"] = field.reset
    return values


@settings(max_examples=30, deadline=None)
@given(tables())
def test_the_header_has_every_number_once(table):
    assert defines(c_header(table, title="A title")) == expected_defines(table)


def test_the_header_of_a_shell_is_what_a_compiler_takes(tmp_path):
    header = c_header(TABLE, title="Registers", texts={"MANIFEST_HASH": "ab" * 32})
    assert defines(header) == expected_defines(TABLE)
    (tmp_path / "registers.h").write_text(header)
    source = tmp_path / "use.cpp"
    source.write_text(
        '#include "registers.h"\n#include "registers.h"\n#include <stdint.h>\n'
        'static_assert(sizeof(SPLITJOIN_MANIFEST_HASH) == 65, "text");\n'
        "uint32_t value = SPLITJOIN_CONTROL_ENABLE_MASK << 0 | SPLITJOIN_PARITY_ERRORS_HI;\n"
    )
    compiler = find_toolchain().compiler
    subprocess.run([compiler, "-Wall", "-Werror", "-fsyntax-only", str(source)], check=True)


@settings(max_examples=30, deadline=None)
@given(tables())
def test_markdown_has_a_row_for_every_register_and_field(table):
    text = markdown(table, title="A title")
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) == sum(1 + len(register.fields) for register in table.registers)
    assert {line.count("|") for line in rows} == {8}
    for register in table.registers:
        assert f"| 0x{register.address:03X} | **{register.name}** |" in text


@settings(max_examples=30, deadline=None)
@given(tables())
def test_system_rdl_is_balanced_and_names_everything(table):
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', system_rdl(table, title="A title"))
    assert text.count("{") == text.count("}")
    found = re.findall(r"} (\w+)\[(\d+):(\d+)\](?: = \d+'h([0-9a-f]+))?;", text)
    expected = [
        (
            field.name, str(field.offset + field.bits - 1), str(field.offset),
            "" if field.reset is None else f"{field.reset:x}",
        )
        for register in table.registers
        for field in register.fields
    ]  # fmt: skip
    assert found == expected


@settings(max_examples=15, deadline=None)
@given(tables())
def test_system_rdl_means_the_table(tmp_path_factory, table):
    check_compiled(table, tmp_path_factory.mktemp("rdl") / "table.rdl")


def test_system_rdl_of_a_shell_means_its_table(tmp_path):
    check_compiled(TABLE, tmp_path / "table.rdl")


def check_compiled(table, path):
    """Check that a SystemRDL compiler reads out of a text what the table says."""
    systemrdl = pytest.importorskip("systemrdl")
    path.write_text(system_rdl(table, title="A title"))
    compiler = systemrdl.RDLCompiler()
    compiler.compile_file(str(path))
    top = compiler.elaborate().top
    assert top.inst_name == table.name
    registers = {register.inst_name: register for register in top.registers()}
    assert list(registers) == [register.name for register in table.registers]
    for register in table.registers:
        compiled = registers[register.name]
        assert compiled.absolute_address == register.address
        assert compiled.has_sw_writable == register.is_writable
        fields = {field.inst_name: field for field in compiled.fields()}
        for field in register.fields:
            found = fields[field.name]
            assert (found.low, found.width) == (field.offset, field.bits)
            assert found.get_property("reset") == field.reset
            assert found.is_sw_readable == (field.access != "wo")
            clears = found.get_property("onwrite")
            assert (clears is not None) == (field.access == "w1c")
