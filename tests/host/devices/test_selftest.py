# SPDX-License-Identifier: Apache-2.0
"""The self test of a device: it passes where all is well, and tells one fault from another."""

import re

import numpy as np
import pytest

from host.__main__ import main
from host.devices import open_device
from host.devices.linked import ID, MANIFEST_HASH
from host.devices.selftest import HINTS, Outcome, difference, in_order, self_test, small_join
from host.devices.software import SoftwareDevice
from host.errors import UsageError
from sim.link.noise import Noise
from tests.host.devices.link.software_board import serve
from tests.host.small_bundles import BUNDLES, write_manifest

STEPS = ["open", "identity", "registers", "ping", "join", "counters", "line"]


@pytest.fixture
def bundle(tmp_path):
    return write_manifest(BUNDLES["tiny"], tmp_path / "bundle")


def uri_of(board, bundle):
    return f"tcp:127.0.0.1:{board.port}?bundle={bundle}"


def tried(board, bundle, **options):
    """Return the findings for a board, by step."""
    findings = self_test(lambda: open_device(uri_of(board, bundle)), **options)
    found = {finding.step: finding for finding in findings}
    assert list(found) == STEPS
    return found


def failed(found):
    """Return the only finding that has failed, with everything behind it untried."""
    names = [name for name, finding in found.items() if finding.outcome is Outcome.FAILED]
    assert len(names) == 1
    at = STEPS.index(names[0])
    assert all(found[name].outcome is Outcome.UNTRIED for name in STEPS[at + 1 :])
    assert all(found[name].outcome is Outcome.PASSED for name in STEPS[:at])
    return found[names[0]]


def test_a_board_passes_every_step(bundle):
    with serve(bundle) as board:
        found = tried(board, bundle, tuples=60)
    assert {finding.outcome for finding in found.values()} == {Outcome.PASSED}
    assert not any(finding.hint for finding in found.values())
    assert "60 tuples" in found["join"].text
    assert "link version 2" in found["open"].text


@pytest.mark.parametrize("name", BUNDLES)
def test_every_accelerator_is_compared_with_the_reference_join(name, tmp_path):
    folder = write_manifest(BUNDLES[name], tmp_path / "bundle")
    findings = list(self_test(lambda: open_device(f"software:{folder}"), tuples=150))
    states = [finding.outcome for finding in findings]
    assert states == [
        Outcome.PASSED, *[Outcome.ABSENT] * 3, Outcome.PASSED, Outcome.PASSED, Outcome.ABSENT,
    ]  # fmt: skip
    asked = small_join(open_device(f"software:{folder}").manifest, tuples=150, seed=1)
    assert len(asked.results) > 170  # there are pairs, or the comparison would say little
    assert sum(asked.tuples) == 150


def test_a_silent_board_is_told_from_one_that_talks_nonsense(bundle, monkeypatch):
    monkeypatch.setattr("host.devices.linked.SECONDS", 0.3)
    with serve(bundle) as board:
        board.mute = True
        silent = failed(tried(board, bundle))
    assert silent.hint == HINTS["open: silent"]
    with serve(bundle) as board:
        board.noises[0] = Noise(0.6, 1)  # only what it says is damaged
        garbled = failed(tried(board, bundle))
    assert (garbled.step, garbled.hint) == ("open", HINTS["open: garbled"])


def test_another_bitstream_is_told_from_a_dead_board(bundle, tmp_path):
    other = write_manifest(BUNDLES["plain"], tmp_path / "other")
    with serve(other) as board:
        found = failed(tried(board, bundle))
    assert (found.step, found.hint) == ("open", HINTS["open: other"])
    assert "manifest hash" in found.text


def test_registers_with_another_hash_are_found(bundle):
    with serve(bundle) as board:
        board.constants[MANIFEST_HASH + 8] ^= 1
        found = failed(tried(board, bundle))
    assert found.step == "identity"
    assert "the registers say that the manifest's hash is" in found.text


@pytest.mark.parametrize(
    ("fault", "step", "text"),
    [
        (lambda address, data, strobe, value: 0, "registers", "1 was written .* and 0 was read"),
        (lambda address, data, strobe, value: value if value is not None else 0, "registers",
         "address 0xffc has no register, and has answered"),
    ],
)  # fmt: skip
def test_registers_that_do_not_work_are_found(bundle, fault, step, text):
    with serve(bundle) as board:
        right = board.registers

        def registers(address, data, strobe):
            value = right(address, data, strobe)
            return fault(address, data, strobe, value) if address not in board.constants else value

        board.registers = registers
        board.reset()
        found = failed(tried(board, bundle))
    assert found.step == step
    assert re.search(text, found.text)


def test_a_byte_that_is_kept_although_it_was_not_enabled_is_found(bundle):
    with serve(bundle) as board:
        right = board.registers
        board.registers = lambda address, data, strobe: right(address, data, 1)
        board.reset()
        found = failed(tried(board, bundle))
    assert found.step == "ping"
    assert "a byte was kept" in found.text


class Wrong(SoftwareDevice):
    """Answers, but not as the reference join does."""

    def __init__(self, bundle, fault):
        super().__init__(bundle)
        self.fault = fault

    def exchange(self, words, results, *, cycles, stamps=None):
        done = super().exchange(words, results, cycles=cycles, stamps=stamps)
        if self.fault == "changed" and done.produced > 2:
            results[1] ^= np.uint64(1 << 5)
        return done

    def counters(self):
        found = super().counters()
        if self.fault == "counted" and found["tuples_s"]:
            found["tuples_s"] += 1
        return found


@pytest.mark.parametrize(
    ("fault", "step", "text"),
    [("changed", "join", "results differ from those of the reference join; the first one is"),
     ("counted", "counters", "tuples_s has counted")],
)  # fmt: skip
def test_wrong_answers_are_found(bundle, fault, step, text):
    found = {
        finding.step: finding for finding in self_test(lambda: Wrong(bundle, fault), tuples=30)
    }
    assert found[step].outcome is Outcome.FAILED
    assert text in found[step].text
    assert found[step].hint == HINTS[step]


def test_an_accelerator_that_hangs_ends_the_test_in_time(bundle, monkeypatch):
    monkeypatch.setattr("host.devices.selftest.SECONDS", 0.3)
    with serve(bundle) as board:
        monkeypatch.setattr(board, "work", lambda: False)
        found = failed(tried(board, bundle))
    assert found.step == "join"
    assert re.match(r"nothing came for 0.3 s: \d+ of 207 input words were taken, 0 res", found.text)


def test_a_bad_line_is_told_although_no_answer_is_wrong(bundle):
    with serve(bundle, rate=0.01) as board:
        found = tried(board, bundle, tuples=150)
    assert found["counters"].outcome is Outcome.PASSED
    assert (found["line"].outcome, found["line"].hint) == (Outcome.FAILED, HINTS["line"])


def test_pairs_of_a_probe_may_come_in_any_order_from_an_index_only(tmp_path):
    for engine, free in (("scan", False), ("index", True)):
        parameters = BUNDLES["plain"].with_(
            engine=engine, **({"bucket_bits": 3, "sub_window": 20} if free else {"sub_window": 20})
        )
        with SoftwareDevice(write_manifest(parameters, tmp_path / engine)) as device:
            manifest = device.manifest
        results = small_join(manifest, tuples=80, seed=2).results
        kinds = results[:, 0] >> np.uint64(manifest.result_word["kind"].offset) & np.uint64(3)
        pairs = kinds == manifest.result_kinds["PAIR"]
        at = int(np.flatnonzero(pairs[:-1] & pairs[1:])[0])
        swapped = results.copy()
        swapped[[at, at + 1]] = swapped[[at + 1, at]]
        assert (difference(manifest, swapped, results) == "") is free
        assert "results have come, and" in difference(manifest, results[:-1], results)
        assert np.array_equal(in_order(manifest, results), results)


def test_no_tuples_are_refused(bundle):
    with pytest.raises(UsageError, match="must be at least 1, not 0"):
        self_test(lambda: open_device(f"software:{bundle}"), tuples=0)


def test_the_command_prints_each_step_and_fails_with_it(bundle, capsys):
    with serve(bundle) as board:
        assert main(["selftest", uri_of(board, bundle), "--tuples", "30"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[:2] for line in lines] == [[step, "ok"] for step in STEPS]
        board.constants[ID] = 3
        assert main(["selftest", uri_of(board, bundle)]) == 1
        out = capsys.readouterr().out
    assert "open      FAILED  Device" in out
    assert HINTS["open: other"] in out
    assert out.count("untried") == len(STEPS) - 1


def test_a_request_that_makes_no_sense_is_no_fault_of_a_device(capsys):
    assert main(["selftest", "tcp:nowhere"]) == 2
    assert "lacks its bundle" in capsys.readouterr().err
    assert main(["selftest", "software:", "--tuples", "0"]) == 2
    assert "must be at least 1, not 0" in capsys.readouterr().err
