# SPDX-License-Identifier: Apache-2.0
import pytest

from sim.netlist import Register, UnknownVerilog, flatten, parse

INNER = """\
module inner(clk, en, i, o);
  input clk;
  wire clk;
  input en;
  wire en;
  input [3:0] i;
  wire [3:0] i;
  output [3:0] o;
  reg [3:0] o = 4'h5;
  always @(posedge clk)
    if (en) o <= 4'h0;
    else o <= i;
endmodule

"""
OUTER = """\
module outer(clk, o);
  input clk;
  wire clk;
  output [7:0] o;
  wire [7:0] o;
  wire \\part[3:0] ;
  reg [2:0] rows [15:0];
  reg [2:0] _1_;
  always @(posedge clk) begin
    if (o[0])
      rows[o[7:4]] <= o[2:0];
  end
  always @(posedge clk) begin
    _1_ <= rows[o[7:4]];
  end
  inner one (
    .clk(clk),
    .en(\\part[3:0] ),
    .i({ 1'h0, _1_ }),
    .o(o[3:0])
  );
endmodule

"""


def test_modules_are_read_as_assignments_and_registers():
    inner = parse(INNER)["inner"]
    assert inner.ports == ["clk", "en", "i", "o"]
    assert inner.signals["o"].direction == "output"
    assert inner.signals["o"].initial == "4'h5"
    assert inner.registers == [Register("clk", [("en", "o", "4'h0"), (None, "o", "i")])]


def test_ports_of_memories_are_registers():
    outer = parse(INNER + OUTER)["outer"]
    assert outer.signals["rows"].rows == 16
    assert outer.registers == [
        Register("clk", [("o[0]", "rows[o[7:4]]", "o[2:0]")]),
        Register("clk", [(None, "_1_", "rows[o[7:4]]")]),
    ]


def test_what_is_inside_of_an_instance_becomes_part_of_the_module():
    flat = flatten(parse(INNER + OUTER), "outer", stay=())
    assert not flat.instances
    assert flat.assignments == [("one_i", "{ 1'h0, _1_ }"), ("o[3:0]", "one_o")]
    assert Register("clk", [("part_3_0_", "one_o", "4'h0"), (None, "one_o", "one_i")]) in (
        flat.registers
    )


def test_an_instance_may_stay():
    flat = flatten(parse(INNER + OUTER), "outer", stay={"inner"})
    assert [kind for kind, _, _ in flat.instances] == ["inner"]


def test_a_choice_by_a_hot_bit_becomes_conditions():
    text = """\
module choose(i, s, o);
  input [3:0] i;
  wire [3:0] i;
  input [1:0] s;
  wire [1:0] s;
  output [1:0] o;
  wire [1:0] o;
  function [1:0] _0_;
    input [1:0] a;
    input [3:0] b;
    input [1:0] s;
    casez (s) // synopsys parallel_case
      2'b?1:
        _0_ = b[1:0];
      2'b1?:
        _0_ = b[3:2];
      default:
        _0_ = a;
    endcase
  endfunction
  assign o = _0_(2'h3, { i[3:2], i[1:0] }, { s[1], s[0] });
endmodule

"""
    (assignment,) = parse(text)["choose"].assignments
    assert assignment == ("o", "(s[0] ? i[1:0] : (s[1] ? i[3:2] : 2'h3))")


def test_other_verilog_is_refused():
    with pytest.raises(UnknownVerilog):
        parse("module m(a);\n  input a;\n  initial $display(a);\nendmodule\n")


def test_an_enable_around_a_reset_is_a_condition_of_both():
    text = INNER.replace(
        "    if (en) o <= 4'h0;\n    else o <= i;\n",
        "    if (en)\n      if (!i[0]) o <= 4'h0;\n      else o <= i;\n",
    )
    clauses = [("en&&!i[0]", "o", "4'h0"), ("en", "o", "i")]
    assert parse(text)["inner"].registers == [Register("clk", clauses)]
