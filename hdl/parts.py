# SPDX-License-Identifier: Apache-2.0
"""What a part of an accelerator is: a frozen object with what makes sense in its place.

Parameters of an accelerator are a tree of parts. Each number of a part says which values it has and
what it means, which is all that the command line, the checks and the manifest know of it. What
belongs to one kind of part is a field of that kind only.

A command names all numbers of a tree in one breath, so a tree also has *words*: the numbers of all
of its parts by their names, which no two parts of a tree share, and the words that choose a kind.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

__all__ = [
    "FLAG",
    "AtLeast",
    "Option",
    "Part",
    "option",
    "options_of",
    "require",
    "require_known",
    "require_mapping",
    "words_of",
]

#: Values of a field that is chosen or not.
FLAG = (False, True)


def require(condition, message):
    """Raise :exc:`ValueError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(message)


def require_known(names, known):
    """Raise :exc:`ValueError` unless all ``names`` of parameters are ``known``."""
    unknown = sorted(set(names) - set(known))
    require(not unknown, f"This version of the kit has no parameters {unknown!r}")


#: What to do about parameters that are not of this version of the kit.
ANEW = "write the manifest anew with `hdl generate`"


def require_mapping(values, what):
    """Raise :exc:`ValueError` unless ``values`` are named, as those of a part are."""
    wrong = f"Parameters of part {what} must be values by their names, not {values!r}"
    require(isinstance(values, Mapping), f"{wrong}; {ANEW}")


@dataclass(frozen=True)
class AtLeast:
    """All integers from ``least`` on."""

    least: int

    def __contains__(self, value):
        return value >= self.least


@dataclass(frozen=True)
class Option:
    """What a field of a part is, in the help of ``hdl generate``, and the values it can have.

    Parameters
    ----------
    help : str
    values : AtLeast, range, tuple or None
        None: the part checks the value by itself.
    metavar : str
        Stands for the value in the help.
    group : str
        Title of the options among which it stands.
    """

    help: str
    values: AtLeast | range | tuple | None = None
    metavar: str = "N"
    group: str = "engine"

    def check(self, name, value):
        """Raise :exc:`ValueError` unless a field called ``name`` can have this value."""
        kind = type(self.values[0]) if isinstance(self.values, tuple) else int
        if self.values is None or (type(value) is kind and value in self.values):
            return
        if isinstance(self.values, AtLeast):
            allowed = f"an integer of at least {self.values.least}"
        elif isinstance(self.values, range):
            allowed = f"{self.values[0]} to {self.values[-1]}"
        else:
            allowed = f"one of {self.values!r}"
        raise ValueError(f"Parameter {name!r} must be {allowed}, not {value!r}")


def option(text, values=None, **told):
    """Return the annotation of a field that is a number: its :class:`Option`."""
    return Annotated[object, Option(text, values, **told)]


def option_of(hint):
    """Return the :class:`Option` of an annotation, or None."""
    return next(iter(getattr(hint, "__metadata__", ())), None)


def kinds_of(hint):
    """Return the kinds of parts that an annotation names, of which the first is the usual one."""
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    return tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Part))


@cache
def hints_of(kind):
    """Return the annotations of the fields of a kind of part, by their names."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def choices_of(kinds):
    """Return the words that choose one of these kinds, each with the values it can have."""
    found = {}
    for kind in kinds:
        for name, value in kind.fixed.items():
            found.setdefault(name, {})[value] = kind
    return {name: tuple(values) for name, values in found.items()}


def tree_kinds(kind):
    """Yield a kind of part, and all kinds that are found below it in a tree."""
    yield kind
    for hint in hints_of(kind).values():
        for below in kinds_of(hint):
            yield from tree_kinds(below)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of an accelerator; its fields are parts, or are numbers with an :class:`Option`.

    A number whose default is None follows from other parts unless it is given.
    """

    #: The kind of part, in a manifest.
    kind: ClassVar[str] = ""
    #: The words that choose this kind among those of its place.
    fixed: ClassVar[Mapping[str, Any]] = {}
    #: What the part is called in messages.
    title: ClassVar[str] = ""
    #: For words that only other kinds of part have, why this one has none of them.
    reasons: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self):
        for name, hint in hints_of(type(self)).items():
            value, option, kinds = getattr(self, name), option_of(hint), kinds_of(hint)
            if value is None and type(self).default(name) is None:
                continue
            if option is not None:
                option.check(name, value)
            names = " or ".join(kind.__name__ for kind in kinds)
            require(
                not kinds or type(value) in kinds,
                f"Parameter {name!r} of a {type(self).__name__} must be a {names}, not {value!r}",
            )

    @classmethod
    def default(cls, name):
        """Return the default of a field, or :data:`dataclasses.MISSING`."""
        return cls.__dataclass_fields__[name].default

    @classmethod
    def is_asked(cls, words):
        """Return whether ``words`` have a value of every number that has no default.

        What other kinds have in its place is no such value.
        """
        needed = (
            name
            for name, hint in hints_of(cls).items()
            if option_of(hint) is not None and cls.default(name) is MISSING
        )
        return all(words.get(name) not in (None, getattr(cls.__base__, name)) for name in needed)

    @classmethod
    def of_words(cls, words):
        """Return the part, and the parts below it, that ``words`` describe."""
        values = {}
        for name, hint in hints_of(cls).items():
            if kinds_of(hint):
                kind = cls.kind_at(name, words)
                values[name] = None if kind is None else kind.of_words(words)
            elif name in words:
                values[name] = words[name]
        return cls(**values)

    @classmethod
    def kind_at(cls, place, words):
        """Return the kind of the part in a field that ``words`` ask for; None for no part.

        Raises
        ------
        ValueError
            If there is no such kind.
        """
        hint = hints_of(cls)[place]
        kinds = kinds_of(hint)
        words = {**kinds[0].fixed, **words}
        for name, choices in choices_of(kinds).items():
            reason, value = cls.reasons.get(name), words[name]
            values = f"one of {choices!r}, not {value!r}"
            wrong = f"Parameter {name!r} must be {values}"
            if reason:
                wrong = f"{cls.title} needs parameter {name!r} to be {values}: {reason}"
            require(value in choices and type(value) is type(choices[0]), wrong)
        for kind in reversed(kinds):
            named = all(words[name] == value for name, value in kind.fixed.items())
            if named and kind.is_asked(words):
                return kind
        return None if NoneType in get_args(hint) else kinds[0]

    def words(self):
        """Return the numbers of the part and of all parts below it, by their names, and more.

        Those that choose the kinds of these parts are among them.
        """
        found = dict(self.fixed)
        for name, hint in hints_of(type(self)).items():
            value = getattr(self, name)
            if isinstance(value, Part):
                found |= value.words()
            elif not kinds_of(hint):
                found[name] = value
        return found

    def require_words(self, words):
        """Raise :exc:`ValueError` if the part is said to have what only other kinds have."""
        for name, value in words.items():
            lacks = None if name in hints_of(type(self)) else getattr(self, name, None)
            reason = self.reasons.get(name, "")
            require(
                value is None or (value == lacks and type(value) is type(lacks)),
                f"{self.title} needs parameter {name!r} to be {lacks!r}, not {value!r}: {reason}",
            )

    def to_dict(self):
        """Return the part as JSON-compatible values, those of parts below it nested."""
        values = {"kind": self.kind} if self.kind else {}
        for name in hints_of(type(self)):
            value = getattr(self, name)
            values[name] = value.to_dict() if isinstance(value, Part) else value
        return values

    @classmethod
    def from_dict(cls, values):
        """Return the part that ``to_dict`` has converted.

        Raises
        ------
        ValueError
            If the kit has no such part, or if the values are not all of one.
        """
        hints, found = hints_of(cls), {}
        own = {"kind", *hints} if cls.kind else hints.keys()
        require_mapping(values, cls.__name__)
        require_known(values, own)
        lacks = sorted(own - values.keys())
        require(not lacks, f"Part {cls.__name__} lacks parameters {lacks!r}; {ANEW}")
        for name, hint in hints.items():
            found[name] = value = values[name]
            if value is not None and (kinds := kinds_of(hint)):
                require_mapping(value, f"{name} of {cls.__name__}")
                named = (kind for kind in kinds if kind.kind == value.get("kind", ""))
                kind = next(named, None)
                require(
                    kind, f"This version of the kit has no {name} {value.get('kind')!r}; {ANEW}"
                )
                found[name] = kind.from_dict(value)
        return cls(**found)


@cache
def options_of(root):
    """Return the options of all kinds of parts of a tree, by the names of their fields.

    Parameters
    ----------
    root : type
        Kind of the part that all others are below.
    """
    found = {}
    for kind in tree_kinds(root):
        for name, hint in hints_of(kind).items():
            if option_of(hint) is not None:
                found.setdefault(name, option_of(hint))
    return found


@cache
def words_of(root):
    """Return the words that choose kinds of parts of a tree, each with the values it can have."""
    return choices_of(tree_kinds(root))
