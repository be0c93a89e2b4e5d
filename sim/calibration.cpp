// SPDX-License-Identifier: Apache-2.0
//
// The calibration kernel: work of the kind that a simulator library does, always the same. A cycle
// runs through straight code of some hundred kilobytes, as that of a model, whose pieces load and
// store words of a few megabytes, shift, and branch on what they find.
//
// Prints cycles, seconds of CPU time and seconds of wall-clock time.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

namespace {

constexpr uint32_t WORDS = 1u << 20;  // 4 MB
constexpr int PIECES = 128;  // of a block
constexpr int BLOCKS = 16;

template <int N>
[[gnu::always_inline]] inline void piece(uint32_t* words, uint32_t& state) {
    constexpr uint32_t odd = 2654435761u * (2 * N + 1);
    // Most words are near, in 64 kB; one piece in eight goes anywhere.
    const uint32_t place = (state * odd) >> (N % 8 ? 18 : 12);
    const uint32_t word = words[place];
    if ((word >> (N % 29)) & 1) {
        state = (state << 7 | state >> 25) ^ word;
    } else {
        words[place] = word + (state >> (N % 13));
        state += odd ^ (word << (N % 5));
    }
}

template <int BLOCK, int... N>
[[gnu::noinline]] void block(uint32_t* words, uint32_t& state, std::integer_sequence<int, N...>) {
    (piece<BLOCK * PIECES + N>(words, state), ...);
}

template <int... BLOCK>
void cycle(uint32_t* words, uint32_t& state, std::integer_sequence<int, BLOCK...>) {
    (block<BLOCK>(words, state, std::make_integer_sequence<int, PIECES>{}), ...);
}

double cpu() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

}  // namespace

int main(int, char** arguments) {
    const long cycles = std::atol(arguments[1]);
    std::vector<uint32_t> words(WORDS);
    uint32_t state = 1;
    for (uint32_t place = 0; place < WORDS; ++place) words[place] = place * 2246822519u;
    const auto begun = std::chrono::steady_clock::now();
    const double before = cpu();
    for (long n = 0; n < cycles; ++n) {
        cycle(words.data(), state, std::make_integer_sequence<int, BLOCKS>{});
    }
    const double used = cpu() - before;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
    std::printf("%ld %.6f %.6f %u\n", cycles, used, wall.count(), state);
}
