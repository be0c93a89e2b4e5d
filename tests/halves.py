# SPDX-License-Identifier: Apache-2.0
"""Some of all combinations of parameters, in which any two values of two parameters still meet."""

from itertools import product

import pytest

__all__ = ["half"]


def half(*parameters, of=2):
    """Return all combinations for ``pytest.mark.parametrize``; one in ``of`` is not ``long``.

    Those stay whose sum of the values' numbers is a multiple of ``of``. Two values of two
    parameters meet among them if the numbers of the other parameters have sums of every remainder:
    for half of the combinations, one other parameter of two values is enough. With two parameters,
    each value is among them if each parameter has ``of`` values or more.

    Parameters
    ----------
    parameters : list
        Values of each parameter; a tuple is of several names.
    of : int
        One in so many combinations stays.
    """
    cases = []
    for choice in product(*(list(enumerate(values)) for values in parameters)):
        values = [
            v for _, value in choice for v in (value if isinstance(value, tuple) else [value])
        ]
        rest = sum(number for number, _ in choice) % of
        cases.append(pytest.param(*values, marks=[pytest.mark.long] if rest else []))
    return cases
