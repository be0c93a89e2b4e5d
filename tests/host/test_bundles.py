# SPDX-License-Identifier: Apache-2.0
import sys

import pytest

from host import bundles
from host.bundles import bundle_directory, default_bundle, find_bundles, source_hash
from host.errors import BuildError, MissingToolError
from tests.host.tables import bundle

#: A builder that makes a bundle of an empty library.
GOOD = (
    "import pathlib, sys; place = pathlib.Path(sys.argv[-1]); place.mkdir(); (place / {!r}).touch()"
)


@pytest.fixture
def builder(monkeypatch):
    """Replace the builder by a program; return a list of its calls."""
    calls = []

    def replace(program):
        real = bundles.run_builder

        def run(command, quiet):
            calls.append(command)
            assert command[:4] == [sys.executable, "-m", "sim", "build"]
            return real([sys.executable, "-c", program, *command[-2:]], quiet)

        monkeypatch.setattr(bundles, "run_builder", run)
        return calls

    return replace


def test_in_a_checkout_bundles_live_in_build(root):
    assert bundle_directory() == root / "build" / "bundles"


def test_elsewhere_they_live_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(bundles, "__file__", str(tmp_path / "site" / "host" / "bundles.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert bundle_directory() == tmp_path / "cache" / "splitjoin" / "bundles"


def test_the_default_bundle_is_built_once_and_named_after_its_sources(builder, tmp_path, capsys):
    calls = builder(GOOD.format(bundles.LIBRARY))
    place = default_bundle(directory=tmp_path)
    assert place.parent == tmp_path
    assert place.name == f"demo-{source_hash()[:16]}"
    assert default_bundle(directory=tmp_path) == place
    assert len(calls) == 1
    assert [path.name for path in tmp_path.iterdir()] == [place.name]
    assert "Building the default bundle" in capsys.readouterr().err


def test_a_half_built_bundle_is_built_again(builder, tmp_path):
    builder(GOOD.format(bundles.LIBRARY))
    place = default_bundle(directory=tmp_path, quiet=True)
    (place / bundles.LIBRARY).unlink()
    assert (default_bundle(directory=tmp_path, quiet=True) / bundles.LIBRARY).is_file()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit('compiler: not found')", "compiler: not found"),
        ("import os; os.kill(os.getpid(), 9)", "killed"),
        ("raise SystemExit(3)", "no message"),
        ("pass", "has no splitjoin.so"),
    ],
)
def test_a_failed_build_leaves_nothing_and_says_why(builder, tmp_path, program, message):
    builder(program)
    with pytest.raises(BuildError, match=message) as caught:
        default_bundle(directory=tmp_path, quiet=True)
    assert caught.value.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_without_the_builder_a_built_bundle_is_used_or_the_remedy_told(monkeypatch, tmp_path):
    monkeypatch.setattr(bundles, "MAKERS", ("hdl", "no_such_package"))
    assert source_hash() is None
    with pytest.raises(MissingToolError, match="extra 'sim'.*--device software:"):
        default_bundle(directory=tmp_path)
    unbuilt = bundle(tmp_path / "demo-1")
    with pytest.raises(MissingToolError):
        default_bundle(directory=tmp_path)
    (unbuilt / bundles.LIBRARY).touch()
    assert default_bundle(directory=tmp_path) == unbuilt


def test_bundles_that_cannot_be_used_are_not_listed(tmp_path):
    good = bundle(tmp_path / "good")
    bad = bundle(tmp_path / "bad")
    (bad / "manifest.json").write_text("{}")
    assert [folder for folder, _ in find_bundles(tmp_path)] == [good]
    assert find_bundles(tmp_path / "missing") == []


def test_every_engine_has_a_default_bundle_of_its_own(builder, tmp_path):
    builder(GOOD.format(bundles.LIBRARY))
    names = [
        default_bundle(engine, tmp_path, quiet=True).name.rpartition("-")[0]
        for engine in ("scan", "index")
    ]
    assert names == ["demo", "demo-index"]
