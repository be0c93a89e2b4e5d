# SPDX-License-Identifier: Apache-2.0
"""Bits that flip in the memories of stored tuples; the circuit that is routed has none of it.

A module beside the accelerator inverts one bit of one memory in one cycle. Which memory, which bit
and which cycle is read from the environment when a device is opened, so one library serves for
every flip.
"""

from dataclasses import dataclass
import re

from hdl.verilog.conversion import ZEROED

from .injection import variables, write_changed

__all__ = ["StoredMemory", "flipping", "memories_of", "with_flips", "write_flippable"]

#: Environment variables: number of the memory, its row, the bit of the row, and the cycle.
VARIABLES = tuple(f"SPLITJOIN_FLIP_{part}" for part in ("MEMORY", "ROW", "BIT", "CYCLE"))

MODULES = re.compile(r"^module (\w+)\(.*?^endmodule", re.MULTILINE | re.DOTALL)
INSTANCES = re.compile(r"^  (\w+) (\w+) \($", re.MULTILINE)
MEMORIES = re.compile(rf"^  reg \[(\d+):0\] ({ZEROED}\w*) \[(\d+):0\];$", re.MULTILINE)


@dataclass(frozen=True)
class StoredMemory:
    """A memory of stored tuples with parity.

    Parameters
    ----------
    path : str
        Its hierarchical name below the top module.
    rows, bits : int
        Number of rows; bits of a row, with parity bits.
    """

    path: str
    rows: int
    bits: int

    @property
    def core(self):
        """Number of the core that it belongs to."""
        return int(re.match(r"core_(\d+)\.", self.path)[1])

    @property
    def side(self):
        """Side of the tuples in it, 0 for R and 1 for S: the left region stores tuples of S."""
        return int(self.path.split(".")[1] == "left")


def memories_of(verilog):
    """Return the memories with parity of a bundle's Verilog, each a :class:`StoredMemory`.

    Raises
    ------
    ValueError
        If there are none.
    """
    bodies = {match[1]: match[0] for match in MODULES.finditer(verilog)}

    def inside(module, path):
        body = bodies[module]
        own = [
            StoredMemory(f"{path}{name}", int(last) + 1, int(high) + 1)
            for high, name, last in MEMORIES.findall(body)
        ]
        for child, name in INSTANCES.findall(body):
            if child in bodies:
                own += inside(child, f"{path}{name}.")
        return own

    found = inside("splitjoin", "")
    if not found:
        raise ValueError(
            "The Verilog has no memories with parity, in which a flipped bit would be noticed;"
            " generate the bundle with --parity"
        )
    return found


def with_flips(verilog):
    """Return the Verilog of an accelerator with parity in which a bit can flip."""
    numbers = ["flip_memory", "flip_row", "flip_bit", "flip_cycle"]
    lines = [f"  integer {', '.join(numbers)};", "  reg [31:0] flip_clock = 0;", "  initial begin"]
    for number, variable in zip(numbers, VARIABLES, strict=True):
        text = rf'"std::getenv(\"{variable}\") ? ", "std::atoi(std::getenv(\"{variable}\")) : -1"'
        lines.append(f"    {number} = $c32({text});")
    lines += [
        "  end",
        "  always @(posedge clk) begin",
        "    flip_clock <= rst ? 0 : flip_clock + 1;",
        "    if (!rst && flip_clock == flip_cycle) case (flip_memory)",
    ]
    for n, memory in enumerate(memories_of(verilog)):
        bit = f"{memory.path}[flip_row][flip_bit]"
        lines.append(f"      {n}: {bit} <= ~{bit};")
    lines += ["      default: ;", "    endcase", "  end", ""]
    end = verilog.index("endmodule", verilog.index("module splitjoin("))
    return verilog[:end] + "\n".join(lines) + verilog[end:]


def flipping(number, row, bit, cycle):
    """Inject a bit flip of memory ``number`` into the devices opened within the block."""
    values = (number, row, bit, cycle)
    return variables(dict(zip(VARIABLES, map(str, values), strict=True)))


def write_flippable(bundle, folder):
    """Write a copy of a bundle in whose memories a bit can flip; return its folder.

    It has no netlist, so its library is made from the Verilog.
    """
    return write_changed(bundle, folder, lambda verilog, _: with_flips(verilog))
