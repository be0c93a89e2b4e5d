# SPDX-License-Identifier: Apache-2.0
"""The model of the soak beside the software device: two readings of docs/architecture.md."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np

from host.devices.software import SoftwareDevice
from tests.host.small_bundles import write_manifest
from tests.soak.checking import difference
from tests.soak.model import Model, model_of
from tests.soak.programs import Programmer
from tests.soak.results import MARK, PAIR, STAR, VALUE, read_results
from tests.soak.shapes import KINDS, random_shape
from tests.soak.words import WordLayout, as_numbers

ROOM = 1 << 12
#: Cycles that a program may take: a few dozen tuples.
EFFORT = 1500


def manifest_in(folder, parameters):
    return json.loads((write_manifest(parameters, folder) / "manifest.json").read_text())


def software_results(folder, words):
    """Return the result words of the software device."""
    with SoftwareDevice(folder) as device:
        buffer = np.zeros((ROOM, device.manifest.result_word.columns), np.uint64)
        found, at = [buffer[:0]], 0
        while True:
            done = device.exchange(words[at:], buffer, cycles=1)
            at += done.accepted
            found.append(buffer[: done.produced].copy())
            if not (done.accepted or done.produced):
                return np.concatenate(found)


def with_flush(manifest, words):
    layout = WordLayout(manifest["input_word"])
    flush = layout.word(
        kind=manifest["input_kinds"]["CONTROL"], control_op=manifest["operations"]["FLUSH"]
    )
    return np.ascontiguousarray(np.concatenate([words, flush]))


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 31), number=st.integers(0, 8))
def test_agrees_with_the_software_device(seed, number, tmp_path_factory):
    parameters = random_shape(seed, number)
    folder = tmp_path_factory.mktemp("bundle")
    manifest = manifest_in(folder, parameters)
    for which in range(3):
        random = np.random.default_rng([seed, number, which])
        program = Programmer(manifest, effort=EFFORT).program(random)
        words = with_flush(manifest, program.words)
        results, wrong = read_results(manifest, software_results(folder, words))
        assert wrong is None
        assert difference(Model(manifest).answer(words), results, parameters.engine) is None


@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 31), kind=st.sampled_from(["band", "equality", "custom"]))
def test_agrees_with_the_software_device_on_join_aggregates(seed, kind, tmp_path_factory):
    parameters = random_shape(seed, KINDS.index(("aggregate", kind)))
    folder = tmp_path_factory.mktemp("bundle")
    manifest = manifest_in(folder, parameters)
    model = model_of(manifest)
    for which in range(3):
        random = np.random.default_rng([seed, which])
        program = Programmer(manifest, effort=EFFORT).program(random)
        words = with_flush(manifest, program.words)
        results, wrong = read_results(manifest, software_results(folder, words))
        assert wrong is None
        answer = model.answer(words)
        assert int((answer.results.kind == VALUE).sum()) == answer.tuples[0]
        assert difference(answer, results, parameters.engine) is None


def example(tmp_path):
    """Return a manifest, the results of a small program, and its answer."""
    manifest = manifest_in(tmp_path / "bundle", random_shape(5, 1))
    random = np.random.default_rng(3)
    for _ in range(50):
        words = with_flush(manifest, Programmer(manifest, effort=EFFORT).program(random).words)
        answer = Model(manifest).answer(words)
        if (answer.results.kind == PAIR).sum() > 3 and not len(answer.void):
            break
    else:
        raise AssertionError("no program with a few pairs")
    results, _ = read_results(manifest, software_results(tmp_path / "bundle", words))
    return answer, results


def test_a_result_that_is_missing_doubled_or_changed_is_a_difference(tmp_path):
    answer, results = example(tmp_path)
    assert difference(answer, results, "scan") is None
    for kind in (PAIR, STAR, MARK):
        at = int(np.flatnonzero(results.kind == kind)[0])
        everything = np.arange(len(results))
        assert difference(answer, results[np.delete(everything, at)], "scan")
        assert difference(answer, results[np.insert(everything, at, at)], "scan")
        changed = results[everything]
        changed.code[at] ^= 1
        assert difference(answer, changed, "scan")


@given(st.integers(1, 64), st.integers(0, 150), st.booleans(), st.data())
def test_fields_of_a_word_are_where_the_manifest_says(bits, offset, signed, data):
    field = {"offset": offset, "bits": bits, "signed": signed}
    layout = WordLayout({"bits": offset + bits, "fields": {"f": field}})
    low = -(1 << bits - 1) if signed else 0
    value = data.draw(st.integers(low, low + (1 << bits) - 1))
    word = layout.word(f=value)
    (number,) = as_numbers(word)
    assert number == (value & ((1 << bits) - 1)) << offset
    assert layout.value(number, "f") == value
    assert int(layout.get_ordered(word, "f")[0]) == value - low
    again = layout.blank(1)
    layout.put(again, "f", layout.get(word, "f"))
    assert (again == word).all()


def test_noise_is_in_all_bits_but_those_of_the_fields():
    fields = {"a": {"offset": 3, "bits": 7}, "b": {"offset": 60, "bits": 9}}
    layout = WordLayout({"bits": 75, "fields": fields})
    seen = 0
    for number in as_numbers(layout.noise(np.random.default_rng(1), 200, ["a", "b"])):
        seen |= number
    assert seen == (1 << 75) - 1 - (127 << 3) - (511 << 60)
