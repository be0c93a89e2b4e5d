# SPDX-License-Identifier: Apache-2.0
"""The machines behind a session, however it is connected to them, and what is sent to them."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
import shutil
import tempfile
from threading import Lock
from weakref import WeakKeyDictionary, finalize
import zipfile

from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from host import FailureError, UsageError
from spark_offload.cluster.by_value import Luggage
from spark_offload.cluster.session import use_this_python
from spark_offload.measures import JoinMetrics, TaskMetrics, TaskReport, gather_tasks

__all__ = [
    "Cluster",
    "Shipments",
    "cluster_of",
    "is_connect",
    "local_device_uri",
    "ship_bundle",
    "ship_packages",
    "shipments_of",
    "write_packages",
]

# What has been sent to the machines of one session, remembered for as long as the session is.

SECONDS = 600.0
"""How long a thread waits for another one that is sending the same content."""


class Shipments:
    """Sends each content once, however many threads ask for it.

    Content counts as sent when the sending has returned. A thread that asks meanwhile waits; after
    an error the next one that asks sends it again.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._sent: set[str] = set()
        # Executors may fetch files from here for as long as the session lives.
        self._folder = Path(tempfile.mkdtemp(prefix="splitjoin-"))
        finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def send_once(self, name: str, send: Callable[[Path], None]) -> None:
        """Call ``send`` unless ``name`` has been sent.

        Parameters
        ----------
        name : str
            Tells the content from all other content.
        send : callable
            Sends it, from a file that it makes in the folder that it is given. The folder is the
            same when it is called again, as Spark serves a file name from one path only.

        Raises
        ------
        FailureError
            If another thread has been sending the content for too long.
        """
        with self._guard:
            lock = self._locks[name]
        if not lock.acquire(timeout=SECONDS):
            raise FailureError(
                f"{name!r} was not sent to the executors: another thread has been sending it for "
                f"{SECONDS:.0f} s; see whether the Spark session still answers, and try again."
            )
        try:
            if name not in self._sent:
                folder = self._folder / name
                folder.mkdir(exist_ok=True)
                send(folder)
                self._sent.add(name)
        finally:
            lock.release()


_guard = Lock()
_of_owner: WeakKeyDictionary[object, Shipments] = WeakKeyDictionary()


def shipments_of(owner: object) -> Shipments:
    """Return what has been sent to the machines that ``owner``, a context or a session, stands for.

    It is forgotten with the owner: a later one that happens to have the same name begins anew.
    """
    with _guard:
        shipments = _of_owner.get(owner)
        if shipments is None:
            shipments = _of_owner[owner] = Shipments()
        return shipments


# What a session can do with the machines behind it, whichever way it is connected to them.


class Cluster:
    """The machines of a session with a Java process of its own, which has a Spark context.

    Parameters
    ----------
    session : SparkSession
        The session.

    Attributes
    ----------
    shipments : Shipments
        What has been sent to the machines; it is there for as long as they are.
    luggage : Luggage or None
        What functions must carry, because Spark does not send it.
    """

    shipments: Shipments
    luggage: Luggage | None = None

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self.shipments = shipments_of(self._context)
        use_this_python(self._context)

    @property
    def cores(self) -> int:
        """Tasks that run at the same time."""
        return int(self._context.defaultParallelism)

    def send_package(self, path: Path) -> None:
        """Let executors import what is in an archive."""
        self._context.addPyFile(str(path))

    def send_folder(self, path: Path, name: str) -> None:
        """Let executors find what is in an archive, unpacked, as ``SparkFiles.get(name)``."""
        self._context.addArchive(f"{path}#{name}")

    def gather_tasks(self) -> tuple[TaskReport, Callable[[], JoinMetrics]]:
        """Return the function that tasks report with, and the one that reads the reports."""
        return gather_tasks(self._context)


# Spark Connect: a session whose Spark runs in another process, reached over the network.
#
# There is no Spark context, so no accumulators; and no Java object behind a frame, so no estimate
# of its size. Files are sent as artifacts.


class ConnectCluster(Cluster):
    """The machines of a session of Spark Connect.

    Parameters
    ----------
    session : SparkSession
        The session.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # What is sent belongs to the session, not to the server.
        self.shipments = shipments_of(session)

    @property
    def cores(self) -> int:
        """Tasks that run at the same time, told by the partitions of a range, in a small job."""
        parts = self._session.range(1 << 16).select(F.spark_partition_id().alias("part"))
        last = parts.agg(F.max("part").alias("last")).first()
        return 1 if last is None else int(last.last) + 1

    def send_package(self, path: Path) -> None:
        """Let executors import what is in an archive."""
        self._session.addArtifacts(str(path), pyfile=True)

    def send_folder(self, path: Path, name: str) -> None:
        """Let executors find what is in an archive, unpacked, as ``SparkFiles.get(name)``."""
        self._session.addArtifacts(f"{path}#{name}", archive=True)

    def gather_tasks(self) -> tuple[TaskReport, Callable[[], JoinMetrics]]:
        """Return a function that tasks report with, to nobody, and one that says so."""
        return _unheard, _no_metrics


class ConnectStreams(ConnectCluster):
    """The machines as one streaming query sees them: its functions carry what is sent.

    Parameters
    ----------
    session : SparkSession
        The session.
    """

    def __init__(self, session: SparkSession) -> None:
        super().__init__(session)
        # Every query has luggage of its own.
        self.shipments = Shipments()
        self._carried = Luggage()
        self.luggage = self._carried

    def send_package(self, path: Path) -> None:
        """Let executors import what is in an archive."""
        self._carried.add(path.stem, path.read_bytes(), importable=True)

    def send_folder(self, path: Path, name: str) -> None:
        """Let executors find what is in an archive, unpacked, as ``SparkFiles.get(name)``."""
        self._carried.add(name, path.read_bytes(), importable=False)


def is_connect(of: SparkSession | DataFrame) -> bool:
    """Tell whether a session, or that of a frame, is one of Spark Connect."""
    # Asked by the name of its module, as importing that takes packages that few need.
    return type(of).__module__.startswith("pyspark.sql.connect.")


def _unheard(task: TaskMetrics) -> None:
    """Spark Connect has no way back for what a task measured."""


def _no_metrics() -> JoinMetrics:
    raise UsageError(
        "Spark Connect has no accumulators, which is how tasks report what they measured; run the "
        "program with a session of its own (spark-submit, or SparkSession.builder.master(...)) to "
        "have metrics of batch joins. Those of streams, stream_metrics(query), come with Connect."
    )


def cluster_of(session: SparkSession, *, streaming: bool = False) -> Cluster:
    """Return the machines of a session, as its streaming queries see them or as all others do."""
    if is_connect(session):
        return ConnectStreams(session) if streaming else ConnectCluster(session)
    return Cluster(session)


# What executors need, sent to them once a session: packages, and the bundles of devices.
#
# Names carry a hash of the content, so a session that meets a newer bundle ships it beside the
# old one, and nothing is shipped twice.

MANIFEST = "manifest.json"
PACKAGES = ("host", "spark_offload", "splitjoin", "sim.model")
"""What executors run; the last one is the model of an accelerator that ``software:BUNDLE`` is."""


def ship_packages(cluster: Cluster) -> str:
    """Send :data:`PACKAGES` to the executors; return the name of the archive."""
    name, content = _packages()

    def send(folder: Path) -> None:
        _fill_archive(folder / name, content)
        cluster.send_package(folder / name)

    cluster.shipments.send_once(name, send)
    return name


def write_packages(path: Path) -> int:
    """Write :data:`PACKAGES` as an archive for ``--py-files``; return its number of files."""
    _, content = _packages()
    path.parent.mkdir(parents=True, exist_ok=True)
    _fill_archive(path, content)
    return len(content)


def ship_bundle(cluster: Cluster, uri: str) -> str:
    """Send the bundle of a device to the executors; return the address to open there.

    An address whose bundle is no folder of the driver is returned as it is, as is ``software:``,
    which travels with the packages.

    Parameters
    ----------
    cluster : Cluster
        Where to.
    uri : str
        Device address on the driver, such as ``sim:build/demo/bundle``.
    """
    scheme, _, place = uri.partition(":")
    folder = Path(place)
    if not place or not (folder / MANIFEST).is_file():
        return uri
    content = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    name = f"splitjoin-bundle-{_digest(content)}"

    def send(folder: Path) -> None:
        archive = folder / f"{name}.zip"
        _fill_archive(archive, content)
        cluster.send_folder(archive, name)

    cluster.shipments.send_once(name, send)
    return f"{scheme}:spark-files:{name}"


def local_device_uri(uri: str) -> str:
    """Return the address of a shipped device as a path of this executor."""
    scheme, marker, name = uri.partition(":spark-files:")
    return f"{scheme}:{SparkFiles.get(name)}" if marker else uri


@cache
def _packages() -> tuple[str, dict[str, bytes]]:
    """Return the name of the archive and its files.

    They are read once: executors run what the driver runs, whatever has been written over its
    sources since.
    """
    content = dict(_package_files())
    return f"splitjoin-{_digest(content)}.zip", content


def _package_files() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every source file; the packages may be in an archive themselves."""

    def walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir() and entry.name != "__pycache__":
                yield from walk(entry, f"{prefix}/{entry.name}")
            elif entry.is_file() and not entry.name.endswith(".pyc"):
                yield f"{prefix}/{entry.name}", entry.read_bytes()

    for package in PACKAGES:
        above, _, _ = package.rpartition(".")
        if above:
            yield f"{above}/__init__.py", (files(above) / "__init__.py").read_bytes()
        yield from walk(files(package), package.replace(".", "/"))


def _digest(content: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in content.items():
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


def _fill_archive(path: Path, content: dict[str, bytes]) -> None:
    """Write a zip whose bytes depend on ``content`` only."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in content.items():
            archive.writestr(zipfile.ZipInfo(entry), data, zipfile.ZIP_DEFLATED)
