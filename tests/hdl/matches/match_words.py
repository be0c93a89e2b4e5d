# SPDX-License-Identifier: Apache-2.0
"""Small join aggregates, and reductions of matches from lists of values."""

from hdl.parameters import JoinParameters, KeyField
from hdl.words.values import neutral_values

__all__ = ["match_parameters", "merged", "punctuation", "reduced"]


def match_parameters(**changes):
    """Parameters of a small join aggregate."""
    values = {
        "cores": 1, "sub_window": 20, "keys": (KeyField(name="x", bits=6),), "probe_bits": 3,
        "value_bits": 6, **changes,
    }  # fmt: skip
    return JoinParameters.of(**values)


def reduced(parameters, values):
    """What a list of values is reduced to, by name."""
    neutral = neutral_values(parameters)
    return {
        "count": len(values),
        "total": sum(values),
        "least": min(values, default=neutral["least"]),
        "most": max(values, default=neutral["most"]),
    }


def merged(parameters, parts):
    """What several reductions are merged to; those of no match do not count."""
    counted = [part for part in parts if part["count"]]
    neutral = neutral_values(parameters)
    return {
        "count": sum(part["count"] for part in parts),
        "total": sum(part["total"] for part in parts),
        "least": min((part["least"] for part in counted), default=neutral["least"]),
        "most": max((part["most"] for part in counted), default=neutral["most"]),
    }


def punctuation(word):
    """What a star or mark tells."""
    told = word.body.punctuation
    return word.kind, told.overflow, told.disorder, told.illegal
