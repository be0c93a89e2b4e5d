# SPDX-License-Identifier: Apache-2.0
"""Give frames the methods ``streamJoin`` and ``asofJoin``, by import, as Spark's extensions do.

``left.streamJoin(right, ...)`` is ``stream_join(left, right, ...)``.

Examples
--------
>>> import spark_offload.methods
>>> pairs = trades.streamJoin(quotes, on="symbol", order="time", within="5s")
"""

from typing import Any

from pyspark.sql import DataFrame

from spark_offload.api.joins import asof_join, stream_join

__all__: list[str] = []

_METHODS: dict[str, Any] = {"streamJoin": stream_join, "asofJoin": asof_join}

for _name, _function in _METHODS.items():
    setattr(DataFrame, _name, _function)
