# SPDX-License-Identifier: Apache-2.0
"""The AXI shell around a join aggregate, against the model of the host."""

import pytest

from hdl.families.choice import family_of
from hdl.shells.axi import AxiOptions
from hdl.words.results import result_word
from host.protocol.manifest import JoinAggregateManifest
from sim.scenarios import assert_right, expected_results, merged_inputs, random_scenario
from tests.hdl.input_words import control_word, tuple_word
from tests.hdl.matches.match_words import match_parameters
from tests.hdl.shells.shell_bench import Shell, integers, rows
from tests.host.small_bundles import write_manifest

SMALL = match_parameters(cores=2, probes=2, sub_window=4, timestamp_bits=9)


@pytest.mark.long
@pytest.mark.parametrize("inputs", [1, pytest.param(2, marks=pytest.mark.long), 3])
def test_values_are_those_of_the_model(inputs, tmp_path):
    path = write_manifest(SMALL, tmp_path)
    manifest = JoinAggregateManifest.load(path)
    scenario = random_scenario(manifest, inputs, tuples=30)
    offered = [scenario.words]
    options = AxiOptions(inputs=inputs)
    if inputs > 1:
        sides = family_of(SMALL).inputs(inputs).sides
        scenario, offered = merged_inputs(manifest, scenario, sides=sides)
    expected = expected_results(path, scenario)
    shell = Shell(SMALL, options=options, pauses=0.3, seed=inputs)
    found = []

    async def take(ctx):
        found.extend(await shell.take(ctx, scenario.marks))

    shell.bench.run(*shell.senders([integers(words) for words in offered]), take)
    words = rows(found, manifest.result_word.columns)
    assert_right(path, scenario, words, expected=expected)


def test_registers_tell_what_it_is_and_what_is_wrong():
    shell = Shell(SMALL)

    def words(*given):
        return [shell.word(word) for word in given]

    async def program(ctx):
        await shell.reset(ctx)
        for name, value in (("CORES", 2), ("TIMESTAMPS", 1), ("VALUES", 1), ("INDEX", 0)):
            assert await shell.field(ctx, "ENGINE", name) == value
        bounds = [control_word(name, 0, 0) for name in ("BOUND_LOW", "BOUND_HIGH")]
        stored = [tuple_word(1, {"x": 3}, 5, value=2), tuple_word(1, {"x": 3}, 5, value=4)]
        probes = [tuple_word(0, {"x": key}, 6) for key in (3, 4)]
        await shell.send(ctx, words(*bounds, control_word("LIFESPAN", 1, 9), control_word("FLUSH")))
        await shell.take(ctx, 1)
        await shell.send(ctx, words(*stored, *probes, control_word("FLUSH")))
        taken = [result_word(SMALL).from_bits(word) for word in await shell.take(ctx, 1)]
        counts = [(word.body.value.count, word.body.value.total) for word in taken[:2]]
        assert counts[0] == (2, 6)
        assert counts[1][0] == 0
        await shell.write(ctx, "CONTROL", 1 << 8 | 2)
        counters = [await shell.read(ctx, f"{n}_LO") for n in ("TUPLES_R", "TUPLES_S", "RESULTS")]
        assert counters == [2, 2, 2]
        await shell.send(ctx, words(tuple_word(0, {"x": 3}, 2), control_word("FLUSH")))
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == 1 << 1  # time went backwards

    shell.bench.run(program)
