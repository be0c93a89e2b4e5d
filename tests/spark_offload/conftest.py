# SPDX-License-Identifier: Apache-2.0
"""One Spark session for all tests of the package, and a small accelerator in software."""

import json

import pytest

from host.device.software import SOFTWARE_MANIFEST
from host.manifest import digest
from spark_offload.session import open_session


@pytest.fixture(scope="session")
def spark():
    """A quiet session with two cores; its shuffles are small."""
    session = open_session(
        "tests", master="local[2]", options={"spark.sql.shuffle.partitions": "2"}
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def software_bundle(tmp_path_factory):
    """The address of a software device that holds 64 tuples a side."""
    folder = tmp_path_factory.mktemp("bundle")
    values = json.loads(SOFTWARE_MANIFEST.read_text())
    values["parameters"] |= {"cores": 1, "sub_window": 64}
    values["storage"] |= {"cores": 1, "sub_window": 64}
    values["hash"] = digest(values, "")
    (folder / "manifest.json").write_text(json.dumps(values))
    return f"software:{folder}"
