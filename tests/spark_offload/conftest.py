# SPDX-License-Identifier: Apache-2.0
"""One Spark session for all tests of the package."""

import pytest

from spark_offload.session import open_session


@pytest.fixture(scope="session")
def spark():
    """A quiet session with two cores; its shuffles are small."""
    session = open_session(
        "tests", master="local[2]", options={"spark.sql.shuffle.partitions": "2"}
    )
    yield session
    session.stop()
