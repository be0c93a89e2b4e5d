# SPDX-License-Identifier: Apache-2.0
import os

import pytest

from hdl.bundle import generate
from hdl.presets import PRESETS
from sim.failures.injection import VARIABLE, CoreFault, code_of, failing, with_faults
from sim.failures.trials import SHAPES


@pytest.mark.long
def test_every_core_passes_its_own_faults():
    parameters = SHAPES["scan, arity 2"]
    verilog, _ = generate(parameters)
    faulty = with_faults(verilog, parameters.cores)
    # Three pins of each core and three of its gate, and the declaration of the bits.
    assert faulty.count("& ~refused[") == 6 * parameters.cores
    for bit in range(3 * parameters.cores):
        assert faulty.count(f"& ~refused[{bit}])") == 2
    assert "core_faults" not in verilog


def test_an_accelerator_without_gates_is_refused():
    verilog, _ = generate(PRESETS["tiny"])
    with pytest.raises(ValueError, match="no instance 'gate_0' in its top module"):
        with_faults(verilog, 4)


def test_the_fault_is_set_for_devices_that_are_opened_meanwhile():
    with failing(5, CoreFault.SILENT, 700):
        number = int(os.environ[VARIABLE])
        with failing(0, CoreFault.STOPS, 1):
            assert int(os.environ[VARIABLE]) == code_of(0, CoreFault.STOPS, 1)
        assert int(os.environ[VARIABLE]) == number
    assert (number & 7, number >> 3 & 127, number >> 10) == (6, 5, 700)
    assert VARIABLE not in os.environ
