// SPDX-License-Identifier: Apache-2.0
//
// The external memory of one region of a simulated accelerator, behind an AXI4 port.
//
// It is as unhelpful as AXI allows: a read returns what was there when it was requested, and a write takes effect
// when it is answered. Otherwise it is a good memory: a beat per cycle, any number of requests at once, in order.
//
// All outputs of the accelerator come from registers, so a step before the clock edge sees every transfer of the
// cycle. `rready` and `bready` are always high, so what is offered is taken. Data of a write follow its request.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>

// How long memories take, and how often they pause and fail.
struct MemoryPace {
    uint64_t latency;  // cycles from a request to its first beat, or from the last beat of a write to its response
    uint64_t jitter;   // cycles more, at random, at the most
    uint32_t stalls;   // cycles out of 256 in which a channel pauses
    uint32_t faults;   // bursts out of 65,536 that are answered with an error
};

template <unsigned beat_bytes>
class Memory {
    static constexpr unsigned slave_error = 2;

    struct Beat {
        uint64_t due;
        bool last, fails;
        uint8_t bytes[beat_bytes];
    };
    struct Write {
        uint64_t due, address;
        unsigned beats;
        bool fails;
    };
    struct Free {
        void operator()(uint8_t* bytes) const { std::free(bytes); }
    };

    std::unique_ptr<uint8_t, Free> bytes;
    uint64_t state;
    std::deque<Beat> reads, data;             // beats to send, beats that were received
    std::deque<Write> requested, unanswered;  // writes whose data are missing, writes that have them

    uint64_t random() {  // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state >> 24;
    }
    bool pauses(const MemoryPace& pace) { return pace.stalls && (random() & 255) < pace.stalls; }
    bool fails(const MemoryPace& pace) { return pace.faults && (random() & 0xffff) < pace.faults; }
    uint64_t due(const MemoryPace& pace, uint64_t cycle) {
        return cycle + (pace.latency ? pace.latency : 1) + (pace.jitter ? random() % (pace.jitter + 1) : 0);
    }

  public:
    // The machine spends no memory on pages that nobody writes.
    Memory(uint64_t size, uint64_t seed)
        : bytes{static_cast<uint8_t*>(std::calloc(size, 1))}, state{seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du} {
        if (!bytes) throw std::bad_alloc{};
        if (!state) state = 1;
    }

    // Forget all transactions; what was written stays.
    void reset() { reads.clear(), data.clear(), requested.clear(), unanswered.clear(); }

    // Drive the inputs of the port for this cycle, and note the transfers at its end.
    template <typename Flag, typename Address, typename Length, typename Data>
    void step(const MemoryPace& pace, uint64_t cycle, const Flag& arvalid, Flag& arready, const Address& araddr,
              const Length& arlen, Flag& rvalid, Data& rdata, Flag& rlast, Flag& rresp, const Flag& awvalid,
              Flag& awready, const Address& awaddr, const Length& awlen, const Flag& wvalid, Flag& wready, const Data& wdata,
              const Flag& wlast, Flag& bvalid, Flag& bresp) {
        static_assert(sizeof(Data) == beat_bytes, "a beat is as wide as the port");
        if ((rvalid = !reads.empty() && reads.front().due <= cycle && !pauses(pace))) {
            std::memcpy(static_cast<void*>(&rdata), reads.front().bytes, beat_bytes);
            rlast = reads.front().last;
            rresp = reads.front().fails ? slave_error : 0;
            reads.pop_front();
        }
        if ((bvalid = !unanswered.empty() && unanswered.front().due <= cycle && !pauses(pace))) {
            const Write& write = unanswered.front();
            bresp = write.fails ? slave_error : 0;
            for (unsigned n = 0; n < write.beats; ++n, data.pop_front())
                if (!write.fails)
                    std::memcpy(bytes.get() + write.address + n * beat_bytes, data.front().bytes, beat_bytes);
            unanswered.pop_front();
        }
        if ((arready = !pauses(pace)) && arvalid) {
            const uint64_t when = due(pace, cycle);
            const bool wrong = fails(pace);
            for (unsigned n = 0; n <= arlen; ++n) {
                Beat& beat = reads.emplace_back();
                beat.due = when, beat.last = n == arlen, beat.fails = wrong;
                std::memcpy(beat.bytes, bytes.get() + araddr + n * beat_bytes, beat_bytes);
            }
        }
        if ((awready = !pauses(pace)) && awvalid)
            requested.push_back({0, uint64_t(awaddr), unsigned(awlen) + 1, fails(pace)});
        if ((wready = !pauses(pace)) && wvalid) {
            std::memcpy(data.emplace_back().bytes, static_cast<const void*>(&wdata), beat_bytes);
            if (wlast) {
                requested.front().due = due(pace, cycle);
                unanswered.push_back(requested.front());
                requested.pop_front();
            }
        }
    }
};
