# SPDX-License-Identifier: Apache-2.0
"""What the user sends: input words, and the operations of control words.

The manifest of a bundle is written from these layouts, so host code never repeats an offset.
"""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2

__all__ = [
    "SEED_BITS",
    "Control",
    "InputKind",
    "bound_shape",
    "bounds_layout",
    "control_layout",
    "coordinate_layout",
    "input_word",
    "key_layout",
    "limits_layout",
    "operation_indices",
    "tuple_layout",
    "value_ranges",
]


#: Bits of the seed of a hash (:mod:`hdl.index.bucket_hash`).
SEED_BITS = 32


class InputKind(enum.Enum, shape=2):
    """What an input word is."""

    R = 0
    S = 1
    CONTROL = 2
    #: A tuple of each side, one after the other. Illegal while a word holds one tuple.
    BOTH = 3


class Control(enum.Enum, shape=4):
    """Operation of a control word; ``index`` and ``value`` are its operands."""

    #: Empty both windows, restart all ordinals, forget faults. Configuration stays. Answers a mark.
    CLEAR = 0
    #: Close open groups. Answers a mark after every result of the tuples before it.
    FLUSH = 1
    #: Lower bound (inclusive) of ``r - s`` for key field ``index``.
    BOUND_LOW = 2
    #: Upper bound (inclusive) of ``r - s`` for key field ``index``.
    BOUND_HIGH = 3
    #: Side ``index`` gets a new, empty count-based window of ``value`` tuples.
    WINDOW = 4
    #: Side ``index`` gets a new, empty time-based window of lifespan ``value``.
    LIFESPAN = 5
    #: A star every ``value`` probes of a side; zero: as rarely as the probe index allows.
    #: Answers a mark.
    PRECISION = 6
    #: Key field ``index`` takes the part in the bucket of a tuple, and has the seed of its hash,
    #: that ``value`` says, a :func:`coordinate_layout`. Empties both windows. An index engine only.
    COORDINATE = 7
    #: While ``value`` is 1, the keys in the window of side ``index`` are distinct: a probe needs
    #: to find one match in each bucket only. Empties both windows. An index engine only.
    DISTINCT = 8


def key_layout(parameters):
    """Fields of a key, as stored."""
    return data.StructLayout(
        {
            key.name: signed(key.bits) if key.signed else unsigned(key.bits)
            for key in parameters.keys
        }
    )


def tuple_layout(parameters):
    """A tuple without its side: ``key`` and ``timestamp`` (zero bits wide if there is none)."""
    return data.StructLayout(
        {"key": key_layout(parameters), "timestamp": unsigned(parameters.timestamp_bits)}
    )


def bound_shape(key):
    """Shape of a bound of ``r - s``; its extremes are bounds that are always met."""
    return signed(key.bits + 1)


def bounds_layout(parameters):
    """One bit for each bound of a band: ``low`` and ``high`` of every key field."""
    keys = parameters.keys if parameters.comparator == "band" else ()
    ends = data.StructLayout({"low": 1, "high": 1})
    return data.StructLayout({key.name: ends for key in keys})


def coordinate_layout(parameters):
    """Part of a key field in the bucket of a tuple, as COORDINATE sets it.

    The field without its sign, shifted right by ``shift``, is the coordinate. Its lowest ``width``
    bits become bits ``place`` and up of the bucket's number. If it is ``hashed``, all bits of the
    field go into all bits of the number instead: for a field whose bounds are equal. The ``seed``
    chooses the hash (:class:`hdl.index.bucket_hash.FieldHash`). For the comparator ``"equality"``
    all fields are hashed, and the seed is all that there is to choose.
    """
    most = max(key.bits for key in parameters.keys)
    bits = parameters.bucket_width
    band = parameters.comparator == "band"
    members = {
        "shift": range(most + 1),
        "width": range(bits + 1),
        "place": range(bits + 1),
        "hashed": 1,
    }
    return data.StructLayout(
        {
            **{name: shape if band else unsigned(0) for name, shape in members.items()},
            "seed": SEED_BITS,
        }
    )


def control_layout(parameters):
    """Operands of a control word.

    ``value`` is signed and wide enough for every bound, lifespan, window size and star period.
    """
    value_bits = max(
        *(bound_shape(key).width for key in parameters.keys),
        parameters.timestamp_bits + 1,
        ceil_log2(parameters.capacity + 1) + 1,
        parameters.probe_bits + 2,
        coordinate_layout(parameters).size + 1 if parameters.engine == "index" else 0,
    )
    return data.StructLayout({"op": Control, "index": unsigned(4), "value": signed(value_bits)})


def operation_indices(parameters):
    """Return the operations that an accelerator executes, and how many indices each may have.

    A control word with another operation, or whose index is not below that number, is illegal.
    """
    fields, sides, any_index = (
        len(parameters.keys),
        2,
        1 << control_layout(parameters)["index"].width,
    )
    indices = {
        Control.CLEAR: any_index,
        Control.FLUSH: any_index,
        Control.BOUND_LOW: fields,
        Control.BOUND_HIGH: fields,
        Control.WINDOW: sides,
        Control.PRECISION: any_index,
    }
    if parameters.timestamp_bits:
        indices[Control.LIFESPAN] = sides
    if parameters.engine == "index":
        indices[Control.DISTINCT] = sides
        indices[Control.COORDINATE] = fields
    return dict(sorted(indices.items(), key=lambda item: item[0].value))


def input_word(parameters):
    """What the user sends: ``kind``, then a ``tuple`` or a ``control`` operation.

    With two tuples in a word, or ``both``: the tuples ``r`` and ``s``, of which that of side
    ``first`` comes first. Such a word means what its two tuples mean one after the other.
    """
    tuple_shape = tuple_layout(parameters)
    bodies = {"tuple": tuple_shape, "control": control_layout(parameters)}
    if parameters.tuples_per_word == 1:
        return data.StructLayout({"kind": InputKind, "body": data.UnionLayout(bodies)})
    bodies["both"] = data.StructLayout({"r": tuple_shape, "s": tuple_shape})
    return data.StructLayout({"kind": InputKind, "first": 1, "body": data.UnionLayout(bodies)})


def value_ranges(parameters):
    """Return the least and the greatest value of operations that begin a window."""
    ranges = {Control.WINDOW: (1, parameters.capacity)}
    if parameters.timestamp_bits:
        ranges[Control.LIFESPAN] = (0, (1 << parameters.timestamp_bits) - 1)
    return ranges


def limits_layout(parameters):
    """Whether the value of a word is ``below`` or ``above`` what :func:`value_ranges` has."""
    ends = data.StructLayout({"below": 1, "above": 1})
    return data.StructLayout({op.name: ends for op in value_ranges(parameters)})
