# SPDX-License-Identifier: Apache-2.0
"""Random programs of the soak: what can stand where."""

from itertools import product
import json

import numpy as np

from hdl.parameters import JoinParameters, KeyField
from tests.host.small_bundles import write_manifest
from tests.soak.programs import Programmer


def test_an_epoch_can_stand_between_any_two_words(tmp_path):
    parameters = JoinParameters.of(
        cores=3, sub_window=4, keys=(KeyField(name="x", bits=16),), timestamp_bits=16
    )
    manifest = json.loads((write_manifest(parameters, tmp_path) / "manifest.json").read_text())
    sides = {manifest["input_kinds"]["R"]: "R", manifest["input_kinds"]["S"]: "S"}
    operations = {manifest["operations"][name]: name for name in ("CORE", "SEGMENT")}
    programmer, random, seen = Programmer(manifest, effort=50_000), np.random.default_rng(1), set()
    for _ in range(150):
        words = programmer.program(random).words
        kind, op = (programmer.layout.get(words, name) for name in ("kind", "control.op"))
        said = [
            sides.get(k) or operations.get(o, "control")
            for k, o in zip(kind.tolist(), op.tolist(), strict=True)
        ]
        # The lists of cores belong to the epoch that follows them.
        core = -1
        for place, name in enumerate(said):
            if name == "SEGMENT":
                after = said[place + 1] if place + 1 < len(said) else "end"
                seen.add((said[core] if core >= 0 else "begin", after))
            if name != "CORE":
                core = place
    around = ("R", "S", "control", "SEGMENT")
    assert seen >= set(product(around, around[:3]))
    assert "begin" in {before for before, _ in seen}
