# SPDX-License-Identifier: Apache-2.0
"""What a routed accelerator does in a second: what simulation counted, times the routed clock.

A rate means little without what it was counted under, so the two are one record: how many probes
share a star, how often a pair matches, how large the windows were, how much of a key is compared.
"""

__all__ = ["ONE_IN", "comparators", "conditions", "counted", "describe", "per_second", "rate_name"]

#: About one pair in so many matches, unless it is said otherwise: as in the paper's benchmark.
ONE_IN = 250_000
#: The counter behind the name of an engine's rate.
COUNTED = {"scan": "comparisons", "index": "tuples"}


def comparators(parameters):
    """Return the comparators of an accelerator.

    A region has one for every lane and probe; with an index, one.
    """
    shared = parameters.probes if parameters.engine == "scan" else 1
    return 2 * parameters.cores * parameters.lanes * shared


def rate_name(parameters):
    """Return what is counted in a second: the pairs that a scan decides, or the tuples of an index.

    A comparator of digests compares some bits of two keys. That decides the pair unless these
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
        Of the accelerator.
    counts : dict
        Differences of its hardware counters.
    precision : int
        Probes of a side from star to star.
    window : int
        Tuples per side.
    one_in : int
        About one of so many pairs matches, by the choice of keys.
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
    """Return how many pairs, and how many tuples, a second brings at a clock of ``mhz``."""
    counters = record["counters"]
    main = counters[COUNTED[parameters.engine]]
    counts = {rate_name(parameters): main, "tuples": counters["tuples"]}
    return {name: round(count / counters["cycles"] * mhz * 1e6) for name, count in counts.items()}


def conditions(record):
    """Return the conditions of a record: all of it but what was counted."""
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
