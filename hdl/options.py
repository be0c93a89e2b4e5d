# SPDX-License-Identifier: Apache-2.0
"""Command-line options that describe an accelerator, for every command that generates one."""

import argparse

from .parameter_checks import ARCHITECTURES, COMPARATORS, ENGINES, STORES
from .parameters import JoinParameters, KeyField
from .presets import PRESETS

__all__ = ["add_parameter_options", "parameters_from"]

#: Options that have the name of a parameter and take an integer, with their help texts.
NUMBERS = {
    "cores": "join cores, any number",
    "sub_window": "tuples of one side that a core can hold",
    "lanes": "keys that a region reads each cycle",
    "probes": "probes in a full group; a scan compares all of them with every key",
    "digest_bits": "bits of a key that a pass compares; all of it where these agree",
    "bucket_bits": "logarithm of the number of buckets of an index",
    "timestamp_bits": "width of the timestamp; 0 leaves time-based windows out",
    "fan_out": "children of a distribution tree node",
    "fan_in": "ports of a merger",
    "probe_bits": "width of a result's probe index",
    "tuples_per_word": "1, or 2 for a tuple of each side in an input word, and two results in one",
    "result_streams": "1, or 2 for results of R's and of S's probes on ports of their own",
    "failure_cycles": "cycles without a sign of life after which a core has failed; 0: never",
    "memory_width": "bits of a beat of the external memory; a row of keys fits into it",
    "memory_burst": "beats of a whole burst to the external memory",
    "memory_latency": "cycles of the external memory's latency that reads ahead hide",
    "tag_bits": "width of the numbers that results of a handshake join name tuples by",
}

#: Other options that have the name of a parameter.
CHOICES = (
    "architecture", "engine", "store", "comparator", "predicate", "rounds", "parity",
    "clock_requests",
)  # fmt: skip


def key_field(text):
    """Parse ``NAME:BITS[:signed|:unsigned]``."""
    name, _, rest = text.partition(":")
    bits, _, kind = rest.partition(":")
    if kind not in ("", "signed", "unsigned") or not bits.isdecimal():
        raise argparse.ArgumentTypeError(f"expected NAME:BITS[:unsigned], not {text!r}")
    try:
        return KeyField(name=name, bits=int(bits), signed=kind != "unsigned")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_parameter_options(parser):
    """Add the options that :func:`parameters_from` reads to an ``argparse`` parser."""
    group = parser.add_argument_group("accelerator")
    group.add_argument("--preset", metavar="NAME", help=f"start from one of {', '.join(PRESETS)}")
    for name, text in NUMBERS.items():
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, type=int, metavar="N", dest=name, help=text)
    group.add_argument(
        "--key", type=key_field, action="append", dest="keys", metavar="NAME:BITS[:unsigned]",
        help="a compared field; give it once per field",
    )  # fmt: skip
    group.add_argument("--engine", choices=ENGINES, help="default: scan")
    group.add_argument(
        "--store", choices=STORES,
        help="where a scan has its windows; external: in a memory behind AXI4 ports. Default: chip",
    )  # fmt: skip
    group.add_argument("--architecture", choices=ARCHITECTURES, help="default: splitjoin")
    group.add_argument("--comparator", choices=COMPARATORS, help="default: band")
    group.add_argument(
        "--rounds", action="store_true", default=None,
        help="let a scan send the results of a probe in the order of its stored tuples",
    )  # fmt: skip
    group.add_argument(
        "--parity", action="store_true", default=None,
        help="check parity bits in the memories of stored tuples; a core that reads a flipped bit"
        " has failed",
    )  # fmt: skip
    group.add_argument(
        "--clock-requests", action="store_true", default=None,
        help="ports that tell of each core whether its clock may be stopped",
    )  # fmt: skip
    group.add_argument(
        "--predicate", metavar="MODULE:FUNCTION", help="predicate(r, s) of comparator 'custom'"
    )


def parameters_from(options):
    """Return the :class:`JoinParameters` that parsed ``options`` describe.

    Raises
    ------
    ValueError
        If the preset is unknown or the parameters contradict one another.
    """
    if options.preset is not None and options.preset not in PRESETS:
        raise ValueError(f"Preset must be one of {', '.join(PRESETS)}, not {options.preset!r}")
    base = PRESETS[options.preset] if options.preset else JoinParameters()
    names = [*NUMBERS, *CHOICES]
    changes = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.keys:
        changes["keys"] = tuple(options.keys)
    if options.predicate is not None:
        changes.setdefault("comparator", "custom")
    return base.with_(**changes)
