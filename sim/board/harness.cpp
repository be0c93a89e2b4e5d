// SPDX-License-Identifier: Apache-2.0
//
// The C interface of a simulated board: bytes go to its receiving pin and come from its sending pin, as a UART
// at the other end of the line sends and hears them. sim/board/library.py compiles it with the board's circuit.
//
// DIVISOR is the number of clock cycles per bit: eight data bits, no parity, one stop bit, the lowest bit first.

#include <cstdint>
#include <memory>

#include "../verilated/clock_cycle.h"

namespace {

constexpr unsigned frame_bits = 10;  // with start bit and stop bit

// The sending half of the other end: puts bytes on the board's receiving pin, without gaps.
class Talker {
    unsigned bits = 0;  // to come, the lowest one first
    unsigned left = 0;  // bits of the byte that are not over
    unsigned time = 0;  // cycles until the bit at the pin is over

  public:
    bool level = true;  // of the pin
    bool idle() const { return left == 0; }
    void begin(uint8_t byte) {
        bits = 1u << 9 | unsigned{byte} << 1;
        left = frame_bits;
        next();
    }
    void cycle() {
        if (left == 0 || --time != 0) return;
        if (--left != 0) next();
    }

  private:
    void next() {
        level = bits & 1;
        bits >>= 1;
        time = DIVISOR;
    }
};

// The hearing half: samples the board's sending pin in the middle of each bit.
class Listener {
    unsigned bits = 0;
    unsigned left = 0;
    unsigned time = 0;
    bool before = true;

  public:
    // Take the level of the pin in a cycle; return whether a byte has ended.
    bool cycle(bool level) {
        bool ended = false;
        if (left == 0) {
            if (before && !level) {
                left = frame_bits;
                time = DIVISOR / 2;
                bits = 0;
            }
        } else if (--time == 0) {
            bits |= unsigned{level} << (frame_bits - left);
            time = DIVISOR;
            ended = --left == 0 && level;  // a byte without its stop bit is none
        }
        before = level;
        return ended;
    }
    uint8_t byte() const { return static_cast<uint8_t>(bits >> 1); }
    bool idle() const { return left == 0; }
};

struct Board {
    VerilatedContext context;
    std::unique_ptr<Vsplitjoin> model;
    Vsplitjoin___024root* root;
    Talker talker;
    Listener listener;
    uint64_t cycle = 0;

    explicit Board(uint64_t seed) {
        context.randReset(seed ? 2 : 0);  // with a seed, state that a reset does not set starts random
        context.randSeed(static_cast<int>(seed & 0x7fffffff) + 1);
        model = std::make_unique<Vsplitjoin>(&context, "");
        root = model->rootp;
        root->clk = 0;
        root->rx = 1;
        model->eval();
        root->rst = 1;  // as the device does when it has been configured
        for (int n = 0; n < 16; ++n) clock_cycle(root);
        root->rst = 0;
    }
    ~Board() {
        // The model takes its scopes from the thread's context, which may be that of another board.
        Verilated::threadContextp(&context);
        model->final();
    }
};

}  // namespace

// What an exchange has done: bytes taken from the other end, bytes that came, whether the LED is on, and
// whether a byte is on either line.
struct Exchange {
    uint64_t taken, made, led, busy;
};

#pragma GCC visibility push(default)
extern "C" {

Board* board_create(uint64_t seed) { return new Board(seed); }
void board_destroy(Board* board) { delete board; }
uint64_t board_cycle(const Board* board) { return board->cycle; }

// Run at most `cycles` cycles: send `bytes` and collect up to `room` bytes. Returns early when `heard` is full.
void board_exchange(Board* board, const uint8_t* bytes, uint64_t count, uint8_t* heard, uint64_t room,
                    uint64_t cycles, Exchange* done) {
    Vsplitjoin___024root* const root = board->root;
    Talker& talker = board->talker;
    Listener& listener = board->listener;
    uint64_t taken = 0, made = 0;
    for (const uint64_t last = board->cycle + cycles; board->cycle != last && made != room; ++board->cycle) {
        if (talker.idle() && taken != count) talker.begin(bytes[taken++]);
        root->rx = talker.level;
        talker.cycle();
        if (listener.cycle(root->tx)) heard[made++] = listener.byte();
        clock_cycle(root);
    }
    *done = {taken, made, root->led, !talker.idle() || !listener.idle()};
}

}  // extern "C"
#pragma GCC visibility pop
