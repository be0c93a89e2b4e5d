# SPDX-License-Identifier: Apache-2.0
"""Count the instructions of a thread and of the threads that it starts, where that is allowed."""

import ctypes
import os
import platform
import struct

__all__ = ["Instructions"]

#: System call number of ``perf_event_open``, by machine.
CALLS = {"x86_64": 298, "aarch64": 241}
#: PERF_TYPE_HARDWARE and PERF_COUNT_HW_INSTRUCTIONS.
INSTRUCTIONS = (0, 1)
#: Count threads that start inside the context, but neither the kernel nor a hypervisor: inherit,
#: exclude_kernel, exclude_hv.
FLAGS = 1 << 1 | 1 << 5 | 1 << 6
#: Size of the first version of ``struct perf_event_attr``, all of whose fields are used here.
SIZE = 64


class Instructions:
    """Context manager that counts the instructions that this thread executes inside.

    Threads that the thread starts inside count as well. Containers often forbid counting.

    Parameters
    ----------
    event : tuple of int
        Type and number of the counted event.

    Attributes
    ----------
    count : int or None
        Number of instructions, set on leaving the context; None if they cannot be counted.
    """

    def __init__(self, event=INSTRUCTIONS):
        self.event = event
        self.count = None
        self._file = None

    def __enter__(self):
        number = CALLS.get(platform.machine())
        if number is not None and platform.system() == "Linux":
            kind, config = self.event
            attributes = struct.pack("=IIQQQQQIIQ", kind, SIZE, config, 0, 0, 0, FLAGS, 0, 0, 0)
            library = ctypes.CDLL(None, use_errno=True)
            handle = library.syscall(number, attributes, 0, -1, -1, 0)
            self._file = handle if handle >= 0 else None
        return self

    def __exit__(self, *error):
        if self._file is not None:
            (self.count,) = struct.unpack("=Q", os.read(self._file, 8))
            os.close(self._file)
            self._file = None
