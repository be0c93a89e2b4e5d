# SPDX-License-Identifier: Apache-2.0
"""From a bundle to a shared object, without any cache: see :mod:`sim.verilated.library`."""

from pathlib import Path
import re

from sim.rewriter import one_process_each

from .toolchain import run_all, workers

__all__ = ["compile_model", "compile_runtime", "recipe", "runtime_recipe"]

HARNESS = Path(__file__).with_name("harness.cpp")
#: What decides about a library besides the bundle and the tools.
SOURCES = [
    HARNESS,
    Path(__file__),
    *sorted((Path(__file__).parents[1] / "rewriter").glob("*.py")),
]

#: Everything is inlined, but for the regions; see :func:`sharing_rules`. Without `-fno-dfg`,
#: Verilator optimizes across their borders and again every region has a body of its own.
#: Statements are in order already (:mod:`sim.rewriter.schedule`); with 64 cores, Verilator takes
#: nine tenths of its time to look for another one.
VERILATOR_FLAGS = [
    "-O3", "--inline-mult", "0", "-fno-dfg", "-fno-reorder", "--x-assign", "fast", "--no-assert",
    "--no-timing", "--output-split", "0", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--quiet",
]  # fmt: skip
#: Modules with one compiled body for all of their instances.
SHARED = r"(?:paired_)?region(?:_\d+)?"
COMPILER_FLAGS = [
    "-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-pthread", "-w",
    "-fcf-protection=none", "-fno-stack-protector", "-fno-plt",
    "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0",
    "-DVM_TRACE_FST=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0",
]  # fmt: skip
#: In straight-line code of thousands of values, keeping one for later only costs registers: without
#: these, GCC loads most of them at the beginning and puts them on the stack (10 % of speed).
GCC_FLAGS = [
    "-fno-tree-pre", "-fno-gcse", "-fno-tree-fre", "-fno-code-hoisting", "-fno-tree-slp-vectorize",
]  # fmt: skip
#: Code that runs every cycle, and code that runs once.
FAST, SLOW = "-O2", "-O1"
#: Sources of Verilator's own part of a library; half of the time that it takes to build one.
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
PREFIX = "Vsplitjoin"


def macros(manifest):
    """Return what ``harness.cpp`` must know about a bundle, as compiler options."""
    values = {
        "INPUT_BITS": manifest.input_word.bits,
        "RESULT_BITS": manifest.result_word.bits,
        "KIND_OFFSET": manifest.result_word["kind"].offset,
        "KIND_BITS": manifest.result_word["kind"].bits,
        "KIND_MARK": manifest.result_kinds["MARK"],
        "BUNDLE_HASH": f'"{manifest.hash}"',
    }
    return [f"-D{name}={value}" for name, value in values.items()]


def recipe(manifest):
    """Return all texts, besides bundle and tools, that a library depends on."""
    sources = [path.read_text(encoding="utf-8") for path in SOURCES]
    return [*macros(manifest), *sources]


def simulated_text(netlist):
    """Return a netlist as the Verilog that simulates fastest.

    Raises
    ------
    UnknownNetlist
        If there is anything in the netlist that the rewriter does not know.
    """
    return one_process_each(netlist, top="splitjoin", stay=lambda name: re.fullmatch(SHARED, name))


def sharing_rules(verilog):
    """Return a Verilator configuration that makes all copies of a region one function.

    With 16 cores that simulates 1.3 times faster than if every region had code of its own (the
    processor's caches hold it) and builds in half the time. A module stays one if it is not
    inlined and its ports are public; the clock is not, for it would become many clocks.
    """
    rules = ["`verilator_config"]
    for name, ports in re.findall(rf"^module ({SHARED})\s?\((.*?)\);", verilog, re.MULTILINE):
        rules.append(f'no_inline -module "{name}"')
        names = [port for port in ports.split(", ") if not port.endswith("clk")]
        rules += [f'public_flat_rd -module "{name}" -var "{port}"' for port in names]
    return "\n".join([*rules, ""])


def clock_option(folder):
    """Return a compiler option that spares the search for edges of the clock.

    A model keeps the last value of its clock. If that is the only value by which it finds edges,
    and nothing is computed but at edges, the harness does what belongs to a rising edge at once.
    Otherwise there is no option, and no harm.
    """
    header = (folder / f"{PREFIX}___024root.h").read_text(encoding="utf-8")
    edges = set(re.findall(r"\b__Vtrigprevexpr\w*", header))
    at_inputs = "__VicoTriggered" in header
    return ["-DONE_EDGE"] if len(edges) == 1 and not at_inputs else []


def unite(folder, levels):
    """Gather Verilator's many small files in a few, which compile several times faster.

    Parameters
    ----------
    folder : Path
        Of the files.
    levels : tuple of str
        As for :func:`compile_model`.

    Returns
    -------
    list of tuple of str
        Names of the new files and their level of optimization, the largest first.
    """
    paths = sorted(folder.glob("*.cpp"), key=lambda path: -path.stat().st_size)
    slow = [path for path in paths if "__Slow" in path.name]
    fast = [[] for _ in range(workers())]
    for path in paths:
        if path not in slow:
            min(fast, key=lambda part: sum(p.stat().st_size for p in part)).append(path)
    units = [(f"fast_{n}.cpp", part, levels[0]) for n, part in enumerate(fast)]
    units.append(("slow.cpp", slow, levels[1]))
    for name, part, _ in units:
        (folder / name).write_text("".join(f'#include "{path.name}"\n' for path in part))
    return [(name, level) for name, part, level in units if part]


def flags_of(tools):
    """Return what every file is compiled with."""
    include = tools.root / "include"
    own = [] if "clang" in tools.versions()[-1] else GCC_FLAGS
    return [*COMPILER_FLAGS, *own, "-I", ".", "-I", str(include), "-I", str(include / "vltstd")]


def runtime_recipe():
    """Return all texts, besides the tools, that Verilator's own part of a library depends on."""
    return [*COMPILER_FLAGS, *GCC_FLAGS, SLOW, *RUNTIME]


def compile_runtime(tools, folder, *, what, log, heartbeat):
    """Build the part of a library that is Verilator's own, and the same for all accelerators.

    The parameters, and what is raised, are those of :func:`compile_model`.

    Returns
    -------
    Path
        An object file.
    """
    options = {"what": what, "log": log, "environment": tools.environment, "folder": folder}
    objects = [f"{name}.o" for name in RUNTIME]
    compiles = [
        [
            tools.compiler,
            *flags_of(tools),
            SLOW,
            "-c",
            str(tools.root / "include" / name),
            "-o",
            made,
        ]
        for name, made in zip(RUNTIME, objects, strict=True)
    ]
    run_all(
        compiles,
        count=workers(),
        beat=lambda done: heartbeat.beat(f"{what}: compiled {done} parts of Verilator's own"),
        **options,
    )
    link = [tools.compiler, "-r", "-nostdlib", "-o", "runtime.o"]
    run_all([link + objects], beat=lambda done: None, **options)
    return folder / "runtime.o"


def compile_model(
    tools, text, manifest, runtime, folder, *, what, log, heartbeat,
    verilator_flags=VERILATOR_FLAGS, levels=(FAST, SLOW),
):  # fmt: skip
    """Build the simulator library of one accelerator in ``folder``.

    Parameters
    ----------
    tools : Toolchain
        What to build with.
    text : str
        Verilog: the bundle's own, or :func:`simulated_text` of its netlist.
    manifest : Manifest
        Of the bundle.
    runtime : Path
        From :func:`compile_runtime`.
    folder : Path
        Empty folder for everything that is made on the way.
    what, log, heartbeat
        For messages.
    verilator_flags : list of str
        How Verilator translates the text.
    levels : tuple of str
        How the compiler optimizes what runs every cycle, and what runs once.

    Returns
    -------
    Path
        The shared object.

    Raises
    ------
    BuildError
        If a tool fails.
    """
    options = {"what": what, "log": log, "environment": tools.environment, "folder": folder}
    source, rules = folder / "simulated.v", folder / "sharing.vlt"
    source.write_text(text)
    rules.write_text(sharing_rules(text))
    command = [tools.verilator, "--cc", *verilator_flags, "--top-module", "splitjoin"]
    command += ["--prefix", PREFIX, "-Mdir", str(folder), str(rules), str(source)]
    run_all([command], beat=lambda done: heartbeat.beat(f"{what}: Verilator"), **options)

    flags = [*flags_of(tools), *macros(manifest), *clock_option(folder)]
    units = [*unite(folder, levels), (str(HARNESS), FAST)]
    compiles = [
        [tools.compiler, *flags, level, "-c", unit, "-o", f"{number}.o"]
        for number, (unit, level) in enumerate(units)
    ]
    run_all(
        compiles,
        count=workers(),
        beat=lambda done: heartbeat.beat(f"{what}: compiled {done} parts"),
        **options,
    )

    objects = [f"{number}.o" for number in range(len(units))]
    link = [tools.compiler, "-shared", "-pthread", "-Wl,-Bsymbolic", "-o", "library.so"]
    run_all([[*link, *objects, str(runtime)]], beat=lambda done: None, **options)
    return folder / "library.so"
