# SPDX-License-Identifier: Apache-2.0
"""Groups and stars of one side, against a model that takes one tuple after the other."""

from collections import Counter
from copy import copy
import random

import pytest

from hdl.ingress.punctuation import GroupSchedule
from hdl.parameters import JoinParameters
from tests.hdl.cycles import each_cycle

CYCLES = 2_500


class OpenGroup:
    """The open group of one side, and its probes since the last star."""

    def __init__(self, parameters):
        self.probes = parameters.engine.probes
        self.slack = parameters.slack
        self.limit = parameters.cores * parameters.slack
        self.period = 1
        self.count = self.passed = self.unstarred = 0

    @property
    def exhausted(self):
        """Whether the next tuple of the other side ends the group."""
        return self.count > 0 and self.passed == self.limit - 1

    def probe(self):
        """A probe of this side: what ends with it, and whether a star follows."""
        self.count += 1
        self.unstarred += 1
        due = self.unstarred == self.period
        return self.end("due" if due else "full" if self.count == self.probes else None)

    def other(self):
        """A tuple of the other side."""
        self.passed += self.count > 0
        return self.end("late" if self.passed == self.limit else None)

    def end(self, reason):
        """End the group for this reason, if there is one."""
        star = reason == "due" or (reason is not None and 0 < self.period <= self.probes)
        if reason:
            self.count = self.passed = 0
        if star:
            self.unstarred = 0
        return reason, star

    def finish(self, period, live):
        """A control word that ends everything; so many cores are live from there on."""
        star = self.unstarred > 0
        self.limit = live * self.slack
        self.count = self.passed = self.unstarred = 0
        self.period = period
        return "finish", star


class Words:
    """Words in bursts: of one side, of both, of anything, with pauses or without."""

    #: Weights of a probe, a tuple of the other side, both, a control word that ends everything,
    #: and any other word.
    MIXTURES = [(8, 8, 8, 2, 1), (40, 2, 2, 2, 0), (2, 1, 40, 3, 1)]
    #: … and where the second tuple of the other side from now ends the group.
    TURNING = (6, 4, 6, 1, 1)
    WAITING = (0, 40, 0, 1, 1)
    KINDS = ["probe", "other", "both", "finish", "none"]

    def __init__(self, parameters, seed):
        self.generator = random.Random(seed)
        self.longest = 1 << parameters.engine.probe_bits
        self.cores = parameters.cores
        self.periods = {
            1,
            2,
            parameters.engine.probes,
            parameters.engine.probes + 1,
            2 * parameters.engine.probes + 1,
        }
        self.paired = parameters.side_by_side
        self.left = 0

    def period(self):
        """A period from star to star; zero for no stars."""
        wanted = self.generator.choice([0, *self.periods, self.longest])
        return min(wanted, self.longest)

    def live(self):
        """How many cores are live: often one or all of them."""
        return self.generator.choice([1, 1, self.cores, self.generator.randint(1, self.cores)])

    def next(self, group):
        """The kind of the next word for this group, and whether it is taken."""
        if not self.left:
            self.left = self.generator.randrange(1, 40)
            self.weights = self.generator.choice(self.MIXTURES)
            self.waits = self.generator.random() < 0.3
            self.pace = self.generator.choice([1.0, 0.7])
        weights = self.weights
        if group.passed == group.limit - 2:
            weights = self.TURNING
        elif self.waits and group.count:
            weights = self.WAITING
        else:
            self.left -= 1
        (kind,) = self.generator.choices(self.KINDS, weights)
        if kind == "both" and not self.paired:
            kind = "probe"
        return kind, self.generator.random() < self.pace


def take(group, kind, probe_leads, period, live):
    """Let a group take a word; return the reasons for which it ended, and its stars."""
    if kind == "finish":
        return [group.finish(period, live)]
    events = {"probe": [group.probe], "other": [group.other], "none": []}
    if kind == "both":
        pair = [group.probe, group.other]
        events["both"] = pair if probe_leads else pair[::-1]
    return [outcome for outcome in [event() for event in events[kind]] if outcome[0]]


def reasons_of(parameters, seed):
    """Hold a schedule against the model; return how often groups ended, by reason."""
    dut = GroupSchedule(parameters)
    assert dut.latency == 0
    group, words, reasons = OpenGroup(parameters), Words(parameters, seed), Counter()
    paired = parameters.side_by_side

    def steps(put, get):
        nonlocal group
        for _ in range(CYCLES):
            kind, advance = words.next(group)
            leads, period = words.generator.randrange(2), group.period
            live = words.live()
            if paired:
                assert get("exhausted") == group.exhausted
                if kind == "both" and not leads and group.exhausted:
                    kind = "other"  # the ingress sends them one after the other
                put(leads=leads)
            if kind == "finish":
                period = words.period()
            put(
                limit=group.limit,
                period=period, single=period == 1,
                free=group.period == 0 or group.period > parameters.engine.probes,
                probe=kind in ("probe", "both"), other=kind in ("other", "both"),
                finish=kind == "finish", advance=advance,
            )  # fmt: skip
            after = copy(group)
            ended = take(after, kind, leads, period, live)
            assert len(ended) <= 1
            assert get("close") == len(ended)
            assert get("star") == any(star for _, star in ended)
            if paired:
                assert get("exhausted") == group.exhausted  # whatever is at hand
                alone = copy(group)
                ripe = kind in ("probe", "both") and alone.probe()[0] is not None
                assert get("ripe") == ripe
            if advance:
                group = after
                reasons.update(reason for reason, _ in ended)
            yield

    each_cycle(dut, steps)
    return reasons


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("cores", "probes", "probe_bits"),
    [(1, 1, 0), (1, 1, 3), (2, 2, 1), (1, 3, 2), (3, 4, 5), (5, 5, 3), (9, 3, 3)],
)
def test_groups_end_and_stars_follow(cores, probes, probe_bits):
    """The word at hand is decided in the same cycle, a word in every cycle."""
    parameters = JoinParameters.of(cores=cores, probes=probes, probe_bits=probe_bits, sub_window=4)
    reasons = reasons_of(parameters, probes)
    late = {"late"} if probes > 1 else set()
    full = {"full"} if probes < 1 << probe_bits else set()
    assert reasons.keys() >= {"finish", "due"} | late | full


#: The last three have the least slack that there is: a group of one live core waits for two tuples.
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("cores", "probes"), [(1, 1), (2, 2), (1, 3), (3, 8), (35, 1), (38, 2), (64, 8)]
)
def test_two_tuples_at_hand_have_the_outcome_of_one_after_the_other(cores, probes):
    parameters = JoinParameters.of(
        cores=cores, probes=probes, probe_bits=4, sub_window=4, engine="index", tuples_per_word=2
    )
    reasons = reasons_of(parameters, probes)
    assert reasons.keys() >= {"finish", "due", "late" if probes > 1 else "full"}


@pytest.mark.parametrize("engine", ["scan", "index"])
@pytest.mark.parametrize("before", [0, 1])
def test_a_group_waits_for_a_fixed_number_of_tuples_of_the_other_side(engine, before):
    """A tuple that came before the group's first probe does not count."""
    parameters = JoinParameters.of(cores=2, probes=3, sub_window=4, engine=engine)
    limit = parameters.cores * parameters.slack

    def steps(put, get):
        put(limit=limit, period=4, single=0, free=0, finish=1, advance=1)
        yield
        put(finish=0, free=1, other=before)
        yield
        put(probe=1, other=0)
        yield
        put(probe=0, other=1)
        for n in range(2 * limit):
            assert get("close") == (n == limit - 1)
            assert not get("star")
            yield

    each_cycle(GroupSchedule(parameters), steps)
