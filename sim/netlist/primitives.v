// SPDX-License-Identifier: Apache-2.0
//
// Models of the ECP5 primitives that Yosys' ecp5/cells_sim.v lacks, as far as a routed accelerator
// uses them. Pins and parameters are those of Yosys' ecp5/cells_bb.v.

// Block RAM that is written through port A and read through port B, with one row width for both.
//
// Rows of 36 bits use the data pins of both ports; the low half uses those of port A. The low bits of
// the write address enable the nine-bit bytes of a row. Rows of 18 bits have two such bytes. A row
// that is read in the cycle in which one of its bytes is written reads as random bits. Rows start
// with random bits. If a pin is used in any other way, all reads give random bits.
//
// Latency: 1 cycle from ADB to DOB (and DOA), 2 with REGMODE_B "OUTREG". Throughput: 1 row read and
// 1 row written per cycle.
module DP16KD (
    input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5,
      DIA4, DIA3, DIA2, DIA1, DIA0,
    input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
    input CLKA, CEA, OCEA, WEA, RSTA, CSA2, CSA1, CSA0,
    output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5,
      DOA4, DOA3, DOA2, DOA1, DOA0,
    input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5,
      DIB4, DIB3, DIB2, DIB1, DIB0,
    input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
    input CLKB, CEB, OCEB, WEB, RSTB, CSB2, CSB1, CSB0,
    output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5,
      DOB4, DOB3, DOB2, DOB1, DOB0
);
  parameter DATA_WIDTH_A = 18;
  parameter DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG";
  parameter REGMODE_B = "NOREG";
  parameter RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC";
  parameter CSDECODE_A = "0b000";
  parameter CSDECODE_B = "0b000";
  parameter WRITEMODE_A = "NORMAL";
  parameter WRITEMODE_B = "NORMAL";
  parameter CLKAMUX = "CLKA";
  parameter CLKBMUX = "CLKB";
  parameter GSR = "DISABLED";

  localparam WIDTH = DATA_WIDTH_B;
  localparam UNUSED =  // low bits of an address that do not choose a row
      WIDTH == 36 ? 5 : WIDTH == 18 ? 4 : WIDTH == 9 ? 3 : WIDTH == 4 ? 2 : WIDTH == 2 ? 1 : 0;
  localparam BYTES = WIDTH == 36 ? 4 : WIDTH == 18 ? 2 : 1;
  localparam BYTE = WIDTH / BYTES;

  generate
    if (DATA_WIDTH_A != WIDTH || CSDECODE_A != "0b000" || CSDECODE_B != "0b000"
        || CLKAMUX != "CLKA" || CLKBMUX != "CLKB")
      DP16KD_IN_A_WAY_THAT_HAS_NO_MODEL no_model ();
  endgenerate

  wire [13:0] written_address =
      {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [13:0] read_address =
      {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  wire [13-UNUSED:0] place = written_address[13:UNUSED];
  wire [13-UNUSED:0] address = read_address[13:UNUSED];
  wire [35:0] row = {
      DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9,
      DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0,
      DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9,
      DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [3:0] enables = BYTES == 1 ? 4'b1 : {ADA3, ADA2, ADA1, ADA0};
  wire [BYTES-1:0] write = {BYTES{WEA & CEA}} & enables[BYTES-1:0];
  wire unknown = CSA2 | CSA1 | CSA0 | CSB2 | CSB1 | CSB0 | RSTA | RSTB | WEB
      | !CEA | !CEB | !OCEA | !OCEB;

  reg [WIDTH-1:0] rows [0:(1 << (14 - UNUSED)) - 1];
  reg [63:0] noise;  // linear congruential generator, whose upper bits are used
  integer n;
  always @(posedge CLKA)
    for (n = 0; n < BYTES; n = n + 1)
      if (write[n]) rows[place][n*BYTE +: BYTE] <= row[n*BYTE +: BYTE];

  reg [WIDTH-1:0] data, delayed;
  always @(posedge CLKB) begin
    noise <= noise * 64'd6364136223846793005 + 64'd1442695040888963407;
    data <= unknown | (|write && place == address) ? noise[63-:WIDTH] : rows[address];
    delayed <= data;
  end
  wire [WIDTH-1:0] shown = REGMODE_B == "OUTREG" ? delayed : data;
  wire [35:0] pins = {36'bx, shown};

  assign {
      DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9,
      DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} =
      WIDTH == 36 ? pins[35:18] : pins[17:0];
  assign {
      DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9,
      DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} =
      WIDTH == 36 ? pins[17:0] : 18'bx;
endmodule

// Multiplier without registers. Operands are as wide as the pins, and signed or unsigned.
//
// Latency: 0 cycles.
module MULT18X18D (
    input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
    input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
    input C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
    output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
      P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_PIPELINE_CLK = "NONE";
  parameter REG_OUTPUT_CLK = "NONE";

  generate
    if (REG_INPUTA_CLK != "NONE" || REG_INPUTB_CLK != "NONE" || REG_PIPELINE_CLK != "NONE"
        || REG_OUTPUT_CLK != "NONE")
      MULT18X18D_IN_A_WAY_THAT_HAS_NO_MODEL no_model ();
  endgenerate

  wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  wire signed [35:0] left = {{18{SIGNEDA & a[17]}}, a};
  wire signed [35:0] right = {{18{SIGNEDB & b[17]}}, b};
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
      P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} =
      SOURCEA | SOURCEB ? 36'bx : left * right;
endmodule
