# SPDX-License-Identifier: Apache-2.0
"""The page of a package: ports and words of one accelerator as tables to read."""

from .one_file import parameter_texts
from .word_fields import enumerations, word_fields, words

__all__ = ["package_page"]

#: What ports mean, by the part of the name behind the name of the stream.
SIGNALS = {
    "clk": "clock",
    "rst": "reset, active high, synchronous to `clk`",
    "interrupt": "high while an enabled cause is there",
    "counter_addr": "number of the counter to read",
    "counter_data": "its value, a cycle later",
    "payload": "word",
    "tdata": "word, from bit 0 on; bits above it are zero",
    "valid": "a word is offered", "tvalid": "a word is offered",
    "ready": "a word is taken", "tready": "a word is taken",
    "tkeep": "all ones",
    "tlast": "the word is a mark",
}  # fmt: skip


def clocking(axi):
    """Return what the clocks and resets of an AXI shell mean, by their names."""
    pins, of_all = axi.pins, "all signals"
    found = {}
    if axi.has_bus_clock:
        of_all = "all signals but those of the registers"
        found = {
            pins.bus_clock: "clock of the registers",
            pins.bus_reset: f"reset, active low, synchronous to `{pins.bus_clock}`",
        }
    return found | {
        pins.clock: f"clock of {of_all}",
        pins.reset: f"reset, active low, synchronous to `{pins.clock}`",
    }


def meaning(port, axi):
    """Return what a port means."""
    name, (stream, _, signal) = port["name"], port["name"].rpartition("_")
    known = SIGNALS | clocking(axi)
    if name in known:
        return known[name]
    if stream == axi.pins.registers:
        return "AXI4-Lite, for the registers"
    if stream.startswith("m_axi_"):
        return f"AXI4, for the windows of region {stream.removeprefix('m_axi_')}"
    if stream.startswith("s_axis") and signal == "tlast":
        return "ignored"
    return SIGNALS[signal]


def table(heads, rows):
    """Return the lines of a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def package_page(manifest, names, shell, ports, axi):
    """Return Markdown: parameters, ports, layout of both words, kinds and operations.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    shell : str or None
    ports : list of dict
        Name, direction and width of every port of the top module.
    axi : AxiOptions
        What an AXI shell looks like from outside.
    """
    lines = [
        f"# {names.top(shell)}",
        "",
        f"SplitJoin accelerator, kit {manifest['kit']}, hash `{manifest['hash']}`. Generated.",
        "",
        "## Parameters",
        "",
        *table(["parameter", "value"], parameter_texts(manifest)),
        "",
        "## Ports",
        "",
        *table(
            ["port", "direction", "bits", "meaning"],
            [(f"`{port['name']}`", port["direction"], port["bits"], meaning(port, axi))
             for port in ports],
        ),
    ]  # fmt: skip
    for _, title, word in words(manifest):
        rows = [
            (f"`{field.name}`", field.span, "yes" if field.signed else "", field.meaning)
            for field in word_fields(word)
        ]
        size = f"{word['bits']} bits in {-(-word['bits'] // 8)} bytes, the lowest byte first."
        heads = ["field", "bits", "signed", "meaning"]
        lines += ["", f"## {title}", "", size, "", *table(heads, rows)]
    for _, title, values in enumerations(manifest):
        rows = [(value, f"`{name}`") for name, value in values.items()]
        lines += ["", f"## {title}", "", *table(["value", "name"], rows)]
    return "\n".join([*lines, ""])
