// The part of CUDA's run-time library that launchers use, with the CPU as the device: calls are complete when
// they return, streams and events have no state.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "prelude.h"

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
using cudaError = cudaError_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig {
    cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

namespace cuda_on_cpu {

struct Event {
    std::chrono::steady_clock::time_point at;
};
constexpr size_t shared_without_asking = 48 << 10, most_shared = 227 << 10;
constexpr int processors = 132, most_threads = 1024, threads_of_processor = 2048, blocks_of_processor = 32;
constexpr size_t shared_of_processor = 228 << 10, shared_of_system = 1 << 10;  // the latter in each block

// Blocks that a multiprocessor holds at once, as far as threads and dynamic shared memory limit them.
inline int resident_blocks(int threads, size_t shared) {
    if (threads < 1 || threads > most_threads) return 0;
    const int by_threads = threads_of_processor / ((threads + 31) / 32 * 32);
    const int by_shared = static_cast<int>(shared_of_processor / (shared + shared_of_system));
    return std::min({blocks_of_processor, by_threads, by_shared});
}

// Register and unregister memory that kernels may touch; in host.h.
void remember(const void* begin, size_t bytes);
void forget(const void* begin);
inline bool asked_for_more_shared = false;

}  // namespace cuda_on_cpu

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = cuda_on_cpu::Event*;
inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0, cudaEventDisableTiming = 2;

struct cudaDeviceProp {
    char name[256] = "CPU";
    size_t totalGlobalMem = size_t{80} << 30;
    size_t sharedMemPerBlock = cuda_on_cpu::shared_without_asking;
    size_t sharedMemPerBlockOptin = cuda_on_cpu::most_shared;
    size_t sharedMemPerMultiprocessor = cuda_on_cpu::shared_of_processor;
    int regsPerBlock = 65536, warpSize = 32, maxThreadsPerBlock = cuda_on_cpu::most_threads;
    int maxThreadsDim[3] = {1024, 1024, 64}, maxGridSize[3] = {2147483647, 65535, 65535};
    int major = 9, minor = 0, multiProcessorCount = cuda_on_cpu::processors;
    int maxThreadsPerMultiProcessor = cuda_on_cpu::threads_of_processor, maxBlocksPerMultiProcessor = cuda_on_cpu::blocks_of_processor;
    int l2CacheSize = 50 << 20;
};

inline const char* cudaGetErrorString(cudaError_t error) { return error ? "an error of the emulator" : "no error"; }
inline const char* cudaGetErrorName(cudaError_t error) { return error ? "cudaErrorInvalidValue" : "cudaSuccess"; }
// A launch that fails is an exception, so there is never an error to query.
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }

inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new cuda_on_cpu::Event, cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
    return event->at = std::chrono::steady_clock::now(), cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    *milliseconds = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
    return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }

template <class T>
cudaError_t cudaMalloc(T** address, size_t bytes) {
    *address = static_cast<T*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    if (!*address) return cudaErrorMemoryAllocation;
    cuda_on_cpu::remember(*address, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaFree(void* address) {
    cuda_on_cpu::forget(address);
    return std::free(address), cudaSuccess;
}
template <class T>
cudaError_t cudaMallocAsync(T** address, size_t bytes, cudaStream_t) { return cudaMalloc(address, bytes); }
inline cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return cudaFree(address); }
inline cudaError_t cudaMemset(void* to, int byte, size_t bytes) { return std::memset(to, byte, bytes), cudaSuccess; }
inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t = nullptr) {
    return cudaMemset(to, byte, bytes);
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    return std::memmove(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t = nullptr) {
    return std::memmove(to, from, bytes), cudaSuccess;
}
template <class T>
cudaError_t cudaMemcpyToSymbol(T& to, const void* from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
    if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
    return std::memcpy(const_cast<char*>(reinterpret_cast<const volatile char*>(&to)) + offset, from, bytes), cudaSuccess;
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(T& to, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                    cudaStream_t = nullptr) {
    return cudaMemcpyToSymbol(to, from, bytes, offset, kind);
}

template <class F>
cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute attribute, int value) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || static_cast<size_t>(value) > cuda_on_cpu::most_shared) return cudaErrorInvalidValue;
    return cuda_on_cpu::asked_for_more_shared = true, cudaSuccess;
}
template <class F>
cudaError_t cudaFuncSetCacheConfig(F, cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }

inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    return *properties = {}, cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
    const cudaDeviceProp here;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: *value = here.maxThreadsPerBlock; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(here.sharedMemPerBlock); break;
        case cudaDevAttrWarpSize: *value = here.warpSize; break;
        case cudaDevAttrMultiProcessorCount: *value = here.multiProcessorCount; break;
        case cudaDevAttrMaxThreadsPerMultiProcessor: *value = here.maxThreadsPerMultiProcessor; break;
        case cudaDevAttrComputeCapabilityMajor: *value = here.major; break;
        case cudaDevAttrComputeCapabilityMinor: *value = here.minor; break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = static_cast<int>(here.sharedMemPerMultiprocessor); break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(here.sharedMemPerBlockOptin); break;
        default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int threads, size_t shared) {
    *blocks = cuda_on_cpu::resident_blocks(threads, shared);
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* blocks, int* threads, F, size_t shared = 0, int = 0) {
    *threads = 256;
    *blocks = cuda_on_cpu::processors * cuda_on_cpu::resident_blocks(*threads, shared);
    return cudaSuccess;
}
