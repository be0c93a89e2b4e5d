# SPDX-License-Identifier: Apache-2.0
from bench.figures.verification import code_digest

CODE = '''"""A module."""


class Counter:
    """Counts."""

    def add(self, number):
        """Add a number."""
        self.total += number  # no limit
        return "a string"
'''


def test_comments_docstrings_and_layout_change_nothing():
    changed = CODE.replace("# no limit", "#").replace("Counts.", "Counts\n    numbers.")
    assert changed != CODE
    assert code_digest(changed) == code_digest(CODE)
    assert code_digest(CODE.replace("self.total += number", "self.total  +=  number")) == (
        code_digest(CODE)
    )


def test_any_change_of_the_code_shows():
    for old, new in [
        ("+= number", "-= number"),
        ("a string", "another string"),
        ("def add", "def sub"),
        ("return ", ""),
    ]:
        assert code_digest(CODE.replace(old, new)) != code_digest(CODE)
