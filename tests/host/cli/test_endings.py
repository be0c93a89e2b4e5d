# SPDX-License-Identifier: Apache-2.0
import argparse

from host.cli.command import OutputFile, ending
from host.errors import UsageError


def interrupted_while_closing():
    """What a library raises whose clean-up fails because of an interrupt."""
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionError("the other side is gone")
    except ConnectionError as error:
        return error


def test_an_interrupt_says_whether_the_output_was_written(tmp_path):
    options = argparse.Namespace(output=tmp_path / "out.csv")
    output = OutputFile(options)
    assert ending(KeyboardInterrupt(), output) == ("interrupted; nothing was written.", 130)
    options.output.write_text("t")
    assert ending(KeyboardInterrupt(), output) == ("interrupted.", 130)
    assert ending(KeyboardInterrupt(), OutputFile(options))[0].endswith("nothing was written.")
    assert ending(KeyboardInterrupt(), OutputFile(argparse.Namespace())) == ("interrupted.", 130)


def test_an_error_that_an_interrupt_brought_about_is_an_interrupt():
    output = OutputFile(argparse.Namespace())
    assert ending(interrupted_while_closing(), output) == ("interrupted.", 130)


def test_errors_have_their_sentence_and_code_and_defects_have_none():
    output = OutputFile(argparse.Namespace())
    assert ending(UsageError("Give a window."), output) == ("Give a window.", 2)
    assert ending(OSError("no space\nat all"), output) == ("no space", 1)
    assert ending(MemoryError(), output) == ("MemoryError", 1)
    assert ending(ZeroDivisionError(), output) is None
