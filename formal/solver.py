# SPDX-License-Identifier: Apache-2.0
"""From a bench to an answer: Yosys makes gates, a SAT solver searches for counterexamples."""

from dataclasses import dataclass
import re

from pysat.solvers import Solver

from hdl.fpga.tools import YOSYS, find_tool, run_tool

__all__ = [
    "Answer", "Netlist", "Unrolling", "bounded", "inductive", "load", "reachable", "read_aiger",
    "translate",
]  # fmt: skip

# And-inverter graphs as Yosys writes them (AIGER 1.9, https://fmv.jku.at/aiger).


@dataclass(frozen=True)
class Netlist:
    """A circuit of AND gates, inverters and registers.

    A literal is twice the number of a node, plus one if it is inverted. Node 0 is the constant
    zero.

    Attributes
    ----------
    inputs : dict of str to int
        Literals of the inputs, by their names, which include the number of the bit.
    registers : list of (int, int, int or None)
        Output, input and initial value; None if any state is possible at first.
    outputs : dict of str to int
    gates : list of (int, int, int)
        Output and both inputs, ordered so that every gate follows those that it depends on.
    """

    inputs: dict
    registers: list
    outputs: dict
    gates: list


def read_aiger(text):
    """Return the :class:`Netlist` that an ASCII AIGER file describes."""
    lines = text.splitlines()
    header = [int(number) for number in lines[0].split()[1:]]
    _, inputs, registers, outputs, gates = header[:5]
    if any(header[5:]):
        raise ValueError("An AIGER file of a bench has inputs, registers, outputs and gates only")
    rows = [[int(number) for number in line.split()] for line in lines[1 : 1 + sum(header[1:5])]]
    names = dict(re.findall(r"^([io]\d+) (.*)$", "\n".join(lines[1 + len(rows) :]), re.MULTILINE))
    first = inputs + registers
    return Netlist(
        inputs={names.get(f"i{n}", f"i{n}"): rows[n][0] for n in range(inputs)},
        registers=[initial(row) for row in rows[inputs:first]],
        outputs={names[f"o{n}"]: rows[first + n][0] for n in range(outputs)},
        gates=sorted(tuple(row) for row in rows[first + outputs :][:gates]),
    )


def initial(row):
    """Return a register as in :class:`Netlist`.

    AIGER denotes an unknown initial value by the register's own output.
    """
    output, following, *value = row
    begins = value[0] if value else 0
    return output, following, None if begins == output else begins


# Unrolling of a circuit into clauses of a SAT solver, cycle by cycle.

#: Variable that is always true.
TRUE = 1


class Unrolling:
    """The first cycles of a circuit.

    Inputs whose names begin with ``constant`` have the same value in every cycle; all others are
    arbitrary. Outputs whose names begin with ``assume`` are true in every cycle.

    Parameters
    ----------
    netlist : formal.netlist.Netlist
    solver : pysat.solvers.Solver
        Solver without clauses. A positive number is a variable, a negative one its negation.
    anywhere : bool
        Start in any state instead of the initial one.
    """

    def __init__(self, netlist, solver, *, anywhere=False):
        self.netlist = netlist
        self.solver = solver
        self._variables = TRUE
        self._gates = {}
        self._model = None
        solver.add_clause([TRUE])
        self._constants = {
            name: self._new() for name in netlist.inputs if name.startswith("constant")
        }
        self._state = [
            self._new() if anywhere or begins is None else TRUE if begins else -TRUE
            for _, _, begins in netlist.registers
        ]

    def step(self):
        """Add a cycle; return its outputs by name."""
        nodes = {0: -TRUE}
        for name, literal in self.netlist.inputs.items():
            nodes[literal >> 1] = self._constants.get(name) or self._new()
        for (output, _, _), value in zip(self.netlist.registers, self._state, strict=True):
            nodes[output >> 1] = value

        def at(literal):
            return -nodes[literal >> 1] if literal & 1 else nodes[literal >> 1]

        for output, one, two in self.netlist.gates:
            nodes[output >> 1] = self._both(at(one), at(two))
        self._state = [at(following) for _, following, _ in self.netlist.registers]
        outputs = {name: at(literal) for name, literal in self.netlist.outputs.items()}
        for name, value in outputs.items():
            if name.startswith("assume"):
                self.solver.add_clause([value])
        return outputs

    def possible(self, values):
        """Return whether any of some values can be true."""
        any_of = self._new()
        self.solver.add_clause([-any_of, *values])
        found = self.solver.solve(assumptions=[any_of])
        self._model = self.solver.get_model() if found else None
        return found

    def value(self, value):
        """Return whether a value is true in the solution that :meth:`possible` found."""
        return self._model[abs(value) - 1] * value > 0

    def never(self, values):
        """Require that values are false."""
        for value in values:
            self.solver.add_clause([-value])

    def _new(self):
        self._variables += 1
        return self._variables

    def _both(self, one, two):
        """Return the conjunction of two values."""
        if -TRUE in (one, two) or one == -two:
            return -TRUE
        if one in (TRUE, two):
            return two
        if two == TRUE:
            return one
        key = (one, two) if one < two else (two, one)
        if key not in self._gates:
            self._gates[key] = both = self._new()
            self.solver.append_formula([[-both, one], [-both, two], [both, -one, -two]])
        return self._gates[key]


# From a bench to an answer: Yosys makes gates, a SAT solver searches for counterexamples.

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
