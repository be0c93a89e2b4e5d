# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path
import subprocess
import sys
import zipfile

import pytest

from spark_offload.__main__ import main

PROGRAM = """
import host, splitjoin
from splitjoin.spark import stream_join
from pyspark.sql import SparkSession

assert ".zip" in host.__file__ and ".zip" in splitjoin.__file__, host.__file__
spark = SparkSession.builder.getOrCreate()
left = spark.createDataFrame([(1, 5), (4, 7)], "t long, x long")
right = spark.createDataFrame([(2, 6), (9, 7)], "t long, x long")
pairs = stream_join(
    left, right, band={("x", "x"): (-1, 1)}, time="t", within=3, device="software:"
)
print("pairs:", [tuple(row) for row in pairs.collect()])
traced = stream_join(
    left, right, band={("x", "x"): (-1, 1)}, time="t", within=3, device="software:BUNDLE"
)
print("from a model:", [tuple(row) for row in traced.collect()])
"""


@pytest.mark.long
def test_a_program_runs_from_the_archive_alone(tmp_path, capsys, software_bundle):
    archive = tmp_path / "out" / "splitjoin.zip"
    assert main(["zip", "--output", str(archive)]) == 0
    assert f"spark-submit --py-files {archive}" in capsys.readouterr().out
    names = zipfile.ZipFile(archive).namelist()
    assert "host/__init__.py" in names
    assert "host/devices/software.json" in names
    assert {"splitjoin/spark.py", "splitjoin/py.typed"} <= {*names}
    # The model of an accelerator that software:BUNDLE stands for, and no more of the simulation.
    assert {name.split("/")[1] for name in names if name.startswith("sim/")} == {
        "__init__.py", "model"
    }  # fmt: skip
    program = tmp_path / "program.py"
    bundle = Path(software_bundle.removeprefix("software:")).absolute()
    program.write_text(PROGRAM.replace("BUNDLE", str(bundle)))
    submit = Path(sys.executable).with_name("spark-submit")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    done = subprocess.run(
        [str(submit), "--master", "local[1]", "--py-files", str(archive), str(program)],
        cwd=tmp_path,
        env=kept | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "pairs: [(1, 5, 2, 6), (4, 7, 2, 6)]" in done.stdout, done.stderr[-2000:]
    assert "from a model: [(1, 5, 2, 6), (4, 7, 2, 6)]" in done.stdout, done.stderr[-2000:]
