# SPDX-License-Identifier: Apache-2.0
"""Keep every measured point at once, so that an interrupted sweep goes on where it stopped."""

from dataclasses import asdict
import hashlib
import json
from threading import Lock

from .measurement import METHOD
from .side_by_side import side_by_side

__all__ = ["Store", "key_of"]


def key_of(bundle_hash, point):
    """Return the key of a point: it follows from the circuit, the load and the method."""
    text = json.dumps([METHOD, bundle_hash, asdict(point)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Store:
    """Measured points in a file of JSON lines.

    A line that was cut off, as by a crash, is ignored, and its point is measured again.

    Parameters
    ----------
    path : Path
        The file; it need not exist.
    """

    def __init__(self, path):
        self.path = path
        self._found = {}
        self._writing = Lock()
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            try:
                record = json.loads(line)
                self._found[record["key"]] = record["measured"]
            except (ValueError, KeyError):
                continue
        self._cut = bool(text) and not text.endswith("\n")

    def get(self, bundle_hash, point):
        """Return what was measured at a point of a circuit, or None."""
        return self._found.get(key_of(bundle_hash, point))

    def put(self, bundle_hash, point, measured):
        """Keep what was measured."""
        key = key_of(bundle_hash, point)
        record = {"key": key, "bundle": bundle_hash, "point": asdict(point), "measured": measured}
        with self._writing:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(("\n" if self._cut else "") + json.dumps(record) + "\n")
            self._cut = False
            self._found[key] = measured

    def fill(self, points, circuit_of, measure, advance, *, workers=1):
        """Return what was measured at each point; what is in the store is not measured again.

        After an error, points that are being measured are kept, and the others are given up. After
        an interrupt, nothing is waited for.

        Parameters
        ----------
        points : collection
            The points, in the order in which their measurement begins.
        circuit_of, measure : callable
            Return the hash of a point's circuit, and what is measured at a point. Threads call
            them.
        advance : callable
            Called with the number of points that are done, and that there are.
        workers : int
            Points to measure at the same time.
        """

        def known(point):
            circuit = circuit_of(point)
            measured = self.get(circuit, point)
            if measured is None:
                measured = measure(point)
                self.put(circuit, point, measured)
            return measured

        return side_by_side(known, points, workers=workers, advance=advance)
