#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <xmmintrin.h>

#include "base/alloc.h"
#include "base/calls.h"

/* Workers spin this many polls for the next task before they sleep: about 20 microseconds, less
 * than a wake-up costs, and short enough to leave the core to others between steps. */
enum { SPIN_POLLS = 2000 };

typedef struct worker {
    struct ls_threads *threads;
    pthread_t thread;
    int index;
} worker;

struct ls_threads {
    int count, started;
    worker *workers;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    int sleepers; /* under mutex */
    ls_part_function function;
    void *context;
    int64_t parts;
    _Atomic int64_t next_part;
    _Atomic uint64_t generation; /* one more for each task */
    _Atomic int busy;            /* workers that have not finished the task */
    _Atomic bool stopping;
};

uint32_t ls_float_mode_enter(void)
{
    uint32_t former = _mm_getcsr();
    /* Exceptions masked, round to nearest, flush-to-zero (bit 15), denormals-are-zero (bit 6). */
    _mm_setcsr(0x1f80u | 0x8000u | 0x0040u);
    return former;
}

void ls_float_mode_leave(uint32_t former)
{
    _mm_setcsr(former);
}

ls_cores ls_cores_own(void)
{
    ls_cores cores = {{0}};
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (int core = 0; core < CPU_SETSIZE && core < LS_MOST_CORES; core++)
        if (CPU_ISSET(core, &set)) cores.bits[core / 64] |= (uint64_t)1 << core % 64;
    return cores;
}

static bool has_core(const ls_cores *cores, int core)
{
    return cores->bits[core / 64] >> core % 64 & 1;
}

static void bind_thread(pthread_t thread, const ls_cores *cores)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core = 0; core < CPU_SETSIZE && core < LS_MOST_CORES; core++)
        if (has_core(cores, core)) CPU_SET(core, &set);
    (void)pthread_setaffinity_np(thread, sizeof set, &set);
}

void ls_cores_bind(const ls_cores *cores)
{
    bind_thread(pthread_self(), cores);
}

static void run_parts(ls_threads *threads, int thread)
{
    for (;;) {
        int64_t part = atomic_fetch_add(&threads->next_part, 1);
        if (part >= threads->parts) return;
        threads->function(threads->context, part, thread);
    }
}

static void wait_for_task(ls_threads *threads, uint64_t seen)
{
    for (int poll = 0; poll < SPIN_POLLS; poll++) {
        if (atomic_load(&threads->generation) != seen || atomic_load(&threads->stopping)) return;
        _mm_pause();
    }
    pthread_mutex_lock(&threads->mutex);
    threads->sleepers++;
    while (atomic_load(&threads->generation) == seen && !atomic_load(&threads->stopping))
        pthread_cond_wait(&threads->wake, &threads->mutex);
    threads->sleepers--;
    pthread_mutex_unlock(&threads->mutex);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    ls_threads *threads = self->threads;
    uint64_t seen = 0;
    ls_float_mode_enter();
    for (;;) {
        wait_for_task(threads, seen);
        if (atomic_load(&threads->stopping)) return NULL;
        seen++;
        run_parts(threads, self->index);
        atomic_fetch_sub(&threads->busy, 1);
    }
}

ls_status ls_threads_new(ls_threads **out, int count, ls_error *error)
{
    ls_threads *threads = NULL;
    LS_TRY(LS_NEW(threads, 1, "thread pool", error));
    threads->count = count < 1 ? 1 : count;
    pthread_mutex_init(&threads->mutex, NULL);
    pthread_cond_init(&threads->wake, NULL);
    ls_status status = LS_NEW(threads->workers, threads->count, "thread pool", error);
    for (int index = 1; status == LS_OK && index < threads->count; index++) {
        threads->workers[index] = (worker){.threads = threads, .index = index};
        if (ls_call_thread(&threads->workers[index].thread, worker_main,
                           &threads->workers[index]) != 0)
            status = ls_fail(error, LS_NO_MEMORY, "cannot start thread %d of %d: use --threads %d",
                             index + 1, threads->count, index);
        else
            threads->started = index;
    }
    if (status != LS_OK) {
        ls_threads_free(threads);
        return status;
    }
    *out = threads;
    return LS_OK;
}

void ls_threads_free(ls_threads *threads)
{
    if (!threads) return;
    pthread_mutex_lock(&threads->mutex);
    atomic_store(&threads->stopping, true);
    pthread_cond_broadcast(&threads->wake);
    pthread_mutex_unlock(&threads->mutex);
    for (int index = 1; index <= threads->started; index++)
        pthread_join(threads->workers[index].thread, NULL);
    pthread_cond_destroy(&threads->wake);
    pthread_mutex_destroy(&threads->mutex);
    ls_free(threads->workers);
    ls_free(threads);
}

void ls_threads_bind(ls_threads *threads, const ls_cores *cores)
{
    for (int index = 1; index <= threads->started; index++)
        bind_thread(threads->workers[index].thread, cores);
}

int ls_threads_count(const ls_threads *threads)
{
    return threads->count;
}

void ls_threads_run(ls_threads *threads, int64_t parts, ls_part_function function, void *context)
{
    uint32_t former = ls_float_mode_enter();
    if (threads->count == 1 || parts <= 1) {
        for (int64_t part = 0; part < parts; part++)
            function(context, part, 0);
        ls_float_mode_leave(former);
        return;
    }
    threads->function = function;
    threads->context = context;
    threads->parts = parts;
    atomic_store(&threads->next_part, 0);
    atomic_store(&threads->busy, threads->count - 1);
    pthread_mutex_lock(&threads->mutex);
    atomic_fetch_add(&threads->generation, 1);
    if (threads->sleepers) pthread_cond_broadcast(&threads->wake);
    pthread_mutex_unlock(&threads->mutex);
    run_parts(threads, 0);
    for (int poll = 0; atomic_load(&threads->busy) != 0; poll++) {
        if (poll < SPIN_POLLS)
            _mm_pause();
        else
            sched_yield();
    }
    ls_float_mode_leave(former);
}
