# SPDX-License-Identifier: Apache-2.0
"""Input words, and the operations of control words.

The manifest of a bundle is written from these layouts, so host code never repeats an offset.
"""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2

from .values import longest_round

__all__ = [
    "Control",
    "InputKind",
    "SEED_BITS",
    "SOURCE_OPERATION",
    "SourceOrder",
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

#: Bits of a hash seed (:mod:`hdl.index.cells`).
SEED_BITS = 32


class InputKind(enum.Enum, shape=2):
    """Kind of an input word."""

    R = 0
    S = 1
    CONTROL = 2
    #: A tuple of R and a tuple of S, one after the other. Illegal unless a word may hold two
    #: tuples.
    BOTH = 3


class Control(enum.Enum, shape=4):
    """Operation of a control word. Its operands are ``index`` and ``value``."""

    #: Empty both windows, restart the numbering of tuples at zero, forget all faults. The
    #: configuration stays. The accelerator answers with a mark.
    CLEAR = 0
    #: Close open groups. The accelerator answers with a mark, after every result of the tuples
    #: before this word.
    FLUSH = 1
    #: Set the inclusive lower bound of ``r - s`` for key field ``index``.
    BOUND_LOW = 2
    #: Set the inclusive upper bound of ``r - s`` for key field ``index``.
    BOUND_HIGH = 3
    #: Begin a new, empty count-based window of ``value`` tuples for side ``index``.
    WINDOW = 4
    #: Begin a new, empty time-based window of lifespan ``value`` for side ``index``.
    LIFESPAN = 5
    #: Send a star every ``value`` probes of a side. Zero means no star but before the marks and
    #: wherever a control word closes groups; a value below zero, or too large, as rarely as the
    #: probe index allows. The accelerator answers with a mark.
    PRECISION = 6
    #: Set how key field ``index`` determines the bucket of a tuple, and the seed of its hash.
    #: ``value`` is a :func:`coordinate_layout`. Empties both windows. Index engine only.
    COORDINATE = 7
    #: If ``value`` is 1, promise that no probe matches more than one tuple in the window of side
    #: ``index``: a walk ends with its first match. Empties both windows. Index engine only.
    DISTINCT = 8
    #: Append core ``value`` to the list of the next segment. Illegal if there is no such core, or
    #: if it is already in the list.
    CORE = 9
    #: Begin a segment: from here on, the cores of the list take turns to store tuples, in the order
    #: of the list. Empties no window. Illegal if the list is empty or too many segments are held.
    SEGMENT = 10
    #: Set the field and the width of the cells that part ``index`` of the digests is made of.
    #: ``value`` is a :func:`hdl.predicates.cells.cell_layout`. Empties both windows. Only for a
    #: band with digests.
    CELL = 11
    #: Send a star for every probe, and one after each round of ``value`` stored tuples of each core
    #: (:mod:`hdl.words.values`). The accelerator answers with a mark. Only with rounds.
    INNER = 12
    #: Mask core ``value``: it gets no word after this one, and later groups lack its results. Only
    #: if cores have gates. Without any effect if there is no such core.
    MASK = 13
    #: Reset core ``value``, if it is masked or has failed, and let it take part again. Of a core
    #: that works it only closes the open groups, as a core may fail at any time; without any effect
    #: if there is no such core.
    UNMASK = 14


def key_layout(parameters):
    """Return the layout of a key as the user sends it."""
    return data.StructLayout(
        {
            key.name: signed(key.bits) if key.signed else unsigned(key.bits)
            for key in parameters.keys
        }
    )


def tuple_layout(parameters):
    """Return the layout of a tuple without its side.

    ``timestamp`` is zero bits wide if the accelerator has no timestamps. A join aggregate stores a
    ``value`` beside the key of a tuple of S; that of a tuple of R has no meaning.
    """
    return data.StructLayout(
        {
            "key": key_layout(parameters),
            "timestamp": unsigned(parameters.timestamp_bits),
            **parameters.engine.beside(parameters),
        }
    )


def bound_shape(key):
    """Return the shape of a bound of ``r - s``.

    The extreme values of this shape are open bounds: every pair satisfies them.
    """
    return signed(key.bits + 1)


def bounds_layout(parameters):
    """Return a layout with a bit for each bound of a band.

    There is ``low`` and ``high`` for every key field that has bounds.
    """
    ends = data.StructLayout({"low": 1, "high": 1})
    return data.StructLayout({key.name: ends for key in parameters.bounded})


def coordinate_layout(parameters):
    """Return the layout of the value of COORDINATE: the part of a key field in the bucket number.

    The coordinate of a field is its value without sign, shifted right by ``shift``. The lowest
    ``width`` bits of the coordinate become the bits of the bucket number from bit ``place`` on.

    If ``hashed`` is set, a hash of the whole field goes into all bits of the bucket number instead.
    This is for a field whose two bounds are equal. ``seed`` selects the hash
    (:class:`hdl.index.cells.FieldHash`).

    Without bounds, all fields are hashed and ``seed`` is the only member that has any bits.
    """
    most = max(key.bits for key in parameters.keys)
    bits = parameters.engine.bucket_bits
    members = {
        "shift": range(most + 1),
        "width": range(bits + 1),
        "place": range(bits + 1),
        "hashed": 1,
    }
    return data.StructLayout(
        {
            **(members if parameters.bounded else dict.fromkeys(members, unsigned(0))),
            "seed": SEED_BITS,
        }
    )


def control_layout(parameters):
    """Return the layout of a control word: its operation and its operands.

    ``value`` is signed and wide enough for every bound, lifespan, window size and star period, and
    for the operands of engine and rule.
    """
    value_bits = max(
        *(bound_shape(key).width for key in parameters.keys),
        parameters.timestamp_bits + 1,
        ceil_log2(parameters.capacity + 1) + 1,
        parameters.engine.probe_bits + 2,
        *(
            layout.size + 1
            for part in (parameters.engine, parameters.rule)
            for layout in part.operands(parameters)
        ),
        longest_round(parameters) + 2 if parameters.engine.rounds else 0,
    )
    return data.StructLayout({"op": Control, "index": unsigned(4), "value": signed(value_bits)})


def operation_indices(parameters):
    """Return the operations that an accelerator executes, with the number of legal indices of each.

    A control word is illegal if its operation is none of these, or if its index is not below that
    number.
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
    indices |= parameters.engine.operations(parameters) | parameters.rule.operations(parameters)
    if parameters.has_gates:
        indices[Control.MASK] = indices[Control.UNMASK] = any_index
    if parameters.arrangement.has_stars:
        indices[Control.CORE] = indices[Control.SEGMENT] = any_index
    if parameters.engine.rounds:
        indices[Control.INNER] = any_index
    return dict(sorted(indices.items(), key=lambda item: item[0].value))


def input_word(parameters):
    """Return the layout of an input word: ``kind``, then a ``tuple`` or a ``control`` operation.

    With two tuples per word, the body may also be ``both``: the tuples ``r`` and ``s``. The tuple
    of side ``first`` comes first. Such a word has the effect of two words with one tuple each.
    """
    tuple_shape = tuple_layout(parameters)
    bodies = {"tuple": tuple_shape, "control": control_layout(parameters)}
    if not parameters.side_by_side:
        return data.StructLayout({"kind": InputKind, "body": data.UnionLayout(bodies)})
    bodies["both"] = data.StructLayout({"r": tuple_shape, "s": tuple_shape})
    return data.StructLayout({"kind": InputKind, "first": 1, "body": data.UnionLayout(bodies)})


def value_ranges(parameters):
    """Return the least and the greatest value of every operation that begins a window.

    A value outside of this range is clamped (:func:`hdl.words.operands.limit_value`).
    """
    ranges = {Control.WINDOW: (1, parameters.capacity)}
    if parameters.timestamp_bits:
        ranges[Control.LIFESPAN] = (0, (1 << parameters.timestamp_bits) - 1)
    return ranges


def limits_layout(parameters):
    """Return a layout of flags for every operation that begins a window.

    They say whether the value of a word is ``below`` or ``above`` its range (:func:`value_ranges`).
    """
    ends = data.StructLayout({"below": 1, "above": 1})
    return data.StructLayout({op.name: ends for op in value_ranges(parameters)})


#: Operation of a control word that is meant for the merge of the inputs, not for the accelerator,
#: which has no operation of this number.
SOURCE_OPERATION = 15


class SourceOrder(enum.Enum, shape=2):
    """What such a control word says, by its index."""

    #: This input sends no tuple below ``value`` any more.
    WATERMARK = 0
    #: This input leaves, and comes back with its next word.
    LEAVE = 1
    #: Another input is excluded if it stalls: of two inputs the other one, of more inputs the one
    #: with the number ``value``.
    EXCLUDE = 2
