// SPDX-License-Identifier: Apache-2.0
//
// The C interface of a simulated board with Ethernet: frames go to its receiving pins and come from its sending
// pins, a byte in each cycle of the clock of the PHY (GMII). sim/board/library.py compiles it with the board's
// circuit. Cycles are those of the PHY.
//
// ETHERNET_PS and LINK_PS are the periods of the two clocks in picoseconds.

#include <cstdint>
#include <memory>
#include <vector>

#include "../verilated/clock_cycle.h"

namespace {

constexpr unsigned gap_cycles = 12;       // between two frames
constexpr uint64_t longest_record = 1600;  // a frame with its preamble, and two bytes for its length

// The sending half of the other end: puts whole frames on the line, with the shortest gaps between them.
class Talker {
    std::vector<uint8_t> frame;
    size_t place = 0;
    unsigned gap = 0;

  public:
    bool idle() const { return place == frame.size() && gap == 0; }
    void begin(const uint8_t* bytes, size_t count) {
        frame.assign(bytes, bytes + count);
        place = 0;
        gap = gap_cycles;
    }
    // The byte of this cycle; -1 for none.
    int cycle() {
        if (place != frame.size()) return frame[place++];
        if (gap != 0) --gap;
        return -1;
    }
};

struct Board {
    VerilatedContext context;
    std::unique_ptr<Vsplitjoin> model;
    Vsplitjoin___024root* root;
    Talker talker;
    std::vector<uint8_t> heard;  // what has come of a frame
    uint64_t cycle = 0;
    uint64_t late = 0;  // picoseconds since the last edge of the clock of the link

    explicit Board(uint64_t seed) {
        context.randReset(seed ? 2 : 0);  // with a seed, state that a reset does not set starts random
        context.randSeed(static_cast<int>(seed & 0x7fffffff) + 1);
        model = std::make_unique<Vsplitjoin>(&context, "");
        root = model->rootp;
        root->clk = root->ethernet_clk = 0;
        root->gmii_rx_valid = root->gmii_rx_error = 0;
        model->eval();
        root->rst = root->ethernet_rst = 1;  // as the device does when it has been configured
        for (int n = 0; n < 64; ++n) clocks();
        root->rst = root->ethernet_rst = 0;
    }
    ~Board() {
        // The model takes its scopes from the thread's context, which may be that of another board.
        Verilated::threadContextp(&context);
        model->final();
    }

    // Let a cycle of the PHY pass, with the edges of the clock of the link that fall into it.
    void clocks() {
        for (late += ETHERNET_PS; late >= LINK_PS; late -= LINK_PS) clock_cycle(root);
        root->ethernet_clk = 1;
        Vsplitjoin___024root___eval(root);
        root->ethernet_clk = 0;
        Vsplitjoin___024root___eval(root);
    }
};

size_t length_of(const uint8_t* record) { return record[0] | size_t{record[1]} << 8; }

}  // namespace

// What an exchange has done: bytes of records taken from the other end, bytes of records that came, whether the
// LED is on, and whether a frame is on either line.
struct Exchange {
    uint64_t taken, made, led, busy;
};

#pragma GCC visibility push(default)
extern "C" {

Board* board_create(uint64_t seed) { return new Board(seed); }
void board_destroy(Board* board) { delete board; }
uint64_t board_cycle(const Board* board) { return board->cycle; }

// Run at most `cycles` cycles: send frames and collect up to `room` bytes. A frame is a record: two bytes say how
// many follow, the lowest first. Returns early when another frame might not fit.
void board_exchange(Board* board, const uint8_t* bytes, uint64_t count, uint8_t* heard, uint64_t room,
                    uint64_t cycles, Exchange* done) {
    Vsplitjoin___024root* const root = board->root;
    Talker& talker = board->talker;
    uint64_t taken = 0, made = 0;
    for (const uint64_t last = board->cycle + cycles; board->cycle != last && room - made >= longest_record;
         ++board->cycle) {
        if (talker.idle() && taken != count) {
            const size_t length = length_of(bytes + taken);
            talker.begin(bytes + taken + 2, length);
            taken += 2 + length;
        }
        const int byte = talker.cycle();
        root->gmii_rx_valid = byte >= 0;
        root->gmii_rx_data = byte >= 0 ? byte : 0;
        if (root->gmii_tx_enable) {
            if (board->heard.size() < longest_record - 2) board->heard.push_back(root->gmii_tx_data);
        } else if (!board->heard.empty()) {
            const size_t length = board->heard.size();
            heard[made++] = length & 0xff;
            heard[made++] = length >> 8;
            for (const uint8_t one : board->heard) heard[made++] = one;
            board->heard.clear();
        }
        board->clocks();
    }
    *done = {taken, made, root->open, !talker.idle() || !board->heard.empty()};
}

}  // extern "C"
#pragma GCC visibility pop
