# SPDX-License-Identifier: Apache-2.0
"""The description of a windowed operator: O+(WA, WS, I, f_MK, WT, S, f_mu, f_U, f_O, f_S).

That is the generalized operator of STRETCH, and its parameters are called so there.
The mapping f_mu of keys to cores is left out: it is the accelerator's, and the answer does not
depend on it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from host.errors import OperatorError
from host.expressions import Expression, Record
from host.windowed.checks import check_operator, check_results
from host.windowed.description import Description
from host.windowed.parts import Key, Output, fields_of
from host.windowed.reduction import Reduction

__all__ = ["WindowedOperator"]


@dataclass(frozen=True, kw_only=True)
class WindowedOperator(Description):
    """A windowed operator, frozen and checked; its expressions are texts or Python functions.

    A window covers the times ``[n * advance, n * advance + size)`` for each integer n. What an
    operator does with the tuples of a window is one of four:

    - With ``reductions``, it is an aggregate (A+). A window instance keeps one number for each
      reduction, and gives one result when the watermark has reached its right boundary.
    - With ``match``, it is a join (J+) of two inputs. A window instance keeps tuples, and an
      arriving tuple gives a result for each tuple of the other input that it matches.
    - With both, it is an aggregate of matches. Right tuples are kept, and a left tuple gives one
      result for each of its keys when it arrives: the reductions of all right tuples that it
      matches. Of no match, a count and a sum are 0, and other reductions are null.
    - With neither, it forwards each tuple, once for each of its keys.

    Parameters
    ----------
    name : str
        Identifier.
    size, advance : int
        The seed's WS and WA, in units of the timestamp: ``1 <= advance <= size``.
    fields : sequence of Field
        Fields of a tuple; those of the left input if there are two.
    right_fields : sequence of Field, optional
        Fields of the right input's tuples. With them, there are two inputs (I = 2).
    keys : sequence of Key
        f_MK: the keys that a tuple may have. A tuple has each key once, even if two of these agree.
        Without any, all tuples share one empty key.
    key_names : sequence of str, optional
        Names of the parts of a key in results. By default the text, if it is a field's name for
        each part, otherwise ``key``, or ``key0``, ``key1``.
    instances : str
        WT: ``"multi"`` keeps an instance per window, ``"single"`` keeps one that slides. The answer
        is the same. A single one needs tuples in the order of their timestamps.
    reductions : sequence of Reduction
        The state of a window instance, and how tuples change it (f_U).
    outputs : sequence of Output, optional
        f_O and S: the values of a result. By default, each reduction is one.
    having : Expression, optional
        A window gives its result only where this is not 0. It reads what outputs read.
    match : Expression, optional
        Condition of a join on two tuples: a text over ``l.field`` and ``r.field``, or a function of
        a left and a right tuple.
    in_turns : bool
        Whether a joined tuple is stored under one of its keys, in turns, as in ScaleJoin, rather
        than under each of them. The keys must then be numbers, so that all tuples have them.

    Raises
    ------
    OperatorError, ExpressionError
        If the description contradicts itself.
    """

    def __post_init__(self) -> None:
        for name in ("fields", "right_fields", "keys", "key_names", "reductions", "outputs"):
            given = getattr(self, name)
            self._set(name, None if given is None else tuple(given))
        if self.having is not None:
            self._set("having", Expression.of(self.having, Record()))
        if self.match is not None:
            self._set("match", Expression.of(self.match, Record("l"), Record("r")))
        if self.key_names is None:
            self._set("key_names", _key_names(self.keys))
        if self.outputs is None:
            names = [reduction.name for reduction in self.reductions]
            self._set("outputs", tuple(Output(name, Expression(name)) for name in names))
        check_operator(self)
        ranges = self.tuple_ranges[0] if self.match is None else self.pair_ranges
        self._set("reductions", tuple(one.resolved(ranges) for one in self.reductions))
        check_results(self)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON-compatible values, as a manifest holds it.

        What is derived from the rest (widths of keys, panes) is there too, so that a reader need
        not derive it. Parts that an operator does not have are left out.
        """
        values: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "size": self.size,
            "advance": self.advance,
            "pane": self.pane,
            "instances": self.instances,
            "fields": [asdict(field) for field in self.fields],
            "keys": [key.to_dict() for key in self.keys],
            "key_fields": [asdict(field) for field in self.key_fields],
        }
        if self.right_fields is not None:
            values["right_fields"] = [asdict(field) for field in self.right_fields]
        if self.reductions:
            values["reductions"] = [reduction.to_dict() for reduction in self.reductions]
            values["outputs"] = [output.to_dict() for output in self.outputs or ()]
            values["slides_by"] = self.slides_by
        if self.having is not None:
            values["having"] = self.having.text
        if self.match is not None:
            values["match"] = self.match.text
            values["in_turns"] = self.in_turns
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "WindowedOperator":
        """Return the operator that :meth:`to_dict` has converted.

        Raises
        ------
        OperatorError
            If the document is none of an operator, or what it derives disagrees.
        """
        given = {field.name for field in fields(cls)}
        try:
            operator = cls(
                **{name: value for name, value in values.items() if name in given - _NESTED},
                fields=fields_of(values["fields"]),
                right_fields=fields_of(values["right_fields"])
                if "right_fields" in values
                else None,
                keys=tuple(Key(**key) for key in values["keys"]),
                key_names=tuple(field["name"] for field in values["key_fields"]),
                reductions=tuple(Reduction(**one) for one in values.get("reductions", ())),
                outputs=tuple(Output(**one) for one in values["outputs"])
                if "outputs" in values
                else None,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise OperatorError(
                f"The document is no description of an operator ({error!r})."
            ) from error
        back = operator.to_dict()
        wrong = sorted(
            name for name in back.keys() | values.keys() if back.get(name) != values.get(name)
        )
        if wrong:
            raise OperatorError(
                f"The description of operator {operator.name!r} disagrees with itself in "
                f"{', '.join(wrong)}; write it again with this version of the kit."
            )
        return operator

    def with_(self, **changes: Any) -> "WindowedOperator":
        """Return a copy with ``changes``, checked again."""
        return replace(self, **changes)


#: Parts that are documents of their own, and those that are derived from them.
_NESTED = frozenset({"fields", "right_fields", "keys", "key_names", "reductions", "outputs"})


def _key_names(keys: tuple[Key, ...]) -> tuple[str, ...]:
    if not keys:
        return ()
    parts = [part.text for part in keys[0].parts]
    if len(keys) == 1 and all(part.isidentifier() and part != "timestamp" for part in parts):
        return tuple(parts)
    return ("key",) if len(parts) == 1 else tuple(f"key{at}" for at in range(len(parts)))
