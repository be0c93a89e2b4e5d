# SPDX-License-Identifier: Apache-2.0
"""What `python -m tests.code_lines` counts."""

import pytest

from tests.code_lines import code_lines, loaded, lone_modules, main, sources, table, wide

COUNTED = {
    "": 0,
    "# a comment\n\n": 0,
    '"""A docstring."""\n': 0,
    '"""A docstring\n\nof three lines."""\nx = 1  # and a comment\n': 1,
    'def f():\n    """Say what."""\n': 1,
    'def f():\n    """Say\n    what."""\n    return """\na\n\nb"""\n': 4,
    'class A:\n    """What it is."""\n\n    x = (\n        # one\n        1,\n    )\n': 4,
    "x = 1\n'a string that documents x'\n": 2,
    "if x: y = 1\nelse:\n    y = 2\n": 3,
    "x = [1,\\\n     2]\n": 2,
}


@pytest.mark.parametrize("text", COUNTED)
def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings(text):
    assert code_lines(text) == COUNTED[text]


@pytest.fixture
def package(tmp_path):
    """A package of two folders, with a lone module and a wide function."""
    files = {
        "kit/__init__.py": '"""A kit."""\n',
        "kit/top.py": "from kit.low import lone\nfrom kit.low.both import x\n",
        "kit/low/__init__.py": "",
        "kit/low/lone.py": "from .both import x\n",
        "kit/low/both.py": "x = 1\n",
        "kit/low/long.py": "x = 1\n" * 60,
        "kit/wide.py": "import kit.low.long\n"
        "def wide(a, b, c, d, e, f, g, h, i, j, k): ...\n"
        "class A:\n"
        "    def full(self, a, b, c, d, e, /, f, g, h, *, i, j): ...\n"
        "    def wider(self, a, b, c, d, e, /, f, g, h, *, i, j, k): ...\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_lone_modules_have_one_importer(package):
    found = sources("kit", package)
    assert lone_modules(found, found) == ["kit.low.lone"]


def test_wide_functions_take_more_than_ten_arguments(package):
    found = [pair for source in sources("kit", package) for pair in wide(source)]
    assert found == [(2, "wide"), (5, "wider")]


def test_the_table_has_the_folder_and_what_lies_in_it(package):
    _, kit, low = table(["kit"], package)
    assert kit.split() == ["kit", "69", "7", "6", "1", "2"]
    assert low.split() == ["kit/low", "62", "4", "3", "0"]


def test_the_command_tells_of_folders_files_and_names(package, capsys):
    assert main(["kit", "--names", "--files"], package) == 0
    told = capsys.readouterr().out.splitlines()
    assert "      60 kit/low/long.py" in told
    assert "lone: kit.low.lone" in told
    assert "wide: kit/wide.py:2 wide" in told


def test_modules_that_a_command_loads_are_counted():
    assert 50 < loaded("host") < 200
    assert loaded("hdl") is None
