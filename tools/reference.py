# SPDX-License-Identifier: Apache-2.0
"""The pages and tables of the documentation that code knows: ``make reference`` writes them.

A page is written whole; a table in a page stands between two comments, ``<!-- generated: NAME -->``
and ``<!-- end -->``.
"""

from argparse import SUPPRESS, _HelpAction, _SubParsersAction
import ast
from dataclasses import asdict
from itertools import groupby
import json
from pathlib import Path
import re

from bench.__main__ import parser as bench_parser
from bench.spark.__main__ import parser as bench_spark_parser
from formal.__main__ import parser as formal_parser
from hdl.__main__ import parser as hdl_parser
from hdl.__main__ import summary
from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.boards.table import BOARDS
from hdl.families.family import input_names
from hdl.manifest import describe
from hdl.options import OPTIONS
from hdl.packaging.headers import PackageNames, word_fields
from hdl.packaging.integrations import package_page
from hdl.packaging.integrations import table as table_lines
from hdl.packaging.one_file import packaged_component, packaged_ports
from hdl.parameters import JoinParameters
from hdl.presets import PRESETS
from hdl.registers.documents import bits_of, markdown
from hdl.registers.table import shell_table
from hdl.shells.axi import AxiOptions
from host import Manifest
from host.__main__ import parser as host_parser
from host.installation import PRESETS as DEFAULTS
from host.protocol.cost_model import Circuit
from host.protocol.modelled import Link, ModelledDevice
from sim.__main__ import parser as sim_parser
from spark_offload.__main__ import parser as spark_parser

__all__ = ["commands_of", "example_of", "groups_of", "main", "parsers", "written"]

DOCS = Path(__file__).resolve().parent.parent / "docs"
#: Beside the module that reads it.
DEVICES = DOCS.parent / "host" / "protocol" / "devices.json"
#: The configuration whose ports, words and registers the pages show.
SHOWN = PRESETS["tiny"]
#: What the registers of all counters have in common.
COUNTERS = "counters"

ABOUT_COMMANDS = (
    "An installed kit says `splitjoin host`, `splitjoin spark`, `splitjoin hdl` and `splitjoin "
    "sim` in place of `python -m host`, `python -m spark_offload`, `python -m hdl` and `python -m "
    "sim`; the others need a checkout. This page is generated from the parsers."
)
ABOUT_PRESETS = (
    "Named configurations: `python -m hdl generate --preset NAME`. Options change parameters of a "
    "preset ([all options](commands.md#options-of-an-accelerator)). This page is generated."
)
ABOUT_AREA = (
    "From the [routing reports](../routing/index.md), which have the slowest paths, the rates and "
    "the commands; `python -m hdl reports` marks those of an earlier design."
)
ABOUT_MANIFEST = (
    "What `python -m hdl generate --preset tiny` writes into `manifest.json`; [the guide]"
    "(../architecture.md#4-manifest-manifestjson) explains it. This page is generated."
)
ABOUT_SHELL = (
    "What `python -m hdl package --preset tiny --shell axi` writes beside the Verilog, in two "
    "files; [the guide](../axi.md) explains it. This page is generated, and so is that of your own "
    "configuration."
)


def parsers():
    """Return the parsers of the kit's commands; each has subcommands, or is a command itself."""
    users = host_parser, spark_parser, hdl_parser, sim_parser
    return [each() for each in (*users, bench_parser, bench_spark_parser, formal_parser)]


def commands_of(parser):
    """Yield the parsers of all commands below ``parser``: of itself, if it has none."""
    below = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for command in action.choices.values():
            yield from commands_of(command)


def example_of(command):
    """Return the example in the help of a command, as it is typed."""
    shown = (command.epilog or "").partition("example:\n  ")[2]
    return shown % {"prog": command.prog}


def groups_of(command):
    """Return the options that the help of a command shows, by the title of their group."""
    return {
        group.title: shown
        for group in command._action_groups
        if (
            shown := [
                action
                for action in group._group_actions
                if action.help is not SUPPRESS and not isinstance(action, _HelpAction)
            ]
        )
    }


def table(heads, rows):
    """Return a table as text."""
    rows = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    return "\n".join(table_lines(heads, rows))


def prose(text):
    """Return a text of a help as Markdown: options as code, nothing else with a meaning."""
    text = re.sub(r"([\\*<])", r"\\\1", text)
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*[a-z])", r"`\1`", text)


def option_rows(command, actions):
    """Return the rows of a table of options: how each is written, and what it means."""
    formatter = command._get_formatter()
    for action in actions:
        meaning = formatter._expand_help(action) if action.help else ""
        yield f"`{formatter._format_action_invocation(action)}`", prose(meaning)


def options_table(command, actions):
    """Return a table of options."""
    return table(["option", "meaning"], option_rows(command, actions))


def command_section(command, purpose):
    """Return the section of a command."""
    parts = [f"### `{command.prog}`", prose(command.description or f"{purpose}.".capitalize())]
    parts.append(f"```console\n$ {example_of(command)}\n```")
    groups = groups_of(command)
    for title, actions in groups.items():
        if title in OPTIONS:
            continue
        if title not in ("positional arguments", "options"):
            parts.append(f"*{title[0].upper()}{title[1:]}*")
        parts.append(options_table(command, actions))
    if set(OPTIONS) <= set(groups):
        parts.append("Besides, the [options of an accelerator](#options-of-an-accelerator).")
    return parts


def commands_page():
    """Return the page of the command lines."""
    parts = [
        "# Command lines",
        ABOUT_COMMANDS,
    ]
    for parser in parsers():
        commands = list(commands_of(parser))
        if commands == [parser]:
            parts += command_section(parser, "")
            continue
        parts += [f"## `{parser.prog}`", prose(parser.description or "")]
        (below,) = (one for one in parser._actions if isinstance(one, _SubParsersAction))
        purposes = {choice.dest: choice.help for choice in below._choices_actions}
        for command in commands:
            parts += command_section(command, purposes[command.prog.split()[-1]])
    parts.append("## Options of an accelerator")
    (package,) = (
        command for command in commands_of(hdl_parser()) if command.prog.endswith("hdl package")
    )
    groups = groups_of(package)
    for title in OPTIONS:
        parts += [f"*{title[0].upper()}{title[1:]}*", options_table(package, groups[title])]
    return "\n\n".join(parts) + "\n"


def routed():
    """Return the routing reports by the names of their files."""
    reports = sorted((DOCS / "routing").glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in reports}


def area_rows():
    """Yield the rows of the table of area and clock."""
    for name, report in routed().items():
        used = report["utilization"]
        shares = (
            f"{used[kind]['used']:,} ({used[kind]['share']:.0%})"
            for kind in ("lut4", "registers", "block_rams")
        )
        clocks = ", ".join(f"{run['fmax_mhz']:.1f}" for run in report["runs"])
        device, grade = report["device"], f"grade{report['speed']}"
        design = name.removesuffix(f"-{device}-{grade}")
        yield f"[{design}](../routing/{name}.md)", f"{device}, {grade}", *shares, clocks


def presets_page():
    """Return the page of the presets: parameters, area and clock."""
    rows = [(f"`{name}`", summary(each)) for name, each in (PRESETS | AGGREGATE_PRESETS).items()]
    heads = ["design", "device", "LUTs", "registers", "block RAMs", "clock of each seed, MHz"]
    parts = [
        "# Presets",
        ABOUT_PRESETS,
        "## Parameters",
        table(["preset", "accelerator"], rows),
        "## Area and clock",
        ABOUT_AREA,
        table(heads, area_rows()),
    ]
    return "\n\n".join(parts) + "\n"


#: Links that rows come by.
ETHERNET = Link(
    "gigabit Ethernet", 1.15e8, 200.0, "line rate less the headers of frames; round trip assumed"
)
DMA = Link("AXI DMA", 2e9, 20.0, "assumed: a port of 128 bits, half used")
PCIE = Link("PCIe 3.0 x16", 1e10, 30.0, "assumed: what DMA cores of this kind are said to reach")
#: Devices that the estimates are made for: name, preset, link; and the clock, and by how much the
#: capacity is that of the preset, where no open tool can route it.
MODELLED = (
    ("ECP5-85F, scan", "ecp5-band", ETHERNET, None, 1),
    ("ECP5-85F, digests", "ecp5-band-digest", ETHERNET, None, 1),
    ("ECP5-85F, index", "ecp5-default", ETHERNET, None, 1),
    ("Kria KV260, index", "demo-index", DMA, 200.0, 1),
    ("Alveo U55C, index", "demo-index", PCIE, 300.0, 8),
)


def modelled():
    """Return what estimates know of devices: terms of the cost model, the clock, and the link."""
    found = []
    for name, preset, link, assumed, times in MODELLED:
        mhz, clock = assumed, "assumed: no open tool routes this device"
        if assumed is None:
            report = routed()[f"{preset}-lfe5u-85f-grade8"]
            mhz = report["fmax_mhz"]
            clock = f"routed for an {report['device'].upper()}, commit {report['commit']}"
        manifest = Manifest.from_dict(describe(PRESETS[preset], "", verilog_file=""))
        words = (-(-word.bits // 8) for word in (manifest.input_word, manifest.result_word))
        device = ModelledDevice(
            name, preset, clock, mhz, times * manifest.capacity, *words, link, Circuit.of(manifest)
        )
        found.append(asdict(device))
    return json.dumps(found, indent=1) + "\n"


def shell_page():
    """Return the page of an AXI shell: ports, words and registers of :data:`SHOWN`."""
    manifest = describe(SHOWN, "", verilog_file="splitjoin.v") | {"hash": "", "kit": ""}
    shell = packaged_component(SHOWN, "axi", "0" * 64, AxiOptions())
    ports = packaged_ports(shell, "axi")
    tables = package_page(manifest, PackageNames(), "axi", ports, AxiOptions())
    registers = markdown(shell_table(SHOWN), title="Registers")
    return (
        f"# Ports, words and registers of `tiny`\n\n{ABOUT_SHELL}\n\n"
        f"## {tables.partition('## ')[2]}\n#{registers}"
    )


def input_fields():
    """Return the table of the fields of an input word."""
    return fields("input_word")


def result_fields():
    """Return the table of the fields of a result word."""
    return fields("result_word")


def manifest_page():
    """Return the page of a manifest."""
    shown = describe(SHOWN, "", verilog_file="splitjoin.v") | {"hash": "SHA-256, see the guide"}
    shown["tools"] = dict.fromkeys(shown["tools"], "version")
    counters = shown["counters"]
    shown["counters"] = [*counters[:2], f"and {len(counters) - 2} more"]
    text = json.dumps(shown, indent=1, ensure_ascii=False)
    flat = re.sub(r"\{[^{}]*\}", lambda each: " ".join(each[0].split()), text)
    return f"# The manifest of `tiny`\n\n{ABOUT_MANIFEST}\n\n```json\n{flat}\n```\n"


def folders():
    """Return what every folder of the packages holds, in its own words."""
    tables = []
    for package in ("hdl", "host", "spark_offload"):
        rows = []
        for path in sorted((DOCS.parent / package).glob("*/__init__.py")):
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            rows.append((f"`{path.parent.name}/`", " ".join(said.split("\n\n")[0].split())))
        tables.append(table([f"in `{package}/`", "what it holds"], rows))
    return "\n\n".join(tables)


def fields(word):
    """Return the table of the fields of a word of :data:`SHOWN`."""
    manifest = describe(SHOWN, "", verilog_file="splitjoin.v")
    values = {
        "kind": manifest["input_kinds" if word == "input_word" else "result_kinds"],
        "control.op": manifest["operations"],
    }
    rows = []
    for field in word_fields(manifest[word]):
        names = ", ".join(f"{n} {name}" for name, n in values.get(field.name, {}).items())
        meaning = field.meaning + ", signed" * field.signed + f": {names}" * bool(names)
        rows.append((f"`{field.name}`", field.span, meaning))
    return table(["field", "bits", "meaning"], rows)


def address_map():
    """Return the table of the registers of all shells; those with a number are one row."""
    of_two = shell_table(SHOWN.with_(cores=512, clock_requests=True), merged=("R", "S"))
    of_many = shell_table(SHOWN, merged=input_names(64))
    of_memory = shell_table(JoinParameters.of(cores=1, store="external", lanes=16))
    tables = (of_memory, of_many, of_two)
    known = {register.name: register for each in tables for register in each.registers}
    registers = sorted(known.values(), key=lambda register: register.address)
    rows = []
    for kind, run in groupby(registers, key=kind_of_register):
        first, *others = run
        address, name, meaning = f"0x{first.address:03X}", first.name, first.description.rstrip(".")
        if kind == COUNTERS:
            meaning = "counters, the lower and the upper half of each, in the order of the manifest"
        if others:
            address += f" to 0x{others[-1].address:03X}"
            name += f" to {others[-1].name}"
            meaning += "; and so on" * (kind != COUNTERS)
        elif len(first.fields) > 1:
            meaning += ": " + ", ".join(f"{one.name} ({bits_of(one)})" for one in first.fields)
        rows.append((address, name, meaning))
    return table(["address", "register", "meaning (fields and their bits)"], rows)


def kind_of_register(register):
    """Return what registers of one row have in common: their name, or that they are counters."""
    return COUNTERS if register.stored else re.sub(r"(\d+|LO|HI)$", "", register.name)


def boards():
    """Return the table of the boards, with the clocks of their bitstreams."""
    rows = []
    for board in BOARDS.values():
        page = (DOCS / "boards" / f"{board.name}.md").read_text(encoding="utf-8")
        clock = re.search(r"routed for ([\d.]+) MHz", page)[1]
        preset = f"`{board.preset}`: {summary(PRESETS[board.preset])}"
        routed_for = f"{board.mhz:g} MHz, [{clock}](boards/{board.name}.md)"
        line = board.line.partition(" of ")[0]
        rows.append((f"`{board.name}`", board.title, preset, routed_for, line))
    return table(["board", "device", "preset", "clock, routed (report)", "line"], rows)


def defaults():
    """Return the table of the bundles that ``sim:`` stands for."""
    rows = [
        (engine, f"`{name}`", summary(PRESETS[name]),
         f"{PRESETS[name].cores * PRESETS[name].window.sub_window:,}")
        for engine, name in sorted(DEFAULTS.items())
    ]  # fmt: skip
    return table(["engine", "preset", "accelerator", "tuples a side"], rows)


#: Pages that are written whole, and tables in pages, by the names that their comments have.
PAGES = {
    "commands": commands_page,
    "presets": presets_page,
    "axi": shell_page,
    "manifest": manifest_page,
}
TABLES = {
    "architecture.md": (folders,),
    "axi.md": (input_fields, result_fields, address_map),
    "boards.md": (boards,),
    "choosing-a-bundle.md": (defaults,),
}


def written():
    """Return the texts of all pages that are generated, or have a generated table, by path."""
    texts = {DOCS / "reference" / f"{name}.md": page() for name, page in PAGES.items()}
    texts[DEVICES] = modelled()
    for name, tables in TABLES.items():
        path = DOCS / name
        text = path.read_text(encoding="utf-8")
        for each in tables:
            begin, end = f"<!-- generated: {each.__name__} -->\n", "\n<!-- end -->"
            head, found, rest = text.partition(begin)
            _, ended, tail = rest.partition(end)
            if not (found and ended):
                raise ValueError(f"Page {name} has no place for {each.__name__}: {begin.strip()}")
            text = f"{head}{begin}\n{each()}\n{end}{tail}"
        texts[path] = text
    return texts


def main():
    """Write all of them; print those that have changed."""
    for path, text in written().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
