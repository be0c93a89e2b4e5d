# SPDX-License-Identifier: Apache-2.0
"""Find the columns that a query names, and choose the names of the result's columns.

A query must name a column exactly as its input does. Names of the result are compared without
regard to case, as in Spark and SQL: a right column gets the suffix if a left column has the same
name in any case. Columns of *one* input whose names differ only in case keep their names.
"""

from collections import Counter
from collections.abc import Sequence

from host.errors import UnknownColumnError, UsageError
from host.reference.join_type import JoinType

__all__ = ["output_names", "require_column", "require_distinct"]


def require_distinct(names: Sequence[str], table: str) -> None:
    """Raise unless all columns of a table have different names; messages call it ``table``.

    Raises
    ------
    UsageError
        If a name repeats; the error names the first one.
    """
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise UsageError(
            f"{table[0].upper()}{table[1:]} has several columns called {repeated!r}; rename all "
            f"but one."
        )


def require_column(names: Sequence[str], name: str, table: str) -> None:
    """Raise unless exactly one column of a table has the name; messages call it ``table``.

    Raises
    ------
    UnknownColumnError
        If there is no such column.
    UsageError
        If there are several such columns.
    """
    if name not in names:
        raise UnknownColumnError(name, names, table=table)
    require_distinct([other for other in names if other == name], table)


def output_names(
    left: Sequence[str], right: Sequence[str], suffix: str, how: JoinType
) -> list[str]:
    """Return the result's column names: the left ones, then the right ones if the result has pairs.

    Parameters
    ----------
    left, right : sequence of str
        Column names of both inputs.
    suffix : str
        Text appended to a right name that the left input also has.
    how : JoinType
        Type of the join, which decides whether the result has pairs.

    Raises
    ------
    UsageError
        If a name repeats in an input, or would repeat in the result.
    """
    require_distinct(left, "the left input")
    require_distinct(right, "the right input")
    taken = {name.casefold() for name in left}
    chosen: dict[str, str] = {}  # from the result's casefolded name to the input's
    names = list(left)
    for name in right if how.has_pairs else ():
        given = name + suffix if name.casefold() in taken else name
        folded = given.casefold()
        if folded in taken or chosen.setdefault(folded, name.casefold()) != name.casefold():
            raise UsageError(
                f"The right column {name!r} would be called {given!r} in the answer, which is "
                f"taken (case does not matter); choose another suffix than {suffix!r}."
            )
        names.append(given)
    return names
