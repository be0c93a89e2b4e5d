# SPDX-License-Identifier: Apache-2.0
"""Time a join of two Arrow tables on a simulated device, from tables to batches.

The module is also a program, so that the device of an earlier commit can be timed with the code of
that commit::

    PYTHONPATH=FOLDER python -P bench/figures/timed_join.py BUNDLE < JOIN

``JOIN`` is a JSON object: ``parameters`` of the device, ``bounds`` of the compared fields, the
number of different ``values`` in a field, and the number of ``joins`` to time. The program prints a
JSON list with the wall-clock seconds, device seconds and number of results of each join.
"""

import json
from pathlib import Path
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters
from host import Ordering, open_device
from host.query.queries import Query
from host.session.join import Join

__all__ = ["PERIOD", "TUPLES", "WINDOW", "uniform_join"]

#: Tuples per side of the window.
WINDOW = 1 << 16
#: Probes per star. Each star takes a cycle of the output, as a result does.
PERIOD = 1 << 10
#: Tuples of both sides in one join.
TUPLES = 1 << 21


def uniform_join(bounds, values):
    """Return a function that joins two tables of uniform keys on a device.

    Parameters
    ----------
    bounds : dict of str to int
        Compared fields, and the largest difference in either direction.
    values : int
        Number of different values in every field.

    Returns
    -------
    function
        Takes a device; returns wall-clock seconds, seconds spent in the device, and the number of
        results.
    """
    generator = np.random.default_rng(1)
    rows = TUPLES // 2
    tables = [
        pa.table(
            {
                "t": np.arange(rows, dtype=np.int64) * 2 + side,
                **{name: generator.integers(0, values, rows, dtype=np.int32) for name in "xy"},
            }
        )
        for side in range(2)
    ]
    query = Query(
        band={name: (-bound, bound) for name, bound in bounds.items()},
        time="t", rows=WINDOW, ordering=Ordering(PERIOD), sorted=True,
    )  # fmt: skip

    def timed(device):
        start = time.perf_counter()
        join = Join(*tables, query, device)
        results = sum(batch.num_rows for batch in join.batches())
        return time.perf_counter() - start, join.measured.seconds, results

    return timed


def main():
    """Build the device in the folder given by the first argument, and time joins on it."""
    bundle, join = Path(sys.argv[1]), json.load(sys.stdin)
    # The earlier commit has fewer parameters, which are no tree.
    words, known = join["parameters"], JoinParameters.__dataclass_fields__
    if hasattr(JoinParameters, "of"):
        parameters = JoinParameters.of(**words)
    else:
        parameters = JoinParameters.from_dict(
            {name: words[name] for name in known.keys() & words.keys()}
        )
    write_bundle(parameters, bundle)
    # The build runs as a command because its module has another name in the earlier commit.
    build = [sys.executable, "-P", "-m", "sim", "build", str(bundle)]
    subprocess.run(build, stdout=subprocess.DEVNULL, check=True)
    with open_device(f"sim:{bundle}") as device:
        timed = uniform_join(join["bounds"], join["values"])
        print(json.dumps([timed(device) for _ in range(join["joins"])]))


if __name__ == "__main__":
    main()
