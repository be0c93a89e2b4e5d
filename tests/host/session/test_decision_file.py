# SPDX-License-Identifier: Apache-2.0
import pytest

from host import UsageError
from host.query.cores import Observation
from host.session.records import CoreChange, CoreDecision, note_into, read_epochs

SEEN = Observation(cores=4, least=1, cycles=100, busy=7)


def test_the_changes_of_a_file_are_read_back(tmp_path):
    path = tmp_path / "decisions"
    path.write_text("of an earlier join")
    note = note_into(path)
    note(CoreDecision(120, SEEN, 2))
    note(CoreChange(130, 55, (0, 1)))
    assert read_epochs(path) == [(55, (0, 1))]  # at once, not when the join ends
    note(CoreChange(190, 90, (3, 0, 1)))
    assert read_epochs(path) == [(55, (0, 1)), (90, (3, 0, 1))]


@pytest.mark.parametrize(
    "line", ["{", "[]", "7", "{}", '{"cores": [1]}', '{"cores": 3, "tuples": 1}']
)
def test_a_line_that_is_no_decision_is_named(tmp_path, line):
    path = tmp_path / "decisions"
    path.write_text('{"cycle": 1, "tuples": 5, "cores": [0]}\n' + line + "\n")
    with pytest.raises(UsageError, match=r"Line 2 of '.*decisions' is no decision"):
        read_epochs(path)


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_epochs(tmp_path / "missing")
    with pytest.raises(UsageError, match="cannot be written"):
        note_into(tmp_path / "no" / "folder")
