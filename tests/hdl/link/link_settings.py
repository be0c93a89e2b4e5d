# SPDX-License-Identifier: Apache-2.0
"""Settings of a link for tests."""

from hdl.link.settings import LinkSettings

__all__ = ["settings"]


def settings(**changes):
    """Return settings for words of 37 and 21 bits, and times for a line of a byte in 2 cycles."""
    words = {"input_bits": 37, "result_bits": 21, "hash": bytes(range(32))}
    times = {"timeout_cycles": 1500, "heartbeat_cycles": 700}
    sizes = {"payload_bytes": 60, "send_slots": 4, "receive_slots": 4}
    return LinkSettings(**{**words, **times, **sizes, **changes})
