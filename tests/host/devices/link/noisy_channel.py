# SPDX-License-Identifier: Apache-2.0
"""Two endpoints and a byte stream between them that damages what it carries."""

import random

from sim.link.noise import Noise

__all__ = ["converse"]


def converse(host, board, inputs, outputs, *, rate=0.0, seed=0, cuts=(), step=64, limit=20_000):
    """Send ``inputs`` to the board and ``outputs`` to the host; return what arrived, and the time.

    Parameters
    ----------
    rate : float
        Share of bytes that are damaged.
    cuts : collection of int
        Rounds after which the connection is cut: bytes on their way are lost, and the host
        connects again.
    step : int
        Bytes that the line carries in a round of one millisecond. They arrive a round later.
    limit : int
        Rounds after which the conversation fails.
    """
    noise, pick = Noise(rate, seed), random.Random(seed + 1)
    lines = {host: b"", board: b""}  # what is on its way to each
    queued = {host: b"", board: b""}
    arrived = {host: bytearray(), board: bytearray()}
    wanted = {host: outputs, board: inputs}
    left = {host: inputs, board: outputs}
    for at in range(limit):
        now = at / 1000
        if all(arrived[end] == wanted[end] for end in arrived) and not any(left.values()):
            return arrived[board], arrived[host], now
        for end, other in ((host, board), (board, host)):
            end.receive(noise(lines[end]), now)
            if end.is_open:
                left[end] = left[end][end.sender.offer(left[end][: pick.randrange(1, 400)]) :]
            if pick.random() < 0.7:
                arrived[end] += end.receiver.take(pick.randrange(600))
            if len(queued[other]) < step:
                queued[other] += end.transmit(now, step - len(queued[other]))
        for end in lines:
            lines[end], queued[end] = queued[end][:step], queued[end][step:]
        if at in cuts:
            lines, queued = dict.fromkeys(lines, b""), dict.fromkeys(queued, b"")
            host.reconnect(now)
    raise AssertionError(
        f"after {limit} rounds, {[len(a) for a in arrived.values()]} of "
        f"{[len(w) for w in wanted.values()]} bytes had arrived (seed {seed}): "
        f"{host.counters()}, {board.counters()}"
    )
