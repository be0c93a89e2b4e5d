# SPDX-License-Identifier: Apache-2.0
"""Read the bitstream of a Gowin device back into logic, as Verilog that is simulated at the pins.

apycula knows which fuse sets which switch and which bit of a table. What these make of a design is
found here again: from the fuses alone, without the netlist, the placement or the routing that they
were made from. So synthesis, placement, routing and the writer of the bitstream are all inside what
a simulation of the result tests.

Models of the primitives are those of Gowin's guides UG288 (logic) and UG285 (block RAMs).
"""

from collections import deque
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
import re

__all__ = ["Bitstream", "UnknownFuses", "expression"]

HIGH, LOW = "1'b1", "1'b0"
#: Wires that are constant.
CONSTANTS = {"VCC": HIGH, "VSS": LOW}
#: Registers: the value that they are set to, at power-on too, and how.
REGISTERS = {
    "DFF": (0, None), "DFFR": (0, "synchronous"), "DFFS": (1, "synchronous"),
    "DFFC": (0, "asynchronous"), "DFFP": (1, "asynchronous"),
}  # fmt: skip
#: Settings of a block RAM that the model knows: a row that is written appears at the port that
#: writes it, no registers behind the outputs, chosen by zeros, and both ports of one width.
BLOCK_RAM = {
    "MODE": "ENABLE", "GSR": "DISABLE", "OUTREG_ASYNC": "RESET",
    **{f"DP{port}_MODE": "WT" for port in "AB"},
    **{f"CS{port}_{bit}": "SET" for port in "AB" for bit in range(3)},
}  # fmt: skip
#: Bits of a row by the name of the width. The lowest bits of an address choose bits of a row, or
#: bytes to write.
WIDTHS = {"9": 9, "16": 18}
#: Inputs of a block RAM's port, with their bits; the last letter of a name is that of the port.
BLOCK_RAM_PORT = {"CE": 1, "WRE": 1, "AD": 14, "DI": 18, "BLKSEL": 3}


class UnknownFuses(ValueError):
    """The bitstream sets something that the models of :mod:`sim.board.unpacked` do not have."""


@dataclass(frozen=True)
class Cell:
    """A primitive by one of its outputs.

    Parameters
    ----------
    kind : str
        ``"table"``, ``"sum"``, ``"carry"``, ``"multiplexer"``, ``"row"`` or ``"register"``.
    setting : object
        Table of 16 bits, kind of a register, or the small memory and its bit.
    inputs : tuple of str
        Wires.
    """

    kind: str
    setting: object
    inputs: tuple


def expression(table, inputs):
    """Return the Verilog of a look-up table.

    Parameters
    ----------
    table : int
        Bit ``i`` is the output for inputs whose bits are those of ``i``, the first input lowest.
    inputs : list of str
        Names or constants.
    """
    bits = [table >> n & 1 for n in range(1 << len(inputs))]
    return _of_bits(bits, list(inputs))


def _of_bits(bits, inputs):
    if len(set(bits)) == 1:
        return HIGH if bits[0] else LOW
    *others, last = inputs
    low, high = bits[: len(bits) // 2], bits[len(bits) // 2 :]
    if last == LOW:
        return _of_bits(low, others)
    if last == HIGH:
        return _of_bits(high, others)
    zero, one = _of_bits(low, others), _of_bits(high, others)
    if zero == one:
        return zero
    if (zero, one) == (LOW, HIGH):
        return last
    if (zero, one) == (HIGH, LOW):
        return f"~{last}"
    return f"({last} ? {one} : {zero})"


class Bitstream:
    """The logic of a bitstream.

    Parameters
    ----------
    path : path-like
        Text of the bitstream, as ``gowin_pack`` writes it (``.fs``).
    series : str
        Device by apycula's name, such as ``"GW1N-9C"``.
    part : str
        Part number, which decides the package.

    Attributes
    ----------
    cells : dict of str to Cell
        By the wire of their output.
    memories : dict of str to list of int
        Contents of small memories at power-on: four tables of 16 bits each.
    block_rams : dict of str to dict
        Wires of block RAMs, by the names of their pins.
    widths : dict of str to int
        Bits of a row of block RAMs.
    pads : dict of (int, int, str) to dict
        Wires of inputs and outputs.

    Raises
    ------
    ImportError
        If apycula is not installed.
    UnknownFuses
        If a primitive is used, or set, in a way that has no model.
    """

    def __init__(self, path, series, part):
        from apycula import gowin_unpack
        from apycula.bslib import read_bitstream
        from apycula.chipdb import load_chipdb, tile_bitmap

        folder = Path(find_spec("apycula").origin).parent
        self._database = database = load_chipdb(folder / f"{series}.msgpack.xz")
        gowin_unpack._device = series  # which its function for a tile reads
        package, device = database.packages[part][:2]
        self._pinout = database.pinout[device][package]
        self._tiles = tile_bitmap(database, read_bitstream(path)[0])
        self._same = self._same_wires()
        self._switches = {}
        self.cells, self.memories, self.block_rams, self.pads = {}, {}, {}, {}
        self.widths = {}
        for place, tile in self._tiles.items():
            self._read_tile(place, tile)

    def _same_wires(self):
        """Return a common name for each wire that has several."""
        from apycula.chipdb import wire2global

        database, same = self._database, {}
        self._nodes = set()
        for _, wires in database.nodes.values():
            names = sorted(f"R{row + 1}C{column + 1}_{wire}" for row, column, wire in wires)
            self._nodes.update(names)
            same.update(dict.fromkeys(names[1:], names[0]))
        for row in range(database.rows):
            for column in range(database.cols):
                here = f"R{row + 1}C{column + 1}"
                for number in "12":  # wires to the four neighbours
                    for down, right, wire, own in (
                        (0, 1, "N1", "SN"), (2, 1, "S1", "SN"), (1, 0, "W1", "EW"),
                        (1, 2, "E1", "EW"),
                    ):  # fmt: skip
                        name = wire2global(row + down, column + right, database, f"{wire}{number}1")
                        same[name] = f"{here}_{own}{number}0"
        # A column has long wires, which are driven at one of their ends and have taps in each row.
        for (half, column, index), segment in database.segments.items():
            number, trunk = index // 4, f"long_{half}_{column}_{index}"
            for row in range(segment["min_y"], segment["max_y"] + 1):
                here = f"R{row + 1}C{column + 1}"
                same[f"{here}_{('LT01', 'LT04')[number]}"] = trunk
                for tap in range(segment["min_x"], segment["max_x"] + 1):
                    same[f"R{row + 1}C{tap + 1}_LB{index}1"] = f"{here}_LBO{number}"
            for end in ("top", "bottom"):
                same[f"R{segment[f'{end}_row'] + 1}C{column + 1}_{segment[f'{end}_wire']}"] = trunk
        return same

    def _read_tile(self, place, tile):
        from apycula.chipdb import wire2global
        from apycula.gowin_unpack import parse_tile_

        (row, column), kind = place, self._database[place]
        used, switches, clocks = parse_tile_(
            self._database, row, column, tile, self._tiles, noiostd=False
        )
        here = f"R{row + 1}C{column + 1}_"
        # Switches of clocks have the same fuses for all spines. The one that reaches the tile
        # counts.
        for target, sources in kind.clock_pips.items():
            on = {bit for bits in sources.values() for bit in bits if tile[bit[0]][bit[1]]}
            for source, bits in sources.items():
                if bits == on and here + source in self._nodes:
                    clocks[target] = source
        for target, source in (switches | clocks).items():
            target, source = (
                self._name(wire2global(row + 1, column + 1, self._database, wire))
                for wire in (target, source)
            )
            if self._switches.setdefault(target, source) != source:
                raise UnknownFuses(f"Wire {target} is driven by {source} and another one")
        if "LUT0" in kind.bels:
            self._read_logic(place, tile, used)
        for name in used:
            if name.startswith("IOB"):
                pins = kind.bels[name].portmap
                self.pads[(*place, name[-1])] = {
                    pin: here + str(wire) for pin, wire in pins.items()
                }
            elif name.startswith("BSRAM") and not name.startswith("BSRAM_AUX"):
                self._read_block_ram(place, here)

    def _adds(self, place, tile, number):
        """Return whether the two tables of a slice are those of a carry chain."""
        from apycula.attrids import cls_attrids, cls_attrvals
        from apycula.gowin_unpack import parse_attrvals

        fuses = self._database.shortval[self._database[place].ttyp][f"CLS{number}"]
        meaning = self._database.rev_logicinfo("SLICE")
        found = parse_attrvals(tile, meaning, fuses, cls_attrids, "CLS")
        return found.get("MODE") == cls_attrvals["ALU"]

    def _read_logic(self, place, tile, used):
        """Read eight tables, with their multiplexers, and six registers."""
        row, column = place
        here, right = f"R{row + 1}C{column + 1}_", f"R{row + 1}C{column + 2}_"
        tables = {}
        for number in range(8):
            fuses = self._database[place].bels[f"LUT{number}"].flags
            tables[number] = 0xFFFF & ~sum(
                1 << bit for bit, of in fuses.items() if all(tile[y][x] for y, x in of)
            )
        adds = [self._adds(place, tile, number) for number in range(3)]
        memory = "RAM16" in used
        if memory:
            self.memories[here] = [tables[number] for number in range(4)]
        for number, table in tables.items():
            inputs = tuple(f"{here}{pin}{number}" for pin in "ABCD")
            output = f"{here}F{number}"
            if memory and number < 6:
                if number < 4:
                    self.cells[output] = Cell("row", (here, number), inputs)
            elif number < 6 and adds[number // 2]:
                carried = f"{here}CIN{number + 1}" if number < 5 else f"{right}CIN0"
                inputs = (*inputs, f"{here}CIN{number}")
                self.cells[output] = Cell("sum", table, inputs)
                self.cells[carried] = Cell("carry", table, inputs)
            else:
                self.cells[output] = Cell("table", table, inputs)
        for output, select, low, high in (
            *((f"OF{n}", n, f"{here}F{n}", f"{here}F{n + 1}") for n in (0, 2, 4, 6)),
            *((f"OF{n}", n, f"{here}OF{n + 1}", f"{here}OF{n - 1}") for n in (1, 5)),
            ("OF3", 3, f"{here}OF5", f"{here}OF1"), ("OF7", 7, f"{right}OF3", f"{here}OF3"),
        ):  # fmt: skip
            inputs = (low, high, f"{here}SEL{select}")
            self.cells[here + output] = Cell("multiplexer", None, inputs)
        for number in range(4 if memory else 6):
            kinds = used.get(f"DFF{number}", set()) - {"SD", "RAM"}
            if not kinds:
                continue
            (kind,) = kinds
            if kind not in REGISTERS:
                raise UnknownFuses(f"Register {here}{number} is a {kind}")
            data = "SEL" if "SD" in used[f"DFF{number}"] else "F"
            pins = (f"{data}{number}", *(f"{pin}{number // 2}" for pin in ("CE", "LSR", "CLK")))
            inputs = tuple(here + pin for pin in pins)
            self.cells[f"{here}Q{number}"] = Cell("register", kind, inputs)

    def _read_block_ram(self, place, here):
        """Read a block RAM, whose settings are in three tiles."""
        row, column = place
        places = [(row, column + n) for n in range(3)]
        found = [self._block_ram_fuses(each) for each in places]
        for width in WIDTHS:
            settings = BLOCK_RAM | {f"DP{port}_DATA_WIDTH": width for port in "AB"}
            if found == [self._block_ram_fuses(each, settings) for each in places]:
                break
        else:
            raise UnknownFuses(f"Block RAM {here} is not set in a way that has a model")
        pins = self._database[place].bels["BSRAM"].portmap
        self.block_rams[here] = {pin: self._name(here + wire) for pin, wire in pins.items()}
        self.widths[here] = WIDTHS[width]

    def _block_ram_fuses(self, place, settings=None):
        """Return the fuses of a block RAM that are set in a tile, or that settings would set."""
        from apycula.attrids import bsram_attrids, bsram_attrvals
        from apycula.chipdb import add_attr_val, get_shortval_fuses

        kind, wanted = self._database[place], set()
        if settings is None:
            tile = self._tiles.get(place)
            table = self._database.shortval[kind.ttyp]["BSRAM_DP"]
            return {
                (y, x) for fuses in table.values() for y, x in fuses
                if tile is not None and tile[y][x]
            }  # fmt: skip
        for name, word in settings.items():
            number, value = bsram_attrids[name], bsram_attrvals[word]
            add_attr_val(self._database, "BSRAM", wanted, number, value)
        return set(get_shortval_fuses(self._database, kind.ttyp, wanted, "BSRAM_DP"))

    def _name(self, wire):
        return self._same.get(wire, wire)

    def source(self, wire):
        """Return the wire that drives a wire through all switches, perhaps itself."""
        for _ in range(1000):
            wire = self._name(wire)
            if wire in self.cells or wire in CONSTANTS or wire not in self._switches:
                return wire
            wire = self._switches[wire]
        raise UnknownFuses(f"Wire {wire} drives itself through switches")

    def pad(self, pin):
        """Return the wires of the pad at a pin of the package, such as ``"52"``."""
        side, number, letter = re.fullmatch(r"IO([TBLR])(\d+)(\w)", self._pinout[pin][0]).groups()
        last, number = (self._database.rows - 1, self._database.cols - 1), int(number) - 1
        places = {
            "T": (0, number),
            "B": (last[0], number),
            "L": (number, 0),
            "R": (number, last[1]),
        }
        return self.pads[(*places[side], letter)]

    def verilog(self, inputs, outputs, *, name, clock="clk"):
        """Return the logic as a module.

        Everything that an output can depend on is in it.

        Parameters
        ----------
        inputs, outputs : dict of str to str
            Ports, with their pins of the package. ``clock`` is an input.
        name : str
            Name of the module, which has an input ``rst`` without effect: a device begins with the
            values of its bitstream.

        Raises
        ------
        UnknownFuses
            If a wire is driven by nothing, if logic depends on itself, or if a register has a clock
            of its own.
        """
        return _Writer(self, inputs, outputs, clock).text(name)


class _Writer:
    """Writes the logic of a bitstream that outputs depend on."""

    def __init__(self, bitstream, inputs, outputs, clock):
        self.logic, self.outputs = bitstream, outputs
        self.ports = {bitstream.source(bitstream.pad(pin)["O"]): p for p, pin in inputs.items()}
        self.clock, self.inputs = clock, inputs
        self.rows = {  # outputs of block RAMs
            wire: (here, pin)
            for here, pins in bitstream.block_rams.items()
            for pin, wire in pins.items()
            if re.match(r"DO[AB]\d", pin)
        }
        self.names = {}
        self.state, self.steps, self.after = [], [], []
        self.memories, self.block_rams = set(), set()
        self.waiting = deque()

    def name(self, wire):
        """Return the Verilog of a wire, after what computes it has been written."""
        source = self.logic.source(wire)
        if source in CONSTANTS:
            return CONSTANTS[source]
        if source in self.ports:
            return self.ports[source]
        if source not in self.names:
            self.compute(source)
        return self.names[source]

    def compute(self, wire):
        """Write what computes a wire, after all that it depends on in the same cycle."""
        # Depth first without recursion: chains of logic are longer than Python's stack.
        path = [(wire, iter(self.needs(wire)))]
        open_ = {wire}
        while path:
            wire, needs = path[-1]
            for need in needs:
                need = self.logic.source(need)
                if need in self.names or need in self.ports or need in CONSTANTS:
                    continue
                if need in open_:
                    raise UnknownFuses(f"Logic at {need} depends on itself")
                open_.add(need)
                path.append((need, iter(self.needs(need))))
                break
            else:
                path.pop()
                open_.discard(wire)
                self.write(wire)

    def needs(self, wire):
        """Return the wires that decide a wire in the same cycle."""
        if wire in self.rows:
            return ()
        cell = self.logic.cells.get(wire)
        if cell is None:
            if re.search(r"_CIN0$", wire):
                return ()  # the first of a chain: nothing is carried in
            raise UnknownFuses(f"Nothing drives {wire}")
        return () if cell.kind == "register" else self.counting(cell)

    def counting(self, cell):
        """Return the inputs that can change the output of a cell; others may be anything."""
        if cell.kind in ("row", "multiplexer"):
            return cell.inputs
        constant = [CONSTANTS.get(self.logic.source(wire)) for wire in cell.inputs[:4]]
        pins = [value or f"<{n}>" for n, value in enumerate(constant)]
        added = expression(cell.setting, pins)
        if cell.kind == "table":
            text = added
        elif cell.kind == "sum" or added == HIGH:
            text = f"{added}<4>"
        else:
            carried = expression(cell.setting & 15, pins[:2])
            text = carried if added == LOW else f"{added}<4>{carried}"
        return [wire for n, wire in enumerate(cell.inputs) if f"<{n}>" in text]

    def write(self, wire):
        """Write one wire, everything that it depends on being written."""
        if wire in self.rows:
            self.block_ram(self.rows[wire][0])
            return
        cell = self.logic.cells.get(wire)
        if cell is None:
            self.names[wire] = LOW
            return
        name = self.names[wire] = f"w{len(self.names)}"
        if cell.kind == "register":
            self.state.append(f"reg {name} = 1'b{REGISTERS[cell.setting][0]};")
            self.waiting.append(lambda: self.register(name, cell))
            return
        self.state.append(f"wire {name};")
        counting = self.counting(cell)
        inputs = [self.name(each) if each in counting else self.tied(each) for each in cell.inputs]
        if cell.kind == "row":
            here, bit = cell.setting
            self.memory(here)
            address = ", ".join(reversed(inputs))
            text = f"{here}{bit}[{{{address}}}]"
        elif cell.kind == "multiplexer":
            low, high, select = inputs
            text = f"{select} ? {high} : {low}"
        else:
            # A table adds with its upper half, and carries with its lowest quarter (UG288).
            text = expression(cell.setting, inputs[:4])
            if cell.kind == "sum":
                text = f"{text} ^ {inputs[4]}"
            elif cell.kind == "carry":
                carried = expression(cell.setting & 15, inputs[:2])
                text = carried if text == LOW else f"{text} ? {inputs[4]} : {carried}"
        self.steps.append(f"assign {name} = {text};")

    def tied(self, wire):
        """Return the Verilog of an input that does not count: its constant, or any."""
        return CONSTANTS.get(self.logic.source(wire), LOW)

    def clocked(self, wire):
        if self.name(wire) != self.clock:
            raise UnknownFuses(f"Wire {wire} is a clock and is not {self.clock!r}")

    def register(self, name, cell):
        data, enable, reset, clock = cell.inputs
        value, kind = REGISTERS[cell.setting]
        self.clocked(clock)
        text, enabled = self.name(data), self.name(enable)
        if enabled != HIGH:
            text = f"{enabled} ? {text} : {name}"
        if kind == "asynchronous":
            raise UnknownFuses(f"Register {name} has an asynchronous reset")
        if kind is not None and self.name(reset) != LOW:
            text = f"{self.name(reset)} ? 1'b{value} : {text}"
        self.after.append(f"{name} <= {text};")

    def memory(self, here):
        """Write the clock's side of a small memory: four tables that are written together."""
        if here in self.memories:
            return
        self.memories.add(here)
        for bit, table in enumerate(self.logic.memories[here]):
            self.state.append(f"reg [15:0] {here}{bit} = 16'h{table:04x};")

        def writing():
            self.clocked(f"{here}CLK2")
            address = ", ".join(self.name(f"{here}{pin}4") for pin in "DCBA")
            enable = self.name(f"{here}LSR2")
            for bit, pin in enumerate("ABCD"):
                data = self.name(f"{here}{pin}5")
                self.after.append(f"if ({enable}) {here}{bit}[{{{address}}}] <= {data};")

        self.waiting.append(writing)

    def block_ram(self, here):
        """Write a block RAM; its outputs are state."""
        pins = self.logic.block_rams[here]
        for wire, (place, pin) in self.rows.items():
            if place == here and wire not in self.names:
                self.names[wire] = f"{here}{pin[2]}[{pin[3:]}]"
        if here in self.block_rams:
            return
        self.block_rams.add(here)
        width = self.logic.widths[here]
        lowest = 4 if width == 18 else 3
        bytes_ = {"0": "8:0", "1": "17:9"} if width == 18 else {None: "8:0"}
        self.state.append(f"reg [{width - 1}:0] {here}rows [0:{(1 << 14 - lowest) - 1}];")
        self.state += [f"reg [17:0] {here}{port};" for port in "AB"]

        def ports():
            """Both ports read before either writes: the other port's row is the one of before."""
            reads, writes = [], []
            for port in "AB":
                self.clocked(pins[f"CLK{port}"])
                if self.name(pins[f"RESET{port}"]) != LOW:
                    raise UnknownFuses(f"Block RAM {here} has a reset")
                got = {}
                for pin, bits in BLOCK_RAM_PORT.items():
                    wires = [f"{pin}{port}"] if bits == 1 else [
                        f"{pin}{port}{bit}" for bit in reversed(range(bits))
                    ]  # fmt: skip
                    text = ", ".join(self.name(pins[each]) for each in wires)
                    got[pin] = f"{here}{pin}{port}"
                    self.state.append(f"wire {f'[{bits - 1}:0] ' * (bits > 1)}{got[pin]};")
                    self.steps.append(f"assign {got[pin]} = {{{text}}};")
                row = f"{here}rows[{got['AD']}[13:{lowest}]]"
                chosen = f"{got['CE']} & ({got['BLKSEL']} == 3'd0)"
                reads.append(f"if ({chosen}) {here}{port} <= {got['WRE']} ? {got['DI']} : {row};")
                for half, bits in bytes_.items():
                    enabled = "" if half is None else f" & {got['AD']}[{half}]"
                    writes.append(
                        f"if ({chosen} & {got['WRE']}{enabled}) "
                        f"{row}[{bits}] <= {got['DI']}[{bits}];"
                    )
            self.after += reads + writes

        self.waiting.append(ports)

    def text(self, name):
        """Return the module."""
        levels = {}
        for port, pin in self.outputs.items():
            wires = self.logic.pad(pin)
            if self.name(wires["OE"]) != LOW:
                raise UnknownFuses(f"Output {port} can be switched off")
            levels[port] = self.name(wires["I"])
        while self.waiting:
            self.waiting.popleft()()
        ports = [*(f"input {port}" for port in (*self.inputs, "rst")),
                 *(f"output {port}" for port in self.outputs)]  # fmt: skip
        return "\n".join([
            f"module {name} ({', '.join(ports)});",
            *(f"  {text}" for text in self.state),
            *(f"  {text}" for text in self.steps),
            *(f"  assign {port} = {level};" for port, level in levels.items()),
            f"  always @(posedge {self.clock}) begin",
            *(f"    {text}" for text in self.after),
            "  end",
            "endmodule",
            "",
        ])  # fmt: skip
