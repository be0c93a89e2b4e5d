// SPDX-License-Identifier: Apache-2.0
//
// A clock cycle of a Verilated model, whatever its top module is. Every library has one model, whose class is
// always Vsplitjoin (sim/verilated/model.py).

#pragma once

#include "Vsplitjoin.h"
#include "Vsplitjoin___024root.h"

void Vsplitjoin___024root___eval(Vsplitjoin___024root*);
void Vsplitjoin___024root___eval_nba(Vsplitjoin___024root*);

inline void clock_cycle(Vsplitjoin___024root* root) {
#ifdef ONE_EDGE
    root->__VnbaTriggered[0] = 1;  // trigger the rising edge directly: the model has no other trigger
    Vsplitjoin___024root___eval_nba(root);
#else
    root->clk = 1;
    Vsplitjoin___024root___eval(root);
    root->clk = 0;
    Vsplitjoin___024root___eval(root);
#endif
}
