# SPDX-License-Identifier: Apache-2.0
"""Command-line options that describe an accelerator, for every command that generates one."""

import argparse

from .aggregate.aggregate_parameters import AGGREGATE_PRESETS, AggregateParameters
from .parameter_checks import ARCHITECTURES, COMPARATORS, ENGINES, STORES
from .parameters import JoinParameters, KeyField
from .presets import PRESETS
from .windowed.description import load_operator

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
    "value_bits": "width of the value beside a key of S; each tuple of R leaves as one word, what"
    " its matches are reduced to. 0, the default, sends pairs",
    "tag_bits": "width of the numbers that results of a handshake join name tuples by",
}

#: Other options that have the name of a parameter.
CHOICES = (
    "architecture", "engine", "store", "comparator", "predicate", "rounds", "parity",
    "clock_requests",
)  # fmt: skip


#: Options of an aggregate that have the name of a parameter and take an integer.
AGGREGATE_NUMBERS = {
    "key_capacity": "keys that an aggregate has room for; default: all that its operator can have",
    "panes": "largest number of panes in a window of an aggregate; default: those of its operator",
    "pane_bits": "width of an aggregate's sum over one pane; default: that of a window",
}
#: Options that joins and aggregates share, by their names.
SHARED = ("cores", "timestamp_bits", "fan_out", "fan_in")


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
    names = ", ".join([*PRESETS, *AGGREGATE_PRESETS])
    group.add_argument("--preset", metavar="NAME", help=f"start from one of {names}")
    group.add_argument(
        "--operator",
        metavar="MODULE:NAME",
        help="a windowed aggregate to generate an accelerator for, in place of a join",
    )
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
    for name, text in AGGREGATE_NUMBERS.items():
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, type=int, metavar="N", dest=name, help=text)


def parameters_from(options, *, aggregates=False):
    """Return the parameters that parsed ``options`` describe: of a join, or of an aggregate.

    Parameters
    ----------
    options : argparse.Namespace
        With the options of :func:`add_parameter_options`.
    aggregates : bool
        Whether the command can do anything with an aggregate, and with a join that aggregates its
        matches.

    Raises
    ------
    ValueError
        If the preset is unknown or the parameters contradict one another.
    """
    if options.operator is not None or options.preset in AGGREGATE_PRESETS:
        if not aggregates:
            raise ValueError(
                "This command knows joins only; of an aggregate there are `generate`, "
                "`package` and `cost`"
            )
        return aggregate_parameters_from(options)
    if options.preset is not None and options.preset not in PRESETS:
        names = ", ".join([*PRESETS, *AGGREGATE_PRESETS])
        raise ValueError(f"Preset must be one of {names}, not {options.preset!r}")
    refuse(options, AGGREGATE_NUMBERS, "a join", "an aggregate: give --operator or its preset")
    base = PRESETS[options.preset] if options.preset else JoinParameters()
    names = [*NUMBERS, *CHOICES]
    changes = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.keys:
        changes["keys"] = tuple(options.keys)
    if options.predicate is not None:
        changes.setdefault("comparator", "custom")
    parameters = base.with_(**changes)
    if parameters.is_aggregated and not aggregates:
        raise ValueError(
            "This command knows joins that send pairs only; of a join aggregate (--value-bits) "
            "there are `generate`, `package` and `cost`"
        )
    return parameters


def refuse(options, names, what, whose):
    """Raise :exc:`ValueError` if an option of the other kind of accelerator is given."""
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name) is not None]
    if given:
        raise ValueError(f"The options describe {what}, but {', '.join(given)} is of {whose}")


def aggregate_parameters_from(options):
    """Return the :class:`AggregateParameters` that parsed ``options`` describe."""
    joins = [name for name in (*NUMBERS, *CHOICES, "keys") if name not in SHARED]
    refuse(options, joins, "an aggregate", "a join")
    names = {name: name for name in (*SHARED, *AGGREGATE_NUMBERS)} | {"key_capacity": "keys"}
    changes = {
        name: getattr(options, option)
        for option, name in names.items()
        if getattr(options, option) is not None
    }
    if options.operator is not None:
        if options.preset is not None:
            raise ValueError(
                "A preset has an operator of its own: leave out --preset or --operator"
            )
        return AggregateParameters(operator=load_operator(options.operator), **changes)
    return AGGREGATE_PRESETS[options.preset].with_(**changes)
