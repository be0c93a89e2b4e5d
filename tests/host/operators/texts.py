# SPDX-License-Identifier: Apache-2.0
"""Random texts of the language of expressions, for tests."""

from hypothesis import strategies as st

__all__ = ["RANGES", "texts", "values"]

#: Fields that the texts read, by name: bits, and whether they are signed.
RANGES = {"x": (7, True), "y": (6, False), "l.z": (9, True)}

BINARY = ["+", "-", "*", "&", "|", "^", "<", "<=", ">", ">=", "==", "!="]


def texts(depth=3):
    """Return a strategy of texts, of at most ``depth`` operations one in another."""
    leaves = st.sampled_from([*RANGES]) | st.integers(-9, 9).map(str)
    if depth == 0:
        return leaves
    part = texts(depth - 1)
    return leaves | st.one_of(
        st.tuples(part, st.sampled_from(BINARY), part).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(part, st.sampled_from(["//", "%"]), st.integers(1, 9)).map(
            lambda t: f"({t[0]}) {t[1]} {t[2]}"
        ),
        st.tuples(part, st.sampled_from(["<<", ">>"]), st.integers(0, 4)).map(
            lambda t: f"({t[0]}) {t[1]} {t[2]}"
        ),
        part.map(lambda one: f"-({one})"),
        part.map(lambda one: f"~({one})"),
        part.map(lambda one: f"abs({one})"),
        st.tuples(st.sampled_from(["min", "max"]), part, part).map(lambda t: f"{t[0]}{t[1:]}"),
        st.tuples(part, part, part).map(lambda t: f"where({', '.join(t)})"),
        st.tuples(part, part, part).map(lambda t: f"({t[0]}) if ({t[1]}) else ({t[2]})"),
    ).map(lambda text: text.replace("'", ""))


def values():
    """Return a strategy of values of the fields."""
    return st.fixed_dictionaries(
        {
            name: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
            if signed
            else st.integers(0, (1 << bits) - 1)
            for name, (bits, signed) in RANGES.items()
        }
    )
