# SPDX-License-Identifier: Apache-2.0
"""Rates of a routed accelerator: counts from simulation, times the routed clock.

A rate means little without its conditions, so the two are one record: how many probes share a star,
how often a pair matches, how large the windows were, how much of a key is compared.
"""

__all__ = [
    "ONE_IN", "comparators", "conditions", "counted", "describe", "per_second", "rate_name",
    "what_it_computes",
]  # fmt: skip

#: Default odds of a match: about one pair in so many matches, as in the paper's benchmark.
ONE_IN = 250_000
#: Counter from which the rate of an engine is computed.
COUNTED = {"scan": "comparisons", "index": "tuples"}


def comparators(parameters):
    """Return the number of comparators of an accelerator.

    A scan has one per lane and probe in each region; an index has one in each region.
    """
    shared = parameters.probes if parameters.engine == "scan" else 1
    return parameters.regions * parameters.lanes * shared


def what_it_computes(parameters):
    """Return what a report says of an accelerator: predicate and comparators, or the aggregate."""
    if parameters.engine == "aggregate":
        return {"aggregate": f"{parameters.operator.name}, {parameters.keys} keys"}
    return {"predicate": parameters.comparator, "comparators": comparators(parameters)}


def rate_name(parameters):
    """Return what the rate of an accelerator counts: pairs for a scan, tuples for an index.

    A comparator of digests compares some bits of two keys. That decides the pair unless these bits
    agree, but it is no comparison of two keys.
    """
    if parameters.engine == "index":
        return "tuples"
    return "pairs decided" if parameters.digest_bits else "comparisons"


def counted(parameters, counts, *, precision, window, one_in):
    """Return the record of a run with full windows.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    counts : dict
        Increments of its hardware counters during the run.
    precision : int
        Probes of a side from star to star.
    window : int
        Tuples per side.
    one_in : int
        Odds of a match: about one in so many pairs matches.
    """
    tuples = counts["tuples_r"] + counts["tuples_s"]
    names = ("cycles", "comparisons", "results", "stars")
    record = {
        "precision": precision,
        "window": window,
        "matches_one_in": one_in,
        "results_per_tuple": round(counts["results"] / tuples, 4),
        "compared_bits": parameters.digest_bits or sum(key.bits for key in parameters.keys),
        "key_bits": sum(key.bits for key in parameters.keys),
        "timestamp_bits": parameters.timestamp_bits,
        "counters": {"tuples": tuples, **{name: counts[name] for name in names}},
    }
    if parameters.engine == "scan":
        share = counts["comparisons"] / (comparators(parameters) * counts["cycles"])
        record["cycle_efficiency"] = round(share, 4)
    return record


def per_second(parameters, record, mhz):
    """Return the number of pairs and of tuples per second at a clock of ``mhz``."""
    counters = record["counters"]
    main = counters[COUNTED[parameters.engine]]
    counts = {rate_name(parameters): main, "tuples": counters["tuples"]}
    return {name: round(count / counters["cycles"] * mhz * 1e6) for name, count in counts.items()}


def conditions(record):
    """Return the conditions of a record, which is everything except the counters."""
    return {name: value for name, value in record.items() if name != "counters"}


def describe(record):
    """Return the conditions of a record in words."""
    precision, time = record["precision"], record["timestamp_bits"]
    groups = "groups of one (strict outer order)" if precision == 1 else f"a star per {precision}"
    return ", ".join(
        [
            groups if precision == 1 else f"{groups} probes of a side",
            f"1 pair in {record['matches_one_in']:,} matches",
            f"{record['results_per_tuple']:.3g} results per tuple",
            f"windows of {record['window']:,} per side",
            f"{record['compared_bits']} of {record['key_bits']} key bits compared",
            f"timestamps of {time} bits" if time else "no timestamps",
        ]
    )
