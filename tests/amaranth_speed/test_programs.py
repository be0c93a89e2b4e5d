# SPDX-License-Identifier: Apache-2.0
from amaranth.sim import _pyrtl
import pytest

from tests.amaranth_speed.programs import is_program, maker_of, program_of, share_programs

PROGRAM = """\
def run():
    next_{0} = slots[{0}].next
    next_{0} = 7 & slots[{1}].curr + slots[{2}].read(3)
    slots[{0}].update(next_{0}, 7)
"""


class Slot:
    def __init__(self, value):
        self.curr = self.next = value
        self.updates = []

    def update(self, value, mask):
        self.updates.append((value, mask))

    def read(self, addr):
        return addr


def signals():
    """Return signals, each of which has its number as its value."""
    return [Slot(n) for n in range(30)]


@pytest.mark.parametrize("numbers", [(0, 1, 2), (12, 1, 21)])
def test_a_program_reads_and_writes_its_own_signals(numbers):
    slots = signals()
    target = slots[numbers[0]]
    run = program_of(PROGRAM.format(*numbers), slots)
    run()
    assert target.updates == [(4, 7)]
    target.next = 4
    run()
    assert target.updates == [(4, 7)], "there was nothing to change"


def test_programs_that_are_alike_are_compiled_once():
    slots = signals()
    maker_of.cache_clear()
    for numbers in [(0, 1, 2), (5, 3, 4), (1, 2, 3)]:
        program_of(PROGRAM.format(*numbers), slots)
    program_of(PROGRAM.format(0, 1, 0), slots)
    assert maker_of.cache_info().misses == 2


def test_texts_that_are_shown_stay_as_they_are(monkeypatch):
    share_programs(monkeypatch)
    assert not is_program('def run():\n    print("slots[3]")\n')
    error = ValueError("shown")
    with pytest.raises(ValueError, match="shown"):
        _pyrtl.pin_blame(("file", 3), error)
