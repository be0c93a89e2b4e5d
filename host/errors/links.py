# SPDX-License-Identifier: Apache-2.0
"""Errors of links to boards."""

from host.errors.devices import DeviceError

__all__ = ["LinkError", "LinkLostError", "LinkMismatchError", "LinkSilentError"]


#: What to look at when nobody answers, by the scheme of the URI.
_CHECKS = {
    "serial": "that it is connected, that the bitstream is loaded, that the baud rate is the "
    "bitstream's, and that no other program uses it",
    "tcp": "that the server of the board runs there, that the bitstream is loaded, that the URI "
    "has the baud rate of the line behind the server (baud=N), and that no other program uses it",
    "udp": "that the board has this address, that a network card of this machine is in the same "
    "network and no firewall between them, and that the bitstream is loaded",
}


class LinkError(DeviceError):
    """The link to a board cannot be used."""


class LinkSilentError(LinkError):
    """Nobody answered the greeting.

    Parameters
    ----------
    uri : str
        URI of the device.
    seconds : float
        How long the greeting was repeated.
    garbled : int
        Pieces of the byte stream that came and were no frame.
    reason : str
        Why there is no byte stream; empty if there is one.
    """

    def __init__(self, uri: str, seconds: float, garbled: int, reason: str = "") -> None:
        self.uri = uri
        self.seconds = seconds
        self.garbled = garbled
        self.reason = reason
        if reason:
            told = f"could not be opened within {seconds:g} s: {reason}"
        else:
            heard = f"{garbled} pieces came that were no frame" if garbled else "no byte came"
            told = f"did not answer the greeting within {seconds:g} s ({heard})"
        scheme = uri.partition(":")[0]
        super().__init__(f"Device {uri!r} {told}; check {_CHECKS.get(scheme, _CHECKS['serial'])}.")


class LinkMismatchError(LinkError):
    """The board is not the one that the bundle describes.

    Parameters
    ----------
    uri : str
        URI of the device.
    what : str
        What differs.
    board, bundle : str
        What the board has, and what the bundle or this kit has.
    older : bool
        Whether that is a matter of the kit which made the bitstream, so that no bundle helps.
    """

    def __init__(
        self, uri: str, what: str, board: str, bundle: str, *, older: bool = False
    ) -> None:
        self.uri = uri
        self.what = what
        self.board = board
        self.bundle = bundle
        self.older = older
        if older:
            told = (
                f"but this kit has {bundle}: another version of the kit made the bitstream; make "
                f"it again (`make bitstream BOARD=...`) and load it, or use that version."
            )
        else:
            told = (
                f"but the bundle has {bundle}; load the bundle's bitstream into the board, or name "
                f"the bundle of the bitstream that is there."
            )
        super().__init__(f"Device {uri!r} has the {what} {board}, {told}")


class LinkLostError(LinkError):
    """The link to a board was lost while the board was in use.

    Parameters
    ----------
    uri : str
        URI of the device.
    reason : str
        How it was lost.
    accepted, delivered : int
        Input words that the device accepted, and those that the board acknowledged.
    results : int
        Result words that have come.
    can_resume : bool
        Whether the board may still know the session.
    """

    def __init__(
        self,
        uri: str,
        reason: str,
        *,
        accepted: int,
        delivered: int,
        results: int,
        can_resume: bool,
    ) -> None:
        self.uri = uri
        self.reason = reason
        self.accepted = accepted
        self.delivered = delivered
        self.results = results
        self.can_resume = can_resume
        remedy = (
            "add reconnect=SECONDS to the URI, and a run continues where it stood"
            if can_resume
            else "nothing can be continued; open the device again and run the join again"
        )
        super().__init__(
            f"Link to device {uri!r} was lost: {reason}. Of {accepted} input words, the board has "
            f"acknowledged {delivered}; {results} result words have come; {remedy}."
        )
