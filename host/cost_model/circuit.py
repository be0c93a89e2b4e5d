# SPDX-License-Identifier: Apache-2.0
"""What the paper's terms are in one accelerator, in clock cycles."""

from dataclasses import dataclass

from host.cost_model.equations import levels
from host.manifest import JoinAggregateManifest, Manifest

__all__ = ["Circuit"]


@dataclass(frozen=True, kw_only=True)
class Circuit:
    """An accelerator as the cost model sees it; made :meth:`of` its manifest.

    ``tests/host/cost_model/test_circuit.py`` holds the cycles against the components of `hdl`.

    Parameters
    ----------
    engine : str
        ``"scan"`` or ``"index"``.
    cores, fan_out, fan_in : int
        The paper's k, b and c.
    lanes, probes : int
        Keys that a region reads in a cycle, and probes of a full group.
    slack : int
        Tuples that a core can store beyond its sub-window; a group ends when ``cores * slack``
        tuples of the other side came after its first probe.
    digest_bits : int or None
        Bits that a pass compares, if these are digests.
    digest_parts : int
        Parts of the digests of a band, each made of the cells of a field; zero for an equality.
    per_word : int
        Tuples that an input word, and results that a result word, can hold.
    timed : bool
        Whether there are timestamps.
    ports : int
        Ports that results leave by: one, or one for the probes of each side.
    reduces : bool
        Whether only R probes, and a word for each probe leaves in place of its pairs.
    ingress, region, combiner : int
        Cycles outside the trees, those of a region without its rows or walks: the paper's terms
        leave them out. With two ports, ``combiner`` is the exit of a side; where matches are
        reduced, it is the only exit.
    """

    engine: str
    cores: int
    fan_out: int
    fan_in: int
    lanes: int
    probes: int
    slack: int
    digest_bits: int | None
    digest_parts: int
    per_word: int
    timed: bool
    ports: int
    reduces: bool
    ingress: int
    region: int
    combiner: int

    #: T_link, T_CL in the paper: a node has a register at its input and one at every output.
    T_LINK = 2
    #: T_probe, T_P in the paper, of a scan: a row of ``lanes`` keys in a cycle.
    T_ROW = 1
    #: … and of an index: a walk returns to its chain every five cycles.
    T_ENTRY = 5

    @classmethod
    def of(cls, manifest: Manifest) -> "Circuit":
        """Return the terms of the accelerator that a manifest describes."""
        parameters, storage = manifest.parameters, manifest.storage
        index = manifest.engine == "index"
        band = manifest.comparator == "band"
        timed = bool(manifest.timestamp_bits)
        digest_bits = parameters.get("digest_bits")
        cells = manifest.digests is not None
        reduces = isinstance(manifest, JoinAggregateManifest)
        # Two registers, four stages of preparation; those of a bucket's number or of cells.
        ingress = 6 + timed + (index and (5 if band else 3)) + 3 * cells
        if index:
            region = 20 + timed + band
        else:
            lanes = 3 if storage.lanes > 1 else 0
            region = 11 + timed + lanes + (0 if digest_bits is None else 6) + cells + 3 * reduces
        return cls(
            engine=manifest.engine,
            cores=storage.cores,
            fan_out=int(parameters["fan_out"]),
            fan_in=storage.gather_arity,
            lanes=storage.lanes,
            probes=manifest.probes,
            slack=storage.slack,
            digest_bits=digest_bits,
            digest_parts=0 if manifest.digests is None else len(manifest.digests.parts),
            per_word=manifest.tuples_per_word,
            timed=timed,
            ports=len(manifest.result_ports),
            reduces=reduces,
            ingress=ingress,
            region=region,
            combiner=1 if reduces or len(manifest.result_ports) == 2 else 2,
        )

    @property
    def distribution(self) -> int:
        """``T_link * log_b k`` of equation 5; a single core has one register instead of a tree."""
        return self.T_LINK * levels(self.cores, self.fan_out) or 1

    @property
    def gathering(self) -> int:
        """``T_link * log_c k`` of equation 5; nothing is gathered from a single core."""
        return self.T_LINK * levels(self.cores, self.fan_in)

    @property
    def fixed(self) -> int:
        """Cycles from a tuple that closes its group to its star, without rows and walks."""
        return self.ingress + self.distribution + self.region + self.gathering + self.combiner

    @property
    def setting_out(self) -> int:
        """Cycles from a visit of an index to the first read of its walk, and back from the last."""
        return 4 if self.per_word == 2 else 3

    @property
    def columns(self) -> int:
        """Keys that all cores together read in a cycle for each side."""
        return self.cores * self.lanes

    def words_ahead(self, group: float, cycles: float) -> float:
        """Return the tuples between a word's acceptance and its region, under full load.

        Fourteen in the queue behind the preparation, and half of the three that were under way when
        it had no more room, if a group is larger than that. Two in each stream register that
        stands still, one in each that moves: those of the input, the accepted word, the
        distribution and the region, and two more with timestamps.

        Parameters
        ----------
        group : float
            Probes of a group.
        cycles : float
            For each tuple.
        """
        registers = 3 + self.distribution + 2 * self.timed
        overshoot = 1.5 if group > 2 else 0.0
        return 14 + overshoot + registers * (2 - 1 / cycles)

    @property
    def groups_under_way(self) -> int:
        """Groups of an index whose results are kept apart, as :mod:`hdl.index.layouts` has it."""
        most = 32 if self.per_word == 2 else 8
        return min(most, 1 << (128 // min(64, self.probes)).bit_length() - 1)
