# SPDX-License-Identifier: Apache-2.0
"""From a bench to an answer: Yosys makes gates, a SAT solver searches for counterexamples."""

from dataclasses import dataclass

from pysat.solvers import Solver

from hdl.fpga.tools import YOSYS, find_tool, run_tool

from .netlist import Netlist, read_aiger
from .unrolling import Unrolling

__all__ = ["Answer", "bounded", "inductive", "load", "reachable", "translate"]

#: The fastest of python-sat's solvers here: twice as fast as Glucose and MiniSat.
SOLVER = "cadical195"

#: Time limit of one Yosys run in seconds.
DEADLINE = 600

#: Yosys script for a bench: it makes one flat module, turns memories into registers, and everything
#: into gates. Undefined values become arbitrary ones.
SCRIPT = """
design -reset
read_rtlil {name}.il
hierarchy -top top
proc
flatten
{forget}
prep -top top -nordff
memory_map
opt -full
async2sync
setundef -undriven -anyseq
techmap
opt -fast
setundef -anyseq
dffunmap
simplemap
opt_clean
aigmap
opt_clean
write_aiger -ascii -symbols {name}.aag
"""


@dataclass(frozen=True)
class Answer:
    """Answer to a question about a netlist.

    Attributes
    ----------
    holds : bool
        There is no counterexample.
    broken : tuple of str
        Outputs that are wrong in the first cycle in which any of them is.
    cycle : int
        Number of that cycle.
    """

    holds: bool
    broken: tuple = ()
    cycle: int = 0


def translate(names, folder, *, forget=()):
    """Turn the files ``NAME.il`` of ``folder`` into ``NAME.aag``, in one run of Yosys.

    Parameters
    ----------
    names : list of str
    folder : pathlib.Path
    forget : sequence of str
        Submodules whose registers lose their initial values, so that they start in any state.
    """
    inside = "\n".join(f"setattr -unset init w:{name}.* w:{name}__*" for name in forget)
    script = "".join(SCRIPT.format(name=name, forget=inside) for name in names)
    (folder / "translate.ys").write_text(script)
    run_tool(
        [find_tool(YOSYS), "-q", "translate.ys"],
        folder=folder, log="translate.log", step="Yosys", deadline=DEADLINE,
    )  # fmt: skip


def load(name, folder) -> Netlist:
    """Return the netlist that :func:`translate` wrote."""
    return read_aiger((folder / f"{name}.aag").read_text())


def bounded(netlist, *, depth, what=("claim", "invariant")):
    """Ask whether all claims hold in the first ``depth`` cycles; return an :class:`Answer`.

    Parameters
    ----------
    netlist : Netlist
    depth : int
    what : tuple of str
        Prefixes of the names of the outputs that are checked.
    """
    with Solver(name=SOLVER) as solver:
        unrolling = Unrolling(netlist, solver)
        for cycle in range(depth):
            frame = unrolling.step()
            broken = {name: -value for name, value in frame.items() if name.startswith(what)}
            if unrolling.possible(broken.values()):
                wrong = tuple(name for name, value in broken.items() if unrolling.value(value))
                return Answer(False, wrong, cycle)
            unrolling.never(broken.values())
    return Answer(True)


def inductive(netlist, *, cycles):
    """Ask whether claims hold in a cycle if they hold in the ``cycles`` before it."""
    with Solver(name=SOLVER) as solver:
        unrolling = Unrolling(netlist, solver, anywhere=True)
        for _ in range(cycles):
            unrolling.never(-value for name, value in unrolling.step().items() if is_claim(name))
        broken = {name: -value for name, value in unrolling.step().items() if is_claim(name)}
        if unrolling.possible(broken.values()):
            wrong = tuple(name for name, value in broken.items() if unrolling.value(value))
            return Answer(False, wrong, cycles)
    return Answer(True)


def reachable(netlist, *, depth):
    """Ask whether every cover is reached within ``depth`` cycles."""
    left = {name for name in netlist.outputs if name.startswith("cover")}
    with Solver(name=SOLVER) as solver:
        unrolling = Unrolling(netlist, solver)
        for _ in range(depth):
            frame = unrolling.step()
            while left and unrolling.possible(frame[name] for name in left):
                left = {name for name in left if not unrolling.value(frame[name])}
    return Answer(not left, tuple(sorted(left)), depth)


def is_claim(name):
    """Return whether an output is a claim or an invariant."""
    return name.startswith(("claim", "invariant"))
