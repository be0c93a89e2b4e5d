# SPDX-License-Identifier: Apache-2.0
"""The figures of the evaluation: 12 to 19 of the paper, and those that it could not show."""

from dataclasses import asdict, dataclass, fields

from .joins import CORES, Point

__all__ = [
    "FULL", "NAMES", "ORDERINGS", "PLOTS", "QUANTITIES", "QUICK", "Extent", "Plot", "Series",
    "load_interval", "plots", "settled",
]  # fmt: skip


def named(name):
    """Return a function that reads a measured value."""
    return lambda point, measured: measured.get(name)


#: What can be drawn, as functions of a point and what was measured there.
QUANTITIES = {
    "tuples per 1,000 cycles": lambda point, measured: 1000 / measured["cycles_per_tuple"],
    "cycles per tuple": named("cycles_per_tuple"),
    "pairs decided per cycle": lambda point, measured: (
        measured["comparisons_per_tuple"] / measured["cycles_per_tuple"]
    ),
    "visiting": named("visiting"),
    "processing": named("processing"),
    "read per core": lambda point, measured: (
        measured["region_busy_per_tuple"] / int(point.accelerator.rpartition("-")[2])
    ),
}


@dataclass(frozen=True)
class Series:
    """One line of a figure.

    Parameters
    ----------
    label : str
        What the legend says.
    points : tuple of (float, Point)
        Place on the x axis, and the point that is measured there.
    quantity : str
        Name in :data:`QUANTITIES`.
    """

    label: str
    points: tuple[tuple[float, Point], ...]
    quantity: str


@dataclass(frozen=True)
class Plot:
    """A figure over the loads of joins.

    Parameters
    ----------
    name : str
        Number of the paper's figure, or a name of its own.
    title, x_label, y_label, conditions : str
        Texts; the conditions stand below the drawing and in the CSV file.
    series : tuple of Series
        The lines.
    log_x, log_y : bool
        Whether an axis is logarithmic.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    conditions: str
    series: tuple[Series, ...]
    log_x: bool = True
    log_y: bool = False

    @property
    def points(self):
        """All points of the figure."""
        return [point for series in self.series for _, point in series.points]

    def lines(self, found):
        """Return label and (x, y) of each series; a point without the quantity is left out."""
        return [
            (
                series.label,
                [
                    (x, value)
                    for x, point in series.points
                    if (value := QUANTITIES[series.quantity](point, found[point])) is not None
                ],
            )
            for series in self.series
        ]

    def table(self, found):
        """Yield the rows of the CSV file, a point with all that was measured there in each."""
        measured = list(dict.fromkeys(name for point in self.points for name in found[point]))
        names = [field.name for field in fields(Point)]
        yield ["series", "quantity", "x", "y", *names, *measured]
        for series in self.series:
            for x, point in series.points:
                row, y = found[point], QUANTITIES[series.quantity](point, found[point])
                values = [row.get(name) for name in measured]
                numbers = [f"{v:.6g}" if isinstance(v, float) else v for v in (x, y, *values)]
                load = asdict(point).values()
                yield [series.label, series.quantity, *numbers[:2], *load, *numbers[2:]]


@dataclass(frozen=True)
class Extent:
    """Numbers of cores, windows and shapes of the figures.

    Most of the time of a few points goes into building their accelerators, so the quick figures
    share them.

    Parameters
    ----------
    cores : tuple of int
        Numbers of join cores; the last one also stands for "many cores".
    windows : tuple of int
        Windows of the figures over cores, in tuples per side.
    sizes : tuple of int
        Logarithms of the windows of the figure over windows.
    orders : tuple of (int, int)
        Cores and window of each series of Figure 19.
    rounds : tuple of int
        Stored tuples of a core per round of each inner order; a core holds 512.
    round_shapes, engines, bands : tuple of str
        Labels of the series that are drawn.
    shares : tuple of float
        Cycles from tuple to tuple in the figure over the input rate, in parts of what the
        comparators need.
    """

    cores: tuple[int, ...]
    windows: tuple[int, ...]
    sizes: tuple[int, ...]
    orders: tuple[tuple[int, int], ...]
    rounds: tuple[int, ...]
    round_shapes: tuple[str, ...]
    engines: tuple[str, ...]
    bands: tuple[str, ...]
    shares: tuple[float, ...]


#: What ``make experiments`` measures, and the documents show.
FULL = Extent(
    cores=CORES,
    windows=(1 << 10, 1 << 11, 1 << 12),
    sizes=(10, 11, 12, 13, 14),
    orders=((8, 1 << 12), (8, 1 << 13), (32, 1 << 10)),
    rounds=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    round_shapes=("one lane", "four lanes", "one lane, two result ports"),
    engines=("scan-1x1", "scan-1x4", "scan-1x16", "scan-4x1", "scan-4x4", "digest-4x4", "index"),
    bands=(
        "whole keys, 4 x 4", "digests, 4 x 4", "whole keys, 26 x 2 (ecp5-band)",
        "digests, 15 x 14 (ecp5-band-digest)",
    ),
    shares=(1.06, 1.12, 1.2, 1.5, 2, 4, 16),
)  # fmt: skip

#: … and what it measures with ``QUICK=1``.
QUICK = Extent(
    cores=(2, 4, 8),
    windows=(1 << 10, 1 << 11),
    sizes=(10, 11),
    orders=((8, 1 << 10), (8, 1 << 11)),
    rounds=(1, 4, 16, 512),
    round_shapes=("one lane",),
    engines=("scan-1x1", "scan-4x4", "index"),
    bands=("whole keys, 4 x 4", "digests, 4 x 4"),
    shares=(1.06, 1.2, 2, 4),
)


#: Window of the figures of latencies, in tuples per side.
WINDOW = 1 << 10
#: Match rates from 1e-6 to 1e-1 as half-widths of a band in two fields of 10,000 values.
WIDTHS = (5, 16, 50, 158, 500, 1581)
#: … and with more of them where digests of a band become slow.
BAND_WIDTHS = (5, 10, 16, 22, 28, 35, 50, 70, 112, 158, 500, 1581)
NAMES = {"sj": "SplitJoin", "llhj": "low-latency handshake", "hj": "handshake"}
#: Probes per star of each ordering; 0 sends no stars.
ORDERINGS = {
    "none": 0, "relaxed(256)": 256, "relaxed(64)": 64, "relaxed(16)": 16, "relaxed(4)": 4,
    "outer": 1,
}  # fmt: skip
#: Accelerator and probes per star of each engine.
ENGINES = {
    "scan-1x1": 1, "scan-1x4": 4, "scan-1x16": 16, "scan-4x1": 1, "scan-4x4": 4, "digest-4x4": 4,
    "index": 4,
}  # fmt: skip
#: … and of the bands, by what the legend says.
BANDS = {
    "whole keys, 4 x 4": ("band-4x4", 4),
    "digests, 4 x 4": ("band-digest-4x4", 4),
    "whole keys, 26 x 2 (ecp5-band)": ("band-26x2", 2),
    "digests, 15 x 14 (ecp5-band-digest)": ("band-digest-15x14", 14),
}
#: Accelerators with rounds, by what the legend says.
ROUND_SHAPES = {
    "one lane": "rounds-8", "four lanes": "rounds-8x4",
    "one lane, two result ports": "rounds-8-ports",
}  # fmt: skip
#: Place of the results without stars on the axis of probes per star.
NO_STARS = 1 << 10
PER_CYCLES = "tuples per 1,000 cycles"
#: Cycles between two tuples at which a chain of any length, and SplitJoin, are idle between them.
IDLE = 400


def load_interval(window, cores):
    """Return the cycles between two tuples at about 85 % of what a core can compare."""
    return -(-window * 20 // (2 * cores * 17))


def settled(short, cores, window):
    """Return the point of a join's throughput at a window, over as many tuples as it takes.

    SplitJoin takes the same cycles for every tuple once its windows are full. In a chain, the
    tuples spread over the cores anew as they flow, until all those that filled it have left.
    """
    return Point(f"{short}-{cores}", window, tuples=1600 if short == "sj" else 2 * window + 1600)


def over_cores(label, short, quantity, cores, **load):
    """Return a series over cores; ``window`` and ``interval`` may be functions of their number."""
    points = tuple(
        (k, Point(f"{short}-{k}", **{n: v(k) if callable(v) else v for n, v in load.items()}))
        for k in cores
    )
    return Series(label, points, quantity)


def throughput(timed, shorts, extent):
    """Return series of the throughput over cores, for some windows."""
    return tuple(
        over_cores(f"{NAMES[short]}, 2^{w.bit_length() - 1}", short, PER_CYCLES, extent.cores,
                   window=w, timed=timed)
        for short in shorts for w in extent.windows
    )  # fmt: skip


def stages(timed, cores):
    """Return the series of the stages: rows read in a core, end to end, visiting; idle and not."""

    def loaded(k):
        return load_interval(WINDOW, k)

    def idle(k):
        return max(IDLE, WINDOW)

    kinds = [
        ("exe (rows read)", "read per core", loaded), ("ete, idle", "processing", idle),
        ("ete, 85 % load", "processing", loaded), ("vis, idle", "visiting", idle),
        ("vis, 85 % load", "visiting", loaded), ("ete, saturated", "processing", 0),
    ]  # fmt: skip
    return tuple(
        over_cores(label, "sj", quantity, cores, window=WINDOW, timed=timed, interval=interval)
        for label, quantity, interval in kinds
    )


def visiting(timed, cores, windows=(WINDOW,)):
    """Return the series of the visiting latency over cores, of SplitJoin and the chain.

    Under load they are for each of some windows; idle for the first one.
    """
    first, several = windows[0], len(windows) > 1
    load = "load" if several else "85 % load"
    loads = [(w, load, lambda k, w=w: load_interval(w, k)) for w in windows]
    loads.append((first, "idle", lambda k: max(IDLE, first)))
    return tuple(
        over_cores(
            f"{NAMES[short]}, {f'2^{w.bit_length() - 1}, ' * several}{label}", short, "visiting",
            cores, window=w, timed=timed, interval=interval, tuples=2000,
        )
        for short in ("sj", "llhj") for w, label, interval in loads
    )  # fmt: skip


def engines(shapes, values, skews):
    """Return series of the engines over the values of a key, or over their skew."""
    return tuple(
        Series(
            shape,
            tuple(
                (skew if len(skews) > 1 else 1 / count,
                 Point(shape, 1 << 11, period=ENGINES[shape], values=count, skew=skew,
                       tuples=1000 if count > 100 and skew < 1 else 200))
                for count in values for skew in skews
            ),
            "cycles per tuple",
        )
        for shape in shapes
    )  # fmt: skip


def bands(labels, widths):
    """Return series of whole keys and digests of a band over the match rate."""

    def points(shape, period):
        return tuple(
            (rate, Point(shape, 1 << 11, period=period, width=width,
                         tuples=1200 if rate < 1e-3 else 200))
            for rate, width in widths
        )  # fmt: skip

    return tuple(
        Series(label, points(*BANDS[label]), "pairs decided per cycle") for label in labels
    )


def plots(*, quick=False):
    """Return all figures; the quick ones have fewer cores and smaller windows."""
    extent = QUICK if quick else FULL
    cores, most = extent.cores, extent.cores[-1]
    intervals = [round(WINDOW / (2 * most) * share) for share in extent.shares]
    widths = [(((2 * w + 1) / 10_000) ** 2, w) for w in WIDTHS]
    outer = "strict outer order; one probe per pass, one lane, band of two 16-bit fields"
    few = "1 match in 1,000 pairs"
    return {plot.name: plot for plot in (
        Plot("12", "12: throughput, time-based windows", "join cores", PER_CYCLES,
             f"Saturated; {outer}; {few}.", throughput(True, ("sj", "llhj"), extent)),
        Plot("13", "13: mean visiting latency, time-based windows", "join cores", "cycles",
             f"Same input, load 85 %; {outer}; {few}.",
             visiting(True, cores, extent.windows), log_y=True),
        Plot("15", "15: latency of the stages, time-based window of 2^10", "join cores", "cycles",
             f"{outer}; {few}.", stages(True, cores), log_y=True),
        Plot("16", "16: throughput, count-based windows", "join cores", PER_CYCLES,
             f"Saturated; {outer}; {few}.", throughput(False, ("sj", "llhj"), extent)),
        Plot("17", "17: throughput over the match rate", "matches per pair", PER_CYCLES,
             f"Saturated, {most} cores, count-based; {outer}.",
             tuple(Series(f"{NAMES[short]}, 2^{w.bit_length() - 1}",
                          tuple((rate, Point(f"{short}-{most}", w, width=width))
                                for rate, width in widths), PER_CYCLES)
                   for short in ("sj", "llhj") for w in (WINDOW, extent.windows[-1]))),
        Plot("18", "18: latency of the stages, count-based window of 2^10", "join cores", "cycles",
             f"{outer}; {few}.", stages(False, cores) + visiting(False, cores)[2:], log_y=True),
        Plot("19", "19: throughput over the probes per star", "probes per star", PER_CYCLES,
             f"Saturated, count-based; one probe per pass; {few}. No stars at all: at {NO_STARS}.",
             tuple(Series(f"{k} cores, sub-window {size // k}",
                          tuple((period or NO_STARS,
                                 Point(f"sj-{k}", size, period=period, tuples=1200))
                                for period in ORDERINGS.values()), PER_CYCLES)
                   for k, size in extent.orders)),
        Plot("19-inner", "19: throughput over the stored tuples per round, inner order",
             "stored tuples of a core per round", PER_CYCLES,
             f"Saturated, count-based window of 2^12, 8 cores; one probe per pass; {few}. A star"
             " after each round of a probe.",
             tuple(Series(label,
                          tuple((q, Point(ROUND_SHAPES[label], 1 << 12, rounds=q))
                                for q in extent.rounds), PER_CYCLES)
                   for label in extent.round_shapes)),
        Plot("windows", f"Throughput over the window, {most} cores", "tuples per side", PER_CYCLES,
             f"Saturated, count-based; {outer}; {few}.",
             tuple(Series(NAMES[short],
                          tuple((1 << n, settled(short, most, 1 << n)) for n in extent.sizes),
                          PER_CYCLES) for short in NAMES), log_y=True),
        Plot("load", f"Visiting latency over the input rate, {most} cores, window of 2^10",
             "cycles from tuple to tuple", "cycles", f"{outer}; {few}.",
             tuple(Series(f"{NAMES[short]}, {'time' if timed else 'count'}",
                          tuple((n, Point(f"{short}-{most}", WINDOW, timed=timed, interval=n,
                                          tuples=2000)) for n in intervals), "visiting")
                   for short in NAMES for timed in (True, False)), log_y=True),
        Plot("log-k", "Visiting latency over cores, sub-windows of 32, idle", "join cores",
             "cycles", f"{outer}; count-based.",
             tuple(over_cores(NAMES[short], short, "visiting", cores, window=lambda k: 32 * k,
                              interval=IDLE, width=500) for short in ("sj", "llhj"))),
        Plot("sharing", "Sharing and ordering alone (Q2 of STRETCH), sub-windows of one tuple",
             "join cores", PER_CYCLES, f"Saturated, count-based; {few}.",
             tuple(over_cores(label, "sj", PER_CYCLES, cores, window=lambda k: k, period=period,
                              tuples=4000)
                   for label, period in (("a star per probe", 1), ("no stars", 0)))),
        Plot("scalejoin", "The benchmark of ScaleJoin (Q3 of STRETCH), time-based windows",
             "join cores", "pairs decided per cycle", f"Saturated; {outer}; 1 match in 226,757.",
             tuple(over_cores(f"window of 2^{w.bit_length() - 1}", "sj", "pairs decided per cycle",
                              cores, window=w, timed=True, width=10) for w in extent.windows)),
        Plot("engines", "Engines over the match rate", "matches per pair", "cycles per tuple",
             "Saturated, 4 cores, window of 2^11, equality of 32 bits; a star per full group.",
             engines(extent.engines, (10, 100, 1_000, 10_000, 100_000, 1_000_000), (0.0,)),
             log_y=True),
        Plot("bands", "Whole keys and digests of a band over the match rate", "matches per pair",
             "pairs decided per cycle",
             "Saturated, 4 cores, window of 2^11, band of two 16-bit fields with 10,000 values; a"
             " star per full group.",
             bands(extent.bands, [(((2 * w + 1) / 10_000) ** 2, w) for w in BAND_WIDTHS]),
             log_y=True),
        Plot("skew", "Engines over the skew of the keys", "Zipf exponent", "cycles per tuple",
             "Saturated, 4 cores, window of 2^11, equality of 32 bits, 100,000 values.",
             engines(extent.engines, (100_000,), (0.0, 0.5, 0.8, 1.1, 1.5)), log_x=False,
             log_y=True),
    )}  # fmt: skip


#: The figures that ``make experiments`` draws.
PLOTS = plots()
