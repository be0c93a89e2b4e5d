# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Q1 on hardware: wordcount, paircount and longest tweet, of tuples with many keys."""

import csv
from dataclasses import asdict, dataclass, fields, replace
from functools import partial

from .accelerators import prepare
from .figure import draw
from .sweep import FOLDER, sweep
from .text_operators import DISTANCES, LONGEST
from .text_run import KEY_BITS, TextPoint, measure_texts, text_parameters

__all__ = ["TextPlot", "sweep_texts", "text_accelerators", "text_plots", "write_texts"]


@dataclass(frozen=True)
class TextPlot:
    """A figure over the keys of a text; drawn like a :class:`~bench.experiments.figure.Plot`.

    Parameters
    ----------
    name, title, conditions : str
        Name and texts.
    points : tuple of TextPoint
        What is measured.
    """

    name: str
    title: str
    conditions: str
    points: tuple[TextPoint, ...]

    x_label = "keys per text"
    y_label = "keys per cycle"
    log_x = log_y = False

    def lines(self, found):
        """Return label and (keys per text, keys per cycle) of each series."""
        series = {}
        for point in self.points:
            measured = found[point]
            cores = "1 core" if point.cores == 1 else f"{point.cores} cores"
            series.setdefault(f"{cores}, {point.source}", []).append(
                (measured["keys"] / measured["texts"], measured["keys"] / measured["cycles"])
            )
        return [(label, sorted(places)) for label, places in series.items()]


def text_plots(*, quick=False):
    """Return the figures by name; quick ones have one core, fewer texts and no pairs."""
    small = {"pane_texts": 1200, "panes": 4} if quick else {}
    words = TextPoint("wordcount", **small)
    points = [words, replace(words, source="address")]
    if not quick:
        points += [TextPoint(kind) for kind in DISTANCES if kind != words.kind]
        points += [TextPoint(points[-1].kind, source="address")]
        points += [TextPoint(kind, cores=4) for kind in ("wordcount", "paircount L")]
    tweets = TextPoint(LONGEST, source="hashtags", most=4, **(small or {"pane_texts": 8000}))
    both = (
        TextPlot(
            "texts",
            "Wordcount and paircount (Q1 of STRETCH): keys of tuples per cycle",
            f"Saturated; texts of 4 to 16 words with the frequencies of English, 2^{KEY_BITS} "
            f"keys, windows of two panes.",
            tuple(points),
        ),
        TextPlot(
            "tweets",
            "Longest tweet of each hashtag (Operator 9 of STRETCH): keys of tuples per cycle",
            f"Saturated; tweets of 1 to {tweets.most} hashtags with the frequencies of English, "
            f"2^{KEY_BITS} keys, windows of two panes.",
            (tweets,) if quick else (tweets, replace(tweets, cores=4)),
        ),
    )
    return {plot.name: plot for plot in both}


def text_accelerators(points):
    """Return the parameters of the accelerators of some points, by name."""
    return {point.accelerator: text_parameters(point) for point in points}


def sweep_texts(points, report, *, folder=FOLDER, prepared=None, advance=lambda done, of: None):
    """Return what was measured at each point; what is in the store is not measured again."""
    return sweep(
        points, report, folder=folder,
        prepared=prepared or partial(prepare, accelerators=text_accelerators(points)),
        advance=advance, measured=measure_texts, store="texts.jsonl",
    )  # fmt: skip


def write_texts(plot, found, folder, command):
    """Write the CSV file and the drawing of the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"figure-{plot.name}"
    with (folder / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {command}\n# {plot.conditions}\n")
        writer = csv.writer(file, lineterminator="\n")
        names = list(found[plot.points[0]])
        writer.writerow(
            [*(field.name for field in fields(TextPoint)), *names, "keys_per_text",
             "keys_per_cycle", "texts_per_1000_cycles"]
        )  # fmt: skip
        for point in plot.points:
            row = found[point]
            rates = (
                row["keys"] / row["texts"],
                row["keys"] / row["cycles"],
                1000 * row["texts"] / row["cycles"],
            )
            writer.writerow(
                [*asdict(point).values(), *(row[name] for name in names),
                 *(f"{rate:.4g}" for rate in rates)]
            )  # fmt: skip
    (folder / f"{stem}.svg").write_text(draw(plot, found), encoding="utf-8")
