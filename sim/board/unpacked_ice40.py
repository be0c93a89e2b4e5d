# SPDX-License-Identifier: Apache-2.0
"""Read the bitstream of an iCE40 back into logic, as Verilog that is simulated at the pins.

Two programs of IceStorm do most of it: ``iceunpack`` turns the bitstream into the settings of all
tiles, and ``icebox_vlog`` turns these into an expression for each table and each carry, and a
statement for each register. The model of the block RAM is written here, by Lattice's technical note
TN1250.
"""

import re
import shutil

from hdl.fpga.tools import ToolError, find_tool, run_tool

__all__ = ["NAME", "unpacked_verilog"]

#: Program that turns the settings of tiles into Verilog.
TO_VERILOG = "icebox_vlog"
#: Seconds that a program may take.
DEADLINE = 600
#: Name of the module of a bitstream.
NAME = "unpacked"
#: Parameters with the contents of a block RAM at power-on, 16 rows each.
CONTENTS = [f"INIT_{n:X}" for n in range(16)]
#: A row has 16 bits. In mode ``m``, the upper ``m`` bits of an address choose one bit from each
#: group of ``1 << m``. The data pin of a group is the one in its middle, rounded down.
BLOCK_RAM = f"""
module SB_RAM40_4K #(
  parameter READ_MODE = 0, parameter WRITE_MODE = 0,
  parameter [255:0] {", ".join(f"{name} = 0" for name in CONTENTS)}
) (
  input [10:0] WADDR, input [10:0] RADDR, input [15:0] MASK, input [15:0] WDATA,
  output reg [15:0] RDATA,
  input WE, input WCLKE, input WCLK, input RE, input RCLKE, input RCLK
);
  localparam [4095:0] CONTENTS = {{{", ".join(reversed(CONTENTS))}}};
  localparam integer READ_GROUP = 1 << READ_MODE, WRITE_GROUP = 1 << WRITE_MODE;
  reg [15:0] rows [0:255];
  integer row, from, to;
  initial begin
    for (row = 0; row < 256; row = row + 1) rows[row] = CONTENTS[16 * row +: 16];
    RDATA = 0;
  end
  wire [3:0] chosen_from = {{1'b0, RADDR[10:8]}} & (READ_GROUP - 1);
  wire [3:0] chosen_to = {{1'b0, WADDR[10:8]}} & (WRITE_GROUP - 1);
  always @(posedge RCLK) if (RE & RCLKE)
    for (from = 0; from < 16; from = from + READ_GROUP)
      RDATA[from + (READ_GROUP - 1) / 2] <= rows[RADDR[7:0]][from + chosen_from];
  always @(posedge WCLK) if (WE & WCLKE)
    for (to = 0; to < 16; to = to + WRITE_GROUP)
      if (WRITE_MODE != 0 || !MASK[to])
        rows[WADDR[7:0]][to + chosen_to] <= WDATA[to + (WRITE_GROUP - 1) / 2];
endmodule
"""


def unpacked_verilog(bitstream, constraints, folder):
    """Return the module ``unpacked`` with the logic of a bitstream, and what it is made of.

    Parameters
    ----------
    bitstream, constraints : Path
        The bitstream (``.bin``), and the names of its pins (``.pcf``), which are the ports.
    folder : Path
        Where files of the programs are written.

    Raises
    ------
    ToolError
        If a program is missing or fails.
    """
    program = shutil.which(TO_VERILOG)
    if program is None:
        raise ToolError(
            f"{TO_VERILOG} is not installed, which turns a bitstream of an iCE40 into Verilog; it "
            "is in the package fpga-icestorm of Debian and Ubuntu: apt-get install fpga-icestorm"
        )
    shutil.copy(bitstream, folder / "unpacked.bin")
    run_tool(
        [find_tool("yowasp-iceunpack"), "unpacked.bin", "unpacked.asc"],
        folder=folder, log="iceunpack.log", step="iceunpack", deadline=DEADLINE,
    )  # fmt: skip
    run_tool(
        [program, "-s", "-n", NAME, "-p", str(constraints.resolve()), "unpacked.asc"],
        folder=folder, log="unpacked.v", step=TO_VERILOG, deadline=DEADLINE,
    )  # fmt: skip
    logic = (folder / "unpacked.v").read_text(encoding="utf-8")
    return re.sub(rf"module {NAME} \((.*)\);", separate_ports, logic, count=1) + BLOCK_RAM


def separate_ports(header):
    """Return the header of a module, with declarations of its ports after it.

    The program declares some ports once more as wires, which Verilog allows in this form only.
    """
    ports = header[1].split(", ")
    names = ", ".join(port.split()[1] for port in ports)
    return "\n".join([f"module {NAME} ({names});", *(f"{port};" for port in ports)])
