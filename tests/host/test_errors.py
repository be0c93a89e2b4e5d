# SPDX-License-Identifier: Apache-2.0
import pickle

import pytest

from host import FailureError, JoinError, Side, UsageError, errors

EXAMPLES = [
    errors.AcceleratorLimitError("The accelerator has one key field", "build another"),
    errors.CapacityError(5000, 1024, side=Side.R),
    errors.CapacityError(3000, 1024, side=Side.S, is_timed=True, ordinal=7),
    errors.CapacityError(None, 1024, side=Side.S, is_timed=True),
    errors.OrderError.disorder("time", 3, 9, 8),
    errors.OrderError.false_claim("table(9 rows)", ["t", "k"], 4, {"t": 9, "k": None}, part=2),
    errors.OrderError.false_claim("table(9 rows)", ["t"], 4, {"t": None}, {"t": 9}, part=2),
    errors.EpochError(2, "its number is not above 3", "number epochs upwards"),
    errors.EpochError(1, "it has no core", "give it cores", 40),
    errors.ManifestError("build/x", "is not there"),
    errors.DeviceError("The device is closed."),
    errors.DeviceTimeoutError("sim:x", "10 s", {"cycles": 3}),
    errors.DeviceError("The bundle of the device has two result ports."),
    errors.DeviceError("Nobody answered.", "silent"),
    errors.BuildError("the model", "the compiler was killed", log="…"),
    errors.MissingToolError("verilator", "to simulate", "run `make setup`"),
    errors.unknown_column("a", ["b", "c"], table="left.csv"),
    errors.UnsupportedTypeError("a", "struct<x: int>", "integers"),
    errors.AcceleratorLimitError.out_of_range("a", 300, -128, 127),
    errors.AcceleratorLimitError.out_of_range("a", 300, -128, 127, row=7),
    errors.OrderError.null("time", 4),
    errors.OrderError.null("left.time", row={"time": None, "text": "a\nb" * 99}),
    errors.UnsupportedTypeError("left.a", None),
    errors.ExpressionError("a / b", "division is not exact", "write // by a positive number"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_is_a_sentence_with_an_exit_code_and_survives_pickling(error):
    assert isinstance(error, UsageError) != isinstance(error, FailureError)
    assert error.exit_code == (2 if isinstance(error, UsageError) else 1)
    assert str(error).endswith(".")
    assert "\n" not in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_every_error_has_an_example():
    classes = {getattr(errors, name) for name in errors.__all__ if name.endswith("Error")}
    bases = {JoinError, UsageError, FailureError}
    assert classes - bases == {type(error) for error in EXAMPLES} - bases


def test_the_suggested_command_gives_the_capacity_needed():
    message = str(errors.CapacityError(5000, 1024, cores=3))
    assert "--cores 3 --sub-window 2048" in message
    message = str(errors.CapacityError(1025, 1024, is_timed=True, ordinal=0, cores=1))
    assert "--cores 1 --sub-window 2048" in message


@pytest.mark.parametrize(
    ("name", "columns", "words"),
    [
        ("K", ["t", "k"], "but there is 'k': upper and lower case count in names, so write 'k'"),
        ("k", ["t", " k"], "but there is ' k': spaces count in names, so write ' k'"),
        ("symbl", ["Symbol", "t"], "perhaps 'Symbol' is meant"),
        ("price", ["t", "k"], "in the table; its columns: 't', 'k'."),
    ],
)
def test_a_column_that_is_missing_names_the_one_that_is_near(name, columns, words):
    assert words in str(errors.unknown_column(name, columns))


def test_a_wide_table_is_not_listed_whole():
    message = str(errors.unknown_column("x", [f"column{n}" for n in range(500)]))
    assert "'column19' and 480 more." in message


def test_a_null_order_value_shows_its_row_cut_short():
    row = {"t": None, "k": 2, "text": "long " * 50, "d": 1.5, "e": True, "f": b"x", "g": 7}
    message = str(errors.OrderError.null("left.t", row=row))
    assert message.startswith("Order column 'left.t' is null in the row with t=null, k=2, text='lo")
    assert "g=7" not in message
    assert len(message) < 250
    assert "row 4 (the first is 0), the row with t=null" in str(errors.OrderError.null("t", 4, row))
