# SPDX-License-Identifier: Apache-2.0
"""The test bench of a package: a self-checking bench in SystemVerilog to begin with."""

from pathlib import Path
import re

from hdl.memory.axi4 import memory_members

from .headers import input_streams, result_streams, word_fields

__all__ = ["bench_text", "check_bench"]

TEMPLATE = Path(__file__).with_name("bench.sv")
#: Most tuples of each side that the bench sends. The deadline in cycles allows each of them a pass
#: over the whole window, and as much again for results that wait.
MOST_TUPLES = 24
#: The same with two inputs: the merge keeps as many words of one while it waits for the other.
MOST_TUPLES_MERGED = 12
#: Up to so many tuples, a field of the key has two values, so that some keys agree; else four.
FEW_TUPLES = 8

#: Comparators for which the bench knows which pairs match: those in which keys can be equal.
COMPARATORS = ("band", "equality")

#: Tasks that read registers through AXI4-Lite.
READ = """\
  // ---- registers

  task automatic read(input logic [31:0] address, output logic [31:0] value);
    @(negedge clk);
    s_axi_araddr = address[11:0];
    s_axi_arvalid = 1;
    do @(posedge clk); while (!s_axi_arready);
    @(negedge clk);
    s_axi_arvalid = 0;
    s_axi_rready = 1;
    do @(posedge clk); while (!s_axi_rvalid);
    value = s_axi_rdata;
    @(negedge clk);
    s_axi_rready = 0;
  endtask

  task automatic expect_register(logic [31:0] address, logic [31:0] value);
    logic [31:0] found;
    read(address, found);
    if (found != value)
      $fatal(1, "Register 0x%03h is 0x%08h instead of 0x%08h", address, found, value);
  endtask

"""
FIRST = """\
    for (int unsigned n = 0; n < 8; n++)
      expect_register(REG_MANIFEST_HASH_0 + 4 * n, MANIFEST_HASH[32*n +: 32]);
"""
LAST = "    expect_register(REG_ERRORS, 0);"
#: The time of a tuple: it rises with each of them, as far as the timestamp can show it.
NOW = """\
      automatic int unsigned now = number[0] + number[1];
      if (now > {latest}) now = {latest};
"""


def check_bench(parameters):
    """Raise :exc:`ValueError` unless the bench has all that an accelerator needs to find its pairs.

    It has to know which pairs these are, and has no memory for windows that are not on the chip.
    """
    parameters.require_join(
        "A package has a test bench for joins", "write the package with --no-bench"
    )
    if parameters.is_aggregated:
        raise ValueError(
            "A package has a test bench for joins that send pairs, and this one sends the "
            "aggregates of its matches: write the package with --no-bench"
        )
    if parameters.predicate.kind not in COMPARATORS:
        raise ValueError(
            f"A package has a test bench for the comparators {', '.join(COMPARATORS)}, not for "
            f"{parameters.predicate.kind!r}: the bench cannot know which pairs a predicate of your "
            f"own finds; write the package with --no-bench"
        )
    if memory_members(parameters):
        raise ValueError(
            "A package has a test bench for store 'chip', not for 'external': the bench has no "
            "memories behind the ports m_axi_*; write the package with --no-bench"
        )


def register_signals(ports, axi):
    """Return the bench's signals for the registers, by the names of their ports."""
    clocking = (axi.pins.bus_clock, axi.pins.bus_reset)
    prefix = f"{axi.pins.registers}_"
    return {
        port["name"]: f"s_axi_{port['name'].removeprefix(prefix)}"
        for port in ports
        if port["name"].startswith(prefix) and port["name"] not in clocking
    }


def connections(ports, shell, axi):
    """Return the lines of the instance's ports.

    Parameters
    ----------
    ports : list of dict
        Name, direction and width of every port of the top module.
    shell : str or None
    axi : AxiOptions
    """
    pins = axi.pins
    wires = {"clk": "clk", "rst": "rst", pins.clock: "clk", pins.reset: "~rst",
             pins.bus_clock: "clk", pins.bus_reset: "~rst", "counter_addr": "'0"}  # fmt: skip
    letter = "t" if shell else ""
    for number, stream in enumerate(input_streams(ports)):
        wires |= {f"{stream}_tdata": "in_data", f"{stream}_payload": "in_data[INPUT_BITS-1:0]",
                  f"{stream}_tkeep": "'1", f"{stream}_tlast": "1'b0",
                  f"{stream}_{letter}valid": f"in_valid[{number}]",
                  f"{stream}_{letter}ready": f"in_ready[{number}]"}  # fmt: skip
    for number, stream in enumerate(result_streams(ports)):
        wires |= {f"{stream}_tdata": f"out_data[{number}]",
                  f"{stream}_payload": f"out_data[{number}][RESULT_BITS-1:0]"}  # fmt: skip
        for signal in ("valid", "ready"):
            wires[f"{stream}_{letter}{signal}"] = f"out_{signal}[{number}]"
    wires |= register_signals(ports, axi)
    return [f"    .{port['name']}({wires.get(port['name'], '')})" for port in ports]


def instance(ports, names, shell, axi):
    """Return the instance of the top module, with the signals that only it needs."""
    lines, registers = [], register_signals(ports, axi)
    for port in ports:
        if port["name"] in registers:
            kind, start = ("logic", " = '0") if port["direction"] == "in" else ("wire", "")
            lines.append(f"  {kind} [{port['bits'] - 1}:0] {registers[port['name']]}{start};")
    joined = ",\n".join(connections(ports, shell, axi))
    lines += [f"  {names.top(shell)} dut (", joined, "  );"]
    if shell is None:
        lines += [
            f"  assign out_data[{number}][8*RESULT_BYTES-1:RESULT_BITS] = '0;"
            for number in range(len(result_streams(ports)))
        ]
    return "\n".join(lines)


def counting(fields):
    """Return the statements that count the results of a word."""
    lines = []
    for place in ("", "TWO_"):
        names = {field.constant for field in fields}
        if f"{place}KIND" not in names:
            continue

        def bits(name, place=place):
            own = f"RESULT_{place}{name}"
            return f"out_data[port][{own}_OFFSET +: {own}_BITS]"

        flags = [name for name in ("OVERFLOW", "DISORDER", "ILLEGAL", "FAILED")
                 if f"{place}{name}" in names]  # fmt: skip
        fault = "\n            || ".join(f"{bits(name)} != 0" for name in flags)
        lines.append(f"        count(port, {bits('KIND')},\n            {fault});")
    return "\n".join(lines)


def random_tuple(parameters, keys, tuples):
    """Return the arguments of `make_tuple` behind the kind: keys that often agree, and the time.

    Parameters
    ----------
    parameters : JoinParameters
    keys : list of WordField
    tuples : int
        Number of tuples of each side.
    """
    bits = 1 if tuples <= FEW_TUPLES else 2
    values = [
        f"INPUT_{key.constant}_BITS'({min(key.bits, bits)}'($urandom))" for key in keys
    ]  # fmt: skip
    if parameters.timestamp_bits:
        values.append("INPUT_TIMESTAMP_BITS'(now)")
    return values


def input_of(merged):
    """Return the mask of the input that a tuple goes to: the first one of its side."""
    of_r = sum(name.startswith("R") for name in merged)
    return "INPUTS'(1 << side)" if of_r == 1 else f"INPUTS'(1 << (side * {of_r}))"


def bench_text(parameters, manifest, names, shell, ports, axi):
    """Return the test bench, module ``{name}_tb``.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator. Its comparator is a band or an equality.
    manifest : dict
    names : PackageNames
    shell : str or None
    ports : list of dict
        Name, direction and width of every port of the top module.
    axi : AxiOptions
        What an AXI shell looks like from outside.
    """
    check_bench(parameters)
    inputs = word_fields(manifest["input_word"])
    keys = [field for field in inputs if field.name.startswith("key.")]
    is_merged = len(input_streams(ports)) > 1
    places = [f"INPUT_{key.constant}_OFFSET +: INPUT_{key.constant}_BITS" for key in keys]
    tuples = min(MOST_TUPLES_MERGED if is_merged else MOST_TUPLES, parameters.capacity)
    latest = min(2 * tuples, (1 << parameters.timestamp_bits) - 1)
    bounds = [
        f"    send(make_control({op}, INPUT_CONTROL_INDEX_BITS'({n}), '0), '1);\n"
        for n in range(len(keys))
        for op in ("OP_BOUND_LOW", "OP_BOUND_HIGH")
        if parameters.bounded
    ]
    stars = parameters.arrangement.has_stars
    texts = {
        "name": names.name,
        "top": names.top(shell),
        "hash": manifest["hash"],
        "inputs": len(input_streams(ports)),
        "ports": len(result_streams(ports)),
        "to": input_of(axi.merged(parameters)) if is_merged else "'1",
        "tuples": tuples,
        "cycles": 10_000 + 8 * tuples * (parameters.ring_rows + 64),
        "instance": instance(ports, names, shell, axi),
        "counts": counting(word_fields(manifest["result_word"])),
        "is_pair": " && ".join(f"r[{place}] == s[{place}]" for place in places),
        "arguments": ", ".join(random_tuple(parameters, keys, tuples)),
        "now": NOW.format(latest=latest) if latest else "",
        "bounds": "".join(bounds).rstrip("\n"),
        "stars_title": " and stars" if stars else "",
        "checks": '    if (stars != 2 * TUPLES) $fatal(1, "%0d stars instead of %0d", stars, '
        "2 * TUPLES);"
        if stars
        else "",
        "registers": READ if shell else "",
        "first": FIRST if shell else "",
        "last": LAST if shell else "",
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    text = re.sub(r"@(\w+)@", lambda found: str(texts[found[1]]), text)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ ]+\n", "\n", text))
