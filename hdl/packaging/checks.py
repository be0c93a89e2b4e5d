# SPDX-License-Identifier: Apache-2.0
"""Assertions in SystemVerilog for the ports of an accelerator, bound to its top module.

They are the rules that our proofs (:mod:`formal.stream_rules`) show of every component, as a
simulator of an integrator's design can watch them. Those of the inputs watch that design.
"""

from dataclasses import dataclass

from .headers import INPUTS, RESULTS

__all__ = ["Channel", "Clocking", "channels_of", "checks_text"]

#: What answers which requests on AXI4-Lite and AXI4, by the ends of their channels' names.
ANSWERS = {"b": ("aw", "w"), "r": ("ar",)}

HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// Assertions for the ports of {module}: give this file to the simulator beside the design, with
// assertions switched on (Verilator: --assert). Written by the SplitJoin kit, not to be edited.
module {module}_checks (
{ports}
);
"""
CLOCK = """\
    // Before the first reset, registers may hold anything.
    bit checks{mark} = 0;
    always @(posedge {clock}) if ({reset}) checks{mark} <= 1;
"""
HOLDS = """\
    {label}: assert property (@(posedge {clock}) disable iff ({reset} || !checks{mark})
        {valid} && !{ready} |=> {valid} && {stable})
        else $error("{module}: {valid} fell, or what it offers changed, before {ready}");
"""
COUNTED = """\
    int unsigned {name} = 0;
    always @(posedge {clock}) if ({reset}) {name} <= 0; else {name} <= {name} + 32'({amount});
"""
AT_MOST = """\
    {label}: assert property (@(posedge {clock}) disable iff ({reset} || !checks{mark})
        {less} + 32'({now}) <= {more})
        else $error("{module}: {message}");
"""
BIND = """\
endmodule

bind {module} {module}_checks {module}_rules (.*);
"""


@dataclass(frozen=True)
class Clocking:
    """Clock and reset of some ports.

    Parameters
    ----------
    clock : str
    reset : str
        Expression that is true while the ports are reset.
    mark : str
        What tells its names from those of another clock.
    """

    clock: str
    reset: str
    mark: str = ""


#: Of an accelerator without a shell.
BARE = Clocking("clk", "rst")


@dataclass(frozen=True)
class Channel:
    """Ports of one channel: a stream, or one of the five of AXI.

    Parameters
    ----------
    name : str
        What the names of its ports begin with.
    payload : list of str
        Ports that must keep their values while the channel waits.
    clocking : Clocking
    """

    name: str
    payload: list
    clocking: Clocking

    @property
    def valid(self):
        """Return the port that says that something is offered."""
        return f"{self.name}valid"

    @property
    def ready(self):
        """Return the port that takes it."""
        return f"{self.name}ready"

    @property
    def passes(self):
        """Return the expression of a transfer."""
        return f"({self.valid} && {self.ready})"


def channels_of(ports, clocking, bus=None, registers=None):
    """Return the channels among some ports.

    Parameters
    ----------
    ports : list of dict
        Name, direction and width of each.
    clocking : Clocking
        Of all channels but those whose names begin with ``registers``.
    bus : Clocking, optional
        Of those.
    registers : str, optional
        What their names begin with.
    """
    clocks = {text for at in (clocking, bus) if at for text in (at.clock, at.reset.lstrip("!"))}
    names = [port["name"] for port in ports if port["name"] not in clocks]
    found = []
    for name in names:
        start = name.removesuffix("valid")
        if start == name or f"{start}ready" not in names:
            continue
        own = [each for each in names if each.startswith(start)]
        payload = [each for each in own if each not in (name, f"{start}ready")]
        of_bus = registers is not None and name.startswith(f"{registers}_")
        found.append(Channel(start, payload, (bus or clocking) if of_bus else clocking))
    return found


def holding(module, channel):
    """Return the rule that a channel holds what it offers until it is taken."""
    stable = " && ".join(f"$stable({name})" for name in channel.payload) or "1'b1"
    at = channel.clocking
    return HOLDS.format(
        label=f"{channel.name}holds", module=module, clock=at.clock, reset=at.reset, mark=at.mark,
        valid=channel.valid, ready=channel.ready, stable=stable,
    )  # fmt: skip


def counter(name, clocking, amount):
    """Return a counter of what an expression counts in each cycle."""
    return COUNTED.format(name=name, clock=clocking.clock, reset=clocking.reset, amount=amount)


def at_most(module, label, clocking, now, less, more, message):
    """Return the rule that a count, with what comes in this cycle, does not pass another one."""
    return AT_MOST.format(
        label=label, module=module, clock=clocking.clock, reset=clocking.reset, now=now, less=less,
        mark=clocking.mark, more=more, message=message,
    )  # fmt: skip


def answering(module, channels):
    """Yield counters and rules of AXI: no answer comes before its request."""
    by_name = {channel.name: channel for channel in channels}
    for name, channel in by_name.items():
        for end, requests in ANSWERS.items():
            start = name.removesuffix(end)
            asked = [by_name.get(f"{start}{request}") for request in requests]
            if start == name or not start.endswith("_") or None in asked:
                continue
            # A burst has many answers in its data; only the last one counts.
            last = f"{name}last"
            ends = f" && {last}" if last in channel.payload else ""
            at, count = channel.clocking, f"{name}answers"
            yield counter(count, at, f"{channel.passes}{ends}")
            for request in asked:
                # Of written data, too, only the last word of a burst is a request.
                final = f"{request.name}last"
                amount = request.passes + (f" && {final}" if final in request.payload else "")
                yield counter(f"{request.name}requests", at, amount)
                yield at_most(
                    module, f"{request.name}answered", at, f"{channel.passes}{ends}", count,
                    f"{request.name}requests",
                    f"{channel.valid} answered what {request.valid} has not asked",
                )  # fmt: skip


def of_kind(port, field, kinds, *names):
    """Return the expression that a field of a word on a port has one of some kinds."""
    bits = f"{port}[{field['offset'] + field['bits'] - 1}:{field['offset']}]"
    tests = [f"{bits} == {field['bits']}'d{kinds[name]}" for name in names if name in kinds]
    return f"({' || '.join(tests)})" if tests else "1'b0"


def stars(module, manifest, channels):
    """Yield counters and rules of a join: a side has no more stars than tuples.

    A round ends with a star as well, so an accelerator with rounds has no such rule.
    """
    inputs = [each for each in channels if any(map(INPUTS.fullmatch, each.payload))]
    results = [each for each in channels if any(map(RESULTS.fullmatch, each.payload))]
    kinds = manifest["result_kinds"]
    if len(inputs) != 1 or "STAR" not in kinds or "INNER" in manifest["operations"]:
        return
    (source,) = inputs
    word, fields = manifest["input_word"]["fields"], manifest["result_word"]["fields"]
    if "side" not in fields:  # a word for each tuple of R, or none of sides
        return
    at = source.clocking
    (tuples,) = filter(INPUTS.fullmatch, source.payload)
    for bit, side in enumerate("RS"):
        taken = of_kind(tuples, word["kind"], manifest["input_kinds"], side, "BOTH")
        yield counter(f"tuples_{side.lower()}", at, f"{source.passes} && {taken}")
        told = []
        for result in results:
            (port,) = filter(RESULTS.fullmatch, result.payload)
            for place in ("", "two."):
                if f"{place}kind" in fields:
                    place_side = fields[f"{place}side"]
                    told.append(
                        f"32'({result.passes} && "
                        f"{of_kind(port, fields[f'{place}kind'], kinds, 'STAR')} && "
                        f"{port}[{place_side['offset']}] == 1'b{bit})"
                    )
        now = " + ".join(told)
        yield counter(f"stars_{side.lower()}", at, now)
        yield at_most(
            module, f"stars_of_{side.lower()}", at, now, f"stars_{side.lower()}",
            f"tuples_{side.lower()}", f"side {side} has more stars than tuples",
        )  # fmt: skip


def checks_text(module, ports, manifest, shell, axi):
    """Return the file with a module of assertions and its ``bind``.

    Parameters
    ----------
    module : str
        The top module.
    ports : list of dict
        Name, direction and width of each of its ports.
    manifest : dict
        That of the accelerator.
    shell : str or None
        One of :data:`hdl.shells.names.SHELLS`; None for the bare accelerator.
    axi : AxiOptions
        What an AXI shell looks like from outside.
    """
    own, bus = BARE, None
    if shell is not None:
        own = Clocking(axi.pins.clock, f"!{axi.pins.reset}")
        if axi.has_bus_clock:
            bus = Clocking(axi.pins.bus_clock, f"!{axi.pins.bus_reset}", mark="_bus")
    channels = channels_of(ports, own, bus, None if shell is None else axi.pins.registers)
    widths = {port["name"]: f"[{port['bits'] - 1}:0] " * (port["bits"] > 1) for port in ports}
    declared = [f"    input {width}{name}" for name, width in widths.items()]
    clocks = {each.clocking: None for each in channels}
    parts = [
        HEAD.format(module=module, ports=",\n".join(declared)),
        *(CLOCK.format(mark=at.mark, clock=at.clock, reset=at.reset) for at in clocks),
        *(holding(module, channel) for channel in channels),
        *answering(module, channels),
        *stars(module, manifest, channels),
        BIND.format(module=module),
    ]
    return "\n".join(parts)
