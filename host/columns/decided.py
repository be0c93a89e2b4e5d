# SPDX-License-Identifier: Apache-2.0
"""Conditions that an accelerator decides itself: which queries suit it, and the key fields it gets.

The manifest of such an accelerator says its predicate as a condition on key fields. It serves a
query if each of its parts is a part of the query's condition, with columns in the place of fields.
What the query asks besides is found out from the rows of the pairs, as everywhere.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from host.columns.codes import FieldValues
from host.columns.fields import FieldPlan, TermTypes, wider
from host.columns.key_fields import plan_coded_field
from host.columns.kinds import ColumnType, Kind, column_type, integer_view, outside, validity
from host.errors import AcceleratorLimitError
from host.installation import command
from host.protocol.manifest import KeyField, Manifest
from host.query.conditions import MIRRORED, Condition, column_of, is_made_of_comparisons
from host.query.deciding import comparisons_of
from host.query.queries import Query, Term
from host.reference.predicate import OPEN

__all__ = [
    "Decided",
    "decided_by",
    "plan_decided_fields",
]

#: Which column stands for which field, by side and name.
Binding = dict[tuple[int, str], str]


@dataclass(frozen=True)
class Decided:
    """Part of a query that an accelerator decides.

    Parameters
    ----------
    condition : Condition
        Its predicate.
    columns : mapping of (int, str) to str
        The column of a side that each of its key fields holds.
    rest : Condition or None
        What the condition of the query says besides.
    terms : tuple of Term
        Terms that must be found out from the rows of the pairs.
    """

    condition: Condition
    columns: Mapping[tuple[int, str], str]
    rest: Condition | None
    terms: tuple[Term, ...]

    @property
    def required(self) -> tuple[set[str], set[str]]:
        """Columns of either side that hold no null in any pair that fulfils the predicate."""
        true, _ = _required(self.condition.tree)
        sides: tuple[set[str], set[str]] = (set(), set())
        for side, field in true:
            sides[side].add(self.columns[side, field])
        return sides


def decided_by(manifest: Manifest, query: Query) -> Decided:
    """Return what an accelerator with a predicate of its own decides of a query.

    Raises
    ------
    AcceleratorLimitError
        If the query does not ask for what the accelerator finds.
    """
    if manifest.where is None:
        raise AcceleratorLimitError(
            f"The accelerator has a predicate of its own ({manifest.predicate!r}), which no text "
            f"says",
            "join on a bundle with comparator 'band', or with a predicate that a text says "
            f"(`{command('hdl generate --where')}`)",
        )
    own = Condition(manifest.where)
    parts = [] if query.where is None else list(query.where.parts)
    count = len(parts)
    parts += [Condition.of(_equal(left, right)).tree for left, right in query.on]
    found = next(_placed(own.parts, parts, {}, ()), None)
    if found is None:
        fields = " ".join(
            f"--key {key.name}:{key.bits}{'' if key.signed else ':unsigned'}"
            for key in manifest.keys
        )
        asked = " and ".join(f"({ast.unparse(part)})" for part in parts) or "no condition"
        raise AcceleratorLimitError(
            f"The accelerator finds pairs with {own}, of fields {fields}, and the query asks for "
            f"{asked}",
            f"generate one for it, `{command('hdl generate --where CONDITION')}` with key fields "
            f"in the place of columns, or use comparator 'band'",
        )
    binding, used = found
    covered = set(used)
    left = [part for place, part in enumerate(parts[:count]) if place not in covered]
    on = [pair for place, pair in enumerate(query.on, count) if place not in covered]
    terms = replace(query, on=tuple(on), where=None).terms
    return Decided(own, binding, None if query.where is None else query.where.of_parts(left), terms)


def _equal(left: str, right: str) -> Any:
    return lambda ours, theirs: ours[left] == theirs[right]


def _placed(
    own: Sequence[ast.expr], asked: Sequence[ast.expr], binding: Binding, used: tuple[int, ...]
) -> Iterator[tuple[Binding, tuple[int, ...]]]:
    """Yield the ways in which each part of a predicate is one that a query asks for."""
    if not own:
        yield binding, used
        return
    for place, part in enumerate(asked):
        if place not in used:
            bound = _alike(own[0], part, binding)
            if bound is not None:
                yield from _placed(own[1:], asked, bound, (*used, place))


def _alike(own: ast.expr, asked: ast.expr, binding: Binding) -> Binding | None:
    """Return the binding with which two parts say the same; None if there is none."""
    field, column = column_of(own), column_of(asked)
    if field is not None or column is not None:
        if field is None or column is None or field[0] != column[0]:
            return None
        if binding.get(field, column[1]) != column[1]:
            return None
        return {**binding, field: column[1]}
    theirs, others = _shape(asked)
    for mine, parts in _readings(own):
        bound: Binding | None = binding if mine == theirs else None
        for one, other in zip(parts, others, strict=False):
            bound = None if bound is None else _alike(one, other, bound)
        if bound is not None:
            return bound
    return None


def _readings(node: ast.expr) -> Iterator[tuple[tuple[object, ...], list[ast.expr]]]:
    """Yield the shape and the parts of a node; of a comparison, those from the other side too."""
    shape, parts = _shape(node)
    yield shape, parts
    if isinstance(node, ast.Compare):
        sign = type(node.ops[0])
        yield (*shape[:-1], MIRRORED.get(sign, sign)), parts[::-1]


def _shape(node: ast.expr) -> tuple[tuple[object, ...], list[ast.expr]]:
    """Return what a node says of its parts, and the parts."""
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    sign = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
    said = node.value if isinstance(node, ast.Constant) else getattr(node, "id", None)
    return (type(node), len(parts), said, type(sign)), parts


def _required(node: ast.expr) -> tuple[set[tuple[int, str]], set[tuple[int, str]]]:
    """Return the columns without which a part is not true, and those without which not false."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        (true, false), (other_true, other_false) = _required(node.left), _required(node.right)
        if isinstance(node.op, ast.BitAnd):
            return true | other_true, false & other_false
        return true & other_true, false | other_false
    if isinstance(node, ast.Compare) and is_made_of_comparisons(node.left):
        true, false = _required(node.left)  # not
        return false, true
    read = {column for part in ast.walk(node) if (column := column_of(part)) is not None}
    return read, read


# The key fields of such an accelerator: values as they are, or codes where only equality matters.


def plan_decided_fields(
    decided: Decided,
    manifest: Manifest,
    schemas: tuple[pa.Schema, pa.Schema],
) -> list[FieldPlan]:
    """Plan the key fields that the predicate of an accelerator reads.

    Parameters
    ----------
    decided : Decided
        What the accelerator decides.
    manifest : Manifest
        Of the accelerator.
    schemas : (pa.Schema, pa.Schema)
        Columns of both sides.

    Raises
    ------
    UsageError
        If a column cannot be such a field.
    """
    plans: list[FieldPlan] = []
    coded = _compared_only(decided.condition)
    for field in manifest.keys:
        names = [decided.columns.get((at, field.name)) for at in (0, 1)]
        left, right = kinds = [
            None if name is None else column_type(schema, name, side)
            for name, schema, side in zip(names, schemas, ("left", "right"), strict=True)
        ]
        if field.name in coded and left is not None and right is not None:
            term = TermTypes.of(Term(left.column, right.column), left, right)
            plans.append(replace(plan_coded_field(field, (term,), strict=True), bounds=OPEN))
            continue
        for kind in kinds:
            if kind is not None and kind.kind not in (Kind.INTEGER, Kind.BOOLEAN):
                raise AcceleratorLimitError(
                    f"The accelerator computes with whole numbers in {decided.condition}, and "
                    f"column {kind.name!r} has type {kind.dtype}",
                    "use device 'software:', or cast the column to whole numbers",
                )
        sides = zip(names, decided.required, strict=True)
        left_nulls, right_nulls = (name is not None and name not in of for name, of in sides)
        exact, nullable = "the values as they are", (left_nulls, right_nulls)
        plans.append(ValueField(field.name, (), OPEN, exact, field, (left, right), nullable))
    return plans


def _compared_only(condition: Condition) -> set[str]:
    """Return the fields of which nothing is asked but whether both sides' are equal."""
    tested = comparisons_of([condition.tree])
    others = {name for (side, name), found in tested.items() if found != {(1 - side, name)}}
    return {name for _, name in tested} - others


@dataclass(frozen=True)
class ValueField(FieldPlan):
    """A field that holds whole numbers as they are; a side without a column has zeros.

    Parameters
    ----------
    field : KeyField
        The field.
    columns : (ColumnType or None, ColumnType or None)
        Columns of both sides.
    nullable : (bool, bool)
        Whether a null could be in a pair that fulfils the predicate, which the accelerator cannot
        tell.
    """

    field: KeyField
    columns: tuple[ColumnType | None, ColumnType | None]
    nullable: tuple[bool, bool]

    @property
    def meaning(self) -> str:
        named = [column.name for column in self.columns if column is not None]
        return f"{', '.join(named) or 'nothing'}: {self.note}"

    def encode(self, side: int, batch: pa.RecordBatch, first: int) -> FieldValues:
        column, field = self.columns[side], self.field
        if column is None:
            return FieldValues(np.zeros(batch.num_rows, np.int64))
        array = column.read(batch)
        view, valid = integer_view(array), validity(array)
        if valid is not None and self.nullable[side]:
            raise AcceleratorLimitError(
                f"Column {column.name!r} has a null in row {first + int(np.argmin(valid))} (the "
                f"first is 0), and the accelerator's predicate could hold without its value",
                "use device 'software:', which knows nulls, or fill the column",
            )
        low, high = field.low, field.high
        beyond = outside(view, low, high)
        if valid is not None:
            beyond &= valid
        if beyond.any():
            at = int(np.argmax(beyond))
            needed = max(abs(int(view[at])) * 2, 2 << field.bits)
            raise AcceleratorLimitError.out_of_range(
                column.name, int(view[at]), low, high, remedy=wider(field, needed), row=first + at
            )
        return FieldValues(view)
