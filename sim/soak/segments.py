# SPDX-License-Identifier: Apache-2.0
"""Random segments of a program: which cores store, how many of them at least, and for how long."""

__all__ = ["Turns"]

#: Segments of which a window holds tuples, each of which may leave one tuple more in a core.
SEGMENTS = 3


class Turns:
    """Chooses the segments of programs.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.

    Attributes
    ----------
    distance : int
        Words from segment to segment, more or less; 0 if the program has no segments.
    fewest : int
        Fewest cores of a segment.
    room : int
        Tuples that a window may have, so that mostly they fit the cores that store.
    """

    def __init__(self, manifest):
        self.cores = manifest["storage"]["cores"]
        self.sub_window = manifest["storage"]["sub_window"]
        self.able = "SEGMENT" in manifest["operations"]
        self.distance, self.fewest, self.room = 0, self.cores, self.cores * self.sub_window

    def choose(self, random, facts):
        """Choose how often turns change in a program, and in which way."""
        self.distance, self.fewest = 0, self.cores
        self.room = self.cores * self.sub_window
        if not self.able or random.random() < 0.4:
            return
        self.distance = random.choice([1, 10, 30, 100, 500])
        self.fewest = self.some(random, 1)
        # Now and then, a window of any size overflows a core.
        if random.random() < 0.8:
            self.room = max(1, self.fewest * (self.sub_window - SEGMENTS))
        facts.append(("fewest cores that store", self.fewest))

    def segment(self, random):
        """Return the operations of a new segment, with their values."""
        live = random.sample(range(self.cores), self.some(random, self.fewest))
        words = [("CORE", core) for core in live]
        if random.random() < 0.1:  # a core that there is not, or one twice
            words.insert(random.randrange(len(words) + 1), ("CORE", self.core(random)))
        return [*words, ("SEGMENT", random.randrange(-2, 3))]

    def some(self, random, fewest):
        """Return a number of cores; as often as any other one, the fewest and all."""
        return random.choice([fewest, self.cores, random.randint(fewest, self.cores)])

    def core(self, random):
        """Return the number of a core, or one that is no core's."""
        return random.randrange(-1, self.cores + 1)
