# SPDX-License-Identifier: Apache-2.0
"""Real inputs: flights of the United States in 2001, and earthquakes of a week of 2018.

Both are works of the United States' government (Department of Transportation; Geological Survey),
in the form that vega-datasets gives them. They are no part of the repository:
``python -m bench.real_inputs`` fetches them into ``build/real``.
"""

from datetime import timedelta
from hashlib import sha256
import json
from pathlib import Path
from urllib.request import urlopen

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = [
    "EARTHQUAKES", "FLIGHTS", "JOIN_FLAGS", "connections", "earthquakes", "fetch", "write_streams",
]  # fmt: skip

FOLDER = Path(__file__).parent.parent / "build" / "real"
FLIGHTS, EARTHQUAKES = FOLDER / "flights-20k.json", FOLDER / "earthquakes.json"
SOURCE = (
    "https://raw.githubusercontent.com/vega/vega-datasets/"
    "cad85578e232704bb0453544742440038038c6a2/data/"
)
#: SHA-256 of each file.
DIGESTS = {
    FLIGHTS: "52f0ddd892d4569284b845e17323abc9afb7d303ec8f63251634a20327a610bb",
    EARTHQUAKES: "a42702a83ffbae679f95d1fa53e2cae0bae13b21e599a68cdd50a44fc52129f7",
}

JOIN_FLAGS = [
    *("--time", "time:time"),
    *("--on", "airport:airport"),
    "--band=time:time:-180min:-30min",
    *("--within", "180min"),
]
"""Which connections are there: flags of ``python -m host join`` and ``spark_offload join``.

A connection is an arrival and a departure at the same airport, departing 30 to 180 minutes after
the arrival.
"""

MINUTE = timedelta(minutes=1)


def fetch(path):
    """Fetch one of the files, unless it is there.

    Raises
    ------
    OSError
        If it cannot be fetched.
    ValueError
        If it is another file than was measured.
    """
    if path.exists():
        found = path.read_bytes()
    else:
        with urlopen(SOURCE + path.name, timeout=60) as answer:
            found = answer.read()
    if sha256(found).hexdigest() != DIGESTS[path]:
        raise ValueError(f"{path} is another file than {SOURCE}{path.name} was; remove it")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found)
    return path


def write_streams(source, folder):
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


def connections(arrivals, departures):
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


def earthquakes(source):
    """Return earthquakes in the order of their times: ``time``, ``x``, ``y`` and ``magnitude``.

    Longitude and latitude are in ten-thousandths of a degree, magnitudes in hundredths.
    """
    found = json.loads(source.read_text(encoding="utf-8"))["features"]
    found = [quake for quake in found if quake["properties"]["mag"] is not None]
    found.sort(key=lambda quake: quake["properties"]["time"])
    x, y = zip(*(quake["geometry"]["coordinates"][:2] for quake in found), strict=True)
    return pa.table(
        {
            "time": pa.array([q["properties"]["time"] for q in found], pa.timestamp("ms")),
            "x": pa.array([round(10_000 * degrees) for degrees in x], pa.int32()),
            "y": pa.array([round(10_000 * degrees) for degrees in y], pa.int32()),
            "magnitude": [round(100 * quake["properties"]["mag"]) for quake in found],
        }
    )


if __name__ == "__main__":
    for each in DIGESTS:
        print(fetch(each))
