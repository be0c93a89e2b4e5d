# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.ingress.punctuation import Punctuation
from hdl.parameters import JoinParameters
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize("probes", [1, 2, 3, 4])
def test_groups_and_stars_of_both_sides(probes):
    """Held against counting: the word at hand is decided in the same cycle, one in each cycle."""
    parameters = JoinParameters.of(cores=2, sub_window=4, probes=probes)
    dut = Punctuation(parameters)
    assert dut.latency == 0
    limit = parameters.cores * parameters.slack
    generator = random.Random(probes)

    def rare(period):
        return period == 0 or period > probes

    def steps(put, get):
        period = 1
        grouped, passed, unstarred = [0, 0], [0, 0], [0, 0]
        for _ in range(500):
            kind = generator.choices(["tuple", "finish", "precision", "other"], [20, 1, 1, 1])[0]
            side = generator.randrange(2)
            is_tuple, finish = kind == "tuple", kind in ("finish", "precision")
            wanted = generator.choice([0, 1, 2, probes, probes + 1, 9])
            advance = generator.random() < 0.8
            put(
                limit=limit,
                probes=is_tuple << side, finish=finish, set_precision=kind == "precision",
                wanted=wanted, single=wanted == 1, unordered=rare(wanted), advance=advance,
            )  # fmt: skip
            closes, stars = 0, 0
            was_free = rare(period)
            after = [list(grouped), list(passed), list(unstarred)]
            for n in range(2):
                if is_tuple and n == side:
                    after[0][n] += 1
                    after[2][n] += 1
                elif is_tuple and grouped[n]:
                    after[1][n] += 1
                due = is_tuple and 0 < after[2][n] == period
                close = finish or due or after[0][n] == probes or after[1][n] == limit
                star = unstarred[n] > 0 if finish else due or (close and not was_free)
                closes |= close << n
                stars |= star << n
                if close:
                    after[0][n] = after[1][n] = 0
                if star or finish:
                    after[2][n] = 0
            free = rare(wanted) if kind == "precision" else was_free
            assert (get("close"), get("star"), get("free")) == (closes, stars, free)
            assert get("starring") == (advance and not was_free and stars > 0)
            if advance:
                grouped, passed, unstarred = after
                period = wanted if kind == "precision" else period
            yield

    each_cycle(dut, steps)
