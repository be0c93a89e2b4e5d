# SPDX-License-Identifier: Apache-2.0
"""The AXI shell with other clocks and other names."""

import pytest

from hdl.registers.table import MAGIC
from hdl.shells.axi import AxiOptions
from hdl.shells.files import shell_files
from hdl.verilog.lint import lint
from tests.halves import half
from tests.hdl.input_words import control_word
from tests.hdl.shells.shell_bench import Shell
from tests.hdl.shells.test_axi_inputs import PARAMETERS
from tests.hdl.shells.test_files import stub


@pytest.mark.parametrize("period", [2.7e-6, pytest.param(0.3e-6, marks=pytest.mark.long)])
def test_registers_work_on_a_clock_of_their_own(period):
    shell = Shell(PARAMETERS, options=AxiOptions(bus_clock="separate"), bus_period=period)
    flush = shell.word(control_word("FLUSH"))

    async def program(ctx):
        await shell.reset(ctx)
        assert await shell.read(ctx, "ID") == MAGIC
        await shell.write(ctx, "INTERRUPT_ENABLE", 1)
        await shell.send(ctx, [flush])
        assert len(await shell.take(ctx, 1)) == 1
        assert await shell.read(ctx, "INTERRUPT_STATUS") == 1
        assert ctx.get(shell.dut.interrupt)
        await shell.write(ctx, "CONTROL", 1 << 8 | 2)
        assert await shell.read(ctx, "MARKS_LO") == 1
        assert await shell.master.read(ctx, 0x80) == (0, True)

    shell.bench.run(program)


@pytest.mark.few(1)
@pytest.mark.parametrize(("names", "bus_clock"), half(["axi", "vitis"], ["shared", "separate"]))
def test_pins_have_the_names_that_were_asked_for(tmp_path, names, bus_clock):
    options = AxiOptions(inputs=2, bus_clock=bus_clock, names=names)
    files, ports = shell_files(PARAMETERS, "ab" * 32, options)
    name, text = files["verilog"]
    (tmp_path / name).write_text(text)
    (tmp_path / "splitjoin.v").write_text(stub(PARAMETERS))
    assert lint(tmp_path / name, tmp_path / "splitjoin.v", top="splitjoin_axi") == ""
    found = {port["name"] for port in ports}
    pins = options.pins
    assert {pins.clock, pins.reset, f"{pins.registers}_awaddr", "s_axis_r_tdata"} <= found
    assert ({pins.bus_clock, pins.bus_reset} <= found) == (bus_clock == "separate")
    assert ("aclk" in found) == (names == "axi")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bus_clock": "none"}, "must be shared or separate, not 'none'"),
        ({"names": "nice"}, "must be axi or vitis, not 'nice'"),
    ],
)
def test_unknown_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AxiOptions(**options)
