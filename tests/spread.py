# SPDX-License-Identifier: Apache-2.0
"""Which tests are on one worker: those of a file, and those that share a session of Spark.

A session costs a Java process, which compiles whatever its first queries need: twenty seconds of a
processor for batches and as much again for streams. So there is one for each of them: one for both
would be busy longer than all other tests take the other workers.
"""

from xdist.scheduler import LoadFileScheduling

__all__ = ["SPARK", "SparkOnTwoWorkers", "unit_of"]

#: Folder of the tests that share sessions.
SPARK = "tests/spark_offload/"


def unit_of(nodeid):
    """Return the name of what a test stays together with: its file, or a part of :data:`SPARK`."""
    file = nodeid.partition("::")[0]
    if not file.startswith(SPARK):
        return file
    return f"{SPARK}streams" if "stream" in file.removeprefix(SPARK) else f"{SPARK}batches"


class SparkOnTwoWorkers(LoadFileScheduling):
    """Workers get the units of :func:`unit_of` one by one."""

    def _split_scope(self, nodeid):
        return unit_of(nodeid)
