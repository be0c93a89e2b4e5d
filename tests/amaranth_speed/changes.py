# SPDX-License-Identifier: Apache-2.0
"""All changes of this folder: Amaranth does the same in less time."""

from tests.amaranth_speed.engine import queue_processes
from tests.amaranth_speed.nets import check_nets_quickly
from tests.amaranth_speed.programs import share_programs
from tests.amaranth_speed.values import keep_shapes, postpone_formats, recognize_values
from tests.amaranth_speed.widths import keep_widths

__all__ = ["quicken"]

CHANGES = [
    keep_widths,
    keep_shapes,
    recognize_values,
    postpone_formats,
    check_nets_quickly,
    share_programs,
    queue_processes,
]


def quicken(monkeypatch):
    """Make all changes.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes them.
    """
    for change in CHANGES:
        change(monkeypatch)
