# SPDX-License-Identifier: Apache-2.0
"""Measure points side by side, and keep each at once: a sweep goes on where it was interrupted.

A point is an immutable object that knows all about its measurement: ``accelerator``, the name of
what it is measured on, and its ``parameters``; ``store``, the name of the file that keeps what was
measured; and ``measure``, which returns that as JSON-compatible values from the manifest of a
bundle whose library is built.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict
import hashlib
import json
from pathlib import Path
from threading import Lock, Thread

from hdl.bundle import write_bundle
from host.errors import ManifestError
from host.installation import processors
from host.protocol.manifest import load_manifest
from sim.verilated.library import build_library

__all__ = ["FOLDER", "Ahead", "Store", "design", "prepare", "side_by_side", "sweep"]

#: Where bundles and measured points are.
FOLDER = Path("build") / "experiments"
#: Raise this when points are measured in another way: what is stored is then measured anew.
METHOD = 5
SOURCES = tuple(Path(__file__).parents[2] / part for part in ("hdl", "bench/handshake"))


def design():
    """Return a hash of all sources of the hardware."""
    digest = hashlib.sha256()
    for path in [path for part in SOURCES for path in sorted(part.rglob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def prepare(name, parameters, folder, report):
    """Generate the bundle of an accelerator and build its library, unless they are there.

    A bundle is generated again when a source of the hardware has changed since.

    Parameters
    ----------
    name : str
        Name of the bundle's folder.
    parameters : JoinParameters or AggregateParameters
        The accelerator.
    folder : Path
        Where the bundles are.
    report : callable
        Receives lines about the progress.

    Returns
    -------
    Manifest or AggregateManifest
        The manifest; its path is the bundle.
    """
    bundle = Path(folder) / name
    source = bundle.with_suffix(".design")  # a bundle's folder holds nothing else
    try:
        same = source.read_text(encoding="utf-8") == design()
        found = load_manifest(bundle).parameters if same else None
        same = same and type(parameters).from_dict(found) == parameters
    except (OSError, ManifestError, ValueError):
        same = False
    if not same:
        source.unlink(missing_ok=True)  # a folder with files of nobody's is refused
        write_bundle(parameters, bundle)
        source.write_text(design(), encoding="utf-8")
    build_library(bundle, report=report)
    return load_manifest(bundle)


class Ahead:
    """Calls of a function that begin when they are announced, not when their result is needed.

    An error appears where the result is asked for. At the end of the context, calls that have not
    begun are given up.

    Parameters
    ----------
    make : callable
        The function. Its first argument names what it makes; each is made once.
    executor : concurrent.futures.Executor, optional
        What calls the function; by default a thread. It is shut down at the end of the context.
    """

    def __init__(self, make, executor=None):
        self._make = make
        self._made = {}
        self._executor = executor or ThreadPoolExecutor(1)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._executor.shutdown(cancel_futures=True)

    def announce(self, name, *arguments):
        """Have a thing made."""
        if name not in self._made:
            self._made[name] = self._executor.submit(self._make, name, *arguments)

    def __call__(self, name, *arguments):
        """Return a thing as soon as it is made, announced or not."""
        self.announce(name, *arguments)
        return self._made[name].result()


def side_by_side(call, items, *, workers, advance):
    """Return the result of ``call`` for each item, in the order of the items.

    After an error, calls that have begun come to their end, and the others are given up. The
    threads are daemons, which those of an executor are not: a call may take an hour, and a program
    that is interrupted ends without waiting for it.

    Parameters
    ----------
    call : callable
        Called with an item, in a thread.
    items : collection
        Hashable items, in the order in which their calls begin.
    workers : int
        Calls at the same time.
    advance : callable
        Called in this thread with the number of calls that are done, and that there are.
    """
    results = {item: Future() for item in items}
    waiting = deque(results.items())

    def serve():
        with suppress(IndexError):  # raised by an empty deque alone: a future takes other errors
            while True:
                answer(*waiting.popleft())

    def answer(item, result):
        try:
            result.set_result(call(item))
        except BaseException as error:
            result.set_exception(error)

    threads = [Thread(target=serve, daemon=True) for _ in range(min(workers, len(items)))]
    advance(0, len(items))
    for thread in threads:
        thread.start()
    try:
        for done, result in enumerate(as_completed(results.values()), 1):
            if result.exception() is not None:
                waiting.clear()
                for thread in threads:
                    thread.join()
            result.result()
            advance(done, len(items))
    finally:
        waiting.clear()
    return {item: result.result() for item, result in results.items()}


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


def sweep(points, report, *, folder=FOLDER, prepared=prepare, advance=lambda done, of: None):
    """Return what was measured at each point, by point; what is in a store is not measured again.

    After an error, points that are being measured are kept, and the others are given up. After an
    interrupt, nothing is waited for.

    Parameters
    ----------
    points : iterable
        Points of any kinds; equal ones are measured once.
    report : callable
        Receives lines about the progress.
    folder : Path
        Where bundles and stores are.
    prepared : callable
        Makes the bundle of an accelerator, as :func:`prepare`.
    advance : callable
        Called with the number of points that are done, and that there are.
    """
    points = sorted(dict.fromkeys(points), key=lambda point: point.accelerator)
    stores = {name: Store(folder / name) for name in {point.store for point in points}}
    # While one accelerator is measured, the next one is made; most of that is compiling. Points are
    # counted in cycles, which do not depend on what else the processors do.
    with Ahead(prepared) as made:
        needed = {
            point: (point.accelerator, point.parameters, folder / "bundles", report)
            for point in points
        }
        for accelerator in needed.values():
            made.announce(*accelerator)

        def known(point):
            manifest, store = made(*needed[point]), stores[point.store]
            measured = store.get(manifest.hash, point)
            if measured is None:
                measured = point.measure(manifest)
                store.put(manifest.hash, point, measured)
            return measured

        return side_by_side(known, points, workers=processors(), advance=advance)
