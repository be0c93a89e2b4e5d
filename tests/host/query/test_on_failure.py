# SPDX-License-Identifier: Apache-2.0
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from host import Ordering, Queue
from host.__main__ import main
from host.errors import UsageError
from host.files.reading import read_table
from host.files.writing import write_table
from host.query.queries import OnFailure, Query
from tests.host.failing_device import gated
from tests.host.small_bundles import write_manifest


@pytest.mark.parametrize("policy", OnFailure)
def test_a_policy_has_a_name(policy):
    assert OnFailure.of(policy) is OnFailure.of(policy.value) is policy


def test_an_unknown_name_is_refused():
    with pytest.raises(UsageError, match="must be one of 'raise', 'report', 'replay', not 'retry'"):
        OnFailure.of("retry")


@pytest.mark.parametrize("policy", ["report", "replay"])
def test_an_adaptive_ordering_cannot_survive_a_failure(policy):
    with pytest.raises(UsageError, match="An adaptive ordering does not go with on_failure"):
        Query(
            time="t",
            rows=3,
            ordering=Ordering.adaptive(8, Queue(4, Fraction(1, 2))),
            on_failure=policy,
        )


@pytest.mark.parametrize(
    ("policy", "code", "words"),
    [
        ("replay", 0, "failures: failed cores: 1; "),
        ("report", 0, "stored by core 1, numbers"),
        ("raise", 1, "Core 1 of device"),
    ],
)
def test_the_command_says_what_failed(tmp_path, capsys, policy, code, words):
    bundle = write_manifest(gated(), tmp_path / "bundle")
    table = pa.table({"t": np.arange(200), "x": np.arange(200) ** 2 % 7})
    paths = [str(tmp_path / name) for name in ("left.parquet", "right.parquet", "out.parquet")]
    for path in paths[:2]:
        write_table(table.to_batches(), table.schema, path)
    arguments = [
        "join", "--left", paths[0], "--right", paths[1], "--output", paths[2], "--time", "t",
        "--on", "x", "--rows", "30", "--on-failure", policy,
    ]  # fmt: skip
    assert main([*arguments, "--device", f"tests.host.failing_device:{bundle},120,1"]) == code
    assert words in capsys.readouterr().err
    if policy == "replay":
        answer = read_table(paths[2])
        assert main([*arguments[:-2], "--device", "software:"]) == 0
        assert answer.equals(read_table(paths[2]))
