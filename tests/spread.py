# SPDX-License-Identifier: Apache-2.0
"""Which tests are on one worker: those of a file, and all that share the session of Spark.

A session costs a Java process, which compiles whatever its first queries need: twenty seconds of a
processor for batches and as much again for streams.
"""

from xdist.scheduler import LoadFileScheduling

__all__ = ["SPARK", "SparkOnOneWorker", "unit_of"]

#: Folder of the tests that share a session.
SPARK = "tests/spark_offload/"


def unit_of(nodeid):
    """Return the name of what a test stays together with: its file, or :data:`SPARK`."""
    return SPARK if nodeid.startswith(SPARK) else nodeid.partition("::")[0]


class SparkOnOneWorker(LoadFileScheduling):
    """Workers get the units of :func:`unit_of` one by one."""

    def _split_scope(self, nodeid):
        return unit_of(nodeid)
