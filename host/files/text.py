# SPDX-License-Identifier: Apache-2.0
"""Describe what is wrong with text files that are not UTF-8, and how to convert them."""

import codecs
from pathlib import Path
import shlex

from host.errors import UsageError

__all__ = ["encoding_error"]

_CHUNK = 1 << 20
_SHOWN = 40
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def encoding_error(path: Path) -> UsageError | None:
    """Return the error for a text file that is not UTF-8, with its first such line; else None."""
    with path.open("rb") as stream:
        is_utf16 = stream.read(2) in _UTF16
        stream.seek(0)
        for number, line in enumerate(iter(lambda: stream.readline(_CHUNK), b""), 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                if error.end == len(line) == _CHUNK:
                    continue  # a line longer than a chunk, cut within a character
                begin = max(0, error.start - _SHOWN // 2)
                return _not_utf8(path, number, line[begin : begin + _SHOWN].rstrip(), is_utf16)
    return None


def _not_utf8(path: Path, line: int, text: bytes, is_utf16: bool) -> UsageError:
    charset = "UTF-16" if is_utf16 else "LATIN1"
    guess = "as it begins like UTF-16" if is_utf16 else "for example from Latin-1"
    copy = path.with_name(f"{path.stem}-utf8{path.suffix}")
    command = f"iconv -f {charset} -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(str(copy))}"
    return UsageError(
        f"File {str(path)!r} is not UTF-8: line {line} has {text!r}; convert it to UTF-8, {guess}: "
        f"`{command}`."
    )
