# SPDX-License-Identifier: Apache-2.0
"""Command-line options that describe an accelerator, for every command that generates one."""

import argparse
from dataclasses import dataclass

from .aggregate.aggregate_parameters import AGGREGATE_PRESETS, AggregateParameters
from .engine import RESULTS
from .external.engine import MEMORY
from .parameters import SHAPE, JoinParameters, KeyField
from .parts import FLAG, options_of, words_of
from .predicates.own import PREDICATE
from .presets import PRESETS
from .tree import least_arity
from .windowed.description import OperatorDescription, load_circuit

__all__ = ["OPTIONS", "add_parameter_options", "parameters_from"]


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


@dataclass(frozen=True)
class Levels:
    """What an option asks of a tree: as many children of a node as keep it from being deeper."""

    most: int


def arity(text):
    """Parse ``N`` or ``levels:N``."""
    levels, count = text.startswith("levels:"), text.removeprefix("levels:")
    if not count.isdecimal() or (levels and int(count) < 1):
        raise argparse.ArgumentTypeError(f"expected N or levels:N, not {text!r}")
    return Levels(int(count)) if levels else int(count)


def branching(text):
    """Return what ``argparse`` is told of an option that takes the arity of a tree."""
    return {
        "type": arity, "metavar": "N|levels:N",
        "help": f"{text}; levels:N: as few as keep the tree at N levels",
    }  # fmt: skip


def repeated(text):
    """Return what ``argparse`` is told of the option that takes a key field."""
    return {"type": key_field, "action": "append", "help": text}


def number(text):
    """Return what ``argparse`` is told of an option that takes an integer."""
    return {"type": int, "metavar": "N", "help": text}


def flag(text):
    """Return what ``argparse`` is told of an option without a value; None if it is not given."""
    return {"action": "store_true", "default": None, "help": text}


def told(name, option):
    """Return what ``argparse`` is told of the option of a part's field."""
    if name in SPECIAL:
        return {"metavar": option.metavar, **SPECIAL[name](option.help)}
    if option.values == FLAG:
        return flag(option.help)
    kind = {} if option.values is None else {"type": int}
    return {"metavar": option.metavar, "help": option.help, **kind}


#: What ``argparse`` is told of fields that are no numbers, from their help.
SPECIAL = {"keys": repeated, "fan_out": branching, "fan_in": branching}
#: Options of words that choose kinds of parts: their groups, and what they choose.
WORDS = {
    "comparator": (PREDICATE, "which pairs match"),
    "engine": ("engine", "how a core finds them"),
    "rounds": (RESULTS, "let a scan send the results of a probe in the order of stored tuples"),
    "store": (
        MEMORY, "where a scan has its windows; external: in a memory behind AXI4 ports"
    ),
}  # fmt: skip
#: Where options of an aggregate are, which a join does not have.
AGGREGATE = "aggregate over windows, in place of a join"
AGGREGATE_OPTIONS = {
    "operator": {
        "metavar": "FILE.py[:NAME]|MODULE:NAME",
        "help": "the windowed operator to generate an accelerator for: an aggregate, a forward or "
        "a join. A file is run",
    },
    "key_capacity": number("keys that there is room for; default: all of the operator's"),
    "panes": number("largest number of panes in a window; default: those of the operator"),
    "pane_bits": number("width of a sum over one pane; default: that of a window"),
}


def option_groups():
    """Return the options by their titles and names: what ``argparse`` is told of them."""
    names = ", ".join([*PRESETS, *AGGREGATE_PRESETS])
    groups = {SHAPE: {"preset": {"metavar": "NAME", "help": f"start from one of {names}"}}}
    options = options_of(JoinParameters)
    for name, option in options.items():
        groups.setdefault(option.group, {})[name] = told(name, option)
    for name, (title, text) in WORDS.items():
        choices = words_of(JoinParameters)[name]
        keywords = {"choices": choices, "help": f"{text}; default: {choices[0]}"}
        groups[title] = {name: flag(text) if choices == FLAG else keywords} | groups[title]
    first = {title: groups[title] for title in (SHAPE, PREDICATE, "engine", RESULTS)}
    return first | groups | {AGGREGATE: AGGREGATE_OPTIONS}


#: Options by the names of their parameters, in groups: what ``argparse`` is told of them.
OPTIONS = option_groups()
#: Names of options that are not those of their parameters.
FLAGS = {"keys": "--key"}
#: Parameters of a join, and of an aggregate, that an option sets.
JOIN = [*options_of(JoinParameters), *WORDS]
AGGREGATE_NUMBERS = [name for name in AGGREGATE_OPTIONS if name != "operator"]
#: Options that joins and aggregates share, by their names.
SHARED = ("cores", "timestamp_bits", "fan_out", "fan_in")


def option_of(name):
    """Return the option of a parameter."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def add_parameter_options(parser):
    """Add the options that :func:`parameters_from` reads to an ``argparse`` parser, in groups."""
    for title, options in OPTIONS.items():
        group = parser.add_argument_group(title)
        for name, keywords in options.items():
            group.add_argument(option_of(name), dest=name, **keywords)


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
    document = None
    if options.operator is not None:
        if options.preset is not None:
            raise ValueError(
                f"An operator says all that preset {options.preset!r} would: leave out --preset or "
                f"--operator"
            )
        document = load_circuit(options.operator)
    is_join = document is not None and document["kind"] == "join"
    if (document is not None and not is_join) or options.preset in AGGREGATE_PRESETS:
        if not aggregates:
            raise ValueError(
                "This command knows joins only; of an aggregate there are `generate`, "
                "`package` and `cost`"
            )
        return aggregate_parameters_from(options, document)
    if options.preset is not None and options.preset not in PRESETS:
        names = ", ".join([*PRESETS, *AGGREGATE_PRESETS])
        raise ValueError(f"Preset must be one of {names}, not {options.preset!r}")
    refuse(options, AGGREGATE_NUMBERS, "a join", "an aggregate: give --operator or its preset")
    base = PRESETS[options.preset] if options.preset else JoinParameters.of()
    if is_join:
        base = join_of_operator(document)
    changes = {name: value for name in JOIN if (value := getattr(options, name)) is not None}
    if options.keys:
        changes["keys"] = tuple(options.keys)
    if options.predicate is not None or options.where is not None:
        changes.setdefault("comparator", "custom")
    parameters = base.with_(**planted(changes, changes.get("cores", base.cores)))
    if parameters.is_aggregated and not aggregates:
        raise ValueError(
            "This command knows joins that send pairs only; of a join aggregate (--value-bits) "
            "there are `generate`, `package` and `cost`"
        )
    return parameters


def planted(changes, cores):
    """Return changes of parameters in which each tree of ``cores`` leaves has its arity."""
    return {
        name: least_arity(cores, value.most) if isinstance(value, Levels) else value
        for name, value in changes.items()
    }


def refuse(options, names, what, whose):
    """Raise :exc:`ValueError` if an option of the other kind of accelerator is given."""
    given = [option_of(name) for name in names if getattr(options, name) is not None]
    if given:
        raise ValueError(f"The options describe {what}, but {', '.join(given)} is of {whose}")


def join_of_operator(document):
    """Return the join that finds the pairs of an operator, from the document of its circuit."""
    return JoinParameters.of(
        keys=tuple(KeyField(**key) for key in document["keys"]),
        cores=document["cores"],
        timestamp_bits=32,
    )


def aggregate_parameters_from(options, document):
    """Return the :class:`AggregateParameters` of ``options``, and of an operator's document."""
    refuse(options, [name for name in JOIN if name not in SHARED], "an aggregate", "a join")
    names = {name: name for name in (*SHARED, *AGGREGATE_NUMBERS)} | {"key_capacity": "keys"}
    changes = {
        name: getattr(options, option)
        for option, name in names.items()
        if getattr(options, option) is not None
    }
    if document is not None:
        changes = planted(changes, changes.get("cores", AggregateParameters.cores))
        return AggregateParameters(operator=OperatorDescription.from_dict(document), **changes)
    base = AGGREGATE_PRESETS[options.preset]
    return base.with_(**planted(changes, changes.get("cores", base.cores)))
