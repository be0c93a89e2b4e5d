# SPDX-License-Identifier: Apache-2.0
"""Compile Verilog into a shared object; :mod:`sim.verilated.library` adds the cache."""

from dataclasses import dataclass
from pathlib import Path
import re

from hdl.verilog.conversion import TOP
from host.installation import processors
from sim.rewriter import one_process_each

from .toolchain import run_all

__all__ = [
    "UNOPTIMIZED",
    "Harness",
    "accelerator_harness",
    "compile_model",
    "compile_runtime",
    "recipe",
    "runtime_recipe",
    "simulated_text",
]

#: Header of the code that runs once, which gives registers and memories their first values.
INITIAL_VALUES = Path(__file__).with_name("initial_values.h")
#: Source files that decide what a library contains, besides its harness, the Verilog and the tools.
SOURCES = [
    Path(__file__),
    Path(__file__).with_name("lockstep.py"),
    Path(__file__).with_name("clock_cycle.h"),
    INITIAL_VALUES,
    Path(__file__).with_name("memory.h"),
    *sorted((Path(__file__).parents[1] / "rewriter").glob("*.py")),
]

#: Verilator inlines every module except the regions; see :func:`sharing_rules`. Without `-fno-dfg`,
#: it also optimizes across their borders, and every region gets a body of its own again.
#: :mod:`sim.rewriter.process` has already ordered the statements: without `-fno-reorder`,
#: Verilator would spend nine tenths of its time on finding another order (with 64 cores).
VERILATOR_FLAGS = [
    "-O3", "--inline-mult", "0", "-fno-dfg", "-fno-reorder", "--x-assign", "fast", "--no-assert",
    "--no-timing", "--output-split", "0", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--quiet",
]  # fmt: skip
#: Names of the modules whose instances all share one compiled body.
SHARED = r"(?:paired_)?region(?:_\d+)?"
COMPILER_FLAGS = [
    "-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-pthread", "-w",
    "-fcf-protection=none", "-fno-stack-protector", "-fno-plt",
    "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0",
    "-DVM_TRACE_FST=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0",
]  # fmt: skip
#: Options that keep GCC from reusing earlier values in straight-line code of thousands of values.
#: Without them, GCC loads most values at the beginning and spills them to the stack, which costs
#: 10 % of the speed.
GCC_FLAGS = [
    "-fno-tree-pre", "-fno-gcse", "-fno-tree-fre", "-fno-code-hoisting", "-fno-tree-slp-vectorize",
]  # fmt: skip
#: Optimization of the code that runs every cycle, and of the code that runs once.
FAST, SLOW = "-O2", "-O1"
#: Likewise of what runs a few thousand cycles only.
UNOPTIMIZED = ("-O0", "-O0")
#: Verilator's run-time sources. Compiling them takes half of the time to build a library.
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
PREFIX = "Vsplitjoin"
#: Code of less than these bytes is compiled as one file.
UNIT_BYTES = 1_500_000


@dataclass(frozen=True)
class Harness:
    """The C interface of a library, around a Verilated model.

    Parameters
    ----------
    source : Path
        C++ file of the interface.
    top : str
        Name of the module that it is around.
    macros : dict
        Macros that the file needs, by name.
    """

    source: Path
    top: str
    macros: dict

    def options(self):
        """Return the compiler options that define the macros."""
        return [f"-D{name}={value}" for name, value in self.macros.items()]


def accelerator_harness(manifest):
    """Return the harness of a bundle's accelerator, which is told the properties of its words."""
    values = {
        "INPUT_BITS": manifest.input_word.bits,
        "RESULT_BITS": manifest.result_word.bits,
        "KIND_OFFSET": manifest.result_word["kind"].offset,
        "KIND_BITS": manifest.result_word["kind"].bits,
        "KIND_MARK": manifest.result_kinds["MARK"],
        "RESULT_PORTS": len(manifest.result_ports),
        "BUNDLE_HASH": f'"{manifest.hash}"',
    }
    if "failed" in manifest.result_word.fields:
        core = manifest.result_word["failed_core"]
        values["FAILED_OFFSET"] = manifest.result_word["failed"].offset
        values |= {"FAILED_CORE_OFFSET": core.offset, "FAILED_CORE_BITS": core.bits}
    values |= memory_macros(manifest)
    return Harness(Path(__file__).with_name("harness.cpp"), TOP, values)


def memory_macros(manifest):
    """Return the macros that describe external memories: one per region, as large as its ring."""
    memory = manifest.memory
    if memory is None:
        return {}
    ports = range(2 * manifest.storage.cores)
    return {
        "MEMORY_PORTS(X)": " ".join(f"X({port})" for port in ports),
        "MEMORY_BEAT_BYTES": memory.beat_bytes,
        "MEMORY_BYTES": f"{memory.beat_bytes * manifest.storage.ring_rows}ull",
        "MEMORY_LATENCY": memory.latency,
    }


def recipe(harness):
    """Return all texts, besides the Verilog and the tools, that a library depends on."""
    sources = [path.read_text(encoding="utf-8") for path in (harness.source, *SOURCES)]
    return [*harness.options(), harness.top, FAST, SLOW, *sources]


def simulated_text(netlist, *, top=TOP):
    """Return a netlist as the Verilog that simulates fastest.

    Parameters
    ----------
    netlist : str
        Netlist in Yosys' JSON format.
    top : str
        Name of the top module.

    Raises
    ------
    UnknownNetlist
        If the netlist contains a construct that the rewriter does not know.
    """
    return one_process_each(netlist, top=top, stay=lambda name: re.fullmatch(SHARED, name))


def sharing_rules(verilog):
    """Return a Verilator configuration that makes all copies of a region share one function.

    With 16 cores, the shared function simulates 1.3 times faster than one function per region,
    because it fits in the processor's caches, and it halves the build time. Verilator keeps a
    module whole if the module is not inlined and its ports are public. The clock port is not made
    public: every region would get a clock of its own.
    """
    rules = ["`verilator_config"]
    for name, ports in re.findall(rf"^module ({SHARED})\s?\((.*?)\);", verilog, re.MULTILINE):
        rules.append(f'no_inline -module "{name}"')
        names = [port for port in ports.split(", ") if not port.endswith("clk")]
        rules += [f'public_flat_rd -module "{name}" -var "{port}"' for port in names]
    return "\n".join([*rules, ""])


def clock_option(folder):
    """Return the compiler option that makes the harness skip the search for clock edges, if it may.

    A Verilator model finds edges by comparing signals with their last values. If the clock is the
    only signal that it compares, and nothing is computed except at edges, the harness can run the
    code for a rising edge directly. Otherwise, no option is returned, and the model finds its edges
    by itself.
    """
    header = (folder / f"{PREFIX}___024root.h").read_text(encoding="utf-8")
    edges = set(re.findall(r"\b__Vtrigprevexpr\w*", header))
    at_inputs = "__VicoTriggered" in header
    return ["-DONE_EDGE"] if len(edges) == 1 and not at_inputs else []


def unite(folder, harness, levels):
    """Gather Verilator's many small files into a few, which compile several times faster.

    Every file that is compiled reads the same headers, which takes as long as the code of a small
    accelerator. So all code is one file, with the harness, up to :data:`UNIT_BYTES`; more code is
    parted into what runs once and what runs every cycle, and the latter over the processors.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    harness : Path
        C++ file of the library's interface.
    levels : tuple of str
        Optimization of fast and slow code, as for :func:`compile_model`.

    Returns
    -------
    list of tuple of str
        Name and optimization level of each new file.
    """
    paths = sorted(folder.glob("*.cpp"), key=lambda path: -path.stat().st_size)
    slow = [path for path in paths if "__Slow" in path.name]
    often, once = [harness, *(p for p in paths if p not in slow)], [INITIAL_VALUES, *slow]
    if sum(path.stat().st_size for path in paths) < UNIT_BYTES:
        units = [("all.cpp", [*often, *once], levels[0])]
    else:
        fast = [[] for _ in range(processors())]
        for path in often:
            min(fast, key=lambda part: sum(p.stat().st_size for p in part)).append(path)
        units = [(f"fast_{n}.cpp", part, levels[0]) for n, part in enumerate(fast)]
        units.append(("slow.cpp", once, levels[1]))
    for name, part, _ in units:
        (folder / name).write_text("".join(f'#include "{path}"\n' for path in part))
    return [(name, level) for name, part, level in units if part]


def flags_of(tools):
    """Return the compiler options of every file."""
    include = tools.root / "include"
    own = [] if "clang" in tools.versions()[-1] else GCC_FLAGS
    return [*COMPILER_FLAGS, *own, "-I", ".", "-I", str(include), "-I", str(include / "vltstd")]


def runtime_recipe():
    """Return all texts, besides the tools, that Verilator's run-time code depends on."""
    return [*COMPILER_FLAGS, *GCC_FLAGS, SLOW, *RUNTIME]


def compile_runtime(tools, folder, *, what, log, heartbeat):
    """Build Verilator's run-time code, which is the same for all accelerators.

    The parameters and exceptions are those of :func:`compile_model`.

    Returns
    -------
    Path
        The object file.
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
        count=processors(),
        beat=lambda done: heartbeat.beat(f"{what}: compiled {done} parts of Verilator's own"),
        **options,
    )
    link = [tools.compiler, "-r", "-nostdlib", "-o", "runtime.o"]
    run_all([link + objects], beat=lambda done: None, **options)
    return folder / "runtime.o"


def compile_model(
    tools, text, harness, runtime, folder, *, what, log, heartbeat,
    verilator_flags=VERILATOR_FLAGS, levels=None,
):  # fmt: skip
    """Build the simulator library of one design in ``folder``.

    Parameters
    ----------
    tools : Toolchain
        Verilator and the C++ compiler.
    text : str
        Verilog text: the design's own, or the result of :func:`simulated_text` for its netlist.
    harness : Harness
        Interface of the library.
    runtime : Path
        Object file from :func:`compile_runtime`.
    folder : Path
        Empty folder for the result and all intermediate files.
    what, log, heartbeat
        Name of the build, log file and :class:`~sim.verilated.toolchain.Heartbeat`.
    verilator_flags : list of str
        Options with which Verilator translates the text.
    levels : tuple of str, optional
        Compiler optimization of the code that runs every cycle, and of the code that runs once; by
        default :data:`FAST` and :data:`SLOW`.

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
    command = [tools.verilator, "--cc", *verilator_flags, "--top-module", harness.top]
    command += ["--prefix", PREFIX, "-Mdir", str(folder), str(rules), str(source)]
    run_all([command], beat=lambda done: heartbeat.beat(f"{what}: Verilator"), **options)

    flags = [*flags_of(tools), *harness.options(), *clock_option(folder)]
    units = unite(folder, harness.source, levels or (FAST, SLOW))
    compiles = [
        [tools.compiler, *flags, level, "-c", unit, "-o", f"{number}.o"]
        for number, (unit, level) in enumerate(units)
    ]
    run_all(
        compiles,
        count=processors(),
        beat=lambda done: heartbeat.beat(f"{what}: compiled {done} parts"),
        **options,
    )

    objects = [f"{number}.o" for number in range(len(units))]
    link = [tools.compiler, "-shared", "-pthread", "-Wl,-Bsymbolic", "-o", "library.so"]
    run_all([[*link, *objects, str(runtime)]], beat=lambda done: None, **options)
    return folder / "library.so"
