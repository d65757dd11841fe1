// Groups of the threads of one block: all of them, and tiles of up to a warp.
#pragma once

#include "intrinsics.h"
#include "threads.h"

namespace cooperative_groups {

struct thread_block {
    static void sync(CUDA_ON_CPU_LINE) { __syncthreads(line); }
    static unsigned thread_rank() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};
using thread_group = thread_block;
inline thread_block this_thread_block() { return {}; }

template <unsigned Size, class Parent = thread_block>
struct thread_block_tile {
    static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "the emulator has tiles of up to 32 threads");

    static unsigned mask() { return (Size == 32 ? ~0u : (1u << Size) - 1) << first(); }
    static void sync(CUDA_ON_CPU_LINE) { __syncwarp(mask(), line); }
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned thread_rank() { return cuda_on_cpu::lane() % Size; }
    static unsigned meta_group_rank() { return Parent::thread_rank() / Size; }
    static unsigned meta_group_size() { return (Parent::size() + Size - 1) / Size; }

    template <class T>
    T shfl(T value, int source, CUDA_ON_CPU_LINE) const { return __shfl_sync(mask(), value, source, Size, line); }
    template <class T>
    T shfl_up(T value, unsigned by, CUDA_ON_CPU_LINE) const { return __shfl_up_sync(mask(), value, by, Size, line); }
    template <class T>
    T shfl_down(T value, unsigned by, CUDA_ON_CPU_LINE) const {
        return __shfl_down_sync(mask(), value, by, Size, line);
    }
    template <class T>
    T shfl_xor(T value, unsigned bits, CUDA_ON_CPU_LINE) const {
        return __shfl_xor_sync(mask(), value, static_cast<int>(bits), Size, line);
    }
    bool any(int p, CUDA_ON_CPU_LINE) const { return __any_sync(mask(), p, line); }
    bool all(int p, CUDA_ON_CPU_LINE) const { return __all_sync(mask(), p, line); }
    unsigned ballot(int p, CUDA_ON_CPU_LINE) const { return __ballot_sync(mask(), p, line) >> first(); }

private:
    static unsigned first() { return cuda_on_cpu::lane() / Size * Size; }
};

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) { return {}; }
template <class Group>
void sync(const Group& group, CUDA_ON_CPU_LINE) { group.sync(line); }

template <class T = void>
struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T = void>
struct greater { T operator()(T a, T b) const { return a > b ? a : b; } };
template <class T = void>
struct less { T operator()(T a, T b) const { return a < b ? a : b; } };
template <class T = void>
struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T = void>
struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T = void>
struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };

template <unsigned Size, class Parent, class T, class Operation>
T reduce(const thread_block_tile<Size, Parent>& tile, T value, Operation operation, CUDA_ON_CPU_LINE) {
    for (unsigned bits = Size / 2; bits > 0; bits /= 2) value = operation(value, tile.shfl_xor(value, bits, line));
    return value;
}

}  // namespace cooperative_groups
