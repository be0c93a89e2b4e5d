# SPDX-License-Identifier: Apache-2.0
import pytest

from host import EnergyController, PredictiveController, ThresholdController, UsageError
from host.query.cores import controller_of, parse_controller


def test_true_is_the_threshold_controller_and_nothing_is_none():
    assert controller_of(True) == ThresholdController()
    assert controller_of(None) is controller_of(False) is None
    law = EnergyController(5)
    assert controller_of(law) is law


def test_controllers_have_names():
    assert parse_controller("threshold") == ThresholdController()
    assert parse_controller("predictive") == PredictiveController()
    assert parse_controller("energy", 700) == EnergyController(700)


@pytest.mark.parametrize(
    ("name", "latency", "message"),
    [
        ("energy", None, "--elastic energy needs --latency"),
        ("threshold", 5, "--latency is for --elastic energy, not for --elastic threshold"),
        ("quick", None, "threshold, predictive, energy or replay:FILE, not 'quick'"),
    ],
)
def test_other_names_are_refused(name, latency, message):
    with pytest.raises(UsageError, match=message):
        parse_controller(name, latency)
