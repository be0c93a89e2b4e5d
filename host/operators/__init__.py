# SPDX-License-Identifier: Apache-2.0
"""Operations other than the join of pairs: as-of joins, aggregates, overlaps, described operators.

Each computes on arrays of the host, or builds on a join or an aggregation on a device. Reading,
sorting and filtering rows is the matter of :mod:`host.pipeline`; the meanings are in
:mod:`host.reference`.
"""
