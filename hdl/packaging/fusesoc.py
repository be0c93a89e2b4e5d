# SPDX-License-Identifier: Apache-2.0
"""The FuseSoC core file of a package (CAPI2)."""

from .word_fields import what_it_is

__all__ = ["core_file"]

CORE = """\
CAPI=2:
# SPDX-License-Identifier: Apache-2.0
name: splitjoin-kit:accelerator:{name}:{version}
description: {what}, hash {digest}

filesets:
  rtl:
    files:
      - {name}.v
    file_type: verilogSource
  words:
    files:
      - {name}_pkg.sv
    file_type: systemVerilogSource
{bench_files}  waivers:
    files:
      - {name}.vlt
    file_type: vlt

targets:
  default: &default
    filesets: [rtl, words]
    toplevel: {top}

  lint:
    <<: *default
    description: Check the Verilog with Verilator
    filesets: [waivers, rtl]
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
{bench_target}"""

#: The files of the bench, and the target that runs it.
BENCH_FILES = """\
  bench:
    files:
      - {name}_tb.sv
    file_type: systemVerilogSource
"""
BENCH_TARGET = """
  sim:
    description: Run the test bench with Verilator
    filesets: [waivers, rtl, words, bench]
    toplevel: {name}_tb
    flow: sim
    flow_options:
      tool: verilator
      mode: binary
      verilator_options: [--timing, --output-split, "0", -Wno-fatal, -CFLAGS, -std=c++20]
"""


def core_file(manifest, names, shell, *, bench=True):
    """Return the core file, with the targets ``default``, ``lint`` and, with a bench, ``sim``.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    shell : str or None
    bench : bool
        Whether the package has a test bench.
    """
    return CORE.format(
        name=names.name, top=names.top(shell), version=manifest["kit"], digest=manifest["hash"],
        what=what_it_is(manifest),
        bench_files=BENCH_FILES.format(name=names.name) if bench else "",
        bench_target=BENCH_TARGET.format(name=names.name) if bench else "",
    )  # fmt: skip
