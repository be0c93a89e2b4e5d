// SPDX-License-Identifier: Apache-2.0
//
// Runs the calibration kernel: calibration.v, translated by Verilator.

#include <chrono>
#include <cstdint>
#include <ctime>

#include "Vcalibration.h"
#include "verilated.h"

namespace {

double cpu() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

}  // namespace

// Runs `cycles` cycles; `seconds` receives the CPU time of this thread and the wall-clock time.
// Returns the circuit's output, which depends only on the cycles that this thread has run.
extern "C" __attribute__((visibility("default"))) uint32_t run_kernel(
    int64_t cycles, double* seconds
) {
    thread_local VerilatedContext context;
    thread_local Vcalibration model{&context};
    const auto begun = std::chrono::steady_clock::now();
    const double before = cpu();
    for (int64_t n = 0; n < cycles; ++n) {
        model.clk = 0;
        model.eval();
        model.clk = 1;
        model.eval();
    }
    seconds[0] = cpu() - before;
    seconds[1] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return model.sum;
}
