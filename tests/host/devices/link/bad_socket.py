# SPDX-License-Identifier: Apache-2.0
"""A UDP socket on a bad network: datagrams are lost, doubled and overtaken, both ways."""

from collections import Counter
import random

__all__ = ["BadSocket"]


class BadSocket:
    """What a transport uses as its socket.

    Parameters
    ----------
    link : socket.socket
        The socket.
    share : float
        Share of the datagrams to which something happens.

    Attributes
    ----------
    happened : dict of str to int
        Datagrams that were lost, doubled, and held back until others had passed.
    """

    def __init__(self, link, *, share, seed):
        self.link, self.share = link, share
        self.random = random.Random(seed)
        self.happened = Counter(lost=0, doubled=0, late=0)
        self.sending, self.received = [], []  # what is held back
        self.arrived = []

    def __getattr__(self, name):
        return getattr(self.link, name)

    def becomes(self, item, held):
        """Return what passes of a datagram, and of those that are held back."""
        passed = [item]
        if self.random.random() < self.share:
            what = self.random.choice(list(self.happened))
            self.happened[what] += 1
            passed = {"lost": [], "doubled": [item, item], "late": []}[what]
            if what == "late":
                held.append(item)
        if held and self.random.random() < 0.3:
            passed.append(held.pop(0))
        return passed

    def sendto(self, data, peer):
        for item in self.becomes((data, peer), self.sending):
            self.link.sendto(*item)

    def recvfrom(self, size):
        while not self.arrived:
            self.arrived = self.becomes(self.link.recvfrom(size), self.received)
        return self.arrived.pop(0)
