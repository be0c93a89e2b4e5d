# SPDX-License-Identifier: Apache-2.0
"""Run by a test in an empty folder: joins on a cluster of two workers with devices that fail.

Its argument is a folder to work in; it prints answers and devices as JSON on the last line.
"""

from functools import partial
import json
from pathlib import Path
import sys
import zipfile

from spark_offload import explain, metrics, stream_join
from spark_offload.cluster.session import open_session
from tests.spark_offload import faulty
from tests.spark_offload.discovery import discovery_options

__all__ = ["main"]

SIM = Path(faulty.__file__).resolve().parents[2] / "sim"


def main(folder):
    """Join with a pool of which two devices fail, and with devices that Spark assigns."""
    place = Path(folder)
    card = partial(faulty.address, module="cards.faulty")
    package = place / "cards.zip"
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("cards/__init__.py", "")
        archive.write(faulty.__file__, "cards/faulty.py")
        # What the card answers with: a model of an accelerator, which the kit does not ship.
        for file in (SIM / "__init__.py", *sorted((SIM / "model").glob("*.py"))):
            archive.write(file, f"sim/{file.relative_to(SIM)}")
    first, second = card("sound", place / "first"), card("sound", place / "second")
    # Two tasks at a time in each executor, on the one device that Spark assigns to it.
    options = discovery_options(place, first, second, amount="0.5")
    spark = open_session("devices", master="local-cluster[2,2,1024]", options=options)
    spark.sparkContext.addPyFile(str(package))
    left = spark.range(0, 4000, 2).selectExpr("id as t", "id % 101 as k")
    right = spark.range(1, 4000, 2).selectExpr("id as t", "id % 101 as k")
    pool = [card("breaks", place / "a"), card("hangs", place / "b"), card("sound", place / "c")]
    answer = {}
    for name, device in (("own", "software:"), ("resource", "resource:card"), ("pool", pool)):
        pairs = stream_join(left, right, on="k", time="t", within=999, device=device, partitions=4)
        answer[name] = {
            "pairs": sorted(tuple(row) for row in pairs.collect()),
            "chosen": explain(pairs).chosen,
            "devices": [Path(task.device).name for task in metrics(pairs).tasks],
            "attempts": [task.attempt for task in metrics(pairs).tasks],
        }
    spark.stop()
    print()
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
