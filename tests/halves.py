# SPDX-License-Identifier: Apache-2.0
"""Half of all combinations of parameters, in which any two values of two parameters still meet."""

from itertools import product

import pytest

__all__ = ["half"]


def half(*parameters):
    """Return all combinations for ``pytest.mark.parametrize``; every second one is ``long``.

    Those with an even sum of the values' numbers stay. If there are three parameters or more, each
    of which has two values or more, all pairs of values are among them. With two parameters, each
    value is among them.

    Parameters
    ----------
    parameters : list
        Values of each parameter; a tuple is of several names.
    """
    cases = []
    for choice in product(*(list(enumerate(values)) for values in parameters)):
        values = [
            v for _, value in choice for v in (value if isinstance(value, tuple) else [value])
        ]
        odd = sum(number for number, _ in choice) % 2
        cases.append(pytest.param(*values, marks=[pytest.mark.long] * odd))
    return cases
