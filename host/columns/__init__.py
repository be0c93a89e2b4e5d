# SPDX-License-Identifier: Apache-2.0
"""Encode columns of tables as key fields and timestamps of an accelerator, exactly or not at all.

An encoding is *planned* first, from the schemas and from the ranges of columns as far as they are
known, and then applied batch by batch. Values are converted to one unit and rebased to their common
minimum. If the span still does not fit a field, the values and the bounds are divided by the
greatest common divisor of the values. If that does not help, values that are only tested for
equality become codes that both sides share, and others are placed near the first ones. Of whole
tables, all values are looked at for their ranges; given ranges are checked as batches come. How
tuples become words is not known here: see :mod:`host.protocol`.
"""
