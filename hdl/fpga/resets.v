// SPDX-License-Identifier: Apache-2.0
//
// For Yosys' techmap: a reset becomes logic in front of a register without one.
//
// All registers of a tile of the ECP5 share one reset, and those with and those without a reset
// cannot share a tile. Synthesis finds many small resets, so nextpnr would scatter registers.

(* techmap_celltype = "$_SDFF_PP0_ $_SDFF_PP1_" *)
module register (input D, C, R, output Q);
  parameter _TECHMAP_CELLTYPE_ = "";
  localparam [0:0] INITIAL = _TECHMAP_CELLTYPE_[15:8] == "1";
  $_DFF_P_ q (.D(INITIAL ? D | R : D & ~R), .C(C), .Q(Q));
endmodule

(* techmap_celltype = "$_SDFFE_PP0P_ $_SDFFE_PP1P_" *)
module enabled_register (input D, C, R, E, output Q);
  parameter _TECHMAP_CELLTYPE_ = "";
  localparam [0:0] INITIAL = _TECHMAP_CELLTYPE_[23:16] == "1";
  $_DFFE_PP_ q (.D(INITIAL ? D | R : D & ~R), .E(E | R), .C(C), .Q(Q));
endmodule
