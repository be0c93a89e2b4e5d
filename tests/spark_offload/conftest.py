# SPDX-License-Identifier: Apache-2.0
"""One Spark session for all tests of the package, and small accelerators."""

import json

import pytest

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import MissingToolError
from host.protocol.manifest import digest
from spark_offload.cluster.session import open_session
from tests.spark_offload.stream_folders import Folders


@pytest.fixture(scope="session")
def spark():
    """A quiet session with two cores; its shuffles are small."""
    options = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        # To generate code for every query takes Java a fifth of its time, for a few rows.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Where the machine is busy, a Python worker takes longer than 15 seconds to start.
        "spark.python.authenticate.socketTimeout": "120s",
    }
    session = open_session("tests", master="local[2]", options=options)
    yield session
    session.stop()


@pytest.fixture
def folders(spark, tmp_path):
    """Two folders of files, each file one micro-batch of a stream."""
    return Folders(spark, tmp_path)


@pytest.fixture(scope="session")
def software_bundle(tmp_path_factory):
    """The address of a software device that holds 64 tuples a side."""
    folder = tmp_path_factory.mktemp("bundle")
    values = json.loads(SOFTWARE_MANIFEST.read_text())
    values["parameters"]["window"] |= {"cores": 1, "sub_window": 64}
    values["storage"] |= {"cores": 1, "sub_window": 64}
    values["hash"] = digest(values, "")
    (folder / "manifest.json").write_text(json.dumps(values))
    return f"software:{folder}"


@pytest.fixture(scope="session")
def simulated_bundle(tmp_path_factory):
    """The address of a small simulated accelerator: 3 cores, 192 tuples a side."""
    library = pytest.importorskip("sim.verilated.library")
    return simulated(tmp_path_factory.mktemp("simulated") / "bundle", library)


@pytest.fixture(scope="session")
def two_port_bundle(tmp_path_factory):
    """The address of the same accelerator with a result port for each side."""
    library = pytest.importorskip("sim.verilated.library")
    return simulated(tmp_path_factory.mktemp("two-ports") / "bundle", library, result_streams=2)


def simulated(folder, library, **changes):
    """Build a small accelerator with ``changes`` in a folder; return its address."""
    keys = (KeyField(name="f0", bits=16), KeyField(name="f1", bits=16))
    parameters = JoinParameters.of(
        cores=3, sub_window=64, probes=4, lanes=2, timestamp_bits=32, keys=keys
    )
    write_bundle(parameters.with_(**changes), folder)
    try:
        library.build_library(folder)
    except MissingToolError as error:
        pytest.skip(str(error))
    return f"sim:{folder}"
