# SPDX-License-Identifier: Apache-2.0
"""Columns of tables as key fields and timestamps of an accelerator, exactly or not at all.

Values are brought to one unit and rebased to their common minimum; if the span still does not fit
a field they are divided by their greatest common divisor, and the bounds with them; what is only
tested for equality falls back to codes shared by both sides.
"""

from host.encode.kinds import SUPPORTED
from host.encode.tables import EncodedJoin, EncodedSide, encode

__all__ = ["SUPPORTED", "EncodedJoin", "EncodedSide", "encode"]
