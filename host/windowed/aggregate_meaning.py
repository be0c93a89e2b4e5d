# SPDX-License-Identifier: Apache-2.0
"""What an aggregate computes: reductions of the tuples of each window, when the window ends."""

from functools import reduce
from typing import Any

from host.reference.window_state import Arrival, WindowInstance
from host.windowed.common_meaning import Reducing, States, names_of

__all__ = ["AggregateMeaning"]


class AggregateMeaning(Reducing):
    """A+. Of several window instances each holds its states, a single one holds its tuples."""

    def functions(self) -> dict[str, Any]:
        if self.operator.instances == "single":
            return {"output": self._output_of_tuples}
        return {"output": self._output, "update": self._update}

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        (window,) = windows
        return [self.combined(window.state, self.values(names_of(arrival)))], []

    def _output_of_tuples(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        (window,) = windows
        values = (self.values(names_of(arrival)) for arrival in window.state)
        return self._given(window, reduce(self.combined, values))

    def _output(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        (window,) = windows
        return self._given(window, window.state)

    def _given(self, window: WindowInstance, states: States) -> list[Any]:
        return [(window.key, values) for values in self.outputs(window, states)]
