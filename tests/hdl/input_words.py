# SPDX-License-Identifier: Apache-2.0
"""Input words for the tests of the accelerator's parts, and a model of what happens to them."""

from hdl.predicates.band import comparison_groups
from hdl.predicates.equality import divisor
from hdl.words.inputs import Control, InputKind, key_layout
from hdl.words.prepared import is_own_criterion, region_word

__all__ = [
    "both_word",
    "control_word",
    "criterion_of",
    "criterion_ranges",
    "digest_of",
    "halves",
    "integer",
    "least",
    "mirrored_word",
    "open_bounds",
    "region_input",
    "region_values",
    "stored_key",
    "tuple_word",
]


def integer(layout, value):
    """A layout constant as an integer."""
    return layout.const(value).as_value().value


def tuple_word(side, key, timestamp=0, **value):
    """A tuple of ``side``; ``key`` maps field names to values. ``value`` is a join aggregate's."""
    body = {"tuple": {"key": key, "timestamp": timestamp, **value}}
    return {"kind": InputKind(side), "body": body}


def both_word(first, r, s, r_time=0, s_time=0):
    """A tuple of each side; that of side ``first`` comes first."""
    tuples = {
        name: {"key": key, "timestamp": time}
        for name, key, time in (("r", r, r_time), ("s", s, s_time))
    }
    return {"kind": InputKind.BOTH, "first": first, "body": {"both": tuples}}


def halves(word):
    """The words of one tuple each that a word means."""
    if word["kind"] != InputKind.BOTH:
        return [word]
    tuples = word["body"]["both"]
    return [tuple_word(side, **tuples["rs"[side]]) for side in (word["first"], 1 - word["first"])]


def control_word(op, index=0, value=0):
    """A control word."""
    operands = {"op": Control[op], "index": index, "value": value}
    return {"kind": InputKind.CONTROL, "body": {"control": operands}}


def least(field):
    """The least value of a key field."""
    return -(1 << field.bits - 1) if field.signed else 0


def open_bounds(parameters):
    """Bounds that are always met, by field."""
    return {field.name: (-(1 << field.bits), (1 << field.bits) - 1) for field in parameters.keys}


def digest_of(number, bits):
    """The remainder of a number, as a polynomial over two elements, by that of a digest."""
    by = divisor(bits)
    for place in reversed(range(bits, max(bits, number.bit_length()))):
        if number >> place & 1:
            number ^= by << place - bits
    return number


def stored_key(parameters, key):
    """A key as the circuit stores it; that of a band without its digest."""
    if parameters.engine.digest_bits is not None and parameters.predicate.kind == "equality":
        number = integer(key_layout(parameters), key)
        bits = parameters.engine.digest_bits
        return {"digest": digest_of(number, bits), "rest": number >> bits}
    if parameters.predicate.kind != "band":
        return dict(key)
    return {field.name: key[field.name] - least(field) for field in parameters.keys}


def stored_range(field, side, value, low, high):
    """The first and the final stored value that a probe with ``value`` meets, in the field."""
    first, final = (value + low, value + high) if side else (value - high, value - low)
    first, final = first - least(field), final - least(field)
    most = (1 << field.bits) - 1
    return (most, 0) if final < 0 or first > most else (max(first, 0), min(final, most))


def criterion_of(parameters, side, key, bounds=None):
    """The criterion of a probe of ``side``; ``bounds`` maps field names to (low, high).

    That of a band is without its digest (:mod:`tests.hdl.cell_digests`).
    """
    if parameters.predicate.kind != "band":
        return stored_key(parameters, key)
    bounds = {**open_bounds(parameters), **(bounds or {})}
    criterion = {}
    for n, group in enumerate(comparison_groups(parameters)):
        low = high = offset = 0
        for field in group:
            first, final = stored_range(field, side, key[field.name], *bounds[field.name])
            low |= first << offset
            high |= (final | 1 << field.bits) << offset
            offset += field.bits + 1
        criterion |= {f"low_{n}": low, f"high_{n}": high}
    return criterion


def criterion_ranges(parameters, criterion):
    """The lowest and the highest stored value of every field that a criterion admits."""
    ranges = []
    for n, group in enumerate(comparison_groups(parameters)):
        offset = 0
        for field in group:
            mask = (1 << field.bits) - 1
            ranges.append(
                tuple(criterion[f"{end}_{n}"] >> offset & mask for end in ("low", "high"))
            )
            offset += field.bits + 1
    return ranges


def in_range(parameters, control):
    """The operands of a control word, with the value that is in range and nearest."""
    least, most = {
        Control.WINDOW: (1, parameters.capacity),
        Control.LIFESPAN: (0, (1 << parameters.timestamp_bits) - 1),
    }.get(control["op"], (control["value"],) * 2)
    return {**control, "value": min(max(control["value"], least), most)}


def region_values(
    parameters, word, *, bounds=None, close=0, star=0, disorder=0, illegal=0, free=0, turns=None
):
    """An input word as it leaves the ingress: annotated, its operands in range, or prepared.

    ``turns`` are ``storing``, ``leaving`` and ``leaves``; by default core 0 stores.
    """
    body = word["body"]
    if word["kind"] != InputKind.CONTROL:
        key = body["tuple"]["key"]
        prepared = {
            "key": stored_key(parameters, key),
            "timestamp": body["tuple"]["timestamp"],
        }
        if not is_own_criterion(parameters):
            prepared["criterion"] = criterion_of(parameters, word["kind"].value, key, bounds)
        body = {"tuple": prepared}
    else:
        body = {"control": in_range(parameters, body["control"])}
    flags = {"disorder": disorder, "illegal": illegal, "free": free}
    turns = turns or {"storing": [0, 0], "leaving": [0, 0], "leaves": 0}
    return {"kind": word["kind"], "body": body, "close": close, "star": star, **flags, **turns}


def region_input(parameters, word, **options):
    """:func:`region_values` as an integer."""
    return integer(region_word(parameters), region_values(parameters, word, **options))


def mirrored_word(values):
    """The region word that says of side R what ``values`` says of S, and the other way round."""
    kind, body = values["kind"], values["body"]
    if kind == InputKind.CONTROL:
        control = body["control"]
        of_field = control["op"] == Control.COORDINATE
        body = {"control": {**control, "index": control["index"] ^ (not of_field)}}
    else:
        kind = InputKind(1 - kind.value)
    swapped = {
        name: values[name] >> 1 | (values[name] & 1) << 1 for name in ("close", "star", "leaves")
    }
    swapped |= {name: values[name][::-1] for name in ("storing", "leaving")}
    return {**values, "kind": kind, "body": body, **swapped}
