# SPDX-License-Identifier: Apache-2.0
"""The machines behind a session: what is sent to them, and the devices of their tasks."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
import json
import os
from pathlib import Path
import shutil
import tempfile
from threading import Lock
import time
from types import TracebackType
from typing import Self, TypeAlias
from weakref import WeakKeyDictionary, finalize
import zipfile

import pyarrow as pa
from pyspark import SparkFiles, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from host import Device, FailureError, Manifest, UsageError, open_device
from host.devices import device_kind, is_shared
from host.devices.bundles import DEVICE_VARIABLE
from host.devices.locks import WAIT_DEFAULT, DeviceClaim, claim_device, parse_wait
from host.errors import DeviceError, DeviceTimeoutError, unusable_uri
from host.protocol.manifest import join_manifest
from host.query.quantities import Duration
from spark_offload.cluster.by_value import Luggage
from spark_offload.cluster.session import use_this_python
from spark_offload.errors import task_error
from spark_offload.measures import JoinMetrics, TaskMetrics, TaskReport, gather_tasks

__all__ = [
    "Cluster",
    "DEVICE",
    "DeviceSource",
    "Devices",
    "OURS",
    "Shipments",
    "TaskDevice",
    "WAIT",
    "cluster_of",
    "device_source",
    "is_connect",
    "local_device_uri",
    "named_devices",
    "ship_bundle",
    "ship_packages",
    "shipments_of",
    "survey",
    "take_device",
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


# Where the tasks of a join get their devices from: made by each, from a pool, or from Spark.

Devices: TypeAlias = "str | Sequence[str] | None"
"""The address of a device, ``"resource:NAME"``, or several addresses, which are a pool."""

_RESOURCE = "resource"
"""Scheme of devices that Spark assigns to tasks."""

OURS = "splitjoin"
"""Name of the resource of Spark that is used where no device is named."""

DEVICE = "spark.splitjoin.device"
"""Option of the session: the device where none is named; several, with commas, are a pool."""

WAIT = "spark.splitjoin.device.wait"
"""Option of the session: how long a task waits for a device that another one holds."""


@dataclass(frozen=True)
class DeviceSource:
    """Where each task gets a device; shipped with the tasks.

    Parameters
    ----------
    devices : mapping of str to str
        Addresses, any of which will do, as given, by which machines know their locks and messages
        call them; and as executors open them. None if Spark assigns them.
    resource : str or None
        Name of the resource that Spark assigns.
    is_locked : bool
        Whether a device serves one task of a machine at a time.
    wait : Duration
        How long a task waits for a device that another one holds.
    manifest_hash : str or None
        The accelerator that the join was planned for.
    """

    devices: Mapping[str, str]
    resource: str | None
    is_locked: bool
    wait: Duration
    manifest_hash: str | None = None

    @property
    def text(self) -> str:
        """The devices as the user knows them."""
        if self.resource is not None:
            return f"{_RESOURCE}:{self.resource}"
        return ", ".join(self.devices)

    @property
    def supply(self) -> str:
        """How a task comes by its device, for the explanation."""
        turns = f"tasks of a machine take turns, each waits up to {self.wait}"
        if self.resource is not None:
            return f"Spark assigns each task one of its resource {self.resource!r}; {turns}"
        if not self.is_locked:
            return "each task makes one of its own"
        if len(self.devices) == 1:
            return f"every machine has one; {turns}"
        return f"every machine has {len(self.devices)}; {turns} for any of them"

    def shipped(self, cluster: Cluster) -> "DeviceSource":
        """Send the bundles of the devices to the executors; return the source as it is there."""
        devices = {name: ship_bundle(cluster, uri) for name, uri in self.devices.items()}
        return replace(self, devices=devices)

    def of_task(self, context: TaskContext | None) -> Mapping[str, str]:
        """Return the devices that a task may use, on its executor.

        Raises
        ------
        UsageError
            If Spark has assigned none to the task.
        """
        if self.resource is None:
            return self.devices
        resources = {} if context is None else context.resources()
        if self.resource not in resources:
            raise UsageError(
                f"Spark has assigned no resource {self.resource!r} to this task, only "
                f"{', '.join(map(repr, resources)) or 'none'}; {_resource_remedy(self.resource)}."
            )
        return {address: address for address in resources[self.resource].addresses}


def named_devices(session: SparkSession) -> tuple[str | list[str] | None, str]:
    """Return the devices that the surroundings of a session name, and what names them.

    Parameters
    ----------
    session : SparkSession
        For its options.
    """
    option = session.conf.get(DEVICE, None)
    if option:
        names = [name.strip() for name in option.split(",")]
        return names[0] if len(names) == 1 else names, f"named by {DEVICE}"
    if not os.environ.get(DEVICE_VARIABLE) and session.conf.get(_amount(OURS), None) is not None:
        return f"{_RESOURCE}:{OURS}", f"Spark assigns the resource {OURS!r} to tasks"
    return None, ""


def device_source(devices: str | Sequence[str], session: SparkSession) -> DeviceSource:
    """Return the source of devices that a user asks for.

    Parameters
    ----------
    devices : str or sequence of str
        An address, ``"resource:NAME"``, or the addresses of a pool.
    session : SparkSession
        For its options.

    Raises
    ------
    UsageError
        If it is none, or one of an unknown kind.
    """
    wait = parse_wait(session.conf.get(WAIT, None) or WAIT_DEFAULT, WAIT)
    if isinstance(devices, str):
        scheme, _, name = devices.partition(":")
        if scheme == _RESOURCE:
            _check_resource(name, session)
            return DeviceSource({}, name, True, wait)
        return DeviceSource({devices: devices}, None, is_shared(devices), wait)
    pool = tuple(devices) if isinstance(devices, Sequence) else ()
    if not pool or not all(isinstance(device, str) for device in pool):
        raise UsageError(
            f"device must be a text such as 'sim:BUNDLE' or a list of such texts, not {devices!r}."
        )
    for index, device in enumerate(pool):
        if device in pool[:index]:
            raise UsageError(
                f"The pool of devices names {device!r} twice; name every device once, for a task "
                f"has it to itself."
            )
        if device.partition(":")[0] == _RESOURCE:
            raise UsageError(
                f"{device!r} cannot be one of several devices; give it alone: Spark chooses among "
                f"all addresses of the resource."
            )
        device_kind(device)
    return DeviceSource({device: device for device in pool}, None, True, wait)


def _check_resource(name: str, session: SparkSession) -> None:
    if not name:
        raise unusable_uri(f"{_RESOURCE}:", "lacks the name of Spark's resource")
    if session.conf.get(_amount(name), None) is None:
        raise UsageError(
            f"Device '{_RESOURCE}:{name}' asks for a resource that Spark does not assign to tasks; "
            f"{_resource_remedy(name)}."
        )


def _amount(name: str) -> str:
    return f"spark.task.resource.{name}.amount"


def _resource_remedy(name: str) -> str:
    return (
        f"start the session with {_amount(name)} and spark.executor.resource.{name}.amount, on a "
        f"cluster whose workers have a discovery script (see docs/spark-cluster.md)"
    )


# The device of one task, from when it gets it until it lets go of it.

_REMEDY = (
    f"let tasks wait longer ({WAIT}), run fewer of them at a time on a machine, give more devices, "
    f"or end that process"
)


@dataclass(eq=False)
class TaskDevice:
    """An open device that belongs to a task; made by :func:`take_device`.

    A context manager that closes itself. If the task fails because the device did, the error gets
    the device's name and counters, and the next tasks prefer other devices.

    Parameters
    ----------
    device : Device
        The device.
    name : str
        Its address.
    attempt : int
        How many attempts at the task had failed before.
    claim : DeviceClaim or None
        The lock on it, if it has one.
    waited : float
        Seconds that the task has waited for it.
    """

    device: Device
    name: str
    attempt: int
    claim: DeviceClaim | None = None
    waited: float = 0.0

    def close(self, error: BaseException | None = None) -> None:
        """Let go of the device; doing it again does nothing.

        Parameters
        ----------
        error : BaseException, optional
            What the task fails with.

        Raises
        ------
        DeviceError
            If nothing else has failed before, and the device is still at work or its lock file was
            removed meanwhile.
        """
        claim, self.claim = self.claim, None
        try:
            if isinstance(error, DeviceError):
                self._complete(error)
            self.device.close_after(error)
        except BaseException as refusal:
            error = refusal
            raise
        finally:
            if claim is not None:
                claim.release_after(error)

    def _complete(self, error: DeviceError) -> None:
        """Add the device's name and counters to an error that does not tell them."""
        if isinstance(error, DeviceTimeoutError):
            said = "" if error.uri == self.name else f"Device {self.name!r}."
        else:
            said = f"Device {self.name!r}; its counters: {self._counters()}."
        if said:
            error.args = (f"{error} ({said})",)

    def _counters(self) -> str:
        try:
            counters = self.device.counters()
        except (DeviceError, OSError) as refusal:
            return f"cannot be read, {str(refusal).rstrip('.')}"
        return ", ".join(f"{name} {value}" for name, value in counters.items()) or "none"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(error)


def take_device(source: DeviceSource) -> TaskDevice:
    """Get a device for the task that runs here, and open it.

    Which one is preferred goes by the partition and the attempt, so tasks spread over a pool, and
    one that runs again begins with another device.

    Raises
    ------
    DeviceError
        If the device does not open, or none became free.
    UsageError
        If there is no such device, or it is another accelerator than the join was planned for.
    """
    context = TaskContext.get()
    partition, attempt = (
        (0, 0) if context is None else (context.partitionId(), context.attemptNumber())
    )
    devices = source.of_task(context)
    names = list(devices)
    first = (partition + attempt) % len(names)
    if not source.is_locked:
        return TaskDevice(_opened(names[first], devices, source), names[first], attempt)
    began = time.monotonic()
    claim = claim_device(
        names[first:] + names[:first],
        holder=f"partition {partition} of a Spark job, attempt {attempt}",
        seconds=source.wait.nanoseconds / 1e9,
        remedy=_REMEDY,
    )
    waited = time.monotonic() - began
    try:
        device = _opened(claim.name, devices, source)
    except BaseException as error:
        claim.release(failed=isinstance(error, Exception))
        raise
    return TaskDevice(device, claim.name, attempt, claim, waited)


def _opened(name: str, devices: Mapping[str, str], source: DeviceSource) -> Device:
    try:
        device = open_device(local_device_uri(devices[name]))
    except OSError as error:
        raise DeviceError(f"Device {name!r} did not open: {error}.") from error
    if source.manifest_hash not in (None, device.manifest.hash):
        device.close()
        raise UsageError(
            f"Device {name!r} is the accelerator {device.manifest.hash[:12]}, and the join "
            f"was planned for {str(source.manifest_hash)[:12]}; configure all devices alike."
        )
    return device


# What the devices of a join are: looked at here if they can be made here, else asked of a task.
#
# A device that is not made by whoever wants it may be on the machines of executors only, and
# Spark assigns its resources to tasks alone.


def survey(source: DeviceSource, session: SparkSession) -> Manifest:
    """Return the manifest of the devices of a source.

    Raises
    ------
    JoinError
        If a device does not open, or those that were looked at are different accelerators.
    """
    here = [name for name in source.devices if not is_shared(name)]
    if not here:
        return _asked_of_a_task(source, session)
    found: list[Manifest] = []
    for name in here:
        with open_device(source.devices[name]) as device:
            found.append(device.manifest)
        if found[-1].hash != found[0].hash:
            raise UsageError(
                f"Devices {here[0]!r} and {name!r} are different accelerators; any "
                f"task may get any device of a pool, so name such as have one bundle."
            )
    return found[0]


def _asked_of_a_task(source: DeviceSource, session: SparkSession) -> Manifest:
    cluster = cluster_of(session)
    ship_packages(cluster)
    shipped = source.shipped(cluster)

    def splitjoin_device(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        with take_device(shipped) as taken:
            manifest = json.dumps(taken.device.manifest.values)
        yield pa.record_batch({"manifest": pa.array([manifest])})

    try:
        row = session.range(0, 1, 1, 1).mapInArrow(splitjoin_device, "manifest string").first()
    except PySparkException as error:
        raise task_error(error) from error
    assert row is not None  # every task gives one
    return join_manifest(json.loads(row.manifest), name=source.text)
