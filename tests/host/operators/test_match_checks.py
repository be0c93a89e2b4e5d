# SPDX-License-Identifier: Apache-2.0
import pyarrow as pa
import pytest

from host.errors import AcceleratorLimitError, UnsupportedTypeError
from host.operators.matches import require_matches
from host.protocol.manifest import FORMAT, JoinAggregateManifest, Manifest, join_manifest
from host.query.queries import Aggregate, Query, Term
from tests.host.operators.test_device_matches import PARAMETERS
from tests.host.small_bundles import write_manifest

SCHEMA = pa.schema(
    [("t", pa.int64()), ("x", pa.int16()), ("k", pa.string()), ("f", pa.float64()),
     ("d", pa.decimal128(9, 2))]
)  # fmt: skip


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return JoinAggregateManifest.load(write_manifest(PARAMETERS, tmp_path_factory.mktemp("bundle")))


def checked(manifest, terms, *asked):
    query = Query(band=terms, time="t", within=5)
    aggregates = {f"a{at}": Aggregate.of(one) for at, one in enumerate(asked)}
    return require_matches(SCHEMA, SCHEMA, query, aggregates, manifest)


def test_what_it_can_do_has_a_field_for_each_term(manifest):
    terms = (Term("x", "x", -2, 1), Term("k", "k"))
    encoded = checked(manifest, terms, "count", "count:f", "sum:x", "max:t")
    assert [[str(term.term) for term in field.terms] for field in encoded.plan.fields] == [
        [str(term)] for term in terms
    ]


@pytest.mark.parametrize(
    ("terms", "asked", "kind", "message"),
    [
        ((Term("f", "f", -1, 1),), "count", AcceleratorLimitError, "sends no pairs"),
        ((), "sum:f", AcceleratorLimitError, "Column 'f' holds floats"),
        ((), "sum:d", UnsupportedTypeError, "Column 'd' has type decimal128"),
        ((), "max:k", UnsupportedTypeError, "Column 'k' has type string"),
        ((Term("x", "x", 0, 1), Term("t", "t", 0, 1), Term("k", "k")), "count",
         AcceleratorLimitError, "needs 3 key fields, but the accelerator has 2"),
    ],
)  # fmt: skip
def test_what_types_rule_out_is_told_without_a_row(manifest, terms, asked, kind, message):
    with pytest.raises(kind, match=message):
        checked(manifest, terms, asked)


def test_the_document_of_a_manifest_tells_what_it_joins(manifest):
    again = join_manifest(manifest.values, name="a device")
    assert isinstance(again, JoinAggregateManifest)
    assert again.hash == manifest.hash
    document = {**manifest.values, "format": FORMAT}
    assert type(join_manifest(document, name="a device")) is Manifest
