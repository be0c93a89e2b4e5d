# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from bench.spark.__main__ import main
from bench.spark.cases import CASES


@pytest.mark.long
def test_every_question_has_the_answer_of_the_expert(spark, tmp_path, capsys):
    path = tmp_path / "cases.json"
    assert main(["cases", "--rows", "3000", "--turns", "1", "--output", str(path)]) == 0
    found = [row["name"] for row in json.loads(path.read_text())]
    assert found == [
        f"spark.{name}.{kind}_vs_expert" for name in CASES for kind in ("speedup", "processor")
    ]
    turns = [line for line in capsys.readouterr().err.splitlines() if line.endswith(" rows")]
    assert not any(line.endswith(" 0 rows") for line in turns), "every question has an answer"


@pytest.mark.long
def test_rows_may_come_through_spark(spark, tmp_path):
    path = tmp_path / "cases.json"
    asked = ["--cases", "equality", "--rows", "3000", "--turns", "1", "--output", str(path)]
    assert main(["cases", *asked, "--filtered"]) == 0
    assert len(json.loads(path.read_text())) == 2


@pytest.mark.parametrize("option", ["--rows", "--turns"])
def test_a_number_that_makes_no_sense_is_an_error(capsys, option):
    assert main(["cases", option, "0"]) == 2
    assert f"{option} must be at least 1" in capsys.readouterr().err
