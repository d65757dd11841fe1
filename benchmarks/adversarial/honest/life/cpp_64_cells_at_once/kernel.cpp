#include <cstdint>
#include <utility>
#include <vector>

using Word = uint64_t;

static inline int column(int64_t x, int64_t width) { return int(x < 0 ? x + width : x >= width ? x - width : x); }

static inline Word bit(const Word* row, int64_t x) { return row[x >> 6] >> (x & 63) & 1; }

// left[i] is the cell at x - 1, right[i] the one at x + 1, on a ring of `width` cells.
static void shift(const Word* row, Word* left, Word* right, int64_t width, int64_t words) {
    for (int64_t i = 0; i < words; ++i) {
        left[i] = row[i] << 1 | bit(row, column(i * 64 - 1, width));
        right[i] = row[i] >> 1;
        if (i + 1 < words) right[i] |= row[i + 1] << 63;
    }
    const int64_t last = width - 1;
    const Word first = row[0] & 1;
    right[last >> 6] = (right[last >> 6] & ~(Word(1) << (last & 63))) | first << (last & 63);
}

static inline void add(Word a, Word b, Word c, Word& low, Word& high) {
    const Word half = a ^ b;
    low = half ^ c;
    high = (a & b) | (half & c);
}

extern "C" void live(const uint8_t* in, uint8_t* out, int64_t boards, int64_t height, int64_t width, int64_t times) {
    if (height == 0 || width == 0) return;
    const int64_t words = (width + 63) / 64;
#pragma omp parallel for
    for (int64_t b = 0; b < boards; ++b) {
        static thread_local std::vector<Word> memory;
        memory.assign(4 * height * words, 0);
        Word *now = memory.data(), *next = now + height * words, *left = next + height * words,
             *right = left + height * words;
        for (int64_t y = 0; y < height; ++y)
            for (int64_t x = 0; x < width; ++x)
                now[y * words + (x >> 6)] |= Word(in[(b * height + y) * width + x]) << (x & 63);
        const Word tail = width & 63 ? (Word(1) << (width & 63)) - 1 : ~Word(0);
        for (int64_t t = 0; t < times; ++t) {
            for (int64_t y = 0; y < height; ++y)
                shift(now + y * words, left + y * words, right + y * words, width, words);
            for (int64_t y = 0; y < height; ++y) {
                const int64_t above = (y ? y - 1 : height - 1) * words, below = (y + 1 < height ? y + 1 : 0) * words;
                for (int64_t i = 0; i < words; ++i) {
                    Word l0, h0, l1, h1, l, h, h2, ones, twos;
                    add(left[above + i], now[above + i], right[above + i], l0, h0);
                    add(left[below + i], now[below + i], right[below + i], l1, h1);
                    const Word a = left[y * words + i], c = right[y * words + i];
                    add(l0, l1, a ^ c, l, h);   // ones
                    h2 = a & c;
                    add(h0, h1, h, ones, twos);  // twos: ones is the sum's low bit, twos its carry
                    const Word two = ones ^ h2, four = twos | (ones & h2);
                    // exactly 2 or 3 neighbours: the twos' bit is set and nothing of four or more
                    next[y * words + i] = two & ~four & (l | now[y * words + i]);
                }
                next[y * words + words - 1] &= tail;
            }
            std::swap(now, next);
        }
        for (int64_t y = 0; y < height; ++y)
            for (int64_t x = 0; x < width; ++x)
                out[(b * height + y) * width + x] = now[y * words + (x >> 6)] >> (x & 63) & 1;
    }
}
