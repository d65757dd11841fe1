// The part of the OpenMP run time that g++ -fopenmp kernels call, and C11's mutexes, built to find races.
//
// It replaces libgomp in a kernel built with -fsanitize=thread, because the sanitizer cannot see libgomp's
// synchronisation. This file is compiled without that flag, so its own waits are invisible. It reports to the
// sanitizer exactly the order that OpenMP guarantees (begin and end of a region, barriers, critical sections,
// ended tasks), and no order that arises by chance.
//
// Work is distributed by thread number, even if a schedule leaves it open. So every run is the same, and every
// thread gets a part of the work even on one processor. Functions missing here do not link: kernels that need
// them are not checked.

#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);

namespace {

constexpr int kThreads = 4, kMostThreads = 64, kDeepestTask = 32;
using Body = void (*)(void*);

struct Barrier {
    std::atomic<int> arrived{0};
    std::atomic<int> round{0};
    char tags[2];

    void wait(int threads) {
        const int now = round.load(std::memory_order_acquire);
        char* tag = &tags[now & 1];
        __tsan_release(tag);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
            arrived.store(0, std::memory_order_relaxed);
            round.store(now + 1, std::memory_order_release);
            round.notify_all();
        } else {
            while (round.load(std::memory_order_acquire) == now) round.wait(now, std::memory_order_acquire);
        }
        __tsan_acquire(tag);
    }
};

struct Loop {
    bool ready = false;  // the region set its bounds
    bool wide = false;   // unsigned counter
    uint64_t first = 0, step = 1, count = 0, chunk = 1;
};

struct Team {
    int threads = 1;
    Barrier barrier;
    Loop loop;
    long sections = -1;
    std::atomic<void*> copied{nullptr};
    char start, end, tasks;
};

struct Self {
    Team* team = nullptr;
    int number = 0, level = 0, depth = 0;
    long singles = 0, next_section = 0, sections = 0;
    Loop loop;
    uint64_t round = 0;  // each thread has one chunk of every round
    char children;
};

thread_local Self self;
int wanted = 0;

int max_threads() {
    if (wanted > 0) return wanted;
    const char* text = std::getenv("OMP_NUM_THREADS");
    const int number = text ? std::atoi(text) : 0;
    return number > 0 ? (number < kMostThreads ? number : kMostThreads) : kThreads;
}

struct Worker {
    std::atomic<int> jobs{0}, done{0};
    Body body = nullptr;
    void* data = nullptr;
    Team* team = nullptr;
    int number = 0;

    void serve() {
        for (int seen = 0;; ++seen) {
            while (jobs.load(std::memory_order_acquire) == seen) jobs.wait(seen, std::memory_order_acquire);
            __tsan_acquire(&team->start);
            self = Self{};
            self.team = team;
            self.number = number;
            self.level = 1;
            if (team->loop.ready) self.loop = team->loop;
            self.sections = team->sections;
            self.next_section = number + 1;
            body(data);
            team->barrier.wait(team->threads);
            __tsan_release(&team->end);
            done.store(seen + 1, std::memory_order_release);
            done.notify_all();
        }
    }
};

std::vector<Worker*> pool;
std::atomic_flag pool_taken;

void* serve(void* worker) {
    static_cast<Worker*>(worker)->serve();
    return nullptr;
}

void run(Body body, void* data, unsigned asked, const Loop* loop, long sections) {
    const Self outer = self;
    const bool alone = outer.team != nullptr || pool_taken.test_and_set(std::memory_order_acquire);
    Team team;
    team.threads = alone ? 1 : (asked ? static_cast<int>(asked) : max_threads());
    if (team.threads > kMostThreads) team.threads = kMostThreads;
    if (loop) team.loop = *loop;
    team.sections = sections;
    while (!alone && static_cast<int>(pool.size()) < team.threads - 1) {
        auto* worker = new Worker;
        pthread_t thread;
        if (pthread_create(&thread, nullptr, serve, worker)) std::abort();
        pthread_detach(thread);
        pool.push_back(worker);
    }
    __tsan_release(&team.start);
    for (int i = 1; i < team.threads; ++i) {
        Worker& worker = *pool[i - 1];
        worker.body = body, worker.data = data, worker.team = &team, worker.number = i;
        worker.jobs.fetch_add(1, std::memory_order_release);
        worker.jobs.notify_all();
    }
    self = Self{};
    self.team = &team;
    self.level = outer.level + 1;
    self.depth = outer.depth;
    if (team.loop.ready) self.loop = team.loop;
    self.sections = sections;
    self.next_section = 1;
    body(data);
    team.barrier.wait(team.threads);
    for (int i = 1; i < team.threads; ++i) {
        Worker& worker = *pool[i - 1];
        for (int last = worker.jobs.load(std::memory_order_relaxed), now; (now = worker.done.load()) != last;)
            worker.done.wait(now, std::memory_order_acquire);
    }
    __tsan_acquire(&self.children);
    __tsan_acquire(&team.end);
    __tsan_acquire(&team.tasks);
    self = outer;
    if (!alone) pool_taken.clear(std::memory_order_release);
}

void barrier() {
    if (!self.team) return;
    self.team->barrier.wait(self.team->threads);
    __tsan_acquire(&self.team->tasks);
}

int team_size() { return self.team ? self.team->threads : 1; }

Loop counted(long start, long end, long step, long chunk) {
    const uint64_t span = step > 0 ? (end > start ? uint64_t(end) - uint64_t(start) : 0)
                                   : (start > end ? uint64_t(start) - uint64_t(end) : 0);
    const uint64_t stride = step > 0 ? uint64_t(step) : uint64_t(0) - uint64_t(step);
    return {true, false, uint64_t(start), uint64_t(step), (span + stride - 1) / stride,
            chunk > 0 ? uint64_t(chunk) : 1};
}

bool next_chunk(uint64_t* first, uint64_t* last) {
    const Loop& loop = self.loop;
    // Rotated by another number in each round, so that threads that share data at a fixed period collide.
    const uint64_t threads = team_size(), turn = (self.round * 2654435761u >> 16) % threads;
    const uint64_t from = (self.round * threads + (self.number + turn) % threads) * loop.chunk;
    if (from >= loop.count) return false;
    ++self.round;
    const uint64_t to = loop.count - from < loop.chunk ? loop.count : from + loop.chunk;
    *first = loop.first + from * loop.step;
    *last = loop.first + to * loop.step;
    return true;
}

bool begin_loop(const Loop& loop, uint64_t* first, uint64_t* last) {
    self.loop = loop;
    self.round = 0;
    return next_chunk(first, last);
}

template <class Word>
void lock(Word* word) {
    std::atomic_ref<Word> taken(*word);
    Word free{};
    while (!taken.compare_exchange_weak(free, Word(1), std::memory_order_acquire)) {
        free = Word{};
        std::this_thread::yield();
    }
    __tsan_acquire(word);
}

template <class Word>
void unlock(Word* word) {
    __tsan_release(word);
    std::atomic_ref<Word>(*word).store(Word{}, std::memory_order_release);
}

uintptr_t unnamed, atomics;

// -- tasks: each runs at once and alone, in its own thread; no wait for it is reported

struct Task {
    Body body;
    void* data;
    Self self;
    char* parent;
    std::atomic<int> done{0};
};

void* run_task(void* given) {
    auto* task = static_cast<Task*>(given);
    self = task->self;
    task->body(task->data);
    __tsan_release(task->parent);
    if (self.team) __tsan_release(&self.team->tasks);
    task->done.store(1, std::memory_order_release);
    return nullptr;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("hidden")))

// -- regions

EXPORT void GOMP_parallel(Body body, void* data, unsigned threads, unsigned) {
    run(body, data, threads, nullptr, -1);
}

EXPORT void GOMP_parallel_sections(Body body, void* data, unsigned threads, unsigned count, unsigned) {
    run(body, data, threads, nullptr, count);
}

EXPORT void GOMP_barrier() { barrier(); }

// -- loops

#define SCHEDULE(NAME)                                                                                      \
    EXPORT bool GOMP_loop_##NAME##_start(long start, long end, long step, long chunk, long* first,          \
                                         long* last) {                                                      \
        return begin_loop(counted(start, end, step, chunk), reinterpret_cast<uint64_t*>(first),             \
                          reinterpret_cast<uint64_t*>(last));                                               \
    }                                                                                                       \
    EXPORT bool GOMP_loop_##NAME##_next(long* first, long* last) {                                          \
        return next_chunk(reinterpret_cast<uint64_t*>(first), reinterpret_cast<uint64_t*>(last));           \
    }                                                                                                       \
    EXPORT void GOMP_parallel_loop_##NAME(Body body, void* data, unsigned threads, long start, long end,    \
                                          long step, long chunk, unsigned) {                                \
        const Loop loop = counted(start, end, step, chunk);                                                 \
        run(body, data, threads, &loop, -1);                                                                \
    }                                                                                                       \
    EXPORT bool GOMP_loop_ull_##NAME##_start(bool up, unsigned long long start, unsigned long long end,     \
                                             unsigned long long step, unsigned long long chunk,             \
                                             unsigned long long* first, unsigned long long* last) {         \
        const uint64_t stride = up ? step : uint64_t(0) - step;                                             \
        const uint64_t span = up ? (end > start ? end - start : 0) : (start > end ? start - end : 0);       \
        return begin_loop({true, true, start, step, (span + stride - 1) / stride, chunk ? chunk : 1},       \
                          reinterpret_cast<uint64_t*>(first), reinterpret_cast<uint64_t*>(last));           \
    }                                                                                                       \
    EXPORT bool GOMP_loop_ull_##NAME##_next(unsigned long long* first, unsigned long long* last) {          \
        return next_chunk(reinterpret_cast<uint64_t*>(first), reinterpret_cast<uint64_t*>(last));           \
    }

SCHEDULE(static)
SCHEDULE(dynamic)
SCHEDULE(guided)
SCHEDULE(nonmonotonic_dynamic)
SCHEDULE(nonmonotonic_guided)

#define RUNTIME_SCHEDULE(NAME)                                                                              \
    EXPORT bool GOMP_loop_##NAME##_start(long start, long end, long step, long* first, long* last) {        \
        return begin_loop(counted(start, end, step, 1), reinterpret_cast<uint64_t*>(first),                 \
                          reinterpret_cast<uint64_t*>(last));                                               \
    }                                                                                                       \
    EXPORT bool GOMP_loop_##NAME##_next(long* first, long* last) {                                          \
        return next_chunk(reinterpret_cast<uint64_t*>(first), reinterpret_cast<uint64_t*>(last));           \
    }                                                                                                       \
    EXPORT void GOMP_parallel_loop_##NAME(Body body, void* data, unsigned threads, long start, long end,    \
                                          long step, unsigned) {                                            \
        const Loop loop = counted(start, end, step, 1);                                                     \
        run(body, data, threads, &loop, -1);                                                                \
    }

RUNTIME_SCHEDULE(runtime)
RUNTIME_SCHEDULE(nonmonotonic_runtime)
RUNTIME_SCHEDULE(maybe_nonmonotonic_runtime)

EXPORT void GOMP_loop_end() { barrier(); }
EXPORT void GOMP_loop_end_nowait() {}

// -- sections, single

EXPORT unsigned GOMP_sections_next() {
    const long mine = self.next_section;
    if (mine > self.sections) return 0;
    self.next_section += team_size();
    return static_cast<unsigned>(mine);
}

EXPORT unsigned GOMP_sections_start(unsigned count) {
    self.sections = count;
    self.next_section = self.number + 1;
    return GOMP_sections_next();
}

EXPORT void GOMP_sections_end() { barrier(); }
EXPORT void GOMP_sections_end_nowait() {}

EXPORT bool GOMP_single_start() { return self.singles++ % team_size() == self.number; }

EXPORT void* GOMP_single_copy_start() {
    if (GOMP_single_start()) return nullptr;
    barrier();
    return self.team->copied.load(std::memory_order_acquire);
}

EXPORT void GOMP_single_copy_end(void* data) {
    if (!self.team) return;
    self.team->copied.store(data, std::memory_order_release);
    barrier();
}

// -- locks

EXPORT void GOMP_critical_start() { lock(&unnamed); }
EXPORT void GOMP_critical_end() { unlock(&unnamed); }
EXPORT void GOMP_critical_name_start(void** name) { lock(reinterpret_cast<uintptr_t*>(name)); }
EXPORT void GOMP_critical_name_end(void** name) { unlock(reinterpret_cast<uintptr_t*>(name)); }
EXPORT void GOMP_atomic_start() { lock(&atomics); }
EXPORT void GOMP_atomic_end() { unlock(&atomics); }

EXPORT void omp_init_lock(omp_lock_t* given) { std::memset(static_cast<void*>(given), 0, sizeof *given); }
EXPORT void omp_destroy_lock(omp_lock_t*) {}
EXPORT void omp_set_lock(omp_lock_t* given) { lock(reinterpret_cast<int*>(given)); }
EXPORT void omp_unset_lock(omp_lock_t* given) { unlock(reinterpret_cast<int*>(given)); }
EXPORT int omp_test_lock(omp_lock_t* given) {
    int free = 0;
    const bool taken = std::atomic_ref<int>(*reinterpret_cast<int*>(given)).compare_exchange_strong(free, 1);
    if (taken) __tsan_acquire(given);
    return taken;
}

// -- tasks

EXPORT void GOMP_task(Body body, void* data, void (*copy)(void*, void*), long size, long align, bool deferred,
                      unsigned flags, void**, int, void*) {
    constexpr unsigned kDepends = 8;
    std::vector<char> room(size + align);
    void* argument = room.data() + (align - reinterpret_cast<uintptr_t>(room.data()) % align) % align;
    if (copy) copy(argument, data);
    else std::memcpy(argument, data, size);
    // A task with dependences runs here in order, which OpenMP allows; nothing is reported.
    if (!deferred || (flags & kDepends) || self.depth >= kDeepestTask) return body(argument);
    Task task{body, argument, Self{}, &self.children, {}};
    task.self.team = self.team;
    task.self.number = self.number;
    task.self.level = self.level;
    task.self.depth = self.depth + 1;
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run_task, &task)) return body(argument);
    pthread_detach(thread);
    while (!task.done.load(std::memory_order_acquire)) std::this_thread::yield();
}

EXPORT void GOMP_taskwait() { __tsan_acquire(&self.children); }
EXPORT void GOMP_taskyield() {}
EXPORT void GOMP_taskgroup_start() {}
EXPORT void GOMP_taskgroup_end() {
    __tsan_acquire(&self.children);
    if (self.team) __tsan_acquire(&self.team->tasks);
}

// -- queries

EXPORT int omp_get_thread_num() { return self.number; }
EXPORT int omp_get_num_threads() { return team_size(); }
EXPORT int omp_get_max_threads() { return max_threads(); }
EXPORT void omp_set_num_threads(int number) { wanted = number; }
EXPORT int omp_get_num_procs() { return max_threads(); }
EXPORT int omp_get_thread_limit() { return kMostThreads; }
EXPORT int omp_in_parallel() { return team_size() > 1; }
EXPORT int omp_get_level() { return self.level; }
EXPORT int omp_get_active_level() { return team_size() > 1; }
EXPORT int omp_get_team_size(int level) { return level == self.level ? team_size() : 1; }
EXPORT int omp_get_ancestor_thread_num(int level) { return level == self.level ? self.number : 0; }
EXPORT int omp_get_dynamic() { return 0; }
EXPORT void omp_set_dynamic(int) {}
EXPORT int omp_get_nested() { return 0; }
EXPORT void omp_set_nested(int) {}
EXPORT int omp_get_max_active_levels() { return 1; }
EXPORT void omp_set_max_active_levels(int) {}
EXPORT int omp_get_num_teams() { return 1; }
EXPORT int omp_get_team_num() { return 0; }
EXPORT int omp_in_final() { return 0; }
EXPORT double omp_get_wtick() { return 1e-9; }
EXPORT double omp_get_wtime() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// -- C11: the linker's --wrap makes kernels call these

#if __has_include(<threads.h>)
#include <threads.h>

#define WRAPPED(NAME, ...)                     \
    extern "C" int __real_##NAME(__VA_ARGS__); \
    EXPORT int __wrap_##NAME(__VA_ARGS__)

static int taken(mtx_t* mutex, int result) {
    if (result == thrd_success) __tsan_acquire(mutex);
    return result;
}

WRAPPED(mtx_lock, mtx_t* mutex) { return taken(mutex, __real_mtx_lock(mutex)); }
WRAPPED(mtx_trylock, mtx_t* mutex) { return taken(mutex, __real_mtx_trylock(mutex)); }
WRAPPED(mtx_timedlock, mtx_t* mutex, const timespec* until) {
    return taken(mutex, __real_mtx_timedlock(mutex, until));
}
WRAPPED(mtx_unlock, mtx_t* mutex) {
    __tsan_release(mutex);
    return __real_mtx_unlock(mutex);
}
WRAPPED(cnd_wait, cnd_t* condition, mtx_t* mutex) {
    __tsan_release(mutex);
    const int result = __real_cnd_wait(condition, mutex);
    __tsan_acquire(mutex);
    return result;
}
WRAPPED(cnd_timedwait, cnd_t* condition, mtx_t* mutex, const timespec* until) {
    __tsan_release(mutex);
    const int result = __real_cnd_timedwait(condition, mutex, until);
    __tsan_acquire(mutex);
    return result;
}

#endif
