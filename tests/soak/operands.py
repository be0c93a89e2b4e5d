# SPDX-License-Identifier: Apache-2.0
"""Random control words for one accelerator, its segments and masks among them."""

from .words import WordLayout, parameters_of

__all__ = ["Operands", "RandomMasks", "RandomSegments"]

#: Segments of which a window holds tuples, each of which may leave one tuple more in a core.
SEGMENTS = 3


class RandomSegments:
    """Chooses the segments of programs: which cores store, how many at least, for how long.

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


class RandomMasks:
    """Chooses the masks of programs: which cores are masked when, when they take part again.

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


class Operands:
    """Writes control words for the accelerator of a manifest.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.
    turns : RandomSegments
        What it chose says how many tuples a window may have.
    """

    def __init__(self, manifest, turns):
        self.manifest = manifest
        self.turns = turns
        self.layout = WordLayout(manifest["input_word"])
        self.parameters = parameters_of(manifest)
        self.storage = manifest["storage"]
        self.kinds = manifest["input_kinds"]
        self.operations = sorted(manifest["operations"])
        self.capacity = self.storage["cores"] * self.storage["sub_window"]

    def control(self, op, index=0, value=0):
        """Return one control word, as an integer."""
        return self.layout.number(
            kind=self.kinds["CONTROL"], control_op=self.manifest["operations"].get(op, op),
            control_index=index, control_value=value,
        )  # fmt: skip

    def bound_pair(self, random, bits):
        """Return random bounds of a field: equal, shifted, narrow, one-sided, empty, absurd."""
        half, top = 1 << max(bits - 1, 0), 1 << bits
        narrow = random.randrange(1, 20)
        shift = random.randrange(-12, 13)
        return random.choice([
            (0, 0), (0, 0), (shift, shift), (-narrow, narrow), (-narrow, narrow), (0, narrow),
            (-top, top - 1), (-top, -1), (1, top - 1), (narrow, -narrow), (-half, half),
            (-top - 5, top + 5), (-3 * top, -top), (top - 2, top - 1), (-top, 1 - top),
        ])  # fmt: skip

    def coordinate(self, random, bounds=None):
        """Return a random part of a field in the bucket; with bounds, one that suits them."""
        layout = self.manifest["index"]["coordinate"]
        buckets = self.manifest["index"]["bucket_bits"]
        value = 0
        hashed = int(bounds[0] == bounds[1]) if bounds else random.randrange(2)
        for name, number in [
            ("shift", random.randrange(0, 8)), ("width", random.randrange(0, buckets + 1)),
            ("place", random.randrange(0, buckets + 1)), ("hashed", hashed),
            ("seed", random.randrange(1 << 32)),
        ]:  # fmt: skip
            part = layout["fields"][name]
            value |= (int(number) & ((1 << part["bits"]) - 1)) << part["offset"]
        return value

    def cell(self, random, bounds=None):
        """Return random cells of a part of the digests; with bounds, often wide enough for them."""
        layout = self.manifest["digests"]["cell"]
        field = random.randrange(len(self.parameters["keys"]))
        shift = random.randrange(0, 8)
        if bounds:
            low, high = bounds[field]
            enough = max(high - low - 1, 0).bit_length()
            shift = random.choice([enough, enough, max(enough - 1, 0), shift])
        value = 0
        for name, number in (("field", field), ("shift", shift)):
            part = layout["fields"][name]
            value |= (number & ((1 << part["bits"]) - 1)) << part["offset"]
        return value

    def window(self, random, side):
        """Return a word that gives a side a new window, sometimes of an absurd size."""
        bits = self.parameters["timestamp_bits"]
        if bits and random.random() < 0.6:
            size = random.choice([
                0, 1, random.randrange(0, 30), self.turns.room // 2, self.turns.room,
                random.randrange(0, 4 * self.capacity), 1 << bits, -1,
            ])  # fmt: skip
            return self.control("LIFESPAN", side, size)
        room = self.turns.room
        size = random.choice([
            1, 2, room, room, random.randrange(1, room + 1), random.randrange(1, room + 1), 0, -7,
            self.capacity + 1,
        ])  # fmt: skip
        return self.control("WINDOW", side, size)

    def period(self, random):
        """Return a random precision."""
        probes, most = self.parameters["probes"], 1 << self.parameters["probe_bits"]
        return random.choice([
            1, 1, probes, probes, random.randrange(1, probes + 1), probes + 1,
            random.randrange(1, most + 1), most, most + 1, 0, -1,
        ])  # fmt: skip

    def rounds(self, random):
        """Return a random number of tuples in a round."""
        return random.choice([1, 1, 1, 2, 3, 4, 6, 8, 16, 40, 0, -1, -4, random.randrange(1, 64)])

    def configuration(self, random, *, whole=False):
        """Return words that set up a query, each of them with some probability.

        With ``whole``, there are all that a core needs that takes part again.
        """
        words, bounds, ops = [], {}, self.manifest["operations"]
        for index, spec in enumerate(self.parameters["keys"]):
            bounds[index] = self.bound_pair(random, spec["bits"])
            for op, value in zip(("BOUND_LOW", "BOUND_HIGH"), bounds[index], strict=True):
                if op in ops:
                    words.append(self.control(op, index, value))
        if "COORDINATE" in ops and whole:
            words += [self.control("COORDINATE", index, 0) for index in bounds]
        if "COORDINATE" in ops and random.random() < 0.8:
            for index, limits in bounds.items():
                words.append(self.control("COORDINATE", index, self.coordinate(random, limits)))
        if "CELL" in ops and (whole or random.random() < 0.8):
            for index in range(self.manifest["indices"]["CELL"]):
                words.append(self.control("CELL", index, self.cell(random, bounds)))
        if "DISTINCT" in ops and random.random() < 0.2:
            words.append(self.control("DISTINCT", random.randrange(2), 1))
        words += [self.window(random, side) for side in (0, 1)
                  if whole or random.random() < 0.8]  # fmt: skip
        if random.random() < 0.8:
            words.append(self.control("PRECISION", 0, self.period(random)))
        if "INNER" in ops and random.random() < 0.6:
            words.append(self.control("INNER", 0, self.rounds(random)))
        if random.random() < 0.5:
            words.append(self.control("CLEAR"))
        return words

    def any_control(self, random):
        """Return a word that is no tuple: of any operation, undefined ones too, or of no kind."""
        choice = random.random()
        if choice < 0.06:
            return self.harmless(self.garbage(random))
        if choice < 0.12:
            op, index = random.randrange(16), random.randrange(16)
            return self.harmless(self.control(op, index, random.randrange(-9, 9)))
        op, side = random.choice(self.operations), random.randrange(2)
        if op in ("CORE", "SEGMENT"):
            return self.control(op, random.randrange(16), self.turns.core(random))
        if op in ("MASK", "UNMASK"):  # mostly of no core: RandomMasks writes the others
            real = op == "MASK" and random.random() < 0.1
            core = self.turns.core(random) if real else self.storage["cores"]
            return self.control(op, random.randrange(16), core)
        index = random.randrange(self.manifest["indices"][op])
        value = random.randrange(-3, 4)
        if op in ("BOUND_LOW", "BOUND_HIGH"):
            value = random.choice(self.bound_pair(random, self.parameters["keys"][index]["bits"]))
        elif op in ("WINDOW", "LIFESPAN"):
            return self.window(random, side)
        elif op == "PRECISION":
            value = self.period(random)
        elif op == "INNER":
            value = self.rounds(random)
        elif op == "COORDINATE":
            value = self.coordinate(random)
        elif op == "CELL":
            value = self.cell(random)
        return self.control(op, index, value)

    def garbage(self, random):
        """Return a word of random bits that is no tuple, if there is a kind for that."""
        number = random.getrandbits(self.layout.bits)
        kind = self.layout.fields["kind"]
        mask = ((1 << kind["bits"]) - 1) << kind["offset"]
        free = set(range(4)) - set(self.kinds.values()) | {self.kinds["CONTROL"]}
        return number & ~mask | random.choice(sorted(free)) << kind["offset"]

    def harmless(self, number):
        """Return a word; if it lets a core take part again without a configuration, a FLUSH."""
        kind, op, core = (self.layout.value(number, name)
                          for name in ("kind", "control.op", "control.value"))  # fmt: skip
        revives = kind == self.kinds["CONTROL"] and op == self.manifest["operations"].get("UNMASK")
        if revives and 0 <= core < self.storage["cores"]:
            return self.control("FLUSH")
        return number
