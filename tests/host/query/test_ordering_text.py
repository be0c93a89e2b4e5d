# SPDX-License-Identifier: Apache-2.0
import pytest

from host import InputRate, Latency, Ordering, Queue, UsageError
from host.query.ordering import parse_ordering


@pytest.mark.parametrize(
    ("text", "ordering"),
    [
        ("none", Ordering.none()),
        ("outer", Ordering.outer()),
        ("inner", Ordering.inner()),
        ("inner:3", Ordering.inner(3)),
        ("inner:3:hardware", Ordering.inner(3, in_hardware=True)),
        ("inner:8:rate=0.25", Ordering.inner(8, hold=InputRate(0.25))),
        ("inner:2:queue=40@0.25", Ordering.inner(2, hold=Queue(40, 0.25))),
        ("relaxed:8", Ordering.relaxed(8)),
        ("adaptive:64:rate=0.25", Ordering.adaptive(64, InputRate(0.25))),
        (
            "adaptive:2:rate=2000000/s@142MHz",
            Ordering.adaptive(2, InputRate.per_second(2_000_000, mhz=142)),
        ),
        ("adaptive:64:latency=5000", Ordering.adaptive(64, Latency(5000))),
        ("adaptive:64:queue=4000@0.25", Ordering.adaptive(64, Queue(4000, 0.25))),
    ],
)
def test_each_form_is_read(text, ordering):
    assert parse_ordering(text) == ordering


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "none of them"),
        ("strict", "none of them"),
        ("relaxed", "none of them"),
        ("relaxed:0", "at least 1"),
        ("relaxed:x", "'x' is no whole number"),
        ("inner:0", "at least 1"),
        ("inner:1:software", "'software' can be held"),
        ("inner:6:rate=0.5", "powers of two"),
        ("inner:8:latency=100", "an InputRate or a Queue"),
        ("adaptive:1:rate=0.5", "at least 2 probes"),
        ("adaptive:8", "none of them"),
        ("adaptive:8:rate=0", "above 0"),
        ("adaptive:8:rate=1/s@xMHz", "megahertz"),
        ("adaptive:8:speed=1", "'speed' can be held"),
        ("adaptive:8:queue=100", "tuples per cycle"),
        ("adaptive:8:latency=1.5", "no whole number"),
    ],
)
def test_an_error_names_the_option_the_forms_and_the_reason(text, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        parse_ordering(text)
    assert str(caught.value).startswith("--ordering takes none, outer, ")
    assert f"not {text!r}" in str(caught.value)
