# SPDX-License-Identifier: Apache-2.0
"""Functions that carry archives unpack them where they run."""

import io
import sys
import zipfile

from pyspark import SparkFiles, cloudpickle
import pytest

from spark_offload.cluster.by_value import Luggage, carrying


def archive(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for name, text in files.items():
            made.writestr(f"{name}.py", text)
    return content.getvalue()


@pytest.fixture
def executor(tmp_path, monkeypatch):
    """The folder of an executor's files."""
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def answers(items):
    import carried_answer

    for item in items:
        yield item + carried_answer.ANSWER


def test_a_function_finds_the_package_and_the_folder_that_it_carries(executor):
    luggage = Luggage()
    luggage.add("code", archive(carried_answer="ANSWER = 40"), importable=True)
    luggage.add("data", archive(table="1 2 3"), importable=False)
    sent = cloudpickle.dumps(carrying(luggage, answers))
    for _ in range(2):  # the second task finds everything there
        assert list(cloudpickle.loads(sent)(iter([2, 3]))) == [42, 43]
    assert (executor / "data" / "table.py").read_text() == "1 2 3"
    assert sys.path.count(str(executor / "code")) == 1
    assert str(executor / "data") not in sys.path
    assert sorted(path.name for path in executor.iterdir()) == ["code", "data"]
    assert cloudpickle.loads(sent).__name__ == "answers"


def test_who_unpacks_later_than_another_task_leaves_nothing_behind(executor, monkeypatch):
    luggage = Luggage()
    luggage.add("data", archive(table="1"), importable=False)
    extract = zipfile.ZipFile.extractall

    def overtaken(self, path):
        extract(self, path)
        extract(self, executor / "data")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", overtaken)
    luggage.unpack()
    assert [path.name for path in executor.iterdir()] == ["data"]


def test_without_luggage_a_function_stays_what_it_is():
    assert carrying(None, answers) is answers
