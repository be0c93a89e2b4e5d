# SPDX-License-Identifier: Apache-2.0
"""The assertions of a package notice a design that breaks the rules of the ports."""

import re
import subprocess

import pytest

from hdl.manifest import describe
from hdl.packaging.checks import BARE, channels_of, checks_text
from hdl.packaging.one_file import CLOCKING, packaged_component, packaged_ports
from hdl.shells.axi import AxiOptions
from tests.hdl.packaging.packaged import TINY, compile_bench

#: Ports of the faulty designs: a stream in, a stream out, and a read channel of AXI.
PORTS = [
    *CLOCKING,
    {"name": "i_payload", "direction": "in", "bits": 32},
    {"name": "i_valid", "direction": "in", "bits": 1},
    {"name": "i_ready", "direction": "out", "bits": 1},
    {"name": "o_payload", "direction": "out", "bits": 16},
    {"name": "o_valid", "direction": "out", "bits": 1},
    {"name": "o_ready", "direction": "in", "bits": 1},
    {"name": "m_arvalid", "direction": "out", "bits": 1},
    {"name": "m_arready", "direction": "in", "bits": 1},
    {"name": "m_rvalid", "direction": "in", "bits": 1},
    {"name": "m_rready", "direction": "out", "bits": 1},
    {"name": "m_rlast", "direction": "in", "bits": 1},
]
#: What a cycle of each design drives, and what is said of it; the first one is right.
DESIGNS = {
    "right": ([
        "i_valid=1; i_payload=0;", "i_ready=1;", "i_valid=0; o_valid=1; o_payload={STAR};", "",
        "o_ready=1;", "o_valid=0;", "m_arvalid=1; m_arready=1;", "m_arvalid=0; m_rvalid=1;",
        "m_rready=1;", "m_rlast=1;", "m_rvalid=0;",
    ], None),
    "valid falls": (["o_valid=1;", "o_valid=0;"], "o_valid fell, or what it offers changed"),
    "a word changes": (["i_valid=1;", "i_payload=32;"], "i_valid fell, or what it offers changed"),
    "a star too many": (
        ["i_valid=1; i_ready=1;", "i_valid=0; o_valid=1; o_ready=1; o_payload={STAR};", "", ""],
        "side R has more stars than tuples",
    ),
    "a star of the other side": (
        ["i_valid=1; i_ready=1;", "i_valid=0; o_valid=1; o_ready=1; o_payload={OTHER};", ""],
        "side S has more stars than tuples",
    ),
    "an answer to nothing": (
        ["m_rready=1;", "m_rvalid=1; m_rlast=1;", ""], "m_rvalid answered what m_arvalid has not",
    ),
}  # fmt: skip


def field(places, **values):
    """Return a word with these values of its fields."""
    return sum(value << places[name]["offset"] for name, value in values.items())


@pytest.fixture(scope="module")
def ran(tmp_path_factory, kept):
    """Compile all designs as one program; return what it prints of the design with a number."""
    folder = tmp_path_factory.mktemp("checks")
    manifest = describe(TINY, "", verilog_file="")
    places, star = manifest["result_word"]["fields"], manifest["result_kinds"]["STAR"]
    words = {
        "STAR": field(places, kind=star, side=0), "OTHER": field(places, kind=star, side=1),
    }  # fmt: skip
    ports = ", ".join(f"input [{port['bits'] - 1}:0] {port['name']}" for port in PORTS)
    cases = "\n".join(
        f"if (chosen == {number} && cycle == {cycle + 10}) begin {steps.format(**words)} end"
        for number, (program, _) in enumerate(DESIGNS.values())
        for cycle, steps in enumerate(program)
    )
    signals = "\n".join(f"reg [{port['bits'] - 1}:0] {port['name']} = 0;" for port in PORTS)
    (folder / "design.v").write_text(f"module splitjoin ({ports}); endmodule\n")
    (folder / "checks.sv").write_text(checks_text("splitjoin", PORTS, manifest, None, AxiOptions()))
    (folder / "tb.sv").write_text(f"""module tb;
{signals}
int chosen, cycle = 0;
splitjoin dut (.*);
always #1 clk = ~clk;
initial if (!$value$plusargs("design=%d", chosen)) chosen = 0;
always @(negedge clk) begin
    rst = cycle < 4;
    {cases}
    cycle++;
    if (cycle == 30) begin $display("END"); $finish; end
end
endmodule
""")
    program = compile_bench(folder, "tb", ("design.v", "checks.sv", "tb.sv"), kept)

    def run(number):
        done = subprocess.run(
            [program, f"+design={number}"], capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    return run


@pytest.mark.long
@pytest.mark.parametrize("design", DESIGNS)
def test_a_broken_rule_is_told(ran, design):
    _, said = DESIGNS[design]
    printed = ran([*DESIGNS].index(design))
    if said is None:
        assert "END" in printed
        assert "Error" not in printed
    else:
        assert said in printed
        assert len(set(re.findall(r"splitjoin: .*", printed))) == 1


def test_every_channel_of_a_shell_is_watched_by_its_clock():
    axi = AxiOptions(inputs=2, bus_clock="separate")
    ports = packaged_ports(packaged_component(TINY, "axi", "0" * 64, axi), "axi")
    text = checks_text("splitjoin_axi", ports, describe(TINY, "", verilog_file=""), "axi", axi)
    channels = [port["name"].removesuffix("valid") for port in ports]
    channels = [name for name, port in zip(channels, ports, strict=True) if name != port["name"]]
    assert len(channels) == 3 + 5
    for name in channels:
        clock = "s_axi_aclk" if name.startswith("s_axi_") else "aclk"
        assert f"{name}holds: assert property (@(posedge {clock})" in text
    assert "$stable(s_axi_aresetn)" not in text  # it begins as the read channel's ports do
    assert "stars_of_r" not in text  # the tuples of several inputs are merged


def test_a_port_without_its_pair_is_no_channel():
    ports = [{"name": "a_valid", "bits": 1}, {"name": "b_ready", "bits": 1}]
    assert channels_of(ports, BARE) == []
