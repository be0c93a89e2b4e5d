# SPDX-License-Identifier: Apache-2.0
"""The flights data as the two streams of a real question: which connections are there?

``python -m tests.flights --input flights-20k.json --output DIR`` writes ``arrivals.parquet`` and
``departures.parquet``. A connection is an arrival and a departure at the same airport, departing 30
to 180 minutes after the arrival.
"""

import argparse
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FLIGHTS", "JOIN_FLAGS", "connections", "write_streams"]

FLIGHTS = Path(__file__).parents[2] / "shared" / "data" / "flights-20k.json"
"""The real input, beside the repository; tests skip when it is absent."""

JOIN_FLAGS = [
    *("--time", "time:time"),
    *("--on", "airport:airport"),
    "--band=time:time:-180min:-30min",
    *("--within", "180min"),
]
"""The question, as flags of ``python -m host join`` and of ``python -m spark_offload join``."""

MINUTE = timedelta(minutes=1)


def write_streams(source: Path, folder: Path) -> tuple[Path, Path]:
    """Write arrivals and departures below ``folder``; return both paths.

    An arrival is at the destination, at date + delay + distance / 8 minutes; a departure is at the
    origin, at date + delay. Rows stay in the order of the source, which is not that of the times.
    """
    flights = pd.read_json(source, convert_dates=False)
    departure = pd.to_datetime(flights["date"], format="%Y/%m/%d %H:%M") + pd.to_timedelta(
        flights["delay"] * 60_000, unit="ms"
    )
    # An eighth of a minute is 7.5 seconds: exact in whole milliseconds.
    arrival = departure + pd.to_timedelta(flights["distance"] * 7_500, unit="ms")
    number = pd.RangeIndex(len(flights))
    arrivals = pd.DataFrame(
        {
            "flight": number,
            "airport": flights["destination"],
            "time": arrival.astype("datetime64[us]"),
            "origin": flights["origin"],
        }
    )
    departures = pd.DataFrame(
        {
            "flight": number,
            "airport": flights["origin"],
            "time": departure.astype("datetime64[us]"),
            "destination": flights["destination"],
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "arrivals.parquet", folder / "departures.parquet"
    for path, frame in zip(paths, (arrivals, departures), strict=True):
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    return paths


def connections(arrivals: Path, departures: Path) -> pd.DataFrame:
    """Return every connection, found by pandas alone, in the order of its departure.

    A connection is found by its departure, the later of the two; departures that are equally late
    come in input order, and so do the arrivals of one departure (by time, then input order).
    """
    # Read by path: through pandas' file objects pyarrow at times aborts when Python ends.
    left = pq.read_table(arrivals).to_pandas().rename_axis("left_row").reset_index()
    right = pq.read_table(departures).to_pandas().rename_axis("right_row").reset_index()
    pairs = left.merge(right, on="airport", suffixes=("", "_right"))
    wait = pairs["time_right"] - pairs["time"]
    found = pairs[(wait >= 30 * MINUTE) & (wait <= 180 * MINUTE)]
    found = found.sort_values(["time_right", "right_row", "time", "left_row"], kind="stable")
    found.insert(found.columns.get_loc("flight_right") + 1, "airport_right", found["airport"])
    return found.drop(columns=["left_row", "right_row"]).reset_index(drop=True)


def main() -> None:
    """Write the two streams that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.flights", description=__doc__)
    parser.add_argument("--input", type=Path, default=FLIGHTS, metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    for path in write_streams(arguments.input, arguments.output):
        print(path)


if __name__ == "__main__":
    main()
