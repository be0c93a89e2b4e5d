# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

from hdl.verilog.conversion import share_modules

#: Two pairs of signals of one plain name each, as views and flattened interfaces leave them.
DESIGN = r"""module \leaf
  wire width 1 input 0 \head.lane
  wire width 1 output 1 \tail
  wire width 1 \a__b
  wire width 1 \a.b
  wire width 1 \a_b
  wire width 1 \c.d
  wire width 1 \c_d
  connect \a__b \head.lane
  connect \a.b \a__b
  connect \a_b \a.b
  connect \c.d \a_b
  connect \c_d \c.d
  connect \tail \c_d
end
"""


def shared():
    return share_modules(DESIGN, top="leaf", stems={})


def test_names_that_become_alike_are_numbered_in_the_order_of_the_text():
    """However a process hashes: one design is one text."""
    text = shared()
    assert r"connect \a_b_2 \a_b" in text
    assert r"connect \a_b_3 \a_b_2" in text
    assert r"connect \c_d_2 \c_d" in text
    script = (
        "from tests.hdl.verilog.test_sharing import shared; import sys; sys.stdout.write(shared())"
    )
    for seed in range(6):
        output = subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": str(seed), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert output == text
