# SPDX-License-Identifier: Apache-2.0
"""The register file of a shell, with the counters of its accelerator behind it."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.counters import COUNTER_BITS as COUNT_BITS
from hdl.families.choice import family_of
from hdl.registers.bus import DATA_BITS, RegisterBus
from hdl.registers.file import CounterSnapshot, RegisterFile, port_name
from hdl.registers.table import HASH_WORDS, TWO_SIDES, mask_names, register_words, shell_table
from hdl.scalegate.gate import COUNTER_BITS, DEADLINE_BITS

__all__ = ["ShellRegisters", "hash_number"]


def hash_number(digest):
    """Return the hash of a manifest as the registers hold it.

    Parameters
    ----------
    digest : str
        The hash as 64 hexadecimal digits. Its first byte is in the lowest byte of MANIFEST_HASH_0.

    Raises
    ------
    ValueError
        If it is no such text.
    """
    number = bytes.fromhex(digest)
    if len(number) != 4 * HASH_WORDS:
        raise ValueError(
            f"Hash of a manifest must have {8 * HASH_WORDS} hexadecimal digits, not {digest!r}"
        )
    return int.from_bytes(number, "little")


class ShellRegisters(wiring.Component):
    """Register file of :func:`hdl.registers.table.shell_table`, wherever the bus comes from.

    Latency: ``done`` 1 cycle after the request; a counter waits until copies have been made.
    Throughput: one access per 2 cycles.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    merged : sequence of str
        Names of the inputs that are merged, none if all words come by one port.

    Members
    -------
    bus : In(RegisterBus())
    manifest_hash : In(256)
        A constant, :func:`hash_number`.
    restart : Out(1)
        CONTROL.RESET was written, for one cycle.
    enable : Out(1)
        CONTROL.ENABLE.
    resetting : In(1)
        The accelerator is being reset.
    busy, input_waiting, output_waiting : In(1)
        Bits of STATUS.
    mark : In(1)
        A mark has left, for one cycle.
    faults : In
        Bits of ERRORS to be set, one for each of its fields.
    interrupt : Out(1)
        Comes from a register.
    counter_addr : Out
    counter_data : In(48)
        Of the accelerator.
    exclude : Out(len(merged))
        These inputs are to be excluded, for one cycle; only with merged inputs, as what follows.
    deadline : Out(32)
        STALL_DEADLINE.
    late, excluded : In(len(merged))
        Bits to be set in LATE_INPUTS and EXCLUDED_INPUTS, which there are with more than two.
    stalls : In(32).array(len(merged))
        Cycles in which each input was waited for.
    memory_base : Out
        MEMORY_BASE, from its lowest bit that is not always zero; only with external windows.
    clock_request, vacant : In(cores)
        Of the accelerator; only with ``clock_requests``.
    """

    def __init__(self, parameters, *, merged=(), is_row=False):
        self.parameters = parameters
        self.merged = tuple(merged)
        self.latency = 1
        self._family = family = family_of(parameters)
        self._file = RegisterFile(shell_table(parameters, merged=merged, is_row=is_row))
        merge = {
            "exclude": Out(len(merged)),
            "deadline": Out(DEADLINE_BITS),
            "late": In(len(merged)),
            "excluded": In(len(merged)),
            "stalls": In(COUNTER_BITS).array(len(merged)),
        }
        super().__init__(
            {
                "bus": In(RegisterBus()),
                "manifest_hash": In(32 * HASH_WORDS),
                "restart": Out(1),
                "enable": Out(1, init=1),
                "resetting": In(1),
                "busy": In(1),
                "input_waiting": In(1),
                "output_waiting": In(1),
                "mark": In(1),
                "faults": In(self._file.errors_held.shape().width),
                "interrupt": Out(1),
                "counter_addr": Out(family.counter_address_bits),
                "counter_data": In(COUNT_BITS),
                **(merge if merged else {}),
                **({"memory_base": Out(family.memory_base.bits)} if family.memory_base else {}),
                **dict.fromkeys(family.core_bits, In(parameters.cores)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.file = file = self._file
        m.submodules.snapshot = snapshot = CounterSnapshot(self.parameters)
        connect(m, flipped(self.bus), file.bus)
        for n in range(HASH_WORDS):
            port = getattr(file, f"manifest_hash_{n}_bytes")
            m.d.comb += port.eq(self.manifest_hash.word_select(n, 32))
        faults = [
            getattr(file, f"errors_{field.name}".lower()) for field in file.table["ERRORS"].fields
        ]
        has_failed = file.errors_held.any()
        m.d.comb += [
            self.restart.eq(file.control_reset),
            self.enable.eq(file.control_enable),
            file.status_busy.eq(self.busy),
            file.status_input_waiting.eq(self.input_waiting),
            file.status_output_waiting.eq(self.output_waiting),
            file.status_resetting.eq(self.resetting),
            Cat(faults).eq(self.faults),
            file.interrupt_status_mark.eq(self.mark),
            file.interrupt_status_error.eq(has_failed),
            snapshot.start.eq(file.control_snapshot),
            snapshot.resetting.eq(self.resetting | file.control_reset),
            snapshot.address.eq(file.stored_address),
            file.stored_ready.eq(snapshot.ready),
            file.stored_data.eq(snapshot.data),
            self.counter_addr.eq(snapshot.counter_addr),
            snapshot.counter_data.eq(self.counter_data),
        ]
        if self.merged:
            self.elaborate_merge(m, file)
        if self._family.memory_base:
            names = ("memory_base_lo_address", "memory_base_hi_address")
            m.d.comb += self.memory_base.eq(
                Cat(getattr(file, name) for name in names if hasattr(file, name))
            )
        self.elaborate_cores(m, file)
        m.d.sync += self.interrupt.eq(
            (file.interrupt_status_held & file.interrupt_enable_mark)
            | (has_failed & file.interrupt_enable_error)
        )
        return m

    def elaborate_merge(self, m, file):
        """Connect the registers about the merge of the inputs."""
        m.d.comb += [
            self.deadline.eq(file.stall_deadline_cycles),
            *(
                getattr(file, f"stalls_{name}_cycles".lower()).eq(stalls)
                for name, stalls in zip(self.merged, self.stalls, strict=True)
            ),
        ]
        if self.merged == TWO_SIDES:
            m.d.comb += self.exclude.eq(Cat(file.control_exclude_r, file.control_exclude_s))
            return
        m.d.comb += [
            self.exclude.eq(self.mask(file, "EXCLUDE_INPUTS")),
            self.mask(file, "LATE_INPUTS").eq(self.late),
            self.mask(file, "EXCLUDED_INPUTS").eq(self.excluded),
        ]

    def mask(self, file, mask):
        """Return the ports of the registers that have a bit for each input, the first one first."""
        return Cat(
            getattr(file, port_name(file.table[name], field))
            for name in mask_names(mask, self.merged)
            for field in file.table[name].fields
        )

    def elaborate_cores(self, m, file):
        """Show a bit for each core, a cycle late: some arrive at the end of a long path."""
        for name in self._family.core_bits:
            shown = Signal(self.parameters.cores, name=f"shown_{name}")
            m.d.sync += shown.eq(getattr(self, name))
            for n in range(register_words(self.parameters.cores)):
                port = getattr(file, f"{name}_{n}_cores")
                m.d.comb += port.eq(shown[DATA_BITS * n : DATA_BITS * (n + 1)])

    def reading(self, accelerator):
        """Return the statements that let the registers see an accelerator's counters and cores."""
        names = ["counter_data", *self._family.core_bits]
        return [
            accelerator.counter_addr.eq(self.counter_addr),
            *(getattr(self, name).eq(getattr(accelerator, name)) for name in names),
        ]
