# SPDX-License-Identifier: Apache-2.0
"""Initial values of a model are those that Verilator's own functions return."""

import ctypes
import subprocess

from host.devices.bundles import library_folder, prepare_folder
from sim.verilated.library import cached_runtime
from sim.verilated.model import FAST, INITIAL_VALUES, flags_of
from sim.verilated.toolchain import find_toolchain

#: A name in parentheses is the function, not the macro.
SOURCE = f"""
#include "{INITIAL_VALUES}"
struct Symbols {{ VerilatedContext* _vm_contextp__; }};
struct Model {{ Symbols* vlSymsp; }};
extern "C" __attribute__((visibility("default"))) void values(int reset, uint64_t* found) {{
    VerilatedContext context;
    context.randReset(reset);
    context.randSeed(3);
    Verilated::threadContextp(&context);
    Symbols symbols{{&context}};
    Model model{{&symbols}};
    Model* const vlSelf = &model;
    found[0] = VL_SCOPED_RAND_RESET_I(19, 5, 7);
    found[1] = VL_SCOPED_RAND_RESET_Q(35, 5, 7);
    found[2] = (VL_SCOPED_RAND_RESET_I)(19, 5, 7);
    found[3] = (VL_SCOPED_RAND_RESET_Q)(35, 5, 7);
}}
"""


def test_initial_values_are_zeros_ones_or_random_as_the_context_says(tmp_path):
    tools = find_toolchain()
    prepare_folder(library_folder())
    runtime = cached_runtime(tools, what="tests", report=print)
    source, made = tmp_path / "values.cpp", tmp_path / "values.so"
    source.write_text(SOURCE)
    command = [tools.compiler, *flags_of(tools), FAST, "-shared", "-o", made, source, runtime]
    subprocess.run(list(map(str, command)), check=True, cwd=tmp_path, timeout=120)
    values = ctypes.CDLL(str(made)).values
    for reset in range(3):
        found = (ctypes.c_uint64 * 4)()
        values(reset, found)
        assert found[:2] == found[2:], f"randReset({reset})"
        expected = {0: [0, 0], 1: [(1 << 19) - 1, (1 << 35) - 1], 2: found[2:]}
        assert found[:2] == expected[reset]
    assert all(found), "random values"
