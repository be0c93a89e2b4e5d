# SPDX-License-Identifier: Apache-2.0
"""A board on loopback: the link's other end in Python, with the software device behind it."""

from contextlib import contextmanager
import socket
import threading
import time

import numpy as np

from host.devices.link import Greeting, Timing
from host.devices.link.transport import DatagramTransport, DescriptorTransport
from host.devices.linked import (
    ENABLE_ERROR,
    ENABLE_MARK,
    ID,
    INTERRUPT_ENABLE,
    MAGIC,
    MAJOR,
    MANIFEST_HASH,
    VERSION,
    words_of_bytes,
    words_to_bytes,
)
from host.devices.software import SoftwareDevice
from sim.link.noise import Noise
from tests.host.devices.link.board_endpoint import BoardEndpoint

__all__ = ["SoftwareBoard", "serve"]


class TcpDoor:
    """A TCP port on loopback, for one connection after the other."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(0.02)
        self.port = self.listener.getsockname()[1]

    def open(self):
        """Return the byte stream of the next connection, or None if there is none soon."""
        try:
            connected, _ = self.listener.accept()
        except TimeoutError:
            return None
        return DescriptorTransport(connected.fileno(), connected.close)

    def close(self):
        self.listener.close()


class UdpDoor:
    """A UDP port on loopback, for whoever speaks. A board that is cut off closes it for a moment.

    Parameters
    ----------
    wrap : callable
        Makes what the board uses as its socket, of the real one.
    """

    def __init__(self, wrap=lambda link: link):
        self.wrap = wrap
        self.socket = self._bound(0)
        self.port = self.socket.getsockname()[1]

    def _bound(self, port):
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind(("127.0.0.1", port))
        return bound

    def open(self):
        """Return the byte stream to the peers that speak."""
        if self.socket.fileno() < 0:
            time.sleep(0.05)
            self.socket = self._bound(self.port)
        return DatagramTransport(self.wrap(self.socket))

    def close(self):
        self.socket.close()


class SoftwareBoard:
    """Serve one connection after the other, until :meth:`stop`.

    Parameters
    ----------
    bundle : path-like
        Bundle that the board was made of.
    rate : float
        Share of bytes that are damaged, both ways.
    door : TcpDoor or UdpDoor, optional
        Where hosts come to: by default, a TCP port.
    greeting : dict
        What the board says otherwise than the bundle does.
    """

    def __init__(self, bundle, *, rate=0.0, door=None, **greeting):
        self.bundle = bundle
        self.noises = [Noise(rate, seed) for seed in range(2)]
        self.device = SoftwareDevice(bundle)
        manifest = self.manifest = self.device.manifest
        sizes = [-(-word.bits // 8) for word in (manifest.input_word, manifest.result_word)]
        told = {"input_bytes": sizes[0], "result_bytes": sizes[1], "payload_bytes": 240}
        told |= {"receive_slots": 8, "send_slots": 8, "hash": bytes.fromhex(manifest.hash)}
        self.greeting = Greeting(**told | greeting)
        self.words = np.zeros((0, manifest.input_word.columns), np.uint64)
        self.pins = {}
        self.enabled = 0
        digest = self.greeting.hash
        words = [digest[at : at + 4] for at in range(0, len(digest), 4)]
        self.constants = {ID: MAGIC, VERSION: MAJOR << 16} | {
            MANIFEST_HASH + 4 * n: int.from_bytes(word, "little") for n, word in enumerate(words)
        }
        self.reset()
        self.door = door or TcpDoor()
        self.port = self.door.port
        self.ended = self.cut = self.mute = False
        self.sessions = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def reset(self):
        """Forget the session, as a board does that is switched off and on."""
        self.end = BoardEndpoint(
            self.greeting,
            registers=self.registers,
            begun=self.begin,
            timing=Timing(timeout=0.05, heartbeat=0.025),
        )

    def begin(self):
        self.sessions += 1
        self.device = SoftwareDevice(self.bundle)
        self.words = self.words[:0]

    def registers(self, address, data, strobe):
        """Answer as the registers of a shell do: CONTROL copies the counters."""
        if data is None and address in self.constants:
            return self.constants[address]
        if address == INTERRUPT_ENABLE:
            if data is not None and strobe & 1:
                self.enabled = data & (ENABLE_MARK | ENABLE_ERROR)
            return self.enabled
        if address == 0x40 and data is not None:
            if data & 2 and strobe & 1:
                self.pins = self.device.counters()
            return 0
        for counter in self.manifest.counters:
            at = address - 0x100 - 8 * counter.address
            if at in (0, 4) and counter.name in self.pins:
                return self.pins[counter.name] >> 8 * at & 0xFFFFFFFF
        return None

    def stop(self):
        self.ended = True
        self.thread.join(10)
        assert not self.thread.is_alive()

    def run(self):
        try:
            while not self.ended:
                transport = self.door.open()
                if transport is None:
                    continue
                self.cut = False
                try:
                    self.talk(transport)
                except OSError:
                    pass
                finally:
                    transport.close()
        finally:
            self.door.close()

    def talk(self, transport):
        """Carry bytes until the connection is cut."""
        waiting = b""
        while not self.ended and not self.cut:
            now = time.monotonic()
            if len(waiting) < 2000 and not self.mute:
                waiting += self.noises[0](self.end.transmit(now, 2000))
            sent, received = transport.exchange(waiting, 0.0 if self.work() else 0.003)
            waiting = waiting[sent:]
            self.end.receive(self.noises[1](received), time.monotonic())

    def work(self):
        """Let the software device compute; return whether it did anything."""
        sender, receiver = self.end.sender, self.end.receiver
        new = words_of_bytes(receiver.take(2000), self.manifest.input_word)
        self.words = np.concatenate([self.words, new])
        room = sender.room // sender.word_bytes
        results = np.zeros((room, self.manifest.result_word.columns), np.uint64)
        done = self.device.exchange(np.ascontiguousarray(self.words), results, cycles=1)
        self.words = self.words[done.accepted :]
        sender.offer(words_to_bytes(results[: done.produced], self.manifest.result_word))
        return bool(done.accepted or done.produced)


@contextmanager
def serve(bundle, **options):
    """Serve a board for a block of code."""
    board = SoftwareBoard(bundle, **options)
    try:
        yield board
    finally:
        board.stop()
