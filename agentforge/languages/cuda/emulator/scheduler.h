// The scheduler's interface for kernels: thread indices, barriers, warp operations, reports.
//
// A block runs on one operating-system thread, and each of its CUDA threads on its own fiber. Fibers are
// switched only at barriers and warp operations, and never move to another operating-system thread, so
// `static thread_local` is what __shared__ means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cuda_on_cpu {

struct Index {
    unsigned x, y, z;
};

struct Range {
    uintptr_t begin, end;  // [begin, end)
};

// One launch, filled in by Python; `agentforge_emulated.py` has the same fields.
struct Launch {
    unsigned grid[3];
    unsigned block[3];
    uint64_t shared_bytes;   // dynamic shared memory of a block
    const Range* tensors;    // memory that pointers may point into
    uint64_t tensor_count;
    uint64_t argument_count; // number of them that are pointer arguments, which come first, in order
    char* message;           // error message, NUL-terminated
    uint64_t message_bytes;
    uint64_t* where;         // offset in this shared object of the failing instruction; 0 for none
};

#pragma GCC visibility push(hidden)

// Identity of the calling thread. By value and `const`: it never changes while a fiber lives.
Index thread_index() __attribute__((const));
Index block_index() __attribute__((const));
Index block_size() __attribute__((const));
Index grid_size() __attribute__((const));
unsigned lane() __attribute__((const));

enum class Operation : int { sync, meet, shuffle, ballot, match, add, min_signed, max_signed, min_unsigned, max_unsigned,
                             bit_and, bit_or, bit_xor };

// Waits for all threads of the block that have not ended; returns how many have a true `predicate`.
int block_barrier(int line, bool predicate);
// Waits for the lanes in `mask`, and orders their accesses unless they only `meet`; `value` is the lane's value, `source` the lane that a shuffle reads.
uint64_t warp_operation(Operation operation, unsigned mask, uint64_t value, int source, int line);
// Copies to shared memory that take their time: the copy has its bytes, the last `zeros` of them zero, after
// `wait_copies(n)` with at most n groups committed after its own. Until then all its bits are set.
void start_copy(void* to, const void* from, size_t bytes, size_t zeros, int line);
void commit_copies();
void wait_copies(size_t later);
// 1024 floats for the warp of the calling thread, which no check knows.
float* warp_memory();
// Lets the other threads of the block run.
void yield();
// Ends the launch with a message.
[[noreturn]] void fail(const char* message, int line);
// Atomic compare-and-exchange; if it fails, `expected` becomes the value in memory.
bool compare_exchange(void* address, size_t bytes, uint64_t& expected, uint64_t desired);
uint64_t atomic_load(const void* address, size_t bytes);
void* dynamic_shared() __attribute__((const));
// Runs `body(context)` once per CUDA thread, which may read the context; returns 0, or 1 with a message.
int run(const Launch& launch, void (*body)(void*), void* context, size_t context_bytes, bool check_races);

#pragma GCC visibility pop

}  // namespace cuda_on_cpu
