# SPDX-License-Identifier: Apache-2.0
"""The state and the timers that Spark keeps for one group, in plain Python."""

__all__ = ["GroupState"]


class _Value:
    def __init__(self):
        self.value = None

    def get(self):
        return self.value

    def update(self, newValue):
        assert isinstance(newValue, tuple)
        self.value = newValue

    def clear(self):
        self.value = None


class _Map:
    def __init__(self):
        self.values = {}
        self.written = []

    def getValue(self, key):
        return self.values.get(key)

    def updateValue(self, key, value):
        assert isinstance(value, tuple)
        self.values[key] = value
        self.written.append(key)

    def removeKey(self, key):
        del self.values[key]


class GroupState:
    """What Spark holds for a group; also the handle by which timers are set.

    Attributes
    ----------
    question, directory, rows
        As :class:`~spark_offload.stream.processor.GroupJoin` takes them.
    timers : set of int
        Those that are set.
    deletable : bool
        Whether one may be deleted now.
    """

    def __init__(self):
        self.question, self.directory, self.rows = _Value(), _Value(), _Map()
        self.timers = set()
        self.deletable = True

    def registerTimer(self, expiryTimestampMs):
        assert expiryTimestampMs not in self.timers
        self.timers.add(expiryTimestampMs)

    def deleteTimer(self, expiryTimestampMs):
        assert self.deletable
        self.timers.remove(expiryTimestampMs)
