# SPDX-License-Identifier: Apache-2.0
"""One sentence says what the cycles of a device would take in hardware."""

from dataclasses import replace
import re

from hypothesis import given
from hypothesis import strategies as st
import pytest

from host.protocol.manifest import RoutedClock
from host.protocol.segments import hardware_time
from tests.host.tables import manifest_of

CLOCK = RoutedClock(
    preset="ecp5-default", twin=True, capacity=150, device="lfe5u-85f", speed=8, mhz=142.04,
    report="docs/routing/ecp5-default-lfe5u-85f-grade8.json",
)  # fmt: skip
SECONDS = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """Of an accelerator that holds 150 tuples a side."""
    return manifest_of(tmp_path_factory.mktemp("bundle"))


def said(manifest, cycles=1_234_567, **changes):
    return hardware_time(cycles, replace(manifest, clock=replace(CLOCK, **changes)))


def test_it_names_the_twin_and_its_device(manifest):
    assert said(manifest) == (
        "1,234,567 cycles: 8.7 ms at 142.0 MHz, the routed clock of its twin `ecp5-default` on an "
        "lfe5u-85f of grade 8"
    )


def test_an_accelerator_that_was_routed_itself_is_no_twin(manifest):
    assert "the routed clock of `paper` on" in said(manifest, preset="paper", twin=False)


def test_smaller_windows_of_a_twin_are_told(manifest):
    assert said(manifest, capacity=149).endswith(
        "of grade 8, which holds windows of up to 149 tuples a side"
    )


def test_a_report_of_an_earlier_design_is_said_to_be_one(manifest):
    assert said(manifest, earlier_design="commit abc, Verilog 123").endswith(
        "of grade 8; its routing report is of an earlier design (commit abc, Verilog 123)"
    )


def test_nothing_is_said_without_cycles_or_a_clock(manifest):
    assert said(manifest, cycles=0) is None
    assert hardware_time(1_000, manifest) is None


@given(st.integers(1, 10**15), st.floats(1, 1000))
def test_the_time_is_that_of_the_cycles(manifest, cycles, mhz):
    text = said(manifest, cycles=cycles, mhz=mhz)
    number, unit = re.search(r" cycles: ([\d,]+\.\d) (\S+) at ", text).groups()
    shown = float(number.replace(",", "")) * SECONDS[unit]
    assert shown == pytest.approx(cycles / mhz / 1e6, abs=0.0501 * SECONDS[unit])
    assert unit == "s" or float(number.replace(",", "")) < 1000
    assert unit == "ns" or float(number.replace(",", "")) >= 0.9
