# SPDX-License-Identifier: Apache-2.0
"""The manifest of an aggregate accelerator: all that host code knows about it."""

import re

from hdl.installation import kit_version
from hdl.manifest import bundle_parts, fingerprint, members, word

from .accelerator import AGGREGATE_COUNTERS
from .reductions import is_additive
from .words import (
    AggregateControl,
    AggregateKind,
    ValueKind,
    aggregate_word,
    value_result,
)

__all__ = ["AGGREGATE_FORMAT", "describe_aggregate"]

#: Version of the format, which no host that knows only joins reads.
AGGREGATE_FORMAT = 6

#: Parts that the names of nested fields lose. Names that a user has chosen keep a part before them.
SILENT = re.compile(r"\bbody\.(?:value\.)?")


def describe_aggregate(parameters, verilog, *, verilog_file, others=(), clock=None):
    """Return the manifest of an aggregate accelerator as JSON-compatible values.

    A field of a tuple has the name ``tuple.NAME`` in the input word, a value of a window has the
    name ``window.NAME`` in the result word, where NAME is that of the operator's field or
    reduction.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    verilog, verilog_file, others, clock
        As of :func:`hdl.manifest.describe`.
    """
    rules = parameters.operator.reductions
    manifest = {
        "format": AGGREGATE_FORMAT,
        "kit": kit_version(),
        "hash": "",
        "parameters": parameters.to_dict(),
        "input_word": word(aggregate_word(parameters), silent=SILENT),
        "result_word": word(value_result(parameters), silent=SILENT),
        "input_kinds": members(AggregateKind),
        "result_kinds": members(ValueKind),
        "operations": members(AggregateControl),
        "aggregate": {
            "cores": parameters.cores,
            "keys": parameters.keys,
            "panes": parameters.panes,
            "slides_by": {rule.name: "delta" if is_additive(rule) else "panes" for rule in rules},
        },
        **bundle_parts(AGGREGATE_COUNTERS, verilog_file=verilog_file, others=list(others)),
    }
    if clock is not None:
        manifest["clock"] = clock
    manifest["hash"] = fingerprint(manifest, verilog)
    return manifest
