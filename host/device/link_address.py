# SPDX-License-Identifier: Apache-2.0
"""URIs of devices behind a link.

They are ``tcp:HOST:PORT?bundle=DIR``, ``udp:HOST:PORT?bundle=DIR`` and
``serial:PATH?baud=N&bundle=DIR``. A server in front of a UART is as slow as that: its URI should
say ``baud=N`` as well.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from host.errors import DeviceUriError
from host.link.datagrams import open_udp
from host.link.transport import Transport, open_serial, open_tcp

__all__ = ["LinkAddress"]

#: Longest time for a connection and for a greeting to be answered, in seconds.
SECONDS = 10.0
#: Bytes per second of a network, at the least. Only the times of the link depend on it.
NETWORK_RATE = 1_000_000.0
#: Kinds whose place is a host and a port.
NETWORK_KINDS = ("tcp", "udp")
#: Bits that a UART sends for a byte.
UART_BITS = 10


@dataclass(frozen=True)
class LinkAddress:
    """What a URI says about a device behind a link.

    Attributes
    ----------
    uri : str
        The whole URI.
    kind : str
        ``tcp``, ``udp`` or ``serial``.
    place : str
        Host and port, or path of the serial port.
    bundle : Path
        Folder of the bundle.
    baud : int
        Baud rate, of a server that of the line behind it; zero if there is no such line.
    reconnect : float
        Seconds for which a lost link is opened again; zero for never.
    """

    uri: str
    kind: str
    place: str
    bundle: Path
    baud: int = 0
    reconnect: float = 0.0

    @classmethod
    def parse(cls, uri: str) -> "LinkAddress":
        """Read a URI.

        Raises
        ------
        DeviceUriError
            If it lacks something, or has an option that is unknown or no number.
        """
        kind, _, rest = uri.partition(":")
        place, _, query = rest.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        known = {"bundle", "reconnect", "baud"}
        for name in options:
            if name not in known:
                listing = ", ".join(sorted(known))
                raise DeviceUriError(uri, f"has the unknown option {name!r} (known: {listing})")
        if not options.get("bundle"):
            raise DeviceUriError(uri, "lacks its bundle, '?bundle=DIR'")
        if kind in NETWORK_KINDS:
            host, _, port = place.rpartition(":")
            if not host or not port.isdecimal() or int(port) > 0xFFFF:
                raise DeviceUriError(uri, f"lacks its host and port, '{kind}:HOST:PORT'")
        elif not place:
            raise DeviceUriError(uri, "lacks the path of its serial port")
        baud = _number(uri, options, "baud", "115200" if kind == "serial" else "0")
        if baud != int(baud) or ("baud" in options and baud < 1):
            raise DeviceUriError(uri, f"has the baud rate {options['baud']!r}, which is none")
        reconnect = _number(uri, options, "reconnect", "0")
        bundle = Path(options["bundle"])
        return cls(uri, kind, place, bundle, int(baud), reconnect)

    @property
    def bytes_per_second(self) -> float:
        """Bytes that the line carries each way."""
        return self.baud / UART_BITS if self.baud else NETWORK_RATE

    def connect(self, seconds: float) -> Transport:
        """Open the byte stream.

        Raises
        ------
        OSError
            If it cannot be opened.
        DeviceUriError
            If the system has no such baud rate.
        """
        if self.kind in NETWORK_KINDS:
            host, _, port = self.place.rpartition(":")
            if self.kind == "udp":
                return open_udp(host, int(port))
            return open_tcp(host, int(port), seconds)
        try:
            return open_serial(self.place, self.baud)
        except ValueError as error:
            raise DeviceUriError(self.uri, f"has a baud rate that {error}") from error


def _number(uri: str, options: dict[str, str], name: str, default: str) -> float:
    text = options.get(name, default)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise DeviceUriError(uri, f"has the option {name}={text!r}, which is no number from 0 on")
    return number
