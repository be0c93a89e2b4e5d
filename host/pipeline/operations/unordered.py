# SPDX-License-Identifier: Apache-2.0
"""The operation that gives up the order of rows."""

import pyarrow as pa

from host.pipeline.flags import Effect, Flag, Traits
from host.pipeline.operations.operation import Operation

__all__ = ["Unordered"]


class Unordered(Operation):
    """Give up the order of encounter, which may save work before and after this operation."""

    def effect(self, traits: Traits) -> Effect:
        return Effect(clear=Flag.ORDERED | Flag.SORTED)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def __str__(self) -> str:
        return "unordered()"
