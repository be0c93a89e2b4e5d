# SPDX-License-Identifier: Apache-2.0
import pytest

from tests.conftest import shared_by_workers


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A folder for what all benches have in common when they are compiled."""
    folder = shared_by_workers(tmp_path_factory) / "kept-objects"
    folder.mkdir(exist_ok=True)
    return folder
