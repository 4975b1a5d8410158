/* Any bytes as the record of a run: run.json up to the first form feed, metrics.jsonl behind it.
 * What is found to be proved is a whole number of epochs and a part of one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "lockstep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(path_of(name), "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) abort();
}

static void remove_all(void)
{
    unlink(path_of("run.json"));
    unlink(path_of("metrics.jsonl"));
    rmdir(folder);
}

/* The order of an epoch of very many rows is a matter of memory and minutes, not of this test. */
static int refuse_large(void *context, size_t bytes)
{
    (void)context;
    return bytes > 4 << 20;
}

static void prepare(void)
{
    snprintf(folder, sizeof folder, "%s/fuzz-record-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) abort();
    atexit(remove_all);
    ls_set_allocation_hook(refuse_large, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*folder) prepare();
    ls_error error = {0};
    ls_run_audit report = {0};
    const uint8_t *border = memchr(data, '\f', size);
    size_t first = border ? (size_t)(border - data) : size;
    write_file("run.json", data, first);
    write_file("metrics.jsonl", border ? border + 1 : data, border ? size - first - 1 : 0);
    ls_status status = ls_audit_record(folder, &report, &error);
    if (status != LS_OK && !*error.text) abort();
    if (status == LS_OK && (report.steps < 1 || report.epochs < 0 || report.skipped_steps < 0 ||
                            report.rest < 0 || report.rest >= report.rows))
        abort();
    return 0;
}
