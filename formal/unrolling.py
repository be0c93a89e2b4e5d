# SPDX-License-Identifier: Apache-2.0
"""Unrolling of a circuit into clauses of a SAT solver, cycle by cycle."""

__all__ = ["Unrolling"]

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
