# SPDX-License-Identifier: Apache-2.0
"""Random masks of a program: which cores are masked when, and when they take part again."""

__all__ = ["Masking"]


class Masking:
    """Chooses the masks of programs.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.

    Attributes
    ----------
    distance : int
        Words from change to change, more or less; 0 if the program has no masks.
    """

    def __init__(self, manifest):
        self.cores = range(manifest["storage"]["cores"])
        self.able = "MASK" in manifest["operations"]
        self.distance, self.masked = 0, set()

    def choose(self, random, facts):
        """Choose how often masks change in a program, in which no core is masked yet."""
        self.masked = set()
        self.distance = 0
        if self.able and random.random() < 0.7:
            self.distance = random.choice([10, 30, 100, 500, 2000])
            facts.append(("words of a mask", f"about {self.distance}"))

    def change(self, random, configuration):
        """Return the operations of the next change, with their values, and words between them.

        Cores are masked, mostly as a host does it: then a segment of the others follows, now and
        then after CLEAR. Or cores take part again, with a new configuration.

        Parameters
        ----------
        configuration : callable
            Returns words with windows and bounds.
        """
        if self.masked and random.random() < 0.5:
            revived = [core for core in self.cores if random.random() < 0.7] or [*self.masked]
            self.masked -= set(revived)
            random.shuffle(revived)
            words = [("UNMASK", core) for core in revived]
            return [*words, *configuration(), *self.others(random, 0.7)]
        some = random.sample(self.cores, min(len(self.cores), random.choice([1, 1, 1, 2, 3])))
        self.masked |= set(some)
        words = [("MASK", core) for core in some]
        if random.random() < 0.3:
            words.append(("CLEAR", 0))
        return words + self.others(random, 0.6)

    def others(self, random, likely):
        """Return a segment of the cores that are not masked, with some probability."""
        live = [core for core in self.cores if core not in self.masked]
        if not live or random.random() >= likely:
            return []
        if random.random() < 0.3:
            random.shuffle(live)
        return [*(("CORE", core) for core in live), ("SEGMENT", 0)]
