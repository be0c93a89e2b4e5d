# SPDX-License-Identifier: Apache-2.0
"""The contract of a device, as tests: inherit :class:`DeviceContract` and give ``open_bundle``."""

import numpy as np
import pytest

from host.devices import Exchange, Stamps
from host.errors import DeviceError
from sim.scenarios import illegal_word
from tests.host.small_bundles import (
    BUNDLES,
    FLUSH,
    by_star,
    configuration,
    expected,
    pack,
    random_tuples,
    unpack,
)

#: Cycles of one exchange, and exchanges without any progress after which a device is stuck.
CYCLES, PATIENCE = 200, 500


def empty(word, rows=0):
    """Return an array for ``rows`` words."""
    return np.zeros((rows, word.columns), np.uint64)


def converse(device, words, marks, *, offer=None, room=64, cycles=CYCLES):
    """Send ``words`` and return the result words up to the last of ``marks`` marks.

    Parameters
    ----------
    offer : int, optional
        Most input words offered at once.
    room : int
        Result words that can be taken at once.
    """
    codec_kind = device.manifest.result_word["kind"]
    mark = device.manifest.result_kinds["MARK"]
    collected, patience = [], PATIENCE
    while marks:
        results = empty(device.manifest.result_word, room)
        some = words if offer is None else words[:offer]
        done = device.exchange(np.ascontiguousarray(some), results, cycles=cycles)
        assert 0 <= done.accepted <= len(some)
        assert 0 <= done.produced <= room
        words = words[done.accepted :]
        taken = results[: done.produced]
        collected.append(taken)
        kinds = (taken[:, 0] >> np.uint64(codec_kind.offset)) & np.uint64(3)
        assert mark not in kinds[:-1], "exchange must return after a mark"
        marks -= int((kinds == mark).sum())
        patience = PATIENCE if done.accepted or done.produced else patience - 1
        assert patience, f"no progress with {len(words)} words left: {device.counters()}"
    assert not len(words), "the last mark came before all words were accepted"
    return np.concatenate([empty(device.manifest.result_word), *collected])


def ask(device, script, **options):
    """Send a script that ends with a mark, and return the results."""
    marks = sum(operation in ("CLEAR", "FLUSH", "PRECISION") for operation, _, _ in script)
    return unpack(
        device.manifest, converse(device, pack(device.manifest, script), marks, **options)
    )


def same_keys(parameters, value):
    """Return keys for a tuple, all of one value."""
    return {key.name: value for key in parameters.keys}


def punctuation(results):
    """Return stars and marks only."""
    return [word for word in results if word[0] != "PAIR"]


class DeviceContract:
    """What every device must do; a subclass gives the fixture ``open_bundle``.

    ``open_bundle(parameters)`` opens a device, right after reset, for the accelerator with these
    ``JoinParameters``; the test closes it.
    """

    #: An accelerator with timestamps, for tests of which one is enough.
    timed_parameters = BUNDLES["tiny"]

    @pytest.fixture(params=list(BUNDLES))
    def parameters(self, request):
        return BUNDLES[request.param]

    @pytest.fixture
    def device(self, open_bundle, parameters):
        with open_bundle(parameters) as device:
            yield device

    @pytest.fixture
    def timed(self, open_bundle):
        with open_bundle(self.timed_parameters) as device:
            yield device

    @pytest.mark.few(1)
    @pytest.mark.parametrize("window", ["one", "some", "full", "time"])
    def test_results_are_those_of_the_naive_accelerator(self, device, parameters, window):
        if window == "time" and not parameters.timestamp_bits:
            pytest.skip("no timestamps")
        rng = np.random.default_rng(1)
        size = {"one": 1, "some": 4, "full": parameters.capacity, "time": 5}[window]
        windows = [("LIFESPAN" if window == "time" else "WINDOW", size)] * 2
        script = configuration(parameters, windows=windows)
        script += [*random_tuples(parameters, rng, 90, pace=3), FLUSH]
        assert ask(device, script) == expected(parameters, script)

    @pytest.mark.parametrize("period", [2, 3, 4])
    def test_groups_leave_in_the_order_in_which_they_close(self, device, parameters, period):
        if period > parameters.engine.probes:
            pytest.skip("order is free")
        rng = np.random.default_rng(period)
        script = configuration(parameters, period=period, bounds=(-4, 1))
        for share_r in (0.5, 0.05, 0.95):
            script += [*random_tuples(parameters, rng, 60, pace=0, share_r=share_r), FLUSH]
        assert ask(device, script) == expected(parameters, script)

    @pytest.mark.parametrize("period", [0, 3, 5])
    def test_free_order_keeps_pairs_between_their_stars(self, device, parameters, period):
        if 0 < period <= parameters.engine.probes or period > 1 << parameters.engine.probe_bits:
            pytest.skip("order is not free")
        rng = np.random.default_rng(period)
        script = [
            *configuration(parameters, period=period),
            *random_tuples(parameters, rng, 80, pace=0),
            FLUSH,
        ]
        assert by_star(ask(device, script)) == by_star(expected(parameters, script))

    @pytest.mark.few(3)
    def test_neither_portions_nor_room_change_the_results(self, device, parameters):
        rng = np.random.default_rng(3)
        script = [*configuration(parameters), *random_tuples(parameters, rng, 25, pace=0), FLUSH]
        want = expected(parameters, script)
        for portions in ({"offer": 1}, {"room": 1}, {"offer": 3, "room": 2}, {"cycles": 1}):
            # Without a new window, tuples of the run before would still be there.
            assert ask(device, script, **portions)[-len(want) :] == want

    @pytest.mark.parametrize("sides", ["", "R", "S"])
    def test_a_side_without_tuples_gives_stars_only(self, device, parameters, sides):
        rng = np.random.default_rng(4)
        share_r = float(sides == "R")
        tuples = random_tuples(parameters, rng, 20 * len(sides), share_r=share_r)
        results = ask(device, [*configuration(parameters), *tuples, FLUSH])
        assert results == expected(parameters, [*configuration(parameters), *tuples, FLUSH])
        assert not any(word[0] == "PAIR" for word in results)

    def test_control_words_take_effect_at_their_place(self, device, parameters):
        rng = np.random.default_rng(5)
        kinds = ["WINDOW", "LIFESPAN"] if parameters.timestamp_bits else ["WINDOW"]
        script, now = configuration(parameters), 0
        for _ in range(12):
            tuples = random_tuples(parameters, rng, 12, pace=1, start=now)
            now = tuples[-1][2]
            window = str(rng.choice(kinds)), int(rng.integers(2)), int(rng.integers(1, 6))
            control = [
                ("BOUND_LOW", int(rng.integers(len(parameters.keys))), int(rng.integers(-5, 1))),
                ("BOUND_HIGH", int(rng.integers(len(parameters.keys))), int(rng.integers(0, 6))),
                window,
                ("PRECISION", 0, int(rng.integers(1, parameters.engine.probes + 1))),
                ("CLEAR", 0, 0),
                FLUSH,
            ]
            script += [*tuples, control[rng.integers(len(control))]]
        script.append(FLUSH)
        assert ask(device, script) == expected(parameters, script)

    def test_bounds_are_exact_at_the_extremes(self, device, parameters):
        if parameters.predicate.kind != "band":
            pytest.skip("no bounds")
        key = parameters.keys[0]
        low = -(1 << key.bits - 1) if key.signed else 0
        values = [low, low + 1, 0, 1, low + (1 << key.bits) - 1]
        rest = {other.name: 0 for other in parameters.keys[1:]}
        tuples = [(side, {key.name: value, **rest}, 0) for value in values for side in "RS"]
        reach = (1 << key.bits) - 1
        for bounds in [(-reach, -reach), (reach, reach), (-reach - 1, -1), (0, 0), (1, reach)]:
            script = [*configuration(parameters, bounds=(-1, 1)), *tuples, FLUSH]
            script[:2] = [("BOUND_LOW", 0, bounds[0]), ("BOUND_HIGH", 0, bounds[1])]
            assert ask(device, script) == expected(parameters, script)

    def test_overflow_stands_in_what_follows_until_clear(self, device, parameters):
        if not parameters.timestamp_bits:
            pytest.skip("no timestamps")
        rng = np.random.default_rng(6)
        windows = [("LIFESPAN", 3), ("WINDOW", 2)]
        count = 3 * parameters.capacity
        crowd = random_tuples(parameters, rng, count, pace=0, share_r=0.6)
        script = [*configuration(parameters, windows=windows), *crowd, FLUSH, ("CLEAR", 0, 0)]
        want = expected(parameters, script)
        assert want[-1][:2] == ("MARK", 1)
        assert punctuation(ask(device, script)) == punctuation(want)
        healthy = [*random_tuples(parameters, rng, 20, pace=3, start=40), FLUSH]
        marks = [("MARK", 0, False, False)] * 2
        want = expected(parameters, [*configuration(parameters, windows=windows), *healthy])
        assert [*marks, *ask(device, healthy)] == want

    def test_capacity_itself_is_no_overflow(self, timed):
        parameters = self.timed_parameters
        full = [("R", same_keys(parameters, 0), 7)] * parameters.capacity
        script = [*configuration(parameters, windows=[("LIFESPAN", 0)] * 2), *full, FLUSH]
        assert ask(timed, script)[-1] == ("MARK", 0, False, False)
        assert ask(timed, [full[0], FLUSH])[-1] == ("MARK", 1, False, False)

    def test_disorder_drops_tuples_until_clear(self, timed):
        rng = np.random.default_rng(7)
        parameters = self.timed_parameters
        ordered = random_tuples(parameters, rng, 20, start=100)
        script = [*configuration(parameters), *ordered]
        keys = same_keys(parameters, 0)
        script += [("S", keys, 99), *random_tuples(parameters, rng, 5, start=900), FLUSH]
        script += [("PRECISION", 0, 1), ("R", keys, 950), ("CLEAR", 0, 0)]
        script += [*random_tuples(parameters, rng, 20), FLUSH]
        results = ask(timed, script)
        assert results == expected(parameters, script)
        assert [word[2] for word in results if word[0] == "MARK"] == [0, 0, 1, 1, 1, 0]

    def test_illegal_words_are_dropped_and_told_until_clear(self, device, parameters):
        rng = np.random.default_rng(12)
        before = device.counters()["illegal"]
        script = configuration(parameters)
        script += [("ILLEGAL", illegal_word(device.manifest, rng), None) for _ in range(60)]
        script += configuration(parameters, period=parameters.engine.probes)
        for n, word in enumerate(random_tuples(parameters, rng, 40, pace=0)):
            illegal = ("ILLEGAL", illegal_word(device.manifest, rng), None)
            script += [illegal] * int(rng.integers(0, 3) * (n > 9)) + [word]
        script += [FLUSH, ("CLEAR", 0, 0), *random_tuples(parameters, rng, 30, pace=0), FLUSH]
        want = expected(parameters, script)
        assert [word[-1] for word in want if word[0] == "MARK"] == [0, 0, 1, 1, 1, 1, 0]
        assert ask(device, script) == want
        dropped = sum(kind == "ILLEGAL" for kind, _, _ in script)
        assert device.counters()["illegal"] - before == dropped

    @pytest.mark.few(5)
    @pytest.mark.parametrize(
        "operation", ["WINDOW", "LIFESPAN", "BOUND_LOW", "BOUND_HIGH", "PRECISION"]
    )
    def test_a_value_out_of_range_is_the_nearest_inside(self, device, parameters, operation):
        if operation == "LIFESPAN" and not parameters.timestamp_bits:
            pytest.skip("no timestamps")
        rng = np.random.default_rng(13)
        most = (1 << device.manifest.input_word["control.value"].bits - 1) - 1
        last = {
            "WINDOW": parameters.capacity,
            "LIFESPAN": (1 << parameters.timestamp_bits) - 1,
            "PRECISION": 1 << parameters.engine.probe_bits,
        }.get(operation, 1 << parameters.keys[0].bits)
        edges = {0, -1, 1, -last, -last - 1, last, last - 1, last + 1, 2 * last, 2 * last + 1}
        edges |= {most + 1 >> 1, -most - 1, most}
        script = []
        for value in sorted(edge for edge in edges if -most - 1 <= edge <= most):
            script += [*configuration(parameters), (operation, 0, value), (operation, 1, 2)]
            if operation == "PRECISION" or (
                operation.startswith("BOUND") and len(parameters.keys) == 1
            ):
                script.pop()
            count = 2 * parameters.capacity + 9 if operation == "WINDOW" else parameters.capacity
            script += [*random_tuples(parameters, rng, count, pace=3), FLUSH]
        results, want = ask(device, script), expected(parameters, script)
        if operation == "PRECISION":  # with a long period, order between stars is up to the device
            results, want = by_star(results), by_star(want)
        assert results == want

    def test_counters_count(self, device, parameters):
        rng = np.random.default_rng(8)
        before = device.counters()
        assert set(before) == {counter.name for counter in device.manifest.counters}
        tuples = random_tuples(parameters, rng, 30, pace=0)
        results = ask(device, [*configuration(parameters), *tuples, FLUSH])
        gained = {name: value - before[name] for name, value in device.counters().items()}
        assert gained["tuples_r"] == sum(side == "R" for side, _, _ in tuples)
        assert gained["tuples_s"] == sum(side == "S" for side, _, _ in tuples)
        for kind, name in [("PAIR", "results"), ("STAR", "stars"), ("MARK", "marks")]:
            assert gained[name] == sum(word[0] == kind for word in results)

    def test_nothing_to_send_is_no_error(self, timed):
        words, results = empty(timed.manifest.input_word), empty(timed.manifest.result_word, 4)
        done = timed.exchange(words, results, cycles=10)
        assert isinstance(done, Exchange)
        assert (done.accepted, done.produced) == (0, 0)

    def test_without_room_nothing_is_lost(self, timed):
        parameters = self.timed_parameters
        keys = same_keys(parameters, 1)
        script = [*configuration(parameters), ("R", keys, 0), ("S", keys, 0), FLUSH]
        words = pack(timed.manifest, script)
        for _ in range(3):
            results = empty(timed.manifest.result_word)
            done = timed.exchange(words, results, cycles=CYCLES)
            assert done.produced == 0
            words = words[done.accepted :]
        assert unpack(timed.manifest, converse(timed, words, 3)) == expected(parameters, script)

    def test_stamps_never_decrease(self, timed):
        parameters = self.timed_parameters
        rng = np.random.default_rng(9)
        tuples = random_tuples(parameters, rng, 20, pace=0)
        words = pack(timed.manifest, [*configuration(parameters)[:-2], *tuples, FLUSH])
        results = empty(timed.manifest.result_word, 500)
        stamps = Stamps.for_arrays(words, results)
        done = timed.exchange(words, results, cycles=5000, stamps=stamps)
        assert done.accepted == len(words)
        assert done.produced > 20
        accepted = stamps.accepted[: done.accepted].astype(np.int64)
        produced = stamps.produced[: done.produced].astype(np.int64)
        assert (np.diff(accepted) >= 0).all()
        assert (np.diff(produced) >= 0).all()
        assert produced[0] >= accepted[0]
        assert produced[-1] >= accepted[-1]

    def test_arrays_of_another_shape_are_refused(self, timed):
        words, results = empty(timed.manifest.input_word, 1), empty(timed.manifest.result_word, 1)
        with pytest.raises(DeviceError):
            timed.exchange(words.astype(np.int64), results, cycles=1)
        with pytest.raises(DeviceError):
            timed.exchange(words.reshape(-1), results, cycles=1)
        with pytest.raises(DeviceError):
            timed.exchange(words, np.zeros((1, 9), np.uint64), cycles=1)

    def test_a_closed_device_refuses_and_closes_again(self, open_bundle):
        device = open_bundle(self.timed_parameters)
        words, results = empty(device.manifest.input_word), empty(device.manifest.result_word, 1)
        device.close()
        device.close()
        with pytest.raises(DeviceError, match="closed"):
            device.exchange(words, results, cycles=1)

    def test_a_device_says_what_it_is(self, device, parameters):
        assert device.manifest.capacity == parameters.capacity
        assert ":" in device.uri
