# SPDX-License-Identifier: Apache-2.0
"""Figures of the evaluation: SplitJoin beside both handshake joins, elastic joins, and texts."""

from statistics import median

import numpy as np

from bench.experiments.catalogue import NAMES, PLOTS, load_interval, settled
from bench.experiments.elastic import CONTROLLERS, ElasticPoint
from bench.experiments.joins import PAPER, Filled, Point
from bench.experiments.sweep import sweep
from bench.experiments.texts import TextPoint

from .registry import Result, figure

__all__ = ["DEADLINE", "INTERVAL", "SEEDS", "SIZES"]

#: Cycles between two tuples: the fastest input that both joins sustain with 32 cores and windows of
#: 2**10 tuples. One comparator per core and side would need 16.
INTERVAL = 18
#: Other input rates, for the notes; 0 is saturation, in which latency counts from acceptance.
OTHERS = (0, 20, 24, 64)
#: Probes per star of a SplitJoin whose mergers serve results as they come, as a chain does.
UNORDERED = 256
#: Windows of the throughput ratios, in tuples per side.
SIZES = tuple(1 << n for n in range(10, 17))


def visiting_ratio(timed, report):
    """Return the ratio of visiting latencies at :data:`INTERVAL`, with those at other rates."""

    def at(short, interval, period=1):
        tuples = 4000 if interval == INTERVAL else 2000
        return Point(
            f"{short}-32", 1 << 10, timed=timed, interval=interval, tuples=tuples, period=period
        )

    rates = (INTERVAL, *OTHERS)
    alike = at("sj", INTERVAL, UNORDERED)
    points = [at(short, n) for short in ("sj", "llhj") for n in rates]
    found = sweep([*points, alike], report)
    ratios, notes = [], []
    for n in rates:
        ours, theirs = found[at("sj", n)], found[at("llhj", n)]
        ratios.append(theirs["visiting"] / ours["visiting"])
        rate = f"a tuple every {n} cycles" if n else "saturated, from acceptance"
        notes.append(
            f"{rate}: {theirs['visiting']:.0f} / {ours['visiting']:.0f} = {ratios[-1]:.2f}; "
            f"cycles per tuple {theirs['cycles_per_tuple']:.2f} and {ours['cycles_per_tuple']:.2f}"
        )
    ours, theirs = found[alike]["visiting"], found[at("llhj", INTERVAL)]["visiting"]
    notes.append("SplitJoin in strict order; the low-latency handshake join has no order")
    notes.append(
        f"SplitJoin with a star per {UNORDERED} probes, a tuple every {INTERVAL} cycles: "
        f"{theirs:.0f} / {ours:.0f} = {theirs / ours:.2f}"
    )
    return Result(ratios[0], notes=tuple(notes))


@figure("latency.visiting_ratio_llhj_32", unit="times", goal=">= 5")
def visiting_ratio_timed(report):
    """Mean visiting latency of the low-latency handshake join over SplitJoin's, time-based.

    Both have 32 cores, windows of 1,024 ticks and a tuple every :data:`INTERVAL` cycles.
    """
    return visiting_ratio(True, report)


@figure("latency.visiting_ratio_llhj_32_count", unit="times", goal=">= 10")
def visiting_ratio_counted(report):
    """The ratio of :func:`visiting_ratio_timed` for count-based windows of 1,024 tuples."""
    return visiting_ratio(False, report)


#: Half-widths of a band of two fields: one pair in 1,000 matches, and one in 227,000, which is the
#: whole width next to the paper's 1 in 250,000.
PAPER_WIDTHS = (158, 10)


@figure("evaluation.cores_28", unit="times", goal=">= 1")
def paper_cores(report):
    """Throughput of SplitJoin over the low-latency handshake join's with the paper's 28 cores.

    Windows of 2^10 tuples, by time, of which one pair in 1,000 matches, and in 227,000; the least.
    """
    window, ratios, notes = 1 << 10, [], []
    interval = load_interval(window, PAPER)
    for width in PAPER_WIDTHS:
        full = {
            short: Point(
                f"{short}-{PAPER}", window, timed=True, width=width,
                tuples=1600 if short == "sj" else 2 * window + 1600,
            )
            for short in ("sj", "llhj")
        }  # fmt: skip
        timely = {
            short: Point(
                f"{short}-{PAPER}", window, timed=True, width=width, interval=interval,
                tuples=2000 if width == PAPER_WIDTHS[0] else 20_000,
            )
            for short in ("sj", "llhj")
        }  # fmt: skip
        found = sweep([*full.values(), *timely.values()], report)
        cycles = [found[full[short]]["cycles_per_tuple"] for short in ("sj", "llhj")]
        ratios.append(cycles[1] / cycles[0])
        notes.append(
            f"half-width {width}: {cycles[0]:.2f} and {cycles[1]:.2f} cycles per tuple, "
            f"{ratios[-1]:.3f}"
        )
        later = [found[timely[short]]["visiting"] for short in ("sj", "llhj")]
        notes.append(
            f"half-width {width}, a tuple every {interval} cycles (85 %): visiting latency "
            f"{later[0]:.0f} and {later[1]:.0f} cycles, {later[1] / later[0]:.2f} times"
        )
    return Result(min(ratios), notes=tuple(notes))


#: Window of the paper's figures with the paper's cores. Filling it takes its square in comparisons:
#: a minute of a processor core, and two weeks for the largest of the paper, of 2^21.
LARGE = 1 << 14
#: Half-widths of a band of two fields: 1 pair matches in 227,000, in 1,000 and in 10.
RATES = {"1 in 227,000": 10, "1 in 1,000": 158, "1 in 10": 1581}
#: Joins that are measured so, whether by time, and their window.
LARGE_JOINS = (("sj", True, LARGE), ("sj", False, LARGE), ("llhj", True, LARGE))


def paces(window):
    """Return the cycles between two tuples: at 85 % of what a core can compare, and at half."""
    return {"85 %": load_interval(window, PAPER), "50 %": window // PAPER}


def large_loads(short, timed, window):
    """Return the loads of a join with the paper's cores and a large window, by name."""
    name = f"{short}-{PAPER}-large"
    # A chain's tuples spread over the cores anew as they flow.
    settling = 0 if short == "sj" else 2 * window
    loads = {
        rate: Point(name, window, timed=timed, width=width, tuples=200)
        for rate, width in RATES.items()
    }
    first = next(iter(loads))
    loads[first] = Point(name, window, timed=timed, width=RATES[first], tuples=settling + 400)
    loads |= {
        pace: Point(name, window, timed=timed, interval=interval, tuples=600)
        for pace, interval in paces(window).items()
    }
    if short == "sj":
        loads |= {
            order: Point(name, window, timed=timed, period=period, tuples=400)
            for order, period in (("relaxed(64)", 64), ("no stars", 0))
        }
    return loads


@figure("evaluation.paper_size", unit="times", goal=">= 1")
def paper_size(report):
    """Throughput of SplitJoin over the low-latency handshake join's: 28 cores, windows of 2^14.

    Figures 12, 13 and 15 to 18, and the outer order of Figure 19; the least ratio of the paper's
    match rates, by time. Where 1 pair in 10 matches, a probe's matches outgrow the queue of a core,
    which then waits for its turn in the order. Each join's windows are filled once. It takes a
    quarter of an hour of a processor core.
    """
    large = {key: large_loads(*key) for key in LARGE_JOINS}
    fills = {key: Filled(tuple(loads.values())) for key, loads in large.items()}
    found = sweep(fills.values(), report)
    by = {key: dict(zip(large[key], found[fill], strict=True)) for key, fill in fills.items()}
    notes = []
    for (short, timed, window), loads in by.items():
        of = f"{NAMES[short]}, 2^{window.bit_length() - 1} by {'time' if timed else 'count'}"
        for rate in (name for name in loads if name not in paces(window)):
            notes.append(f"{of}, {rate}: {loads[rate]['cycles_per_tuple']:,.1f} cycles per tuple")
        for pace in paces(window):
            seen = loads[pace]
            ended = "" if short != "sj" else f", end to end {seen['processing']:,.0f}"
            notes.append(
                f"{of}, {pace}: visiting {seen['visiting']:,.0f} cycles{ended}; rows read per "
                f"core {seen['region_busy_per_tuple'] / PAPER:,.0f}"
            )
    ours, theirs = by["sj", True, LARGE], by["llhj", True, LARGE]
    ratios = [
        theirs[rate]["cycles_per_tuple"] / ours[rate]["cycles_per_tuple"]
        for rate in list(RATES)[:2]
    ]
    return Result(min(ratios), notes=tuple(notes))


@figure("evaluation.inner_order_28", unit="of 1", goal=">= 0.98")
def inner_order(report):
    """Throughput with a star per 32 stored tuples of a core over that in outer order.

    Figure 19 with its 28 cores, and sub-windows of 2^9 where the paper has 2^12 to 2^15; saturated,
    by count.
    """
    window = PAPER << 9
    rounds = tuple(1 << n for n in range(10))
    loads = tuple(
        Point("rounds-28-large", window, width=10, tuples=100, rounds=n) for n in reversed(rounds)
    )
    fill = Filled(loads)
    found = sweep([fill], report)[fill]
    cycles = {load.rounds: one["cycles_per_tuple"] for load, one in zip(loads, found, strict=True)}
    notes = tuple(f"a star per {n:,} stored tuples: {cycles[n]:,.1f} cycles" for n in rounds)
    return Result(cycles[rounds[-1]] / cycles[32], notes=notes)


@figure("latency.log_k_fit", unit="R^2", goal=">= 0.99")
def log_k_fit(report):
    """R^2 of SplitJoin's idle visiting latency as a linear function of log k, from 2 to 32 cores.

    Every core has 32 tuples of each side.
    """
    plot = PLOTS["log-k"]
    ours = plot.lines(sweep(plot.points, report))[0][1]
    cores, cycles = np.array(ours).T
    slope, base = np.polyfit(np.log2(cores), cycles, 1)
    rest = cycles - (base + slope * np.log2(cores))
    fit = 1 - (rest**2).sum() / ((cycles - cycles.mean()) ** 2).sum()
    return Result(float(fit), notes=(f"{base:.1f} + {slope:.2f} * log2(cores) cycles",))


def throughput_ratio(short, report):
    """Return the least ratio of SplitJoin's throughput to another join's over all windows.

    A point costs as much as its window squared, for every tuple is compared with all of it: with
    2**16 tuples, 70 million simulated cycles of SplitJoin, and 200 million of a chain.
    """
    points = {size: [settled(name, 32, size) for name in ("sj", short)] for size in SIZES}
    found = sweep([point for pair in points.values() for point in pair], report)
    ratios = {
        size: found[theirs]["cycles_per_tuple"] / found[ours]["cycles_per_tuple"]
        for size, (ours, theirs) in points.items()
    }
    each = ", ".join(f"2^{size.bit_length() - 1}: {ratio:.4f}" for size, ratio in ratios.items())
    return Result(min(ratios.values()), notes=(each,))


@figure("throughput.ratio_handshake_32", unit="times", goal=">= 1")
def throughput_ratio_handshake(report):
    """SplitJoin's throughput over the handshake join's, saturated, 32 cores: the least ratio.

    Count-based windows of 2**10 to 2**16 tuples; one comparator per core and side; strict order.
    """
    return throughput_ratio("hj", report)


@figure("throughput.ratio_llhj_32", unit="times", goal=">= 1")
def throughput_ratio_llhj(report):
    """As :func:`throughput_ratio_handshake`, over the low-latency handshake join's."""
    return throughput_ratio("llhj", report)


@figure("order.outer_over_none", unit="of 1", goal=">= 0.98")
def outer_over_none(report):
    """Throughput with a star per probe over that without stars.

    The least of 8 cores with sub-windows of 512 and 1,024 tuples; one probe per pass.
    """

    def at(size, period):
        return Point("sj-8", size, period=period, tuples=1200)

    sizes = (1 << 12, 1 << 13)
    found = sweep([at(size, period) for size in sizes for period in (1, 0)], report)
    return min(
        found[at(size, 0)]["cycles_per_tuple"] / found[at(size, 1)]["cycles_per_tuple"]
        for size in sizes
    )


@figure("order.inner_1", unit="cycles/result", goal="<= 1.02")
def inner_one(report):
    """Cycles per result word of the strict inner order in hardware, where stars are results too.

    The accelerator is saturated. A star follows every lap of the stored tuples, and one every
    probe, and the output takes one result per cycle: so this is 1 if the order costs no more than
    its stars occupy there. The greater one of 8 cores with sub-windows of 512 tuples and with one
    lane or four, by the counters of the hardware.
    """
    points = [Point(name, 1 << 12, tuples=400, rounds=1) for name in ("rounds-8", "rounds-8x4")]
    found = sweep(points, report)
    ratios, notes = [], []
    for point in points:
        of = found[point]
        cycles = of["cycles"] / of["tuples_counted"]
        stars, results = of["stars_per_tuple"], of["results_per_tuple"]
        ratios.append(cycles / (stars + results))
        notes.append(
            f"{point.accelerator}: {cycles:.1f} cycles per tuple, {stars:.1f} stars, "
            f"{results:.1f} pairs: {ratios[-1]:.4f}"
        )
    return Result(max(ratios), notes=tuple(notes))


# What an elastic join saves on STRETCH's phases of rates, and whether a deadline is missed.

#: Longest time from the arrival of a tuple to its answer, in seconds of the load.
DEADLINE = 1.0
#: Draws of the phases and of the rows. The controllers are compared on the first one.
SEEDS = (0, 1, 2)


@figure("elastic.core_cycles_saved", unit="of the core cycles", goal=">= 0.4")
def core_cycles_saved(report):
    """Core cycles that the energy controller saves on Q5's phases, beside all cores all the time.

    20 minutes of phases of 100 to 300 seconds, each with a constant rate between 500 and 8,000
    tuples per second, a window of a minute and 8 cores. A core counts while it takes turns or holds
    a tuple of a window. The phases are drawn three times; the value is the middle one. How much can
    be saved depends on the draw, because the work grows with the square of the rate. The deadline
    of a tuple is a second; if the controller misses one that the fixed cores keep, the saving does
    not count. Answers are compared with the reference join.
    """
    points = [ElasticPoint("q5", controller) for controller in CONTROLLERS]
    points += [
        ElasticPoint("q5", controller, seed=seed)
        for seed in SEEDS[1:]
        for controller in ("fixed", "energy")
    ]
    found = {(point.seed, point.controller): one for point, one in sweep(points, report).items()}
    saved = {seed: found[seed, "energy"]["saved"] for seed in SEEDS}
    late = any(
        found[seed, "energy"]["longest_seconds"]
        > max(DEADLINE, found[seed, "fixed"]["longest_seconds"])
        for seed in SEEDS
    )
    middle = median(saved.values())
    return Result(
        middle,
        judged=0.0 if late else middle,
        notes=tuple(
            f"draw {seed}, {name}: {one['saved']:.3f} saved, {one['changes']} changes, longest "
            f"latency {one['longest_seconds']:.2f} s"
            for (seed, name), one in found.items()
        ),
        details={"draws": {str(seed): {name: one for (of, name), one in found.items() if of == seed}
                           for seed in SEEDS}},
    )  # fmt: skip


# Tuples with many keys: how many words, or pairs of words, an accelerator counts in a cycle.


def counted(kind, report, *, more=()):
    """Return the result of counting words or pairs of texts on one core, and on ``more``."""
    points = [TextPoint(kind, cores) for cores in (1, *more)]
    found = sweep(points, report)
    one = found[points[0]]
    per_text = one["keys"] / one["texts"]
    return Result(
        one["keys"] / one["cycles"],
        notes=(
            f"{one['texts']} texts of {one['words']} words, each sent once",
            f"{per_text:.1f} keys per text: so many times a map before the aggregate would send it",
            f"{1000 * one['texts'] / one['cycles']:.1f} texts per 1,000 cycles",
            *(
                f"with {point.cores} cores {found[point]['keys'] / found[point]['cycles']:.2f}"
                for point in points[1:]
            ),
        ),
        details={f"cores_{point.cores}": found[point] for point in points},
    )


@figure("aggregate.wordcount_words_per_cycle", unit="words/cycle", goal=">= 0.95")
def words_per_cycle(report):
    """Different words of texts that one core counts in a cycle: STRETCH's Operator 14.

    Texts of 4 to 16 words with the frequencies of English, 2^14 words, windows of two panes of
    2,500 texts. All counts are checked. Cycles are counted from the second pane on.
    """
    return counted("wordcount", report, more=[4])


@figure("aggregate.paircount_h_pairs_per_cycle", unit="pairs/cycle", goal=">= 0.95")
def pairs_per_cycle(report):
    """Different pairs of words of texts that one core counts in a cycle: paircount H.

    As for words, but of the 128 most frequent ones, and all pairs of a text are keys: up to 120.
    """
    return counted("paircount H", report)
