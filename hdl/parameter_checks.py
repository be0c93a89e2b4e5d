# SPDX-License-Identifier: Apache-2.0
"""Rules for the parameters of an accelerator; an error names the rule and the value."""

import re

from amaranth.utils import ceil_log2

from .predicates.own import own_predicate
from .silence import longest_silence

__all__ = [
    "ARCHITECTURES", "COMPARATORS", "ENGINES", "MEMORY", "STORES", "check_key_field",
    "check_parameters", "require",
]  # fmt: skip

ARCHITECTURES = ("splitjoin", "handshake", "low-latency-handshake")
COMPARATORS = ("band", "equality", "custom")
ENGINES = ("scan", "index")
STORES = ("chip", "external")

#: Parameters of windows in external memory.
MEMORY = ("store", "memory_width", "memory_burst", "memory_latency")
#: Bytes that a burst of AXI may have at most, and its beats.
MOST_BURST_BYTES, MOST_BURST_BEATS = 4096, 256
#: Longest latency of a memory, in cycles, that the chip has a queue for.
MOST_LATENCY = 1 << 14

#: Widest digest: a few lanes of it share a row of a block RAM.
MOST_DIGEST_BITS = 24

#: Least values of parameters that are integers.
LEAST = {
    "cores": 1,
    "sub_window": 1,
    "lanes": 1,
    "probes": 1,
    "fan_out": 2,
    "fan_in": 2,
    "probe_bits": 0,
    "failure_cycles": 0,
    "memory_width": 8,
    "memory_burst": 1,
    "memory_latency": 0,
    "value_bits": 0,
}

#: Widest sum of a join aggregate, which a host reads as a number of its processor.
MOST_TOTAL_BITS = 64


def require(condition, message):
    """Raise :exc:`ValueError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(message)


def check_key_field(field):
    """Raise :exc:`ValueError` unless a key can have this :class:`hdl.parameters.KeyField`."""
    require(
        re.fullmatch(r"[a-z][a-z0-9_]*", field.name),
        f"Key field name must be a lower-case identifier, not {field.name!r}",
    )
    require(
        1 <= field.bits <= 64, f"Key field {field.name!r} must have 1 to 64 bits, not {field.bits}"
    )


def check_parameters(parameters):
    """Raise :exc:`ValueError` unless an accelerator can have these parameters.

    Parameters
    ----------
    parameters : JoinParameters
    """
    check_numbers(parameters)
    check_keys(parameters.keys)
    check_choices(parameters)
    if parameters.engine == "index":
        check_index(parameters)
    if parameters.digest_bits is not None:
        check_digest(parameters)
    check_architecture(parameters)
    check_rounds(parameters)
    if parameters.failure_cycles:
        check_failures(parameters)
    check_parity(parameters)
    check_store(parameters)
    check_clocks(parameters)
    if parameters.value_bits:
        check_values(parameters)
    require(
        parameters.probes <= 1 << parameters.probe_bits,
        f"A group of {parameters.probes} probes needs a probe index of"
        f" {ceil_log2(parameters.probes)} bits, not {parameters.probe_bits}",
    )


def check_numbers(parameters):
    """Check the parameters that are numbers, each by itself."""
    for name, least in LEAST.items():
        value = getattr(parameters, name)
        require(
            isinstance(value, int) and value >= least,
            f"Parameter {name!r} must be an integer of at least {least}, not {value!r}",
        )
    require(
        0 <= parameters.timestamp_bits <= 64,
        f"Parameter 'timestamp_bits' must be 0 to 64, not {parameters.timestamp_bits!r}",
    )
    require(
        parameters.tuples_per_word in (1, 2),
        f"Parameter 'tuples_per_word' must be 1 or 2, not {parameters.tuples_per_word!r}",
    )
    require(
        parameters.result_streams in (1, 2),
        f"Parameter 'result_streams' must be 1, or 2 for a port of each side's probes, not"
        f" {parameters.result_streams!r}",
    )


def check_keys(keys):
    """Check that there are key fields, and that no two fields of a tuple have the same name."""
    require(len(keys) >= 1, "Parameter 'keys' must name at least one field")
    names = [key.name for key in keys]
    require(len(set(names)) == len(names), f"Key field names must differ, not {names!r}")
    require(not {"timestamp"} & set(names), "Key field name 'timestamp' is taken by the timestamp")


def check_choices(parameters):
    """Check comparator, predicate and engine."""
    require(
        parameters.comparator in COMPARATORS,
        f"Parameter 'comparator' must be one of {COMPARATORS!r}, not {parameters.comparator!r}",
    )
    require(
        (parameters.comparator == "custom")
        == ((parameters.predicate or parameters.where) is not None),
        "Parameter 'predicate' goes with comparator 'custom', and only with it; 'where' likewise",
    )
    if parameters.where is not None:
        own_predicate(parameters).check(parameters)
    require(
        parameters.engine in ENGINES,
        f"Parameter 'engine' must be one of {ENGINES!r}, not {parameters.engine!r}",
    )
    require(
        parameters.engine == "index" or parameters.tuples_per_word == 1,
        "A scan takes one tuple after the other, as its passes take longer: 'tuples_per_word' is 1,"
        f" not {parameters.tuples_per_word}; engine 'index' takes two side by side",
    )


def check_index(parameters):
    """Check the parameters of an index."""
    require(
        parameters.lanes == 1,
        f"An index reads one entry a cycle: 'lanes' is 1, not {parameters.lanes}",
    )
    require(
        parameters.comparator != "custom",
        "An index needs the comparator 'band' or 'equality'; a custom predicate takes a scan",
    )
    require(
        1 <= parameters.bucket_width <= 24,
        f"Parameter 'bucket_bits' must be 1 to 24, not {parameters.bucket_width!r}",
    )


def check_digest(parameters):
    """Check the digest that a pass compares."""
    require(
        parameters.engine == "scan" and parameters.comparator in ("band", "equality"),
        "Parameter 'digest_bits' is for the comparators 'band' and 'equality' of a scan, not for"
        f" {parameters.comparator!r} of engine {parameters.engine!r}",
    )
    if parameters.comparator == "band":
        least, most = 2 * len(parameters.keys), MOST_DIGEST_BITS
        rule = f"at least 2 for each key field and at most {most}"
    else:
        least, most = 1, min(MOST_DIGEST_BITS, parameters.key_bits - 1)
        rule = f"fewer than a key has and at most {MOST_DIGEST_BITS}"
    require(
        isinstance(parameters.digest_bits, int) and least <= parameters.digest_bits <= most,
        f"Parameter 'digest_bits' must be {least} to {most}, {rule}, not"
        f" {parameters.digest_bits!r}",
    )


def check_rounds(parameters):
    """Check that the engine can send results in rounds, if it has to."""
    require(
        isinstance(parameters.rounds, bool),
        f"Parameter 'rounds' must be True or False, not {parameters.rounds!r}",
    )
    if not parameters.rounds:
        return
    require(
        parameters.engine == "scan" and not parameters.is_chain,
        "Parameter 'rounds' is for a scan: an index meets stored tuples in another order, and a"
        " chain of cores has no stars",
    )
    require(
        not parameters.lanes & (parameters.lanes - 1),
        f"Parameter 'rounds' needs 'lanes' to be a power of two, not {parameters.lanes}",
    )


def check_failures(parameters):
    """Check that a core which works is never taken for one that has failed."""
    require(
        not parameters.is_chain,
        f"Parameter 'failure_cycles' must be 0 for architecture {parameters.architecture!r}, not"
        f" {parameters.failure_cycles}: only the cores of 'splitjoin' have gates",
    )
    least = longest_silence(parameters)
    require(
        parameters.failure_cycles >= least,
        f"Parameter 'failure_cycles' must be at least {least}, for so long a core of this shape may"
        f" show nothing while it works, not {parameters.failure_cycles}",
    )


def check_parity(parameters):
    """Check that cores whose memories have parity bits also have gates."""
    require(
        isinstance(parameters.parity, bool),
        f"Parameter 'parity' must be True or False, not {parameters.parity!r}",
    )
    if not parameters.parity:
        return
    require(
        not parameters.is_chain,
        f"Parameter 'parity' must be False for architecture {parameters.architecture!r}, not True:"
        " only the cores of 'splitjoin' have gates that close when a bit has flipped",
    )
    require(
        parameters.failure_cycles,
        "Parameter 'parity' needs 'failure_cycles', not 0: a core that reads a flipped bit counts"
        " as failed, and only a core with a gate can fail; set 'failure_cycles' to at least"
        f" {longest_silence(parameters)}",
    )


def check_clocks(parameters):
    """Check that the cores of an accelerator can tell whether they need a clock."""
    requests = parameters.clock_requests
    require(
        isinstance(requests, bool),
        f"Parameter 'clock_requests' must be True or False, not {requests!r}",
    )
    require(
        not (requests and parameters.is_chain),
        "Parameter 'clock_requests' must be False for architecture"
        f" {parameters.architecture!r}, not True: tuples flow through all cores of a chain",
    )


def check_values(parameters):
    """Check that the matches of a scan can be reduced where they are found."""
    names = [key.name for key in parameters.keys]
    require("value" not in names, "Key field name 'value' is taken by the value of a tuple")
    most = MOST_TOTAL_BITS - ceil_log2(parameters.capacity)
    require(
        parameters.value_bits <= most,
        f"Parameter 'value_bits' must be at most {most}, so that the sum of the"
        f" {parameters.capacity} values of a window has {MOST_TOTAL_BITS} bits, not"
        f" {parameters.value_bits}",
    )
    rules = {
        "engine": ("scan", "an index sends the matches of several probes by turns"),
        "architecture": ("splitjoin", "a chain of cores does not say when a tuple has met all"),
        "digest_bits": (None, "values are reduced where whole keys are compared"),
        "result_streams": (1, "only tuples of R have results"),
        "rounds": (False, "a tuple has one result, not one per round"),
        "failure_cycles": (0, "a sum without those of a core would be wrong, not incomplete"),
        "store": ("chip", "values are beside the keys"),
        "clock_requests": (False, "a core without a clock would hold up all values"),
    }
    for name, (value, reason) in rules.items():
        require(
            getattr(parameters, name) == value,
            f"A join aggregate (value_bits={parameters.value_bits}) needs parameter {name!r} to be "
            f"{value!r}, not {getattr(parameters, name)!r}: {reason}",
        )


def check_store(parameters):
    """Check where windows are, and the external memory if they are there."""
    require(
        parameters.store in STORES,
        f"Parameter 'store' must be one of {STORES!r}, not {parameters.store!r}",
    )
    if parameters.store == "chip":
        for name in MEMORY[1:]:
            default = type(parameters).__dataclass_fields__[name].default
            require(
                getattr(parameters, name) == default,
                f"Parameter {name!r} is for windows in external memory, not for store 'chip'; set"
                " store='external'",
            )
        return
    check_external(parameters)
    check_memory(parameters)


def check_external(parameters):
    """Check that the cores of an accelerator can have their windows in external memory."""
    rules = {
        "engine": ("scan", "an index reads its memory at random, which no burst can serve"),
        "architecture": ("splitjoin", "the cores of a chain keep their windows on the chip"),
        "digest_bits": (None, "whole keys that belong to a digest are read at random"),
        "failure_cycles": (0, "a core that is reset would forget transactions that are under way"),
        "parity": (False, "external memory has its own check bits"),
        "clock_requests": (False, "a core must answer its memory at any time"),
    }
    for name, (value, reason) in rules.items():
        require(
            getattr(parameters, name) == value,
            f"Store 'external' needs parameter {name!r} to be {value!r}, not"
            f" {getattr(parameters, name)!r}: {reason}",
        )


def check_memory(parameters):
    """Check that an AXI4 port can have these beats and bursts, and that a beat holds a row."""
    width, burst = parameters.memory_width, parameters.memory_burst
    require(
        8 <= width <= 1024 and not width & (width - 1),
        f"Parameter 'memory_width' must be a power of two from 8 to 1024, not {width}",
    )
    row = parameters.lanes * parameters.key_bits
    require(
        row <= width,
        f"A beat of {width} bits has no room for a row of {parameters.lanes} keys of"
        f" {parameters.key_bits} bits; set 'lanes' to at most {width // parameters.key_bits}, or"
        f" 'memory_width' to at least {1 << ceil_log2(row)}",
    )
    require(
        burst <= MOST_BURST_BEATS and not burst & (burst - 1),
        f"Parameter 'memory_burst' must be a power of two of at most {MOST_BURST_BEATS} beats, not"
        f" {burst}",
    )
    require(
        burst * width // 8 <= MOST_BURST_BYTES,
        f"A burst of {burst} beats of {width} bits crosses a boundary of {MOST_BURST_BYTES} bytes;"
        f" set 'memory_burst' to at most {MOST_BURST_BYTES * 8 // width}",
    )
    require(
        parameters.memory_latency <= MOST_LATENCY,
        f"Parameter 'memory_latency' must be at most {MOST_LATENCY} cycles, not"
        f" {parameters.memory_latency}",
    )


def check_architecture(parameters):
    """Check the architecture, and the parameters of a chain.

    The cores of a chain compare numbers of tuples modulo ``2 ** tag_bits``, so the numbers of all
    tuples that are under way at once must lie within half of that range.
    """
    require(
        parameters.architecture in ARCHITECTURES,
        f"Parameter 'architecture' must be one of {ARCHITECTURES!r}, not"
        f" {parameters.architecture!r}",
    )
    if not parameters.is_chain:
        require(parameters.tag_bits is None, "Parameter 'tag_bits' is for a chain of cores only")
        return
    plain = {
        "engine": "scan", "lanes": 1, "probes": 1, "digest_bits": None, "tuples_per_word": 1,
        "result_streams": 1,
    }  # fmt: skip
    for name, value in plain.items():
        require(
            getattr(parameters, name) == value,
            f"Architecture {parameters.architecture!r} needs parameter {name!r} to be {value!r},"
            f" not {getattr(parameters, name)!r}",
        )
    least = ceil_log2(4 * parameters.cores * parameters.ring_rows)
    require(
        least <= parameters.ordinal_bits <= 32,
        f"Parameter 'tag_bits' must be {least} to 32 for such windows, not {parameters.tag_bits!r}",
    )
