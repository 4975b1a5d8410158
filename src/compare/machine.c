#include "compare/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/threads.h"
#include "base/topology.h"

enum {
    ELEMENTS = 8 << 20, /* doubles of each array: 64 MiB, more than caches hold */
    PARTS_A_THREAD = 4,
    MOST_THREADS = 256,
    LARGEST_PROC_FILE = 16 << 20
};
static const double measured_seconds = 0.5;

/* The text after "key<spaces>:" on its first line in a file of /proc, "" if there is none. */
static void find_line(char *into, size_t bytes, const char *path, const char *key)
{
    char *text = NULL;
    size_t count = 0;
    *into = '\0';
    if (ls_file_read(&text, &count, path, LARGEST_PROC_FILE, NULL) != LS_OK) return;
    const char *at = strstr(text, key);
    if (at) {
        at += strlen(key);
        at += strspn(at, " \t:");
        snprintf(into, bytes, "%.*s", (int)strcspn(at, "\n"), at);
    }
    ls_free(text);
}

/* --- memory bandwidth ----------------------------------------------------------------------------
 */

typedef struct arrays {
    double *sum, *term;
    int64_t parts;
} arrays;

/* Pages that were never written would all be read from one page of zeros. */
static void fill_part(void *context, int64_t part, int thread)
{
    arrays *both = context;
    (void)thread;
    for (int64_t i = ELEMENTS * part / both->parts; i < ELEMENTS * (part + 1) / both->parts; i++)
        both->sum[i] = both->term[i] = 1;
}

static void add_part(void *context, int64_t part, int thread)
{
    arrays *both = context;
    (void)thread;
    size_t first = (size_t)(ELEMENTS * part / both->parts);
    size_t last = (size_t)(ELEMENTS * (part + 1) / both->parts);
    for (size_t i = first; i < last; i++)
        both->sum[i] += both->term[i];
}

static double measure(ls_threads *threads, arrays *both)
{
    double best = 0, start = ls_seconds();
    ls_threads_run(threads, both->parts, fill_part, both);
    do {
        double from = ls_seconds();
        ls_threads_run(threads, both->parts, add_part, both);
        double rate = 3.0 * ELEMENTS * sizeof(double) / (ls_seconds() - from);
        if (rate > best) best = rate;
    } while (ls_seconds() - start < measured_seconds);
    return best;
}

void ls_compare_machine_measure(ls_compare_machine *machine)
{
    int64_t thread_count = machine->bandwidth_threads;
    const size_t bytes = ELEMENTS * sizeof(double);
    ls_threads *threads = NULL;
    double rate = 0;
    arrays both = {ls_allocate_pages(bytes, true), ls_allocate_pages(bytes, true),
                   thread_count * PARTS_A_THREAD};
    if (both.sum && both.term && ls_threads_new(&threads, (int)thread_count, NULL) == LS_OK)
        rate = measure(threads, &both);
    ls_threads_free(threads);
    ls_free_pages(both.sum, bytes);
    ls_free_pages(both.term, bytes);
    if (rate > 0 && !(rate < machine->bytes_per_second)) machine->bytes_per_second = rate;
}

ls_status ls_compare_core_count(int64_t *count, ls_error *error)
{
    int cores;
    LS_TRY(ls_core_count(&cores, error));
    *count = cores;
    return LS_OK;
}

void ls_compare_machine_look(ls_compare_machine *machine, int64_t cores, int64_t threads)
{
    char memory[64];
    struct utsname system;
    struct tm parts;
    time_t now = time(NULL);
    *machine = (ls_compare_machine){.cores = cores};
    find_line(machine->processor, sizeof machine->processor, "/proc/cpuinfo", "model name");
    find_line(memory, sizeof memory, "/proc/meminfo", "MemTotal");
    machine->memory_bytes = 1024 * strtoll(memory, NULL, 10);
    if (uname(&system) == 0)
        snprintf(machine->system, sizeof machine->system, "%.30s %.60s %.30s", system.sysname,
                 system.release, system.machine);
    if (gmtime_r(&now, &parts))
        strftime(machine->date, sizeof machine->date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    machine->bandwidth_threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    machine->bytes_per_second = NAN;
}
