// SPDX-License-Identifier: Apache-2.0
//
// The C interface of a simulated accelerator: one call runs many thousand clock cycles.
//
// It is compiled once per bundle, together with the model that Verilator made of the bundle's netlist or
// Verilog. sim/verilated/model.py passes the widths and offsets of the words, from the manifest, as macros.
//
// `i_ready`, `o_valid` and `o_payload` of the accelerator come from registers. The transfers at a clock
// edge are therefore known before the edge, and one evaluation per cycle suffices.
//
// Of an accelerator with two result ports, the words of both are put in the order in which they are taken,
// those of R first. A port that has shown its mark waits for the mark of the other one, and both leave as one.
//
// Windows in external memory have a memory behind each port, which runs in every cycle.

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "clock_cycle.h"
#ifdef MEMORY_PORTS
#include "memory.h"
#endif

namespace {

constexpr unsigned input_rows = (INPUT_BITS + 63) / 64;
constexpr unsigned result_rows = (RESULT_BITS + 63) / 64;
constexpr unsigned no_counter = 15;  // an address without a counter

#if RESULT_PORTS == 2
#define OF_PORT(root, port, part) ((port) ? (root)->o_s_##part : (root)->o_r_##part)
#else
#define OF_PORT(root, port, part) ((root)->o_##part)
#endif
constexpr unsigned ports = RESULT_PORTS;

[[maybe_unused]] constexpr uint64_t mask(unsigned bits) { return bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t{0}; }

// A port of up to 64 bits is an integer; a wider port is a VlWide of 32-bit words.
template <typename Port>
void set(Port& port, const uint64_t* row) {
    port = static_cast<Port>(row[0] & mask(INPUT_BITS));
}
template <std::size_t Words>
void set(VlWide<Words>& port, const uint64_t* row) {
    for (std::size_t n = 0; n < Words; ++n) port[n] = static_cast<EData>(row[n / 2] >> (32 * (n % 2)));
    port[Words - 1] &= static_cast<EData>(mask(INPUT_BITS - 32 * (Words - 1)));
}
template <typename Port>
void get(const Port& port, uint64_t* row) {
    row[0] = port;
}
template <std::size_t Words>
void get(const VlWide<Words>& port, uint64_t* row) {
    for (std::size_t n = 0; n < result_rows; ++n) row[n] = port[2 * n];
    for (std::size_t n = 0; 2 * n + 1 < Words; ++n) row[n] |= uint64_t{port[2 * n + 1]} << 32;
}

bool is_mark(const uint64_t* row) {
    return ((row[KIND_OFFSET / 64] >> (KIND_OFFSET % 64)) & mask(KIND_BITS)) == KIND_MARK;
}

// Clear some bits of a row.
[[maybe_unused]] void clear(uint64_t* row, unsigned offset, unsigned bits) {
    for (unsigned bit = offset; bit < offset + bits; ++bit) row[bit / 64] &= ~(uint64_t{1} << (bit % 64));
}
[[maybe_unused]] bool flag(const uint64_t* row, unsigned offset) { return (row[offset / 64] >> (offset % 64)) & 1; }

// Join the marks of two ports: all faults of both, and the failed core of the first one that names any.
void join_marks(uint64_t* row, const uint64_t* first, uint64_t* second) {
    std::memcpy(row, first, 8 * result_rows);
#ifdef FAILED_OFFSET
    clear(flag(first, FAILED_OFFSET) ? second : row, FAILED_CORE_OFFSET, FAILED_CORE_BITS);
#endif
    for (unsigned n = 0; n < result_rows; ++n) row[n] |= second[n];
}

// Decides with a probability of rate / 256 to withhold a handshake signal in a cycle (xorshift64).
class Stalls {
    uint64_t state;
    uint32_t rate;

  public:
    Stalls(uint64_t seed, uint32_t rate) : state{seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du}, rate{rate} {
        if (!state) state = 1;
    }
    bool now() {
        if (!rate) return false;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return ((state >> 32) & 255) < rate;
    }
};

struct Simulation {
    VerilatedContext context;  // one per instance, so that instances may run in parallel
    std::unique_ptr<Vsplitjoin> model;
    Vsplitjoin___024root* root;
    Stalls stall_in, stall_out;
    uint64_t cycle = 0;     // cycles since reset
    bool offering = false;  // a word was offered and not yet accepted; it stays offered
    bool marked[2] = {};    // a port has shown its mark, and waits for the other one
    uint64_t marks[2][result_rows];
#ifdef MEMORY_PORTS
    MemoryPace pace{MEMORY_LATENCY, 0, 0, 0};
    std::vector<Memory<MEMORY_BEAT_BYTES>> memories;
#endif

    Simulation(uint64_t seed, uint32_t rate_in, uint32_t rate_out)
        : stall_in{2 * seed, rate_in}, stall_out{2 * seed + 1, rate_out} {
        context.randReset(seed ? 2 : 0);  // with a seed, state that a reset does not set starts random
        context.randSeed(static_cast<int>(seed & 0x7fffffff) + 1);
        model = std::make_unique<Vsplitjoin>(&context, "");
        root = model->rootp;
#ifdef MEMORY_PORTS
#define ADD_MEMORY(n) memories.emplace_back(MEMORY_BYTES, seed * 1024 + n);
        MEMORY_PORTS(ADD_MEMORY)
#endif
        root->clk = 0;
        root->counter_addr = no_counter;
        model->eval();
        reset();
    }
    ~Simulation() {
        // The model takes its scopes from the thread's context, which may be that of another instance.
        Verilated::threadContextp(&context);
        model->final();
    }

    // Let the memories take part in this cycle, unless the accelerator is in reset.
    void access_memories() {
#ifdef MEMORY_PORTS
#define ACCESS(n)                                                                                               \
    memories[n].step(pace, cycle, root->m_axi_##n##_arvalid, root->m_axi_##n##_arready, root->m_axi_##n##_araddr, \
                     root->m_axi_##n##_arlen, root->m_axi_##n##_rvalid, root->m_axi_##n##_rdata,                \
                     root->m_axi_##n##_rlast, root->m_axi_##n##_rresp, root->m_axi_##n##_awvalid,               \
                     root->m_axi_##n##_awready,                                                                 \
                     root->m_axi_##n##_awaddr, root->m_axi_##n##_awlen, root->m_axi_##n##_wvalid,               \
                     root->m_axi_##n##_wready, root->m_axi_##n##_wdata, root->m_axi_##n##_wlast,                \
                     root->m_axi_##n##_bvalid, root->m_axi_##n##_bresp);
        if (root->rst) return;
        MEMORY_PORTS(ACCESS)
#endif
    }

    void clock() {
        access_memories();
        clock_cycle(root);
        ++cycle;
    }

    // Offer nothing, and take nothing.
    void rest() {
        root->i_valid = 0;
        for (unsigned port = 0; port < ports; ++port) OF_PORT(root, port, ready) = 0;
    }

    void reset() {
        rest();
        root->rst = 1;
#ifdef MEMORY_PORTS
#define REST(n) root->m_axi_##n##_rvalid = root->m_axi_##n##_bvalid = 0, memories[n].reset();
        MEMORY_PORTS(REST)
#endif
        for (int n = 0; n < 16; ++n) clock();  // docs/architecture.md, section 4
        root->rst = 0;
        cycle = 0;
        offering = marked[0] = marked[1] = false;
    }

    // Keep the mark of one of two ports; return whether both have shown theirs, which `row` gets as one.
    bool pair_marks(unsigned port, uint64_t* row) {
        std::memcpy(marks[port], row, 8 * result_rows);
        marked[port] = true;
        if (!marked[1 - port]) return false;
        marked[0] = marked[1] = false;
        join_marks(row, marks[0], marks[1]);
        return true;
    }

    uint64_t counter(uint32_t address) {
        rest();
        root->counter_addr = address;
        clock();
        clock();
        root->counter_addr = no_counter;
        return root->counter_data;
    }
};

}  // namespace

// host.devices.simulated finds this text in the file before it loads the library.
extern "C" __attribute__((visibility("default"), used)) const char splitjoin_bundle[] = "splitjoin-bundle:" BUNDLE_HASH;

struct Exchange {
    uint64_t accepted, produced, cycles;
};

#pragma GCC visibility push(default)
extern "C" {

Simulation* splitjoin_create(uint64_t seed, uint32_t stall_in, uint32_t stall_out) {
    return new Simulation(seed, stall_in, stall_out);
}
void splitjoin_destroy(Simulation* s) { delete s; }
void splitjoin_reset(Simulation* s) { s->reset(); }
uint64_t splitjoin_cycle(const Simulation* s) { return s->cycle; }
uint64_t splitjoin_counter(Simulation* s, uint32_t address) { return s->counter(address); }

#ifdef MEMORY_PORTS
// From now on, the memories take so long, pause so often, and fail so often.
void splitjoin_memory(Simulation* s, uint64_t latency, uint64_t jitter, uint32_t stalls, uint32_t faults) {
    s->pace = {latency, jitter, stalls, faults};
}
#endif

// Run at most `cycles` cycles: offer `words` and collect up to `room` results. Returns early when
// `results` is full or the last result is a mark. `accepted_at` and `produced_at` receive the cycle of each
// transfer; either may be null.
void splitjoin_exchange(Simulation* s, const uint64_t* words, uint64_t count, uint64_t* results,
                        uint64_t room, uint64_t cycles, uint64_t* accepted_at, uint64_t* produced_at,
                        Exchange* done) {
    Vsplitjoin___024root* const root = s->root;
    const uint64_t first = s->cycle, last = first + cycles;
    const uint64_t *word = words, *const words_end = words + count * input_rows;
    uint64_t *row = results, *const rows_end = results + room * result_rows;
    bool offering = s->offering;
    bool mark = false;
    while (s->cycle != last && row != rows_end && !mark) {
        offering = word != words_end && (offering || !s->stall_in.now());
        root->i_valid = offering;
        if (offering) {
            set(root->i_payload, word);
            if (root->i_ready) {
                if (accepted_at) *accepted_at++ = s->cycle;
                word += input_rows;
                offering = false;
            }
        }
        for (unsigned port = 0; port < ports; ++port) {
            const bool taking = !s->stall_out.now() && (ports == 1 || (!s->marked[port] && row != rows_end && !mark));
            OF_PORT(root, port, ready) = taking;
            if (!taking || !OF_PORT(root, port, valid)) continue;
            get(OF_PORT(root, port, payload), row);
            mark = is_mark(row);
            if (ports == 2 && mark && !(mark = s->pair_marks(port, row))) continue;
            if (produced_at) *produced_at++ = s->cycle;
            row += result_rows;
        }
        s->clock();
    }
    s->offering = offering;
    *done = {uint64_t(word - words) / input_rows, uint64_t(row - results) / result_rows, s->cycle - first};
}

}  // extern "C"
#pragma GCC visibility pop
