# SPDX-License-Identifier: Apache-2.0
from host.session.records import MOST_CHANGES, ChangeLog


def test_a_log_of_very_many_changes_keeps_the_last_ones_and_counts_all():
    log = ChangeLog()
    for number in range(MOST_CHANGES + 3):
        log.change(number)
    assert log.changed == MOST_CHANGES + 3
    assert log.changes == list(range(3, MOST_CHANGES + 3))
