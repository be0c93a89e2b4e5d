# SPDX-License-Identifier: Apache-2.0
"""Custom predicates of the soak: what the hardware is generated from, and what the model says.

Each is written twice: once with the operators of a custom ``predicate(r, s)``, and once with
others, over matrices of ``int64``.
"""

import numpy as np

__all__ = ["CUSTOM", "alike", "close", "heavier", "product"]


def close(r, s):
    """Near by in the first field, or equal in the second."""
    return ((r.a - s.a) * (r.a - s.a) <= 9) | (r.b == s.b)


def product(r, s):
    """Above a limit that depends on both."""
    return r.a * s.b > s.a + 7


def alike(r, s):
    """Equal in two bits, and not in the others."""
    return ((r.a ^ s.a) & 3 == 0) & ~(r.a == s.a)


def heavier(r, s):
    """Below in the one and above in the other field."""
    return (r.a < s.a) & (r.b >= s.b)


def modelled_alike(r, s):
    """Return what :func:`alike` should."""
    return (np.mod(r["a"], 4) == np.mod(s["a"], 4)) & (r["a"] != s["a"])


#: The model's own form of each predicate; fields are by name.
CUSTOM = {
    "close": lambda r, s: (np.abs(r["a"] - s["a"]) < 4) | ((r["b"] ^ s["b"]) == 0),
    "product": lambda r, s: r["a"] * s["b"] - s["a"] >= 8,
    "alike": modelled_alike,
    "heavier": lambda r, s: (s["a"] - r["a"] > 0) & (r["b"] - s["b"] > -1),
}
