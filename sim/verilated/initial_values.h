// SPDX-License-Identifier: Apache-2.0
//
// Verilator gives every register and every row of a memory its initial value by a call, which asks for the
// context of the thread. Where all values are zero, these calls take most of the time in which a model with
// large memories is made. Here the context of the model is asked instead, at the place of the call.

#pragma once

#include "verilated.h"

#define ALL_ZERO (vlSelf->vlSymsp->_vm_contextp__->randReset() == 0)
#define VL_SCOPED_RAND_RESET_I(bits, scope, salt) (ALL_ZERO ? 0 : VL_SCOPED_RAND_RESET_I(bits, scope, salt))
#define VL_SCOPED_RAND_RESET_Q(bits, scope, salt) (ALL_ZERO ? 0 : VL_SCOPED_RAND_RESET_Q(bits, scope, salt))
