// SPDX-License-Identifier: Apache-2.0
// Self-checking test bench of @top@, to begin a test of your own with.
// The accelerator has the hash
// @hash@.
// Generated, not to be edited in this place: copy it.
//
// It sends random tuples of both sides, counts in SystemVerilog which of them have equal keys, and
// compares the number of pairs@stars_title@ that come out. Results are taken in random cycles.
// It ends with PASS, or with an error that says what is wrong.

module @name@_tb;
  import @name@_pkg::*;

  localparam int unsigned INPUTS = @inputs@;  // streams of words
  localparam int unsigned PORTS = @ports@;  // streams of results
  localparam int unsigned TUPLES = @tuples@;  // of each side; all of them fit the window
  localparam int unsigned CYCLES = @cycles@;  // deadline of the whole test

  logic clk = 0;
  logic rst = 1;
  always #5 clk = ~clk;

  logic [8*INPUT_BYTES-1:0] in_data = '0;
  logic [INPUTS-1:0] in_valid = '0;
  wire [INPUTS-1:0] in_ready;
  wire [8*RESULT_BYTES-1:0] out_data[PORTS];
  wire [PORTS-1:0] out_valid;
  logic [PORTS-1:0] out_ready = '0;

@instance@

  // ---- results

  int unsigned pairs = 0;
  int unsigned stars = 0;
  int unsigned faults = 0;
  int unsigned marks[PORTS];

  function automatic void count(int unsigned port, logic [1:0] kind, logic fault);
    case (kind)
      RESULT_KIND_PAIR: pairs++;
      RESULT_KIND_STAR: stars++;
      RESULT_KIND_MARK: marks[port]++;
      default: ;
    endcase
    if ((kind == RESULT_KIND_STAR || kind == RESULT_KIND_MARK) && fault) faults++;
  endfunction

  always @(posedge clk) begin
    for (int unsigned port = 0; port < PORTS; port++)
      if (out_valid[port] && out_ready[port]) begin
@counts@
      end
    out_ready <= PORTS'($urandom);
  end

  task automatic await_marks(int unsigned number);
    for (int unsigned port = 0; port < PORTS; port++)
      while (marks[port] < number) @(posedge clk);
  endtask

  initial begin
    repeat (CYCLES) @(posedge clk);
    $fatal(1, "%0d pairs, %0d stars, %0d marks, and then nothing within %0d cycles",
           pairs, stars, marks[0], CYCLES);
  end

  // ---- words, which change between two edges of the clock

  // Send a word to some of the inputs, at each of them once.
  task automatic send(input_t word, logic [INPUTS-1:0] inputs);
    logic [INPUTS-1:0] taken;
    @(negedge clk);
    in_data = (8 * INPUT_BYTES)'(word);
    in_valid = inputs;
    while (in_valid != 0) begin
      @(posedge clk);
      taken = in_ready;
      @(negedge clk);
      in_valid = in_valid & ~taken;
    end
  endtask

  function automatic logic is_pair(input_t r, input_t s);
    return @is_pair@;
  endfunction

  input_t sent[2][TUPLES];
  int unsigned number[2];
  int unsigned expected = 0;

@registers@
  // ---- the test

  initial begin
    repeat (20) @(negedge clk);
    rst = 0;
    repeat (20) @(posedge clk);
@first@@bounds@
    send(make_control(OP_CLEAR, '0, '0), '1);
    await_marks(1);
    pairs = 0;
    stars = 0;
    faults = 0;
    number = '{0, 0};
    while (number[0] < TUPLES || number[1] < TUPLES) begin
      automatic int unsigned side = $urandom_range(1);
@now@      if (number[side] == TUPLES) side = 1 - side;
      sent[side][number[side]] = make_tuple(
        side == 0 ? INPUT_KIND_R : INPUT_KIND_S,
        @arguments@);
      send(sent[side][number[side]], @to@);
      number[side]++;
    end
    send(make_control(OP_FLUSH, '0, '0), '1);
    await_marks(2);

    for (int unsigned r = 0; r < TUPLES; r++)
      for (int unsigned s = 0; s < TUPLES; s++)
        if (is_pair(sent[0][r], sent[1][s])) expected++;
    if (pairs != expected) $fatal(1, "%0d pairs instead of %0d", pairs, expected);
@checks@
    if (faults != 0) $fatal(1, "%0d stars or marks tell of a fault", faults);
@last@
    $display("PASS: %0d pairs of %0d tuples", pairs, 2 * TUPLES);
    $finish;
  end
endmodule
