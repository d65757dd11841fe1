// Included before the first line of every kernel source: CUDA C++ as a language of the CPU.
#pragma once

#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "atomics.h"
#include "intrinsics.h"
#include "mma.h"
#include "narrow.h"
#include "scheduler.h"
#include "threads.h"
#include "vectors.h"

#ifndef CUDA_ON_CPU_RACES
#define CUDA_ON_CPU_RACES 1  // 0 if threads wait for one another through memory
#endif
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __inline_hint__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __restrict __restrict__
#define __shared__ static thread_local
#define __assume(condition) ((condition) ? void() : __builtin_unreachable())
#define __builtin_assume(condition) __assume(condition)

namespace cuda_on_cpu {

// The same variable by an address that the compiler cannot see through, so that each access is checked.
template <class T>
T& opaque(T& variable) {
    T* address = &variable;
    asm("" : "+r"(address));
    return *address;
}

// `extern __shared__ T name[]` in a function.
template <class T>
T (&dynamic())[] {
    return *static_cast<T(*)[]>(dynamic_shared());
}

// The same outside a function: its address is known when a block runs.
template <class T>
struct DynamicShared {
    operator T*() const { return static_cast<T*>(dynamic_shared()); }
    template <class I>
    T& operator[](I index) const { return static_cast<T*>(dynamic_shared())[index]; }
};

template <class... P>
struct Call {
    void (*kernel)(P...);
    std::tuple<std::remove_cv_t<P>...> arguments;

    static void run(void* self) {
        auto& call = *static_cast<Call*>(self);
        std::apply(call.kernel, call.arguments);
    }
};

// Launches `kernel` with the values that `arguments` points to, one pointer per parameter.
template <class... P, size_t... I>
int launch(void (*kernel)(P...), const Launch& configuration, void** arguments, std::index_sequence<I...>) {
    Call<P...> call{kernel, {*static_cast<std::remove_cv_t<P>*>(arguments[I])...}};
    return run(configuration, Call<P...>::run, &call, sizeof call, CUDA_ON_CPU_RACES);
}
template <class... P>
int launch(void (*kernel)(P...), const Launch& configuration, void** arguments) {
    return launch(kernel, configuration, arguments, std::index_sequence_for<P...>{});
}

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_KERNEL(name)                                                                   \
    extern "C" __attribute__((visibility("default"))) int launch_##name(                           \
        const cuda_on_cpu::Launch* configuration, void** arguments) {                              \
        return cuda_on_cpu::launch(&name, *configuration, arguments);                              \
    }
