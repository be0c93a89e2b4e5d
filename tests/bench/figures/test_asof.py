# SPDX-License-Identifier: Apache-2.0
"""The figure of as-of joins compares each answer that it counts the cycles of."""

import numpy as np
import pytest

from bench.figures.joins import asof_run
from host.engine.asof import AsofSearch
from tests.host.session.test_driver_simulated import PARAMETERS

INDEX = PARAMETERS["index, two in a word"].with_(keys=PARAMETERS["index"].keys[:1])


@pytest.mark.long
def test_each_core_adds_a_result_to_a_left_row(monkeypatch):
    measured = {"rows": 2000, "keys": 8, "report": lambda text: None}
    many = asof_run(INDEX, **measured)
    few = asof_run(INDEX, window=INDEX.window.sub_window, **measured)
    assert few["results_per_left_row"] < 1.5 < 2.5 < many["results_per_left_row"]
    answers = iter([np.zeros(2000), np.ones(2000)])
    monkeypatch.setattr(AsofSearch, "rows", lambda *sides: next(answers))
    with pytest.raises(AssertionError, match="other rows than the host"):
        asof_run(INDEX, **measured)
