# SPDX-License-Identifier: Apache-2.0
"""What a shell asks of its accelerator, and the names of its inputs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from amaranth import *

from hdl.memory.axi4 import BaseAddress
from hdl.scalegate.gate import MOST_SOURCES
from hdl.words.results import results_of

__all__ = [
    "DIFFERENT",
    "ILLEGAL",
    "Family",
    "Fault",
    "InputNames",
    "Trait",
    "check_count",
    "check_inputs",
    "input_names",
    "is_mark",
    "sides_of",
]


@dataclass(frozen=True)
class Trait:
    """A field of the register ENGINE: what was generated, as a constant.

    Parameters
    ----------
    name : str
    offset, bits, value : int
    description : str
        A sentence for the user.
    """

    name: str
    offset: int
    bits: int
    value: int
    description: str


@dataclass(frozen=True)
class Fault:
    """A bit of the register ERRORS. A bit means the same in every shell that has it.

    Parameters
    ----------
    name : str
    bit : int
    description : str
        A sentence for the user.
    """

    name: str
    bit: int
    description: str


#: Faults of every family.
ILLEGAL = Fault("ILLEGAL", 0, "A star or mark told of an illegal word.")
DIFFERENT = Fault("DIFFERENT", 11, "Inputs brought different control words in the same place.")


@dataclass(frozen=True)
class InputNames:
    """The inputs that a shell merges.

    Parameters
    ----------
    names : tuple of str
        Name of each input, in capitals; none if a single input brings all words.
    sides : tuple of int
        Side whose tuples each input brings; all zero if tuples have no sides.
    """

    names: tuple[str, ...] = ()
    sides: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Family(ABC):
    """What the shell of an accelerator, its registers and its files are made of.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    input_word, result_word : data.Layout
        Layouts of its words. ``kind`` of a result is an enumeration with STAR and MARK.
    result_ports : tuple of str
        Names of the ports that results leave by.
    ports : dict of str to Member
        All members of the accelerator.
    memory_ports : dict of str to Member
        Those of a shell that lead to external memory.
    memory_base : BaseAddress or None
        Where in one memory the windows of each port are, if there are such ports.
    core_bits : tuple of str
        Those that have a bit for each core, which registers show.
    counters : tuple of Counter
        The counter map.
    counter_address_bits : int
    most_tuples : int
        Most tuples in an input word, and most results in a result word.
    traits : tuple of Trait
    faults : tuple of Fault
        What stars and marks tell of.
    time_bits : int
        Bits of the times by which inputs are merged.
    takes_watermarks : bool
        Whether the accelerator has an input word that says a watermark.
    orders : dict of str to dict of str to int
        What control words for the merge of the inputs say beside what the manifest lists, by the
        part of the manifest: operations, and ``source_orders`` if an index chooses the order.
    """

    parameters: Any
    input_word: Any
    result_word: Any
    result_ports: tuple[str, ...]
    ports: dict[str, Any]
    memory_ports: dict[str, Any]
    memory_base: BaseAddress | None
    core_bits: tuple[str, ...]
    counters: tuple[Any, ...]
    counter_address_bits: int
    most_tuples: int
    traits: tuple[Trait, ...]
    faults: tuple[Fault, ...]
    time_bits: int
    takes_watermarks: bool
    orders: dict[str, dict[str, int]]

    @abstractmethod
    def inputs(self, count, r_inputs=None):
        """Return the :class:`InputNames` of a shell with so many inputs.

        Parameters
        ----------
        count : int
        r_inputs : int or None
            So many of them bring R's tuples.

        Raises
        ------
        ValueError
            If the accelerator cannot have these inputs.
        """

    @abstractmethod
    def merge_faults(self, names):
        """Return the :class:`Fault` tuple of merged inputs.

        First come the late inputs of each side, then the excluded ones of each side, then different
        control words, then words that an input must not bring.
        """

    @abstractmethod
    def is_control(self, word):
        """Return whether an input word is a control word."""

    @abstractmethod
    def is_answered(self, control):
        """Return whether the accelerator answers a control word with a mark."""

    @abstractmethod
    def is_order(self, control):
        """Return whether a control word is meant for the merge of the inputs."""

    @abstractmethod
    def is_known(self, control):
        """Return whether such an order exists."""

    @abstractmethod
    def leaves(self, control):
        """Return whether an order lets the input leave."""

    @abstractmethod
    def excludes(self, control):
        """Return whether an order excludes another input."""

    @abstractmethod
    def told_faults(self, result):
        """Return a flag for each of :attr:`faults`, of a result that is a star or mark."""

    def silent(self, result):
        """Return whether a star tells of no faults; None if every star and mark does."""
        return

    def forgets_time(self, control):
        """Return whether the accelerator forgets all times; only with takes_watermarks."""
        raise NotImplementedError

    def say_watermark(self, word, time):
        """Return assignments that make a word say a watermark; only with takes_watermarks."""
        raise NotImplementedError


def is_mark(word):
    """Return whether a result word is a mark, which would be in its first result."""
    kind = results_of(word)[0].kind
    return kind == kind.shape().MARK


def check_count(inputs):
    """Raise :exc:`ValueError` unless a shell can have so many inputs."""
    if not 1 <= inputs <= MOST_SOURCES:
        raise ValueError(f"A shell has 1 to {MOST_SOURCES} inputs, not {inputs!r}")


def check_inputs(parameters, inputs, r_inputs=None):
    """Raise :exc:`ValueError` unless a join can have so many inputs, so many of them R's.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    inputs, r_inputs
        See :func:`input_names`.
    """
    check_count(inputs)
    if r_inputs is not None and not 1 <= r_inputs < inputs:
        raise ValueError(
            f"Of {inputs} inputs, at least one is R's and one is S's, so the number of R's inputs "
            f"must be between 1 and {inputs - 1}, not {r_inputs!r}"
            if inputs > 1
            else "One input takes the words of both sides, so it has no number of R's inputs"
        )
    if inputs > 1 and not parameters.timestamp_bits:
        raise ValueError(
            f"{inputs} inputs are merged by timestamp, so 'timestamp_bits' must not be zero"
        )
    if inputs > 1 and parameters.engine.tuples_per_word != 1:
        raise ValueError(
            f"{inputs} inputs take words of one side each, so 'tuples_per_word' must be 1, "
            f"not {parameters.engine.tuples_per_word!r}"
        )


def input_names(inputs, r_inputs=None):
    """Return the names of the inputs that are merged: R's first, then S's.

    A single input is not merged, so there are no names. A side with one input gives it its own
    name, ``R``; a side with several numbers them: ``R0``, ``R1``.

    Parameters
    ----------
    inputs : int
        Number of inputs.
    r_inputs : int or None
        So many of them bring R's tuples, and the others S's. None: half of them, rounded down.
    """
    if inputs == 1:
        return ()
    r_inputs = inputs // 2 if r_inputs is None else r_inputs
    return (*names_of("R", r_inputs), *names_of("S", inputs - r_inputs))


def names_of(side, inputs):
    """Return the names of the inputs of one side."""
    return (side,) if inputs == 1 else tuple(f"{side}{n}" for n in range(inputs))


def sides_of(names):
    """Return the side of each named input: 0 for R, 1 for S."""
    return tuple(int(name.startswith("S")) for name in names)
