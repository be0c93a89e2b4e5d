# SPDX-License-Identifier: Apache-2.0
"""Names and sides of the inputs of a join that a shell merges."""

from hdl.scalegate.gate import MOST_SOURCES

__all__ = ["check_count", "check_inputs", "input_names", "sides_of"]


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
    if inputs > 1 and parameters.tuples_per_word != 1:
        raise ValueError(
            f"{inputs} inputs take words of one side each, so 'tuples_per_word' must be 1, "
            f"not {parameters.tuples_per_word!r}"
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
