# SPDX-License-Identifier: Apache-2.0
"""The names of columns: which one a query means, and what the columns of an answer are called.

A query names a column exactly as its input does. The names of an answer are compared without regard
to case, because Spark and SQL read it so: a right name that the left input has in any case gets the
suffix. Columns of *one* input that differ in nothing but case stay as they are.
"""

from collections import Counter
from collections.abc import Sequence

from host.errors import UnknownColumnError, UsageError
from host.join_type import JoinType

__all__ = ["output_names", "require_column", "require_distinct"]


def require_distinct(names: Sequence[str], table: str) -> None:
    """Raise unless all columns of a table, which messages call ``table``, have different names.

    Raises
    ------
    UsageError
        Naming the first one that stands twice.
    """
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise UsageError(
            f"{table[0].upper()}{table[1:]} has several columns called {repeated!r}; rename all "
            f"but one."
        )


def require_column(names: Sequence[str], name: str, table: str) -> None:
    """Raise unless exactly one column of a table, which messages call ``table``, is ``name``.

    Raises
    ------
    UnknownColumnError
        If there is none.
    UsageError
        If there are several.
    """
    if name not in names:
        raise UnknownColumnError(name, names, table=table)
    require_distinct([other for other in names if other == name], table)


def output_names(
    left: Sequence[str], right: Sequence[str], suffix: str, how: JoinType
) -> list[str]:
    """Return the names of an answer: the left columns', then the right ones' if there are pairs.

    Parameters
    ----------
    left, right : sequence of str
        The columns of both inputs.
    suffix : str
        Appended to a right name that the left input has.
    how : JoinType
        Whether there are pairs.

    Raises
    ------
    UsageError
        If a name stands twice in an input, or would stand twice in the answer.
    """
    require_distinct(left, "the left input")
    require_distinct(right, "the right input")
    taken = {name.casefold() for name in left}
    chosen: dict[str, str] = {}  # by the answer's name without case: the input's, likewise
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
