# SPDX-License-Identifier: Apache-2.0
"""How a region executes control words."""

from typing import NamedTuple

from amaranth import *

from .words.inputs import Control
from .words.operands import answers_mark, begins_window, empties_window

__all__ = ["ControlSteps", "elaborate_execution", "elaborate_steps", "rounds_after"]


class ControlSteps(NamedTuple):
    """The steps in which a region executes the control word at hand.

    Parameters
    ----------
    control : View
        Operation and operands of the word, from a register.
    passed : Value
        The word is executed in this cycle, and leaves.
    ends : Value
        The group before the word ends in this cycle.
    marked : Value
        A mark follows that group.
    executing : Signal
        The word empties the window in this cycle, while the engine is idle.
    """

    control: object
    passed: object
    ends: object
    marked: object
    executing: object


def elaborate_steps(m, parameters, words, takes, engine):
    """Examine a control word in one cycle, execute it in the next, or when the engine is idle.

    Parameters
    ----------
    m : Module
        Module of the region.
    parameters : JoinParameters
        Parameters of the accelerator.
    words : stream
        Region words with the flags ``control`` and ``closes``.
    takes : Signal
        The engine can take the end of a group.
    engine : Component
        See :func:`hdl.engine.engine_members`.

    Returns
    -------
    ControlSteps
    """
    control, closes = words.payload.word.body.control, words.payload.closes
    # Every word is examined, whether it is a control word or not, so this needs no enable.
    looked = Signal(control.shape(), reset_less=True)
    empties = empties_window(control, parameters)
    waits = words.valid & words.payload.control & ~words.ready
    # A control word is at hand: one that empties no window, one that empties a window.
    passing, emptying = Signal(), Signal()
    closed = Signal()  # the group before the control word has already ended
    executing = Signal()  # the engine is idle: the window is emptied in this cycle
    marks = Signal(reset_less=True)
    m.d.sync += [
        looked.eq(control),
        marks.eq(answers_mark(control)),
        passing.eq(waits & ~empties),
        emptying.eq(waits & empties),
    ]
    ends = Signal()
    m.d.comb += ends.eq((passing | (emptying & ~closed)) & closes & takes)
    with m.If(executing):
        m.d.sync += [closed.eq(0), executing.eq(0)]
    with m.Elif(emptying & closes & ~closed):
        m.d.sync += closed.eq(takes)
    with m.Elif(emptying):
        m.d.sync += executing.eq(engine.idle & ~engine.close)
    return ControlSteps(
        control=looked,
        passed=(passing & (~closes | takes)) | executing,
        ends=ends,
        marked=(passing | emptying) & marks,
        executing=executing,
    )


def elaborate_execution(m, steps, tracker, engine):
    """Empty the window, and begin another one if the control word says so.

    The engine receives the control word as well, and may have more to do.
    """
    control, executing = steps.control, steps.executing
    empties, forgets, begin_count, begin_time = (
        Signal(reset_less=True, name=name)
        for name in ("empties", "forgets", "begin_count", "begin_time")
    )
    own = control.index == 1
    m.d.sync += [  # these may come a cycle late, as the engine is asked first whether it is idle
        empties.eq(~begins_window(control)),
        forgets.eq(control.op == Control.CLEAR),
        begin_count.eq((control.op == Control.WINDOW) & own),
        begin_time.eq((control.op == Control.LIFESPAN) & own),
    ]
    m.d.comb += [
        tracker.size.eq(control.value),
        tracker.empty.eq(executing & empties),
        tracker.forget.eq(executing & forgets),
        tracker.begin_count.eq(executing & begin_count),
        tracker.begin_time.eq(executing & begin_time),
        engine.configure.eq(executing),
        engine.control.eq(control),
    ]


def rounds_after(parameters, word, ending):
    """Return what a word says, to the ``ending`` of its group, about rounds.

    A control word closes groups of several probes, which are not sent in rounds. What it says about
    rounds is of the groups that follow, and the mark tells.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    word : View
        Region word with the flag ``control``.
    ending : View
        The :func:`~hdl.words.spans.ending_layout` to assign.
    """
    if not parameters.rounds:
        return []
    rounds = word.word.rounds
    return [
        ending.rounds.eq(Mux(word.control, 0, rounds)),
        ending.punctuation.inner.eq(word.control & rounds.any()),
    ]
