// SPDX-License-Identifier: Apache-2.0
//
// The C interface of a simulated card: an AXI shell with a DMA at its AXI4-Stream pins and a processor at its
// AXI4-Lite pins. sim/board/card.py compiles it with the Verilog of a bundle and of its shell.
//
// INPUT_WORDS and RESULT_WORDS are the 64-bit numbers of tdata. No output of a shell depends on an input in the
// same cycle, so the transfers at a clock edge are known before the edge.

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "Vsplitjoin.h"
#include "Vsplitjoin___024root.h"

namespace {

constexpr unsigned patience = 100'000;  // cycles that an access to a register may take

// Decides with a probability of rate / 256 to pause in a cycle (xorshift64).
struct Pauses {
    uint64_t state;
    uint32_t rate;
    bool now() {
        if (!rate) return false;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return ((state >> 32) & 255) < rate;
    }
};

struct Card {
    VerilatedContext context;
    std::unique_ptr<Vsplitjoin> model;
    Vsplitjoin___024root* root;
    Pauses in, out;
    uint64_t cycle = 0;

    Card(uint64_t seed, uint32_t rate_in, uint32_t rate_out)
        : in{2 * seed + 0x9E3779B97F4A7C15u, rate_in}, out{2 * seed + 0x2545F4914F6CDD1Du, rate_out} {
        context.randReset(seed ? 2 : 0);  // with a seed, state that a reset does not set starts random
        context.randSeed(static_cast<int>(seed & 0x7fffffff) + 1);
        model = std::make_unique<Vsplitjoin>(&context, "");
        root = model->rootp;
        root->s_axis_tvalid = root->s_axis_tlast = root->m_axis_tready = 0;
        std::memset(&root->s_axis_tkeep, 0xff, sizeof root->s_axis_tkeep);
        root->s_axi_awvalid = root->s_axi_wvalid = root->s_axi_bready = 0;
        root->s_axi_arvalid = root->s_axi_rready = 0;
        root->s_axi_awprot = root->s_axi_arprot = 0;
        root->s_axi_wstrb = 15;
        root->aclk = root->aresetn = 0;
        model->eval();
        clock();
        root->aresetn = 1;
    }
    ~Card() {
        // The model takes its scopes from the thread's context, which may be that of another card.
        Verilated::threadContextp(&context);
        model->final();
    }

    void clock() {
        root->aclk = 1;
        model->eval();
        root->aclk = 0;
        model->eval();
        ++cycle;
    }

    // Let a cycle pass that belongs to the registers: the streams stand, and a word that is offered stays offered.
    void pause() {
        const bool offered = root->s_axis_tvalid;
        root->m_axis_tready = 0;
        if (offered && root->s_axis_tready) taken = true;
        clock();
        if (taken) root->s_axis_tvalid = 0;
    }
    bool taken = false;  // the word that was offered has passed while a register was accessed

    // Send the address and the data of a request, and wait for the answer; return whether it came.
    template <typename Valid, typename Ready>
    bool pass(Valid& valid, const Ready& ready) {
        valid = 1;
        for (unsigned n = 0; n < patience; ++n) {
            const bool done = ready;
            pause();
            if (done) {
                valid = 0;
                return true;
            }
        }
        return false;
    }
};

}  // namespace

struct Done {
    uint64_t taken, made, ended;
};

#pragma GCC visibility push(default)
extern "C" {

Card* card_create(uint64_t seed, uint32_t rate_in, uint32_t rate_out) { return new Card(seed, rate_in, rate_out); }
void card_destroy(Card* card) { delete card; }
uint64_t card_cycle(const Card* card) { return card->cycle; }

// Write a register or read it; return the response, or 4 if there was none.
uint32_t card_write(Card* card, uint32_t address, uint32_t data) {
    auto* const root = card->root;
    root->s_axi_awaddr = address;
    root->s_axi_wdata = data;
    if (!card->pass(root->s_axi_awvalid, root->s_axi_awready)) return 4;
    if (!card->pass(root->s_axi_wvalid, root->s_axi_wready)) return 4;
    root->s_axi_bready = 0;
    for (unsigned n = 0; !root->s_axi_bvalid; card->pause())
        if (++n == patience) return 4;
    const uint32_t response = root->s_axi_bresp;
    card->pass(root->s_axi_bready, root->s_axi_bvalid);
    return response;
}
uint32_t card_read(Card* card, uint32_t address, uint32_t* data) {
    auto* const root = card->root;
    root->s_axi_araddr = address;
    if (!card->pass(root->s_axi_arvalid, root->s_axi_arready)) return 4;
    for (unsigned n = 0; !root->s_axi_rvalid; card->pause())
        if (++n == patience) return 4;
    *data = root->s_axi_rdata;
    const uint32_t response = root->s_axi_rresp;
    card->pass(root->s_axi_rready, root->s_axi_rvalid);
    return response;
}

// Run at most `cycles` cycles: offer `words`, collect up to `room` results. Returns when `room` results have come,
// or behind a result with tlast, with `ended` set then. Without room, it takes none.
void card_run(Card* card, const uint64_t* words, uint64_t count, uint64_t* results, uint64_t room, uint64_t cycles,
              Done* done) {
    auto* const root = card->root;
    uint64_t taken = card->taken, made = 0, ended = 0;
    card->taken = false;
    for (const uint64_t last = card->cycle + cycles; card->cycle != last && !ended && (!room || made != room);) {
        if (!root->s_axis_tvalid && taken != count && !card->in.now()) {
            std::memcpy(&root->s_axis_tdata, words + taken * INPUT_WORDS, 8 * INPUT_WORDS);
            root->s_axis_tvalid = 1;
        }
        const bool goes = root->s_axis_tvalid && root->s_axis_tready;
        root->m_axis_tready = made != room && !card->out.now();
        if (root->m_axis_tready && root->m_axis_tvalid) {
            std::memcpy(results + made++ * RESULT_WORDS, &root->m_axis_tdata, 8 * RESULT_WORDS);
            ended = root->m_axis_tlast;
        }
        card->clock();
        if (goes) {
            root->s_axis_tvalid = 0;
            ++taken;
        }
    }
    *done = {taken, made, ended};
}

}  // extern "C"
#pragma GCC visibility pop
