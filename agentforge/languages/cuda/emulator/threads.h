// Indices, barriers, warp shuffles and votes, fences.
#pragma once

#include "scheduler.h"
#include "vectors.h"

namespace cuda_on_cpu {

inline uint3 as_uint3(Index i) { return {i.x, i.y, i.z}; }

template <class T>
uint64_t bits_of(const T& value) {
    static_assert(sizeof(T) <= 8, "warp operations and atomics take values of at most 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
T from_bits(uint64_t bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

template <class T>
T shuffle(unsigned mask, const T& value, int source, int line) {
    return from_bits<T>(warp_operation(Operation::shuffle, mask, bits_of(value), source, line));
}

}  // namespace cuda_on_cpu

#define threadIdx (::cuda_on_cpu::as_uint3(::cuda_on_cpu::thread_index()))
#define blockIdx (::cuda_on_cpu::as_uint3(::cuda_on_cpu::block_index()))
#define blockDim (::cuda_on_cpu::as_uint3(::cuda_on_cpu::block_size()))
#define gridDim (::cuda_on_cpu::as_uint3(::cuda_on_cpu::grid_size()))
inline constexpr int warpSize = 32;

#define CUDA_ON_CPU_LINE int line = __builtin_LINE()

inline void __syncthreads(CUDA_ON_CPU_LINE) { cuda_on_cpu::block_barrier(line, false); }
inline int __syncthreads_count(int p, CUDA_ON_CPU_LINE) { return cuda_on_cpu::block_barrier(line, p != 0); }
inline int __syncthreads_or(int p, CUDA_ON_CPU_LINE) { return cuda_on_cpu::block_barrier(line, p != 0) != 0; }
inline int __syncthreads_and(int p, CUDA_ON_CPU_LINE) { return cuda_on_cpu::block_barrier(line, p == 0) == 0; }

inline void __syncwarp(unsigned mask = 0xffffffff, CUDA_ON_CPU_LINE) {
    cuda_on_cpu::warp_operation(cuda_on_cpu::Operation::sync, mask, 0, 0, line);
}
inline unsigned __ballot_sync(unsigned mask, int p, CUDA_ON_CPU_LINE) {
    return static_cast<unsigned>(
        cuda_on_cpu::warp_operation(cuda_on_cpu::Operation::ballot, mask, p != 0, 0, line));
}
inline int __any_sync(unsigned mask, int p, CUDA_ON_CPU_LINE) { return __ballot_sync(mask, p, line) != 0; }
inline int __all_sync(unsigned mask, int p, CUDA_ON_CPU_LINE) { return __ballot_sync(mask, !p, line) == 0; }
inline int __uni_sync(unsigned mask, int p, CUDA_ON_CPU_LINE) {
    const unsigned votes = __ballot_sync(mask, p, line), against = __ballot_sync(mask, !p, line);
    return votes == 0 || against == 0;
}

// Lanes above the end of a segment of `width` lanes read their own value, as on the GPU.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_ON_CPU_LINE) {
    const int lane = static_cast<int>(cuda_on_cpu::lane());
    return cuda_on_cpu::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_CPU_LINE) {
    const int lane = static_cast<int>(cuda_on_cpu::lane()), from = lane - static_cast<int>(delta);
    return cuda_on_cpu::shuffle(mask, value, from < (lane & ~(width - 1)) ? lane : from, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_CPU_LINE) {
    const int lane = static_cast<int>(cuda_on_cpu::lane()), from = lane + static_cast<int>(delta);
    return cuda_on_cpu::shuffle(mask, value, from > (lane | (width - 1)) ? lane : from, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CUDA_ON_CPU_LINE) {
    const int lane = static_cast<int>(cuda_on_cpu::lane()), from = lane ^ bits;
    return cuda_on_cpu::shuffle(mask, value, from > (lane | (width - 1)) ? lane : from, line);
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_ON_CPU_LINE) {
    return static_cast<unsigned>(cuda_on_cpu::warp_operation(cuda_on_cpu::Operation::match, mask,
                                                             cuda_on_cpu::bits_of(value), 0, line));
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all, CUDA_ON_CPU_LINE) {
    const unsigned same = __match_any_sync(mask, value, line);
    const unsigned everyone = __ballot_sync(mask, 1, line);
    *all = same == everyone;
    return *all ? everyone : 0;
}

#define CUDA_ON_CPU_REDUCE(name, T, operation)                                                                \
    inline T __reduce_##name##_sync(unsigned mask, T value, CUDA_ON_CPU_LINE) {                               \
        return static_cast<T>(cuda_on_cpu::warp_operation(cuda_on_cpu::Operation::operation, mask,            \
                                                          static_cast<uint32_t>(value), 0, line));            \
    }
CUDA_ON_CPU_REDUCE(add, int, add)
CUDA_ON_CPU_REDUCE(add, unsigned, add)
CUDA_ON_CPU_REDUCE(min, int, min_signed)
CUDA_ON_CPU_REDUCE(min, unsigned, min_unsigned)
CUDA_ON_CPU_REDUCE(max, int, max_signed)
CUDA_ON_CPU_REDUCE(max, unsigned, max_unsigned)
CUDA_ON_CPU_REDUCE(and, unsigned, bit_and)
CUDA_ON_CPU_REDUCE(or, unsigned, bit_or)
CUDA_ON_CPU_REDUCE(xor, unsigned, bit_xor)
#undef CUDA_ON_CPU_REDUCE

// Copies that read now and arrive when they are waited for.
__attribute__((always_inline)) inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes,
                                                                   size_t zeros = 0, CUDA_ON_CPU_LINE) {
    cuda_on_cpu::start_copy(to, from, bytes, zeros, line);
}
inline void __pipeline_commit() { cuda_on_cpu::commit_copies(); }
__attribute__((always_inline)) inline void __pipeline_wait_prior(size_t later) { cuda_on_cpu::wait_copies(later); }

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { cuda_on_cpu::yield(); }
inline void __trap(CUDA_ON_CPU_LINE) { cuda_on_cpu::fail("the kernel called __trap()", line); }

#undef assert
#define assert(condition) \
    (static_cast<bool>(condition) ? void() : ::cuda_on_cpu::fail("assertion failed: " #condition, __LINE__))
