# SPDX-License-Identifier: Apache-2.0
"""A core that works is never taken for one that has failed, though it works for long."""

import numpy as np
import pytest

from bench.handshake import HANDSHAKE
from hdl.accelerator import Accelerator
from hdl.parameters import JoinParameters, KeyField
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from tests.hdl.stream_bench import StreamBench
from tests.hdl.test_accelerator import as_integers, as_results
from tests.host.small_bundles import FLUSH, configuration, pack, write_manifest

X8 = (KeyField(name="x", bits=8),)
SHAPES = {
    "scan": {"probes": 4, "lanes": 1, "timestamp_bits": 12},
    "digests": {"probes": 2, "comparator": "equality", "digest_bits": 1},
    "index": {"engine": "index", "bucket_bits": 1, "probes": 2},
}


#: An index is quicker than its formula says by much the same share.
@pytest.mark.long
@pytest.mark.parametrize(
    "shape", ["scan", "digests", pytest.param("index", marks=pytest.mark.long)]
)
def test_the_hardest_work_between_two_signs_of_life_takes_less_time(tmp_path, shape):
    """Full windows without a match, long periods, and two users of the results who are slow."""
    parameters = JoinParameters.of(cores=2, sub_window=12, keys=X8, probe_bits=5, **SHAPES[shape])
    least = parameters.longest_silence
    parameters = parameters.with_(failure_cycles=least)
    manifest = Manifest.load(write_manifest(parameters, tmp_path / "bundle"))
    windows = [("WINDOW", parameters.capacity)] * 2
    if parameters.timestamp_bits:
        windows = [("LIFESPAN", 30)] * 2
    # All keys of a side are equal, and their digests agree with those of the other side.
    keys = {"R": 3, "S": 100}
    tuples = [
        (side, {"x": keys[side]}, 4 * n + 3000 * (n > 34)) for n in range(40) for side in ("R", "S")
    ]
    script = [*configuration(parameters, bounds=(0, 0), windows=windows, period=0)]
    words = pack(manifest, [*script, *tuples, FLUSH])
    bench = StreamBench(Accelerator(parameters), deadline=200_000)
    bench.source(bench.dut.i, as_integers(words))
    taken = []
    received = bench.sink(bench.dut.o, 3, stamps=taken, begin=3 * least if least < 3000 else 0,
                          weight=lambda word: as_kind(parameters, word) == 2)  # fmt: skip
    bench.run(extra_cycles=40)
    fields = WordCodec(manifest).unpack_results(as_results(parameters, received))
    assert not fields.failed.any()
    assert np.count_nonzero(fields.kind == 2) == 3


def as_kind(parameters, word):
    """Return the kind of a result, which is in its lowest bits."""
    return word & 3


@pytest.mark.parametrize("failure_cycles", [1, 281])
def test_a_shorter_deadline_is_refused(failure_cycles):
    least = JoinParameters.of().longest_silence
    assert least > 281
    message = f"must be at least {least}, for so long a core of this shape may show nothing"
    with pytest.raises(ValueError, match=message):
        JoinParameters.of(failure_cycles=failure_cycles)


def test_cores_of_a_chain_have_no_gates():
    with pytest.raises(ValueError, match="only the cores of 'splitjoin' have gates"):
        JoinParameters.of(architecture=HANDSHAKE, failure_cycles=1 << 20)
