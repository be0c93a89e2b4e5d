# SPDX-License-Identifier: Apache-2.0
"""An aggregation held against Spark's own of the same rows."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

__all__ = ["differences"]

#: Largest relative difference of floats: a sum depends on the order of its terms.
_TOLERANCE = 1e-9


def differences(answer: DataFrame, expected: DataFrame, keys: int) -> tuple[int, int, int]:
    """Return how many results an answer has, how many of Spark's it lacks, and how many are wrong.

    A result with a wrong value is one that is missing, and one that is wrong.

    Parameters
    ----------
    answer, expected : DataFrame
        The answer, and that of Spark.
    keys : int
        So many columns are equal in the same result; floats in the others nearly so.
    """
    names = [f"c{at}" for at in range(len(answer.columns))]
    mine, other = answer.toDF(*names).alias("mine"), expected.toDF(*names).alias("other")
    place = [F.col(f"mine.{name}").eqNullSafe(F.col(f"other.{name}")) for name in names[:keys]]
    both = reduce(Column.__and__, place)
    values = [
        _same(F.col(f"mine.{name}"), F.col(f"other.{name}"), isinstance(kind, _FLOATS))
        for name, kind in zip(
            names[keys:],
            [field.dataType for field in answer.schema.fields[keys:]],
            strict=True,
        )
    ]
    equal = reduce(Column.__and__, [both, *values])
    missing = other.join(mine, equal, "left_anti").count()
    wrong = mine.join(other, equal, "left_anti").count()
    rows, wanted = answer.count(), expected.count()
    # Of equal results, one may be there too often.
    return rows, max(missing, wanted - rows), max(wrong, rows - wanted)


_FLOATS = (DoubleType, FloatType)


def _same(one: Column, other: Column, is_float: bool) -> Column:
    equal = one.eqNullSafe(other)
    if not is_float:
        return equal
    size = F.greatest(F.abs(one), F.abs(other), F.lit(1.0))
    return equal | F.coalesce(F.abs(one - other) <= size * F.lit(_TOLERANCE), F.lit(False))
