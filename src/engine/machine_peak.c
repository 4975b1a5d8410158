#include "engine/machine_peak.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/threads.h"
#include "engine/product_bench.h"

/* Each thread copies blocks of its own; together they are well beyond a last-level cache. */
enum { COPIED_BYTES = 64 << 20, BLOCK_BYTES = 1 << 20, COPIES = 5 };

typedef struct copy_test {
    unsigned char *from, *to;
} copy_test;

static void copy_block(void *context, int64_t part, int thread)
{
    copy_test *test = context;
    (void)thread;
    memcpy(test->to + part * BLOCK_BYTES, test->from + part * BLOCK_BYTES, BLOCK_BYTES);
}

static ls_status measure_copies(double *bytes_per_second, ls_threads *threads, ls_error *error)
{
    copy_test test = {ls_allocate_pages(COPIED_BYTES, true), ls_allocate_pages(COPIED_BYTES, true)};
    ls_status status = LS_OK;
    double best = 0;
    if (test.from && test.to) {
        memset(test.from, 1, COPIED_BYTES);
        memset(test.to, 1, COPIED_BYTES);
        for (int i = 0; i < COPIES; i++) {
            double begin = ls_seconds();
            ls_threads_run(threads, COPIED_BYTES / BLOCK_BYTES, copy_block, &test);
            double rate = 2.0 * COPIED_BYTES / (ls_seconds() - begin);
            if (rate > best) best = rate;
        }
        *bytes_per_second = best;
    } else {
        status = ls_fail(error, LS_NO_MEMORY, "out of memory: %d bytes to measure copying with",
                         2 * COPIED_BYTES);
    }
    ls_free_pages(test.from, COPIED_BYTES);
    ls_free_pages(test.to, COPIED_BYTES);
    return status;
}

static ls_status measure_products(ls_machine_peak *peak, ls_device *device, ls_product product,
                                  ls_error *error)
{
    static const ls_op_kind kinds[] = {LS_OP_LINEAR, LS_OP_LINEAR_INPUT_GRADIENT,
                                       LS_OP_WEIGHT_GRADIENT};
    for (int i = 0; i < 3; i++) {
        double rate;
        product.kind = kinds[i];
        LS_TRY(ls_product_bench(device, &product, 0.1, &rate, error));
        if (rate > peak->flops_per_second) peak->flops_per_second = rate;
    }
    return LS_OK;
}

ls_status ls_machine_peak_measure(ls_machine_peak *peak, int threads, int64_t tokens,
                                  int64_t features, int64_t depth, ls_error *error)
{
    ls_device *device = NULL;
    ls_product product = {.tokens = tokens, .features = features, .depth = depth};
    *peak = (ls_machine_peak){0};
    LS_TRY(ls_cpu_device_new(&device, threads, 0, error));
    ls_status status = measure_products(peak, device, product, error);
    /* A tiny model's products are no measure of a machine. */
    ls_product large = {.tokens = 1024, .features = 1536, .depth = 384};
    if (status == LS_OK) status = measure_products(peak, device, large, error);
    if (status == LS_OK)
        status = measure_copies(&peak->bytes_per_second, ls_cpu_device_pool(device), error);
    ls_device_free(device);
    return status;
}
