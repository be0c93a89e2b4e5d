# SPDX-License-Identifier: Apache-2.0
"""The C header and the SystemVerilog package say the same as the manifest."""

import random
import re
import shutil
import subprocess

import pytest

from hdl.aggregate.accelerator import describe_aggregate
from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.families.choice import family_of
from hdl.manifest import describe, fingerprint
from hdl.packaging.headers import PackageNames, sv_package, with_orders, word_fields, words_header
from hdl.parameters import KeyField
from hdl.presets import PRESETS
from tests.hdl.packaging.packaged import TINY

NAMES = PackageNames("kit_")
WIDE = TINY.with_(
    keys=(KeyField(name="x", bits=64), KeyField(name="y_2", bits=3, signed=False)),
    timestamp_bits=0, engine="index", tuples_per_word=2,
)  # fmt: skip
WORDS = (("INPUT", "input_word"), ("RESULT", "result_word"))


ACCELERATORS = {
    "tiny": TINY,
    "wide": WIDE,
    "values": PRESETS["tiny-join-aggregate"],
    "aggregate": AGGREGATE_PRESETS["tiny-aggregate"],
}


def described(name):
    # No header has anything of the Verilog.
    describes = describe_aggregate if name == "aggregate" else describe
    values = describes(ACCELERATORS[name], "", verilog_file="")
    return values | {"hash": fingerprint(values, "")}


@pytest.fixture(scope="module", params=ACCELERATORS)
def manifest(request):
    return described(request.param)


def constants(text, pattern):
    return {name: int(value, 0) for name, value in re.findall(pattern, text, re.MULTILINE)}


def test_both_headers_have_all_places_and_all_values(manifest):
    expected = {}
    for prefix, part in WORDS:
        word = manifest[part]
        expected |= {f"{prefix}_BITS": word["bits"], f"{prefix}_BYTES": -(-word["bits"] // 8)}
        for field in word_fields(word):
            expected[f"{prefix}_{field.constant}_OFFSET"] = field.offset
            expected[f"{prefix}_{field.constant}_BITS"] = field.bits
    values = {f"OP_{name}": value for name, value in manifest["operations"].items()}
    values |= {f"INPUT_KIND_{name}": value for name, value in manifest["input_kinds"].items()}
    values |= {f"RESULT_KIND_{name}": value for name, value in manifest["result_kinds"].items()}
    header = words_header(manifest, NAMES)
    assert constants(header, r"^#define KIT_(\w+) (\d+)u$") == expected | values
    package = sv_package(manifest, NAMES)
    assert constants(package, r"int unsigned (\w+) = (\d+);$") == expected
    assert constants(package, r"^    (\w+) = \d+'d(\d+),?$") == values


@pytest.mark.parametrize(
    ("name", "orders"),
    [
        (
            "tiny",
            {"OP_SOURCE": 15, "SOURCE_WATERMARK": 0, "SOURCE_LEAVE": 1, "SOURCE_EXCLUDE": 2},
        ),
        ("aggregate", {"OP_LEAVE": 6, "OP_EXCLUDE": 7}),
    ],
)
def test_the_headers_of_a_shell_with_several_inputs_have_its_orders_too(name, orders):
    """The numbers stand here once more: they are those of docs/axi.md and of its users."""
    plain = described(name)
    told = with_orders(plain, family_of(ACCELERATORS[name]).orders)
    for text, pattern in (
        (words_header, r"^#define KIT_((?:OP|SOURCE)_\w+) (\d+)u$"),
        (sv_package, r"^    ((?:OP|SOURCE)_\w+) = \d+'d(\d+),?$"),
    ):
        without = constants(text(plain, NAMES), pattern)
        assert constants(text(told, NAMES), pattern) == without | orders
        assert not without.keys() & orders.keys()


PROGRAM = """\
#include <inttypes.h>
#include <stdio.h>
#include "words.h"

int main(void)
{{
    uint8_t word[] = {{{octets}}};
{lines}
    for (unsigned n = 0; n < sizeof word; n++)
        printf("%u ", word[n]);
    return 0;
}}
"""


def test_the_c_header_reads_and_writes_fields_of_words_in_memory(manifest, tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    generator = random.Random(5)
    word = manifest["input_word"]
    size = -(-word["bits"] // 8)
    number = generator.getrandbits(8 * size)
    octets, lines, expected = number.to_bytes(size, "little"), [], []
    for field in word_fields(word):
        place = f"KIT_INPUT_{field.constant}_OFFSET, KIT_INPUT_{field.constant}_BITS"
        mask = (1 << field.bits) - 1
        if field.bits <= 64:
            value = number >> field.offset & mask
            if field.signed:
                value -= value >> (field.bits - 1) << field.bits
            read = "kit_get_signed" if field.signed else "kit_get"
            kind = "PRId64" if field.signed else "PRIu64"
            lines.append(f'    printf("%" {kind} "\\n", {read}(word, {place}));')
            expected.append(str(value))
        # The field now holds a number of its own, and no other bit has changed.
        value = -3 if field.signed else 1
        lines.append(f"    kit_put(word, {place}, {value});")
        number = number & ~(mask << field.offset) | (value & mask) << field.offset
    expected.append(" ".join(map(str, number.to_bytes(size, "little"))))
    (tmp_path / "words.h").write_text(words_header(manifest, NAMES))
    text = PROGRAM.format(octets=", ".join(map(str, octets)), lines="\n".join(lines))
    (tmp_path / "main.c").write_text(text)
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == [*expected[:-1], expected[-1] + " "]
