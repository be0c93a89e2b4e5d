# SPDX-License-Identifier: Apache-2.0
"""How many cores a join uses: epochs told in advance, and controllers that observe."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
import math
from typing import Any, ClassVar, Protocol

from host.errors import UsageError
from host.query.quantities import positive, share, whole

__all__ = [
    "Control",
    "Controller",
    "CoreControl",
    "EnergyController",
    "Epoch",
    "EpochSchedule",
    "Epochs",
    "INTERVAL",
    "ListedEpochs",
    "Observation",
    "PATIENCE",
    "PredictiveController",
    "ThresholdController",
    "controller_of",
    "parse_controller",
]

# Epochs of an elastic join: which cores are active, and from which place of the stream on.


@dataclass(frozen=True)
class Epoch:
    """A stretch of the stream with the same active cores and the same mapping.

    The mapping is the order of ``cores``: tuple after tuple of each side is stored by the next core
    of the list. An epoch takes effect right before the first tuple that has passed its gamma, which
    is a place (``after``), a time (``beyond``), or both. Cores that were active before keep what
    they have stored and answer with it until it has left the window.

    Parameters
    ----------
    cores : tuple of int
        The active cores, in the order of their turns.
    after : int
        Tuples of both sides that come before the epoch, at least. Rows that match nothing, such as
        those with a null in a compared column, may not count, as they are not sent.
    beyond : object, optional
        Only a tuple whose time is greater than this value of the left order column begins the
        epoch. The time of a tuple is the watermark of the stream, as tuples are sent in the order
        of time.
    number : int, optional
        Number of the epoch, above that of the epoch before it. A join begins with epoch 0, of all
        cores. The driver chooses the next number if none is given.
    """

    cores: tuple[int, ...]
    after: int = 0
    beyond: Any = None
    number: int | None = None


class EpochSchedule(Protocol):
    """Schedule of the epochs of a join while it runs, such as a controller."""

    def next(self, staged: int) -> Epoch | None:
        """Return the epoch that comes next, or None if nothing is decided yet.

        The driver asks before it stages tuples, and again once the stream has passed the gamma of
        the last answer. It asks once for each number of staged tuples.

        Parameters
        ----------
        staged : int
            Tuples of both sides that have been staged.
        """


#: Epochs as they may be given: a schedule, or epochs in their order. A pair is the place and the
#: active cores of an epoch.
Epochs = EpochSchedule | Sequence[Epoch | tuple[int, Sequence[int]]]


class ListedEpochs:
    """A schedule whose epochs are known beforehand.

    Parameters
    ----------
    epochs : sequence of Epoch or (int, sequence of int)
        The epochs in order; of a pair, ``after`` and ``cores``.

    Attributes
    ----------
    epochs : tuple of Epoch
    """

    def __init__(self, epochs: Sequence[Epoch | tuple[int, Sequence[int]]]) -> None:
        self.epochs = tuple(
            given if isinstance(given, Epoch) else Epoch(tuple(given[1]), after=given[0])
            for given in epochs
        )
        self._rest: Iterator[Epoch] = iter(self.epochs)

    def next(self, staged: int) -> Epoch | None:
        """Return the next epoch; None after the last one."""
        return next(self._rest, None)


# What a control sees of an accelerator, and what it is.

#: Regions of a core: one holds tuples of R, the other one tuples of S.
REGIONS = 2


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Measurements of an interval in which one setting was in force.

    The first group is counted by the hardware for every control. The second is for the choice of
    the period of the stars, the third for that of the cores.

    Parameters
    ----------
    cycles : int
        Clock cycles, at least one.
    tuples : int
        Tuples of both sides that were taken (counters ``tuples_r`` and ``tuples_s``).
    offered : int
        Cycles in which an input word was taken or had to wait (``ingress_busy`` and
        ``ingress_stalled``).
    in_flight : Fraction
        Tuples that were taken and not yet answered up to their star, on average.
    settling_offered, settling_tuples : int
        As ``offered`` and ``tuples``, between the last interval and this one.
    cores : int
        Cores that took turns to store.
    least : int
        Fewest cores that can hold the windows.
    busy : int
        Cycles in which a region read a row, summed over all regions (``region_busy``).
    stalled : int
        Cycles in which an input word had to wait (``ingress_stalled``).
    output : int
        Cycles in which a result word was taken or had to wait (``output_busy`` and
        ``output_stalled``).
    arrived : int
        Tuples of both sides that arrived. Without a pace of the input these are the tuples taken.
    pending : int
        Tuples that have arrived and are not answered at the end.
    window : int
        Tuples of both sides in the windows at the end.
    ahead : int
        Tuples that both windows hold once they have been refilled at the present rate.
    peak : int
        Tuples that arrive in as many cycles at the highest rate observed so far.
    latency : int or None
        Mean cycles from the arrival of a tuple to its answer; None if no tuple was answered.
    """

    cycles: int
    tuples: int = 0

    offered: int = 0
    in_flight: Fraction = Fraction(0)
    settling_offered: int = 0
    settling_tuples: int = 0

    cores: int = 1
    least: int = 1
    busy: int = 0
    stalled: int = 0
    output: int = 0
    arrived: int = 0
    pending: int = 0
    window: int = 0
    ahead: int = 0
    peak: int = 0
    latency: int | None = None

    @property
    def capacity(self) -> int:
        """Cycles that the regions of the cores had, summed over all regions."""
        return REGIONS * self.cores * self.cycles

    @property
    def work(self) -> Fraction:
        """Cycles of a region for each tuple, summed over all regions; zero if none was taken."""
        return Fraction(self.busy, self.tuples) if self.tuples else Fraction(0)

    @property
    def growth(self) -> Fraction:
        """Factor by which the windows, and so the work, grow at the present rate; at least one."""
        return max(Fraction(1), Fraction(self.ahead, self.window)) if self.window else Fraction(1)

    @property
    def is_short(self) -> bool:
        """Whether tuples waited most of the time, and not because results filled the output."""
        return 2 * self.stalled >= self.cycles and 10 * self.output < 9 * self.cycles

    @property
    def load(self) -> Fraction:
        """Share of the regions' cycles in which they were busy; at least one if cores are short.

        It can be above one while cores that no longer take turns still answer. A scan reads no row
        between two passes, so short passes keep it busy for less than all cycles. That is why the
        waiting input counts as well.
        """
        share = Fraction(self.busy, self.capacity)
        return max(share, Fraction(1)) if self.is_short else share


class Control(Protocol):
    """Controller of a setting of the accelerator, such as its cores or its period.

    :class:`CoreControl` and :class:`~host.query.ordering.PeriodControl` are controls; each keeps
    the patience and the bounds around a law without state, which the query names.
    """

    def see(self, seen: Observation) -> int:
        """Take the observation of an interval; return the setting from now on."""


# What decides how many cores a join should use.

#: Cycles of an observation, unless the caller says otherwise.
INTERVAL = 8_192


@dataclass(frozen=True, kw_only=True)
class Controller(ABC):
    """A law that maps one observation to a number of cores; it keeps no state.

    :class:`CoreControl` adds the bounds and the patience.

    Parameters
    ----------
    interval : int
        Least number of cycles in an observation.

    Raises
    ------
    UsageError
        If the interval is no whole number from 1 on.
    """

    interval: int = INTERVAL

    #: Name for users.
    name: ClassVar[str]

    def __post_init__(self) -> None:
        whole(self.interval, "The interval of an elastic join is a whole number of cycles")

    @abstractmethod
    def wanted(self, seen: Observation) -> int:
        """Return how many cores the load asks for, which may be none or more than there are.

        The number does not fall when the observed regions were busier.
        """

    @abstractmethod
    def __str__(self) -> str:
        """Say the name and the parameters, in a few words."""


# Bounds and patience around a controller: the number of cores that a join really uses.

#: Observations in a row that must allow fewer cores.
PATIENCE = 2


class CoreControl(Control):
    """Takes observations one by one, and keeps the number of cores that is in force.

    - The number is never below the ``least`` of the last observation, and never above ``cores``.
    - It grows as soon as one observation asks for more.
    - It falls when ``patience`` observations in a row ask for less, to the largest number that any
      of them asked for.

    The same observations give the same numbers, so a log of observations can be replayed.

    Parameters
    ----------
    controller : Controller
        What asks for cores.
    cores : int
        Cores that there are, at least one. At first all of them are in force.
    patience : int
        At least one.

    Attributes
    ----------
    active : int
        The number of cores in force.
    calm : list of int
        What the last observations asked for, each of them for fewer cores than are in force.

    Raises
    ------
    UsageError
        If there are no cores, or no observation is enough.
    """

    def __init__(
        self,
        controller: Controller,
        cores: int,
        *,
        patience: int = PATIENCE,
    ) -> None:
        for what, number in (("core", cores), ("observation of patience", patience)):
            if number < 1:
                raise UsageError(f"A control of cores needs at least one {what}, not {number}.")
        self.controller, self.cores, self.patience = controller, cores, patience
        self.active = cores
        self.calm: list[int] = []

    def see(self, seen: Observation) -> int:
        """Take an observation; return the number of cores from now on."""
        wanted = min(self.cores, max(1, seen.least, self.controller.wanted(seen)))
        if wanted >= self.active:
            self.active = wanted
            self.calm.clear()
            return self.active
        self.calm.append(wanted)
        if len(self.calm) >= self.patience:
            self.active = max(self.calm)
            self.calm.clear()
        return self.active

    def lose(self, cores: int) -> None:
        """Choose among so many cores from now on, because the others have failed."""
        self.cores = cores
        self.active = min(self.active, cores)
        self.calm = [wanted for wanted in self.calm if wanted < self.active]

    def require(self, least: int) -> None:
        """Use at least so many cores from now on, or all that there are."""
        if least > self.active:
            self.active = min(self.cores, least)
            self.calm.clear()


# The threshold controller: keep the load of the cores between two thresholds.


@dataclass(frozen=True)
class ThresholdController(Controller):
    """Thresholds: asks for other cores when their load leaves a band, and then for the target.

    Above the upper threshold it asks for the fewest cores that bring the load down to the target,
    below the lower one likewise. Inside the band it asks for the cores that there are.

    The load of a scan is the same work over more or fewer cores. The fewest cores that reach the
    target are therefore the same wherever one starts, and a constant load settles at once.

    Parameters
    ----------
    upper, target, lower : int, float or Fraction
        Shares of the cores' cycles: ``lower <= target <= upper``.

    Raises
    ------
    UsageError
        If a share is out of range, or the three are not in order.
    """

    upper: Fraction | float = Fraction(90, 100)
    target: Fraction | float = Fraction(70, 100)
    lower: Fraction | float = Fraction(45, 100)

    name: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("upper", "target", "lower"):
            number = share(getattr(self, field), f"{field} threshold of a load")
            object.__setattr__(self, field, number)
        if not self.lower <= self.target <= self.upper:
            raise UsageError(
                f"The thresholds of a load are in order, lower <= target <= upper, not "
                f"{float(self.lower):g}, {float(self.target):g} and {float(self.upper):g}."
            )

    def __str__(self) -> str:
        shares = "/".join(f"{float(100 * n):g}" for n in (self.upper, self.target, self.lower))
        return f"{self.name} {shares} %"

    def wanted(self, seen: Observation) -> int:
        """Return the cores in force, or the fewest that bring the load to the target."""
        load = self.load(seen)
        if self.lower <= load <= self.upper:
            return seen.cores
        return math.ceil(load * seen.cores / Fraction(self.target))

    def load(self, seen: Observation) -> Fraction:
        """Return the load that is held between the thresholds: the observed one."""
        return seen.load


# The predictive controller: thresholds on the work that is pending and that will come.


@dataclass(frozen=True)
class PredictiveController(ThresholdController):
    """Compares the thresholds with a predicted load instead of the observed one.

    The predicted load is that of an interval as long as the observed one, in which as many tuples
    arrive again and all pending ones are worked off, once the windows have been refilled at the
    present rate. A tuple costs as much work as the observed ones did, times the growth of the
    windows. Where the input has no pace of its own, a shortage of cores counts as in
    :class:`Observation`.

    A core that joins takes over no stored tuples, so it relieves the others only as tuples expire.
    That is why the prediction asks for all cores of the refilled windows at once.

    Parameters
    ----------
    upper, target, lower : int, float or Fraction
        As in :class:`ThresholdController`, but close to each other.
    """

    upper: Fraction | float = Fraction(80, 100)
    target: Fraction | float = Fraction(75, 100)
    lower: Fraction | float = Fraction(70, 100)

    name: ClassVar[str] = "predictive"

    def load(self, seen: Observation) -> Fraction:
        """Return the predicted load."""
        tuples = seen.arrived + seen.pending
        predicted = tuples * seen.work * seen.growth / seen.capacity
        return max(predicted, seen.load) if seen.is_short else predicted


# The energy controller: the fewest cores that keep a latency, also when the rate jumps.


@dataclass(frozen=True)
class EnergyController(Controller):
    """Asks for the fewest cores that do all of the following.

    - They do the work of the present rate on refilled windows, at a load of ``target``.
    - They do the work of the highest rate on the *present* windows, at a load of ``most``. A jump
      to that rate then leaves no queue: cores that join take over no stored tuples, so only the
      cores that hold the windows can answer what comes first. Until an observation has shown the
      jump, :data:`REACTION` intervals, what comes is stored in these cores as well.
    - They keep the mean latency below the bound, by a quarter. The latency is taken to be in
      proportion to the windows, and in inverse proportion to the cores.

    Parameters
    ----------
    latency : int
        Bound on the cycles from the arrival of a tuple to its answer, at least 1.
    target, most : int, float or Fraction
        Shares of the cores' cycles: ``target <= most``.
    rate : int, float or Fraction, optional
        Highest rate to be ready for, in tuples of both sides per clock cycle. Without it, and above
        it, that is the highest rate observed so far.

    Raises
    ------
    UsageError
        If a parameter is out of range.
    """

    latency: int
    target: Fraction | float = Fraction(75, 100)
    most: Fraction | float = Fraction(95, 100)
    rate: Fraction | float | None = None

    #: How much lower than the bound the mean latency is kept.
    MARGIN: ClassVar[Fraction] = Fraction(3, 4)
    #: Intervals from a jump of the rate to the epoch that answers it.
    REACTION: ClassVar[int] = 2
    name: ClassVar[str] = "energy"

    def __post_init__(self) -> None:
        super().__post_init__()
        what = "An energy controller keeps a latency of a whole number of cycles"
        whole(self.latency, what)
        for field in ("target", "most"):
            object.__setattr__(self, field, share(getattr(self, field), f"{field} load"))
        if self.rate is not None:
            object.__setattr__(self, "rate", positive(self.rate, "tuples per cycle"))
        if self.target > self.most:
            raise UsageError(
                f"The target load of {float(self.target):g} is above the most of "
                f"{float(self.most):g} that a jump of the rate may reach."
            )

    def __str__(self) -> str:
        return f"{self.name}, latency of at most {self.latency:,} cycles"

    def wanted(self, seen: Observation) -> int:
        """Return the fewest cores that hold all three conditions."""
        per_core = Fraction(seen.capacity, seen.cores)
        steady = seen.arrived * seen.work * seen.growth / per_core / Fraction(self.target)
        peak = Fraction(max(seen.peak, math.ceil(Fraction(self.rate or 0) * seen.cycles)))
        stored = (1 + self.REACTION * peak / seen.window) if seen.window else Fraction(1)
        jump = peak * seen.work * stored / per_core / Fraction(self.most)
        latency = (seen.latency or 0) * seen.growth * seen.cores / (self.latency * self.MARGIN)
        short = seen.load * seen.cores / Fraction(self.target) if seen.is_short else Fraction(0)
        return math.ceil(max(steady, jump, latency, short))


# A controller as a caller names it.


def controller_of(value: object) -> Controller | None:
    """Return the controller that ``elastic=value`` asks for; None if the cores stay.

    Raises
    ------
    UsageError
        If the value is neither a controller nor a boolean nor None.
    """
    if value is None or value is False:
        return None
    if value is True:
        return ThresholdController()
    if isinstance(value, Controller):
        return value
    raise UsageError(
        f"Parameter 'elastic' is True, a ThresholdController, a PredictiveController or an "
        f"EnergyController, not {value!r}."
    )


def parse_controller(
    name: str, latency: int | None = None, option: str = "--elastic"
) -> Controller:
    """Return the controller of this name, as a command line gives it.

    Parameters
    ----------
    name : str
        ``threshold``, ``predictive`` or ``energy``.
    latency : int, optional
        Bound of the latency in cycles; for ``energy``, which needs it.
    option : str
        The option, for messages.

    Raises
    ------
    UsageError
        If there is no such controller, or it does not go with the latency.
    """
    if name == EnergyController.name:
        if latency is None:
            raise UsageError(f"{option} energy needs --latency, a number of clock cycles.")
        return EnergyController(latency)
    if latency is not None:
        raise UsageError(f"--latency is for {option} energy, not for {option} {name}.")
    for law in (ThresholdController, PredictiveController):
        if name == law.name:
            return law()
    raise UsageError(f"{option} takes threshold, predictive, energy or replay:FILE, not {name!r}.")
