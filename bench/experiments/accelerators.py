# SPDX-License-Identifier: Apache-2.0
"""The accelerators of the evaluation, by name, and their bundles."""

import hashlib
from pathlib import Path

from bench.handshake import HANDSHAKE, LOW_LATENCY
from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from host.errors import ManifestError
from host.protocol.manifest import load_manifest
from sim.verilated.library import build_library

from . import hedge

__all__ = ["ACCELERATORS", "ARCHITECTURES", "CORES", "PAPER", "design", "prepare"]

SOURCES = tuple(Path(__file__).parents[2] / part for part in ("hdl", "bench/handshake"))
#: Short names of the architectures, as in the figures.
ARCHITECTURES = {"sj": "splitjoin", "llhj": LOW_LATENCY, "hj": HANDSHAKE}
#: Numbers of join cores of the figures over cores.
CORES = (2, 4, 8, 16, 32)
#: Number of join cores of the paper's largest machine.
PAPER = 28
XY16 = tuple(KeyField(name=name, bits=16) for name in "xy")


def compared(architecture, cores):
    """Return what the three joins have in common: one comparator per core and side."""
    return JoinParameters.of(
        cores=cores, sub_window=2048, keys=XY16, timestamp_bits=24, fan_out=2, fan_in=2,
        architecture=architecture,
    )  # fmt: skip


def band(**changes):
    """Return an accelerator of four cores with lanes and probes of a preset, or fewer."""
    return JoinParameters.of(
        **{"cores": 4, "sub_window": 512, "keys": XY16, "fan_in": 2, **changes}
    )  # fmt: skip


def engine(**changes):
    """Return an accelerator of four cores, to compare engines, lanes, probes and digests."""
    return JoinParameters.of(
        **{
            "cores": 4, "sub_window": 1024, "fan_out": 2, "fan_in": 2,
            "keys": (KeyField(name="x", bits=32),), "comparator": "equality", **changes,
        }
    )  # fmt: skip


#: All accelerators: ``sj-32`` is SplitJoin with 32 cores.
ACCELERATORS = {
    f"{short}-{cores}": compared(architecture, cores)
    for short, architecture in ARCHITECTURES.items()
    for cores in (*CORES, PAPER)
} | {
    # A join of hedges, which are no band.
    "hedge-8": compared("splitjoin", 8).with_(
        keys=tuple(
            KeyField(name=name, bits=bits, signed=False) for name, bits in hedge.BITS.items()
        ),
        comparator="custom",
        where=hedge.WHERE,
    ),
    # The paper's cores with sub-windows of the least size that it draws in Figure 19.
    "sj-28-large": compared("splitjoin", PAPER).with_(sub_window=4096),
    "llhj-28-large": compared(LOW_LATENCY, PAPER).with_(sub_window=4096),
    "rounds-28-large": compared("splitjoin", PAPER).with_(sub_window=4096, rounds=True),
    "rounds-8": compared("splitjoin", 8).with_(rounds=True),
    "rounds-8x4": compared("splitjoin", 8).with_(rounds=True, lanes=4),
    "rounds-8-ports": compared("splitjoin", 8).with_(rounds=True, result_streams=2),
    "scan-1x1": engine(),
    "scan-1x4": engine(probes=4),
    "scan-1x16": engine(probes=16),
    "scan-4x1": engine(lanes=4),
    "scan-4x4": engine(lanes=4, probes=4),
    "digest-4x4": engine(lanes=4, probes=4, digest_bits=12),
    "index": engine(engine="index", probes=4, probe_bits=10),
    "band-4x4": band(lanes=4, probes=4),
    "band-digest-4x4": band(lanes=4, probes=4, digest_bits=16),
    # As `ecp5-band` and `ecp5-band-digest`, which are as large as the same device allows.
    "band-26x2": band(lanes=26, probes=2),
    "band-digest-15x14": band(lanes=15, probes=14, digest_bits=16),
}


def design():
    """Return a hash of all sources of the hardware."""
    digest = hashlib.sha256()
    for path in [path for part in SOURCES for path in sorted(part.rglob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def prepare(name, folder, report, accelerators=None):
    """Generate the bundle of an accelerator and build its library, unless they are there.

    A bundle is generated again when a source of the hardware has changed since.

    Parameters
    ----------
    name : str
        Name in ``accelerators``.
    folder : Path
        Where the bundles are.
    report : callable
        Receives lines about the progress.
    accelerators : dict of str to JoinParameters or AggregateParameters, optional
        By default :data:`ACCELERATORS`.

    Returns
    -------
    Manifest or AggregateManifest
        The manifest; its path is the bundle.
    """
    parameters = (ACCELERATORS if accelerators is None else accelerators)[name]
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
