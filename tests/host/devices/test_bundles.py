# SPDX-License-Identifier: Apache-2.0
import argparse
import os
from pathlib import Path
import shlex
import signal
import subprocess
import sys

import pytest

from hdl.bundle import write_bundle
from hdl.options import add_parameter_options, parameters_from
from host import installation
from host.devices import bundles
from host.devices.bundles import (
    bundle_folders,
    default_bundle,
    find_bundles,
    library_folder,
    operator_bundle,
    source_hash,
)
from host.devices.simulated import LIBRARY
from host.errors import BuildError, FailureError, MissingToolError
from host.files.atomic import publish
from host.operators.operate import require_device
from host.operators.windowed import Field, Key, Reduction, WindowedOperator
from host.query.conditions import Condition
from host.query.deciding import predicate_for
from tests.halves import half
from tests.host.tables import bundle

#: A builder that makes a bundle of an empty library.
GOOD = """
import pathlib, sys
from host.files.atomic import publish
from tests.host.tables import bundle
publish(pathlib.Path("/dev/null"), bundle(pathlib.Path(sys.argv[-1])) / "splitjoin.so")
"""

#: … and of a join aggregate.
REDUCING = """
import pathlib, sys
from hdl.presets import PRESETS
from host.files.atomic import publish
from tests.host.small_bundles import write_manifest
bundle = write_manifest(PRESETS["tiny-join-aggregate"], pathlib.Path(sys.argv[-1]))
publish(pathlib.Path("/dev/null"), bundle / "splitjoin.so")
"""

#: What the builder says when there is no room for its compiler.
FULL = """python -m sim: Building x failed: g++ ended with code 1; log file: l
main.cpp:1: what it means
fatal error: No space left on device
.
"""


@pytest.fixture
def builder(monkeypatch):
    """Replace the builder by a program; return a list of its calls."""
    calls = []

    def replace(program):
        real = bundles.run_builder

        def run(call, what, quiet):
            calls.append(call)
            assert call[:4] == [sys.executable, "-m", "sim", "build"]
            return real([sys.executable, "-c", program, *call[-2:]], what, quiet)

        monkeypatch.setattr(bundles, "run_builder", run)
        return calls

    return replace


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Let the kit lie somewhere else, with the user's cache beside it."""
    monkeypatch.delenv("SPLITJOIN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    site = tmp_path / "site"
    monkeypatch.setattr(installation, "__file__", str(site / "host" / "installation.py"))
    for package in ("host", "hdl", "sim"):
        (site / package).mkdir(parents=True)
    return site


def test_in_a_checkout_bundles_and_libraries_live_in_build(root, monkeypatch):
    monkeypatch.delenv("SPLITJOIN_CACHE", raising=False)
    assert bundle_folders() == [root / "build" / "bundles"]
    assert library_folder() == root / "build" / "libraries"


def test_of_an_installed_kit_they_live_in_the_users_cache(elsewhere, tmp_path):
    assert bundle_folders() == [tmp_path / "cache" / "splitjoin" / "bundles"]
    assert library_folder() == tmp_path / "cache" / "splitjoin" / "libraries"


def test_a_checkout_that_cannot_be_written_is_only_read(elsewhere, tmp_path, monkeypatch, builder):
    (elsewhere / "pyproject.toml").touch()
    built = elsewhere / "build" / "bundles"
    assert bundle_folders() == [built]
    builder(GOOD)
    ready = default_bundle(quiet=True)
    assert ready.parent == built
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert bundle_folders() == [tmp_path / "cache" / "splitjoin" / "bundles", built]
    assert default_bundle(quiet=True) == ready
    assert [folder for folder, _ in find_bundles()] == [ready]
    (ready / LIBRARY).write_bytes(b"damaged")
    assert default_bundle(quiet=True).parent == tmp_path / "cache" / "splitjoin" / "bundles"


def test_the_environment_chooses_the_place(elsewhere, tmp_path, monkeypatch):
    (elsewhere / "pyproject.toml").touch()
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "mine"))
    assert bundle_folders() == [tmp_path / "mine" / "bundles"]
    assert library_folder() == tmp_path / "mine" / "libraries"


def test_without_a_home_or_platformdirs_the_remedy_is_told(elsewhere, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: Path("~/.cache"))
    with pytest.raises(FailureError, match=r"no home folder.*set SPLITJOIN_CACHE"):
        bundle_folders()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(MissingToolError, match="extra 'host', or set SPLITJOIN_CACHE"):
        library_folder()


def test_a_place_that_cannot_be_written_is_noticed_before_the_build(builder, tmp_path, monkeypatch):
    calls = builder(GOOD)
    (tmp_path / "file").touch()
    for variable, directory in (
        (tmp_path / "file", None),
        (tmp_path / "file", tmp_path / "bundles"),
        (tmp_path / "good", tmp_path / "file" / "bundles"),
    ):
        monkeypatch.setenv("SPLITJOIN_CACHE", str(variable))
        with pytest.raises(FailureError, match=r"cannot be written \(.*set SPLITJOIN_CACHE"):
            default_bundle(directory=directory, quiet=True)
    assert calls == []


def test_the_default_bundle_is_built_once_and_named_after_its_sources(builder, tmp_path, capsys):
    calls = builder(GOOD)
    place = default_bundle(directory=tmp_path)
    assert place.parent == tmp_path
    assert place.name == f"demo-{source_hash()[:16]}"
    assert default_bundle(directory=tmp_path) == place
    assert len(calls) == 1
    assert [path.name for path in tmp_path.iterdir()] == [place.name]
    assert "Building the default bundle" in capsys.readouterr().err


def test_a_join_aggregate_is_built_once_too_and_is_no_default_for_pairs(builder, tmp_path):
    calls = builder(REDUCING)
    options = ["--value-bits", "8"]
    place = default_bundle(directory=tmp_path, options=options, quiet=True)
    assert place.name == f"demo-value-bits-8-{source_hash()[:16]}"
    assert default_bundle(directory=tmp_path, options=options, quiet=True) == place
    assert len(calls) == 1
    assert find_bundles(tmp_path) == []


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("part", "damage"),
    half(
        [LIBRARY, f"{LIBRARY}.sha256", "manifest.json"],
        [Path.unlink, lambda path: path.write_bytes(bytes(99))],
    ),
)
def test_a_damaged_bundle_is_built_again(builder, tmp_path, part, damage):
    calls = builder(GOOD)
    place = default_bundle(directory=tmp_path, quiet=True)
    whole = {path.name: path.read_bytes() for path in place.iterdir()}
    damage(place / part)
    assert default_bundle(directory=tmp_path, quiet=True) == place
    assert {path.name: path.read_bytes() for path in place.iterdir()} == whole
    assert len(calls) == 2


def test_a_killed_build_leaves_what_the_next_one_removes(builder, tmp_path, root):
    hang = "import time; print('now', flush=True); time.sleep(60)"
    program = (
        "import subprocess, sys, pathlib\nfrom host.devices import bundles\n"
        f"bundles.run_builder = lambda *_: subprocess.run([sys.executable, '-c', {hang!r}])\n"
        "bundles.default_bundle(directory=pathlib.Path(sys.argv[1]), quiet=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "now\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(list(tmp_path.iterdir())) == 1
    builder(GOOD)
    place = default_bundle(directory=tmp_path, quiet=True)
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit('compiler: not found')", "compiler: not found"),
        ("import os; os.kill(os.getpid(), 9)", "killed"),
        ("raise SystemExit(3)", "code 3 and no message"),
        ("raise SystemExit('...\\n.')", "code 1 and no message"),
        (
            f"raise SystemExit({FULL!r})",
            r"g\+\+ ended .* log file: l: fatal error: No space",
        ),
        ("pass", "has no splitjoin.so"),
    ],
)
def test_a_failed_build_leaves_nothing_and_says_why(builder, tmp_path, program, message):
    builder(program)
    with pytest.raises(BuildError, match=message) as caught:
        default_bundle(directory=tmp_path, quiet=True)
    assert caught.value.exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", [{"MAKERS": ("hdl", "no_such")}, {"LANGUAGE": "no_such"}])
def test_without_the_builder_a_built_bundle_is_used_or_the_remedy_told(
    monkeypatch, tmp_path, missing
):
    for name, value in missing.items():
        monkeypatch.setattr(bundles, name, value)
    assert (source_hash() is None) == ("MAKERS" in missing)
    with pytest.raises(MissingToolError, match="no_such.*extra 'simulator'.*--device software:"):
        default_bundle(directory=tmp_path)
    unbuilt = bundle(tmp_path / "demo-1")
    with pytest.raises(MissingToolError):
        default_bundle(directory=tmp_path)
    publish(Path("/dev/null"), unbuilt / LIBRARY)
    assert default_bundle(directory=tmp_path) == unbuilt


def test_bundles_that_cannot_be_used_are_not_listed(tmp_path):
    good = bundle(tmp_path / "good")
    bad = bundle(tmp_path / "bad")
    (bad / "manifest.json").write_text("{}")
    assert [folder for folder, _ in find_bundles(tmp_path)] == [good]
    assert find_bundles(tmp_path / "missing") == []


OPERATOR = WindowedOperator(
    name="sums",
    size=4,
    advance=1,
    fields=[Field("k", 3, signed=False), Field("v", 8)],
    keys=[Key("k")],
    reductions=[Reduction("s", "sum", "v")],
)


def test_an_operator_has_a_bundle_that_the_builder_makes_of_its_data(tmp_path, capsys, monkeypatch):
    """The builder is given a file, of which it is to make the circuit of this operator."""
    calls = []

    def build(call, what, quiet):
        parser = argparse.ArgumentParser()
        add_parameter_options(parser)
        given = parser.parse_args(call[4:-2])
        parameters = parameters_from(given, aggregates=True)
        calls.append(what)
        folder = Path(call[-1])
        write_bundle(parameters, folder)
        publish(Path("/dev/null"), folder / LIBRARY)
        return ""

    monkeypatch.setattr(bundles, "run_builder", build)
    place = operator_bundle(OPERATOR.circuit(), tmp_path)
    assert operator_bundle(OPERATOR.circuit(), tmp_path) == place
    assert calls == ["an accelerator for operator 'sums'"]
    require_device(OPERATOR, f"sim:{place}")
    assert "Building an accelerator for operator 'sums', once, in" in capsys.readouterr().err
    assert operator_bundle(OPERATOR.with_(size=5).circuit(), tmp_path) != place
    monkeypatch.setattr(bundles, "LANGUAGE", "no_such")
    assert operator_bundle(OPERATOR.circuit(), tmp_path) == place
    with pytest.raises(MissingToolError, match=r"sim build --operator DESCRIPTION\.py --output"):
        operator_bundle(OPERATOR.with_(size=6).circuit(), tmp_path)


def test_the_command_that_builds_what_is_missing_can_be_pasted(monkeypatch, tmp_path):
    monkeypatch.setattr(bundles, "LANGUAGE", "no_such")
    where = predicate_for(Condition("l.x < r.x and l.name != r.name"))
    with pytest.raises(MissingToolError) as caught:
        default_bundle(directory=tmp_path, options=where.options, what="one")
    text = str(caught.value).split("`")[1].partition("sim build ")[2]
    *options, output, folder = shlex.split(text)
    assert options == ["--preset", "demo", *where.options]
    assert output == "--output"
    publish(Path("/dev/null"), bundle(Path(folder)) / LIBRARY)
    assert default_bundle(directory=tmp_path, options=where.options) == Path(folder)


def test_every_engine_has_a_default_bundle_of_its_own(builder, tmp_path):
    builder(GOOD)
    names = [
        default_bundle(engine, tmp_path, quiet=True).name.rpartition("-")[0]
        for engine in ("scan", "index")
    ]
    assert names == ["demo", "demo-index"]


def test_a_new_routing_report_takes_new_bundles(monkeypatch, tmp_path):
    for maker in ("maker_of_text", "maker_of_code"):
        (tmp_path / maker).mkdir()
        (tmp_path / maker / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(bundles, "MAKERS", ("maker_of_text", "maker_of_code"))
    hashes = {source_hash(), source_hash()}
    (tmp_path / "docs" / "routing").mkdir(parents=True)
    for text in ("{}", "[]"):
        (tmp_path / "docs" / "routing" / "a.json").write_text(text)
        hashes.add(source_hash())
    (tmp_path / "docs" / "routing" / "a.md").write_text("for readers")
    hashes.add(source_hash())
    assert len(hashes) == 3
