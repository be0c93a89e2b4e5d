# SPDX-License-Identifier: Apache-2.0
"""Random control words for one accelerator."""

from .words import WordLayout

__all__ = ["Operands"]


class Operands:
    """Writes control words for the accelerator of a manifest.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.
    turns : sim.soak.segments.Turns
        What it chose says how many tuples a window may have.
    """

    def __init__(self, manifest, turns):
        self.manifest = manifest
        self.turns = turns
        self.layout = WordLayout(manifest["input_word"])
        self.parameters = manifest["parameters"]
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
        if op in ("MASK", "UNMASK"):  # mostly of no core: "sim.soak.masking" writes the others
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
