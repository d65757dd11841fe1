// The scheduler: fibers, barriers, warp operations, checks of every access.
//
// Kernels are compiled with -fsanitize=kernel-address, which makes the compiler call __asan_load4_noabort and
// similar functions before each access. Here these calls compare the address with the tensors of the launch,
// the block's shared memory, the fiber's stack and the object's own data: exact bounds without a sanitizer's
// run time.
#include "scheduler.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <vector>

extern "C" int omp_get_thread_num();

namespace cuda_on_cpu {
namespace {

constexpr size_t stack_bytes = 128 << 10;  // per CUDA thread; untouched pages cost nothing
constexpr size_t page = 4096;
constexpr unsigned warp_size = 32;
// Of one launch. A process may hold some 65,000 mappings, two for each stack, and a candidate has a memory limit.
constexpr size_t most_stacks = 4096;
constexpr double seconds_before_a_guess = 4, most_seconds = 50;  // per launch

// ------------------------------------------------------------------------------------------ contexts

#if defined(__x86_64__)
// Saves the registers that a call must preserve on the old stack and restores them from the new one.
extern "C" void cuda_on_cpu_switch(void** from, void* to);
asm(R"(
.text
.type cuda_on_cpu_switch, @function
.hidden cuda_on_cpu_switch
cuda_on_cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");

struct Context {
    void* stack_pointer = nullptr;

    void prepare(char* stack, void (*entry)()) {
        auto** top = reinterpret_cast<void**>(stack + stack_bytes - 16);
        *--top = nullptr;  // return address of `entry`; aligns the stack as a call does
        *--top = reinterpret_cast<void*>(entry);
        for (int i = 0; i < 6; i++) *--top = nullptr;
        stack_pointer = top;
    }
    static void change(Context& from, Context& to) { cuda_on_cpu_switch(&from.stack_pointer, to.stack_pointer); }
};
#else
struct Context {
    ucontext_t state;

    void prepare(char* stack, void (*entry)()) {
        getcontext(&state);
        state.uc_stack.ss_sp = stack;
        state.uc_stack.ss_size = stack_bytes;
        state.uc_link = nullptr;
        makecontext(&state, entry, 0);
    }
    static void change(Context& from, Context& to) { swapcontext(&from.state, &to.state); }
};
#endif

// Stacks of one operating-system thread, kept for its life; below each is a guard page.
class Stacks {
public:
    ~Stacks() { release(); }
    // Null if there is no memory for it.
    char* at(size_t index) {
        while (stacks_.size() <= index) {
            void* memory = mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) return nullptr;
            stacks_.push_back(static_cast<char*>(memory) + page);
            if (mprotect(memory, page, PROT_NONE)) return nullptr;
        }
        return stacks_[index];
    }
    void release() {
        for (char* stack : stacks_) munmap(stack - page, stack_bytes + page);
        stacks_.clear();
    }

private:
    std::vector<char*> stacks_;
};

// ------------------------------------------------------------------------------------------- records

enum class Access { read, write, atomic };

// A fiber's identity.
struct Thread {
    Index thread_index, block_index, block_size, grid_size;
    unsigned number;  // in the block
    unsigned lane;
};

enum class State { ready, at_barrier, in_warp, done };

// An asynchronous copy that was begun.
struct Copy {
    char* to;
    size_t bytes, group;
    char content[16];
};

struct Fiber {
    Thread self;  // first: `current` points here
    Context context;
    char* stack = nullptr;
    State state = State::ready;
    int line = 0;
    bool predicate = false;
    int result = 0;
    // of a warp operation
    Operation operation{};
    unsigned mask = 0;
    uint64_t value = 0;
    int source = 0;
    uint64_t answer = 0;
    std::vector<Copy> copies;  // begun, in order
    size_t group = 0;          // of copies begun now
};

constexpr uint32_t several = 0xffffffff;

// The last accesses to a byte of shared memory. Epochs count barriers and never repeat in a worker's life.
struct Shadow {
    uint64_t write_epoch = 0, read_epoch = 0;
    uint32_t writer = 0, reader = 0;            // thread in the block; `several` readers
    uint32_t write_step = 0, read_step = 0;     // warp operations that its warp had done
    uint32_t reader_warp = 0;                   // `several` for more than one
    bool write_atomic = false;
};

struct Object {
    uintptr_t begin = 0, end = 0;      // the shared object's segments
    uintptr_t tls_begin = 0, tls_end = 0;  // this thread's static shared memory, `current` and `worker` among it
};

int find_object(dl_phdr_info* info, size_t, void* data) {
    auto& object = *static_cast<Object*>(data);
    const auto here = reinterpret_cast<uintptr_t>(&find_object);
    uintptr_t begin = UINTPTR_MAX, end = 0, tls = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type == PT_LOAD) {
            const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
            begin = start < begin ? start : begin;
            end = start + segment.p_memsz > end ? start + segment.p_memsz : end;
        } else if (segment.p_type == PT_TLS) {
            tls = segment.p_memsz;
        }
    }
    if (here < begin || here >= end) return 0;
    object.begin = begin;
    object.end = end;
    object.tls_begin = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
    object.tls_end = object.tls_begin ? object.tls_begin + tls : 0;
    return 1;
}

// Shared by all workers of one launch.
struct Shared {
    const Launch& launch;
    void (*body)(void*);
    void* context;  // the kernel's arguments
    size_t context_bytes;
    bool check_races;
    uint64_t blocks;
    std::atomic<uint64_t> next{0}, finished{0};
    std::atomic<bool> failed{false}, slow{false};
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

// One operating-system thread that runs blocks.
struct Worker {
    Shared* shared = nullptr;
    Object object;
    Stacks stacks;
    std::vector<Fiber> fibers;
    std::vector<uint32_t> steps;  // of each warp
    Context home;
    std::vector<float> exchanged;  // 1024 for each warp
    std::vector<char> memory;  // dynamic shared memory, and room to align it
    char* dynamic = nullptr;
    std::vector<Shadow> dynamic_shadow, static_shadow;
    uint64_t epoch = 0;
    unsigned waiting = 0, done = 0;

    bool begin(Shared& all);
    void run_blocks();
    void run_block(uint64_t number);
    void pass();
    void release_barrier();
    void try_warp(unsigned warp);
    void stuck();
    void touch(std::vector<Shadow>& shadows, size_t offset, size_t bytes, Access access, const void* instruction);
    unsigned live_lanes(unsigned warp) const;
    [[noreturn]] void abandon();
};

__thread Thread* current = nullptr;
__thread Worker* worker = nullptr;  // created at a thread's first launch, kept for its life

// Keeps the first failure of a launch; true if this is it.
bool report(const void* instruction, int line, const char* format, ...) {
    auto& shared = *worker->shared;
    if (shared.failed.exchange(true)) return false;
    const Launch& launch = shared.launch;
    size_t used = 0;
    if (line) used = static_cast<size_t>(snprintf(launch.message, launch.message_bytes, "line %d: ", line));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(launch.message + used, launch.message_bytes - used, format, arguments);
    va_end(arguments);
    Dl_info info;
    if (instruction && dladdr(instruction, &info))
        *launch.where = static_cast<uint64_t>(static_cast<const char*>(instruction) -
                                              static_cast<const char*>(info.dli_fbase));
    return true;
}

Fiber& me() { return *reinterpret_cast<Fiber*>(current); }

void leave(Fiber& fiber, State state, int line) {
    fiber.state = state;
    fiber.line = line;
    Context::change(fiber.context, worker->home);
}

void fiber_main() {
    worker->shared->body(worker->shared->context);
    Fiber& fiber = me();
    leave(fiber, State::done, 0);
    __builtin_unreachable();
}

// --------------------------------------------------------------------------------------------- blocks

bool Worker::begin(Shared& all) {
    shared = &all;
    const Launch& launch = all.launch;
    object = {};
    dl_iterate_phdr(find_object, &object);
    const size_t threads = size_t{1} * launch.block[0] * launch.block[1] * launch.block[2];
    if (fibers.size() < threads) fibers.resize(threads);
    exchanged.resize((threads + warp_size - 1) / warp_size * 1024);
    steps.assign((threads + warp_size - 1) / warp_size, 0);
    memory.resize(launch.shared_bytes + 256);
    dynamic = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory.data()) + 255) & ~uintptr_t{255});
    if (all.check_races) {
        dynamic_shadow.resize(launch.shared_bytes);
        static_shadow.resize(object.tls_end - object.tls_begin);
    }
    for (size_t i = 0; i < threads; i++) {
        fibers[i].stack = stacks.at(i);
        if (!fibers[i].stack) {
            stacks.release();
            return false;
        }
    }
    return true;
}

// The worker of the calling operating-system thread, which ends with it.
Worker* new_worker() {
    static const pthread_key_t key = [] {
        pthread_key_t made;
        const auto end = [](void* ended) { delete static_cast<Worker*>(ended); };
        return pthread_key_create(&made, end) ? ~pthread_key_t{0} : made;
    }();
    auto* made = new Worker;
    pthread_setspecific(key, made);
    return made;
}

// Shared memory is not initialised: all bits are set, which is NaN or -1 and never a lucky zero. The object's
// thread-local data is static shared memory, except the two pointers below.
void poison(Worker& w) {
    memset(w.dynamic, 0xff, w.shared->launch.shared_bytes);
    Thread* kept = current;
    if (w.object.tls_begin) {
        asm volatile("" : : "r"(&current), "r"(&worker) : "memory");  // memset reaches them
        memset(reinterpret_cast<void*>(w.object.tls_begin), 0xff, w.object.tls_end - w.object.tls_begin);
        asm volatile("" : : : "memory");
    }
    current = kept;
    worker = &w;
}

void Worker::run_block(uint64_t number) {
    const Launch& launch = shared->launch;
    const unsigned* block = launch.block;
    const unsigned* grid = launch.grid;
    const unsigned threads = block[0] * block[1] * block[2];
    poison(*this);
    epoch++;
    waiting = done = 0;
    for (unsigned i = 0; i < threads; i++) {
        Fiber& fiber = fibers[i];
        fiber.self = {{i % block[0], i / block[0] % block[1], i / block[0] / block[1]},
                      {static_cast<unsigned>(number % grid[0]), static_cast<unsigned>(number / grid[0] % grid[1]),
                       static_cast<unsigned>(number / grid[0] / grid[1])},
                      {block[0], block[1], block[2]},
                      {grid[0], grid[1], grid[2]},
                      i,
                      i % warp_size};
        fiber.state = State::ready;
        fiber.copies.clear();
        fiber.group = 0;
        fiber.context.prepare(fiber.stack, fiber_main);
    }
    for (auto& step : steps) step = 0;
    while (done < threads && !shared->failed.load(std::memory_order_relaxed)) pass();
    current = nullptr;
}

void Worker::run_blocks() {
    using Seconds = std::chrono::duration<double>;
    for (uint64_t block; !shared->failed && (block = shared->next++) < shared->blocks;) {
        run_block(block);
        const uint64_t finished = ++shared->finished;
        const double passed = Seconds(std::chrono::steady_clock::now() - shared->begin).count();
        if (passed > seconds_before_a_guess && passed / finished * shared->blocks > most_seconds)
            if (report(nullptr, 0, "%llu of %llu blocks took %.0f s, so that all would take %.0f",
                       static_cast<unsigned long long>(finished), static_cast<unsigned long long>(shared->blocks),
                       passed, passed / finished * shared->blocks))
                shared->slow = true;
    }
}

// Runs every thread that can run, once.
void Worker::pass() {
    const Launch& launch = shared->launch;
    const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
    bool progress = false;
    for (unsigned i = 0; i < threads; i++) {
        Fiber& fiber = fibers[i];
        if (fiber.state != State::ready) continue;
        progress = true;
        current = &fiber.self;
        Context::change(home, fiber.context);
        if (shared->failed.load(std::memory_order_relaxed)) return;
        if (fiber.state == State::done) {
            done++;
            try_warp(i / warp_size);  // releases lanes that wait for it
        } else if (fiber.state == State::at_barrier) {
            waiting++;
        }
        if (waiting && waiting + done == threads) release_barrier();
    }
    if (!progress) stuck();
}

void Worker::release_barrier() {
    const Launch& launch = shared->launch;
    const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
    int count = 0, first = -1;
    for (unsigned i = 0; i < threads; i++) {
        if (fibers[i].state != State::at_barrier) continue;
        count += fibers[i].predicate;
        if (first < 0) first = static_cast<int>(i);
        if (fibers[i].line != fibers[first].line) {
            report(nullptr, fibers[i].line, "divergent barrier: thread %u waits here and thread %d at line %d",
                   i, first, fibers[first].line);
            return;
        }
    }
    for (unsigned i = 0; i < threads; i++) {
        if (fibers[i].state != State::at_barrier) continue;
        fibers[i].result = count;
        fibers[i].state = State::ready;
    }
    waiting = 0;
    epoch++;
}

unsigned Worker::live_lanes(unsigned warp) const {
    const Launch& launch = shared->launch;
    const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
    unsigned live = 0;
    for (unsigned lane = 0; lane < warp_size && warp * warp_size + lane < threads; lane++)
        if (fibers[warp * warp_size + lane].state != State::done) live |= 1u << lane;
    return live;
}

uint64_t combined(Operation operation, const Fiber* lanes, unsigned group, const Fiber& reader) {
    constexpr uint64_t nothing = UINT64_MAX;  // NaN: the value of a lane that does not take part
    if (operation == Operation::sync) return 0;
    if (operation == Operation::meet) return group;
    if (operation == Operation::shuffle)
        return group >> reader.source & 1 ? lanes[reader.source].value : nothing;
    uint64_t result = 0;
    bool first = true;
    for (unsigned lane = 0; lane < warp_size; lane++) {
        if (!(group >> lane & 1)) continue;
        const uint64_t value = lanes[lane].value;
        const auto one = static_cast<uint32_t>(value), all = static_cast<uint32_t>(result);
        const auto signed_one = static_cast<int32_t>(one), signed_all = static_cast<int32_t>(all);
        switch (operation) {
            case Operation::ballot: result |= uint64_t{value != 0} << lane; break;
            case Operation::match: result |= uint64_t{value == reader.value} << lane; break;
            case Operation::add: result = all + one; break;
            case Operation::min_signed: result = first || signed_one < signed_all ? one : all; break;
            case Operation::max_signed: result = first || signed_one > signed_all ? one : all; break;
            case Operation::min_unsigned: result = first || one < all ? one : all; break;
            case Operation::max_unsigned: result = first || one > all ? one : all; break;
            case Operation::bit_and: result = first ? one : all & one; break;
            case Operation::bit_or: result = all | one; break;
            case Operation::bit_xor: result = all ^ one; break;
            default: break;
        }
        first = false;
    }
    return result;
}

// Runs the warp operations of `warp` for which all lanes of the mask have arrived.
void Worker::try_warp(unsigned warp) {
    const unsigned live = live_lanes(warp);
    Fiber* lanes = &fibers[warp * warp_size];
    for (unsigned lane = 0; lane < warp_size; lane++) {
        if (!(live >> lane & 1) || lanes[lane].state != State::in_warp) continue;
        const unsigned group = lanes[lane].mask & live;
        unsigned here = 0;
        for (unsigned other = 0; other < warp_size; other++)
            if (live >> other & 1 && lanes[other].state == State::in_warp && lanes[other].mask == lanes[lane].mask)
                here |= 1u << other;
        if ((here & group) != group) continue;
        for (unsigned other = 0; other < warp_size; other++) {
            if (!(group >> other & 1)) continue;
            if (lanes[other].operation != lanes[lane].operation) {
                report(nullptr, lanes[other].line,
                       "lanes %u and %u of a warp meet in different operations (the other at line %d)", lane, other,
                       lanes[lane].line);
                return;
            }
        }
        for (unsigned other = 0; other < warp_size; other++)
            if (group >> other & 1)
                lanes[other].answer = combined(lanes[other].operation, lanes, group, lanes[other]);
        for (unsigned other = 0; other < warp_size; other++)
            if (group >> other & 1) lanes[other].state = State::ready;
        if (lanes[lane].operation != Operation::meet) steps[warp]++;
    }
}

void Worker::stuck() {
    const Launch& launch = shared->launch;
    const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
    int barrier = -1, warp = -1;
    for (unsigned i = 0; i < threads; i++) {
        if (fibers[i].state == State::at_barrier && barrier < 0) barrier = static_cast<int>(i);
        if (fibers[i].state == State::in_warp && warp < 0) warp = static_cast<int>(i);
    }
    const Index block = fibers[0].self.block_index;
    if (barrier >= 0 && warp >= 0)
        report(nullptr, fibers[barrier].line,
               "divergent barrier: thread %d waits here and thread %d in a warp operation at line %d "
               "(block %u, %u, %u)",
               barrier, warp, fibers[warp].line, block.x, block.y, block.z);
    else if (warp >= 0)
        report(nullptr, fibers[warp].line,
               "thread %d waits here for lanes of mask 0x%08x that never come (block %u, %u, %u)", warp,
               fibers[warp].mask, block.x, block.y, block.z);
}

void Worker::abandon() {
    Fiber& fiber = me();
    Context::change(fiber.context, home);
    __builtin_unreachable();
}

// --------------------------------------------------------------------------------------------- races

void Worker::touch(std::vector<Shadow>& shadows, size_t offset, size_t bytes, Access access,
                   const void* instruction) {
    const Thread& self = *current;
    const uint32_t warp = self.number / warp_size, step = steps[warp];
    for (size_t i = offset; i < offset + bytes && i < shadows.size(); i++) {
        Shadow& shadow = shadows[i];
        const bool written = shadow.write_epoch == epoch && shadow.writer != self.number &&
                             !(shadow.writer / warp_size == warp && shadow.write_step < step);
        if (written && access != Access::write && !(access == Access::atomic && shadow.write_atomic)) {
            report(instruction, 0,
                   "race: thread %u reads shared memory that thread %u wrote, and no barrier lies between: "
                   "__syncthreads() or __syncwarp() is missing", self.number, shadow.writer);
            abandon();
        }
        const bool ordered = shadow.reader_warp == warp && shadow.read_step < step;  // reads, by a warp operation
        const bool read = shadow.read_epoch == epoch && shadow.reader != self.number && !ordered;
        if (read && access != Access::read) {
            char who[32] = "other threads";
            if (shadow.reader != several) snprintf(who, sizeof who, "thread %u", shadow.reader);
            report(instruction, 0,
                   "race: thread %u writes shared memory that %s reads, and no barrier lies between: "
                   "__syncthreads() or __syncwarp() is missing", self.number, who);
            abandon();
        }
        if (access == Access::read) {
            // Reads that are ordered before this one are ordered before later writes too.
            const bool same = shadow.read_epoch == epoch && !ordered;
            shadow.reader_warp = same && shadow.reader_warp != warp ? several : warp;
            shadow.reader = same && shadow.reader != self.number ? several : self.number;
            shadow.read_epoch = epoch;
            shadow.read_step = step;
        } else {
            shadow.write_epoch = epoch;
            shadow.writer = self.number;
            shadow.write_step = step;
            shadow.write_atomic = access == Access::atomic;
        }
    }
}

void out_of_bounds(uintptr_t address, size_t bytes, Access access, const void* instruction) {
    const Launch& launch = worker->shared->launch;
    const char* verb = access == Access::read ? "reads" : "writes";
    const Thread& self = *current;
    const Range* nearest = nullptr;
    uintptr_t distance = UINTPTR_MAX;
    for (uint64_t i = 0; i < launch.argument_count; i++) {
        const Range& range = launch.tensors[i];
        const uintptr_t away = address < range.begin ? range.begin - address : address - range.end;
        if (away < distance) distance = away, nearest = &range;
    }
    const auto dynamic = reinterpret_cast<uintptr_t>(worker->dynamic);
    char place[128] = "no tensor of this launch lies there";
    if (address - dynamic < launch.shared_bytes + (1 << 16))
        snprintf(place, sizeof place, "%zu bytes past the end of dynamic shared memory, %llu bytes",
                 static_cast<size_t>(address - dynamic - launch.shared_bytes),
                 static_cast<unsigned long long>(launch.shared_bytes));
    else if (nearest && distance < uintptr_t{1} << 30)
        snprintf(place, sizeof place, "%zu bytes %s a tensor of %zu bytes (pointer argument %d)",
                 static_cast<size_t>(distance), address < nearest->begin ? "before" : "past the end of",
                 static_cast<size_t>(nearest->end - nearest->begin), static_cast<int>(nearest - launch.tensors) + 1);
    report(instruction, 0, "out of bounds: thread (%u, %u, %u) of block (%u, %u, %u) %s %zu bytes, %s",
           self.thread_index.x, self.thread_index.y, self.thread_index.z, self.block_index.x, self.block_index.y,
           self.block_index.z, verb, bytes, place);
}

// Checks that the kernel may access an address range; ends the launch if it may not.
void check(const void* pointer, size_t bytes, Access access, const void* instruction) {
    if (!current) return;
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    Worker& w = *worker;
    const auto inside = [=](uintptr_t begin, uintptr_t end) { return address >= begin && address + bytes <= end; };
    const auto stack = reinterpret_cast<uintptr_t>(me().stack);
    if (inside(stack, stack + stack_bytes)) return;
    const Launch& launch = w.shared->launch;
    for (uint64_t i = 0; i < launch.tensor_count; i++)
        if (inside(launch.tensors[i].begin, launch.tensors[i].end)) return;
    const auto dynamic = reinterpret_cast<uintptr_t>(w.dynamic);
    const bool in_dynamic = inside(dynamic, dynamic + launch.shared_bytes);
    const bool in_static = inside(w.object.tls_begin, w.object.tls_end);
    if ((in_dynamic || in_static) && w.shared->check_races)
        w.touch(in_dynamic ? w.dynamic_shadow : w.static_shadow,
                address - (in_dynamic ? dynamic : w.object.tls_begin), bytes, access, instruction);
    if (in_dynamic || in_static || inside(w.object.begin, w.object.end)) return;
    const auto arguments = reinterpret_cast<uintptr_t>(w.shared->context);
    if (inside(arguments, arguments + w.shared->context_bytes)) return;
    out_of_bounds(address, bytes, access, instruction);
    w.abandon();
}

}  // namespace

// ------------------------------------------------------------------------------------- what kernels call

int block_barrier(int line, bool predicate) {
    Fiber& fiber = me();
    fiber.predicate = predicate;
    leave(fiber, State::at_barrier, line);
    return fiber.result;
}

uint64_t warp_operation(Operation operation, unsigned mask, uint64_t value, int source, int line) {
    Fiber& fiber = me();
    if (!(mask >> fiber.self.lane & 1)) fail("a lane calls a warp operation with a mask that it is not in", line);
    fiber.operation = operation;
    fiber.mask = mask;
    fiber.value = value;
    fiber.source = source;
    fiber.state = State::in_warp;
    fiber.line = line;
    worker->try_warp(fiber.self.number / warp_size);
    if (worker->shared->failed.load(std::memory_order_relaxed)) worker->abandon();
    if (fiber.state != State::ready) Context::change(fiber.context, worker->home);
    return fiber.answer;
}

void start_copy(void* to, const void* from, size_t bytes, size_t zeros, int line) {
    const void* instruction = __builtin_return_address(0);
    const auto place = reinterpret_cast<uintptr_t>(to);
    const auto dynamic = reinterpret_cast<uintptr_t>(worker->dynamic);
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
        fail("an asynchronous copy moves 4, 8 or 16 bytes", line);
    if (place % bytes || reinterpret_cast<uintptr_t>(from) % bytes)
        fail("an asynchronous copy begins and ends at a multiple of its size", line);
    if (place - dynamic >= worker->shared->launch.shared_bytes &&
        (place < worker->object.tls_begin || place >= worker->object.tls_end))
        fail("an asynchronous copy goes to shared memory", line);
    Fiber& fiber = me();
    Copy copy{static_cast<char*>(to), bytes, fiber.group, {}};
    if (zeros < bytes) {
        check(from, bytes - zeros, Access::read, instruction);
        memcpy(copy.content, from, bytes - zeros);
    }
    check(to, bytes, Access::write, instruction);
    memset(to, 0xff, bytes);
    fiber.copies.push_back(copy);
}

void commit_copies() { me().group++; }

void wait_copies(size_t later) {
    Fiber& fiber = me();
    size_t done = 0;
    for (; done < fiber.copies.size() && fiber.copies[done].group + later < fiber.group; done++) {
        const Copy& copy = fiber.copies[done];
        check(copy.to, copy.bytes, Access::write, __builtin_return_address(0));
        memcpy(copy.to, copy.content, copy.bytes);
    }
    fiber.copies.erase(fiber.copies.begin(), fiber.copies.begin() + static_cast<ptrdiff_t>(done));
}

float* warp_memory() { return worker->exchanged.data() + me().self.number / warp_size * 1024; }

void yield() { leave(me(), State::ready, 0); }

void fail(const char* message, int line) {
    report(nullptr, line, "%s", message);
    worker->abandon();
}

bool compare_exchange(void* address, size_t bytes, uint64_t& expected, uint64_t desired) {
    check(address, bytes, Access::atomic, __builtin_return_address(0));
    const auto exchange = [&]<class T>(T was) {
        const bool done = __atomic_compare_exchange_n(static_cast<T*>(address), &was, static_cast<T>(desired), false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        expected = was;
        return done;
    };
    if (bytes == 8) return exchange(expected);
    if (bytes == 4) return exchange(static_cast<uint32_t>(expected));
    return exchange(static_cast<uint16_t>(expected));
}

uint64_t atomic_load(const void* address, size_t bytes) {
    check(address, bytes, Access::atomic, __builtin_return_address(0));
    if (bytes == 8) return __atomic_load_n(static_cast<const uint64_t*>(address), __ATOMIC_SEQ_CST);
    if (bytes == 4) return __atomic_load_n(static_cast<const uint32_t*>(address), __ATOMIC_SEQ_CST);
    return __atomic_load_n(static_cast<const uint16_t*>(address), __ATOMIC_SEQ_CST);
}

Index thread_index() { return current->thread_index; }
Index block_index() { return current->block_index; }
Index block_size() { return current->block_size; }
Index grid_size() { return current->grid_size; }
unsigned lane() { return current->lane; }
void* dynamic_shared() { return worker->dynamic; }

int run(const Launch& launch, void (*body)(void*), void* context, size_t context_bytes, bool check_races) {
    const uint64_t blocks = uint64_t{1} * launch.grid[0] * launch.grid[1] * launch.grid[2];
    Shared shared{launch, body, context, context_bytes, check_races, blocks};
    const size_t threads = size_t{1} * launch.block[0] * launch.block[1] * launch.block[2];
    const uint64_t fit = most_stacks / std::max<size_t>(1, threads);
    const uint64_t workers = std::max<uint64_t>(1, std::min(blocks, fit));
    std::atomic<bool> begun{false};
    // A team of `workers` threads would end the others, which torch starts again.
#pragma omp parallel
    if (static_cast<uint64_t>(omp_get_thread_num()) < workers) {
        if (!worker) worker = new_worker();
        if (worker->begin(shared)) {
            begun = true;
            worker->run_blocks();
        }
        current = nullptr;
    }
    if (!begun) {
        snprintf(launch.message, launch.message_bytes, "there is no memory for the stacks of %zu threads", threads);
        return 1;
    }
    return shared.slow ? 2 : shared.failed ? 1 : 0;
}

// ---------------------------------------------------------------------------- what the compiler calls

struct Place {  // of libubsan's interface
    const char* file;
    uint32_t line, column;
};

void out_of_array(const Place* place, int64_t index) {
    if (!current) return;
    report(nullptr, static_cast<int>(place->line), "out of bounds: index %lld is outside of its array",
           static_cast<long long>(index));
    worker->abandon();
}

struct TypeMismatch {
    Place place;
    const void* type;
    uint8_t log_alignment, kind;
};

void misaligned(const TypeMismatch* mismatch, uintptr_t address) {
    if (!current) return;
    const unsigned alignment = 1u << mismatch->log_alignment;
    if (address % alignment == 0) return;
    report(nullptr, static_cast<int>(mismatch->place.line),
           "misaligned address: %u bytes are accessed at once at an address that is no multiple of %u", alignment,
           alignment);
    worker->abandon();
}

}  // namespace cuda_on_cpu

#pragma GCC visibility push(hidden)
extern "C" {
#define CUDA_ON_CPU_HOOKS(bytes)                                                                          \
    void __asan_load##bytes##_noabort(void* p) {                                                          \
        cuda_on_cpu::check(p, bytes, cuda_on_cpu::Access::read, __builtin_return_address(0));             \
    }                                                                                                     \
    void __asan_store##bytes##_noabort(void* p) {                                                         \
        cuda_on_cpu::check(p, bytes, cuda_on_cpu::Access::write, __builtin_return_address(0));            \
    }
CUDA_ON_CPU_HOOKS(1)
CUDA_ON_CPU_HOOKS(2)
CUDA_ON_CPU_HOOKS(4)
CUDA_ON_CPU_HOOKS(8)
CUDA_ON_CPU_HOOKS(16)
void __asan_loadN_noabort(void* p, long n) {
    cuda_on_cpu::check(p, static_cast<size_t>(n), cuda_on_cpu::Access::read, __builtin_return_address(0));
}
void __asan_storeN_noabort(void* p, long n) {
    cuda_on_cpu::check(p, static_cast<size_t>(n), cuda_on_cpu::Access::write, __builtin_return_address(0));
}
void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const void*) {}
void __asan_after_dynamic_init() {}
void __ubsan_handle_out_of_bounds(void* data, void* index) {
    cuda_on_cpu::out_of_array(static_cast<cuda_on_cpu::Place*>(data), reinterpret_cast<int64_t>(index));
}
void __ubsan_handle_type_mismatch_v1(void* data, void* address) {
    cuda_on_cpu::misaligned(static_cast<cuda_on_cpu::TypeMismatch*>(data), reinterpret_cast<uintptr_t>(address));
}
}
#pragma GCC visibility pop
