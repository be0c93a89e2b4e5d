# SPDX-License-Identifier: Apache-2.0
"""The manifest of an accelerator: all that host code knows about it.

It is written from :mod:`hdl.words`, never by hand. ``docs/architecture.md`` section 4 shows it.
"""

import hashlib
import json
import re

import amaranth
from amaranth.lib import data
from amaranth.utils import ceil_log2

from .counters import counters_of
from .installation import kit_version
from .tree import tree_levels
from .verilog.conversion import yosys_version
from .words.inputs import Control, InputKind, input_word, operation_indices
from .words.results import ResultKind, result_ports, result_word

__all__ = ["bundle_parts", "describe", "fingerprint", "members", "word"]

#: Version of the manifest's format. It is raised when a host must not read a manifest as before.
FORMAT = 8
#: Version for join aggregates, whose results hold values in place of pairs.
MATCHES_FORMAT = 9

#: Parts of a manifest that its hash does not cover.
UNHASHED = ("hash", "tools", "clock", "shells")

#: Parts that the names of nested fields lose. The kind of a word already tells its fields apart. Of
#: two results, the fields of the first one have the same names as those of a single result.
SILENT = re.compile(r"^one\.|\bbody\.(?:(?:tuple|pair|punctuation)\.)?")


def flat_fields(layout, path="", offset=0):
    """Yield name, offset, width and signedness of every field that is not itself a layout."""
    for name, field in layout:
        shape, place = field.shape, offset + field.offset
        if isinstance(shape, data.Layout):
            yield from flat_fields(shape, f"{path}{name}.", place)
        else:
            signed = getattr(shape, "signed", False)
            yield f"{path}{name}", place, field.width, signed


def word(layout, *, silent=SILENT):
    """Describe a word: its width, and its fields by their names without the ``silent`` parts."""
    fields = {
        silent.sub("", name): {"offset": offset, "bits": bits, "signed": signed}
        for name, offset, bits, signed in flat_fields(layout)
    }
    return {"bits": layout.size, "fields": fields}


def members(enumeration, *, without=()):
    """Return names and values of an enumeration, except for the members in ``without``."""
    return {member.name: member.value for member in enumeration if member not in without}


def fingerprint(manifest, verilog):
    """Return the hash of a bundle.

    It is the SHA-256 over the manifest without its ``hash``, ``tools``, ``clock`` and ``shells``,
    as JSON with sorted keys and no spaces, then a zero byte, then the Verilog.
    ``host.protocol.manifest.digest`` checks it. The other files of the bundle are covered by their
    ``checksums`` in the manifest. The clock is left out because a new route changes neither the
    accelerator nor what was built from it, and the shells because they contain the hash.
    """
    rest = {name: value for name, value in manifest.items() if name not in UNHASHED}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{text}\0{verilog}".encode()).hexdigest()


def bundle_parts(counters, *, verilog_file, others):
    """Describe what every bundle has: counters, files, their checksums, and the tools.

    Parameters
    ----------
    counters : sequence of Counter
        The counter map.
    verilog_file, others
        As of :func:`describe`.
    """
    return {
        "counters": [
            {
                "name": counter.name,
                "address": counter.address,
                "bits": counter.bits,
                "description": counter.description,
            }
            for counter in counters
        ],
        "files": {"verilog": verilog_file} | {part: file for part, file, _ in others},
        "checksums": {part: hashlib.sha256(text.encode()).hexdigest() for part, _, text in others},
        "tools": {"amaranth": amaranth.__version__, "yosys": yosys_version()},
    }


def describe(parameters, verilog, *, verilog_file, others=(), clock=None):
    """Return the manifest of the accelerator with ``parameters`` as JSON-compatible values.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    verilog : str
        Verilog of the accelerator.
    verilog_file : str
        Name of the Verilog file in the bundle.
    others : iterable of (str, str, str)
        Other files of the bundle: what each one is, its name, and its text.
    clock : dict or None
        Clock on a device, as :func:`hdl.fpga.reports.routed_clock` returns it.
    """
    others = list(others)
    indices = {op.name: count for op, count in operation_indices(parameters).items()}
    unused = () if parameters.side_by_side else (InputKind.BOTH, ResultKind.NONE)
    manifest = {
        "format": MATCHES_FORMAT if parameters.is_aggregated else FORMAT,
        "kit": kit_version(),
        "hash": "",
        "parameters": parameters.to_dict(),
        "input_word": word(input_word(parameters)),
        "result_word": word(result_word(parameters)),
        "input_kinds": members(InputKind, without=unused),
        "result_ports": list(result_ports(parameters)),
        "result_kinds": members(parameters.engine.kinds, without=unused),
        "operations": {name: Control[name].value for name in indices},
        "indices": indices,
        "storage": {
            "cores": parameters.cores,
            "sub_window": parameters.window.sub_window,
            "lanes": parameters.engine.lanes,
            "ring_rows": parameters.ring_rows,
            "slack": parameters.slack,
            "gather": {
                "arity": parameters.fan_in,
                "digit_bits": ceil_log2(parameters.fan_in),
                "levels": len(tree_levels(parameters.cores, parameters.fan_in)),
            },
        },
        **bundle_parts(counters_of(parameters), verilog_file=verilog_file, others=others),
    }
    own = (part.described(parameters) for part in (parameters.engine, parameters.rule))
    for part, values in (item for described in own for item in described.items()):
        manifest[part] = {
            name: word(value) if isinstance(value, data.Layout) else value
            for name, value in values.items()
        }
    manifest |= parameters.arrangement.described(parameters, manifest["operations"])
    if clock is not None:
        manifest["clock"] = clock
    manifest["hash"] = fingerprint(manifest, verilog)
    return manifest
