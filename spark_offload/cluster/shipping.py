# SPDX-License-Identifier: Apache-2.0
"""What executors need, sent to them once a session: two packages, and the bundles of devices.

Names carry a hash of the content, so a session that meets a newer bundle ships it beside the old
one, and nothing is shipped twice.
"""

from collections.abc import Iterator
from functools import cache
import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
import zipfile

from pyspark import SparkFiles

from host.devices.software import SOFTWARE_MANIFEST
from spark_offload.cluster import Cluster

__all__ = ["local_device_uri", "ship_bundle", "ship_packages", "write_packages"]

MANIFEST = "manifest.json"
PACKAGES = ("host", "spark_offload")


def ship_packages(cluster: Cluster) -> str:
    """Send ``host`` and ``spark_offload`` to the executors; return the name of the archive."""
    name, content = _packages()

    def send(folder: Path) -> None:
        _fill_archive(folder / name, content)
        cluster.send_package(folder / name)

    cluster.shipments.send_once(name, send)
    return name


def write_packages(path: Path) -> int:
    """Write ``host`` and ``spark_offload`` as an archive for ``--py-files``; return its files."""
    _, content = _packages()
    path.parent.mkdir(parents=True, exist_ok=True)
    _fill_archive(path, content)
    return len(content)


def ship_bundle(cluster: Cluster, uri: str) -> str:
    """Send the bundle of a device to the executors; return the address to open there.

    ``software:`` travels as the bundle of the accelerator that it pretends to be, because its own
    manifest lies inside the archive of the packages there. An address whose bundle is no folder of
    the driver is returned as it is.

    Parameters
    ----------
    cluster : Cluster
        Where to.
    uri : str
        Device address on the driver, such as ``sim:build/demo/bundle``.
    """
    scheme, _, place = uri.partition(":")
    folder = Path(place)
    if uri == "software:":
        content = {MANIFEST: SOFTWARE_MANIFEST.read_bytes()}
    elif place and (folder / MANIFEST).is_file():
        content = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    else:
        return uri
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
        yield from walk(files(package), package)


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
