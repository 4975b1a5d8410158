/* ls_bench_step and ls_bench_gemm: where the time of a step goes, and what the products reach. */
#include <stdlib.h>

#include "api/settings.h"
#include "api/training_run.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "engine/product_bench.h"

enum { WARM_UP_STEPS = 3, DEFAULT_STEPS = 20 };

typedef struct step_bench {
    ls_training_run run;
    ls_op_measure *measures; /* [ops] */
    double *seconds;         /* [steps] */
    int64_t steps, tokens;
    double total, peak; /* seconds; FLOP/s of the best product on the same cores */
    double exposed;     /* seconds of waiting for other devices, a mean over them */
    int64_t elements;   /* that devices have read from one another */
} step_bench;

static ls_status time_steps(step_bench *bench, ls_error *error)
{
    for (int64_t i = 0; i < WARM_UP_STEPS + bench->steps; i++) {
        const ls_batch *batch;
        ls_step_result result;
        bool more;
        if (i == WARM_UP_STEPS) {
            ls_executor_measure(ls_ranks_executor(bench->run.ranks, 0), bench->measures);
            bench->elements = -ls_ranks_elements(bench->run.ranks);
        }
        double start = ls_seconds();
        LS_TRY(ls_reader_next(bench->run.reader, &batch, &more, error));
        LS_TRY(ls_ranks_step(bench->run.ranks, i + 1, batch, &result, error));
        if (!result.finite)
            return ls_fail(error, LS_NOT_FINITE, "step %lld: the loss or a gradient is not finite",
                           (long long)i + 1);
        if (i < WARM_UP_STEPS) continue;
        bench->seconds[i - WARM_UP_STEPS] = ls_seconds() - start;
        bench->total += bench->seconds[i - WARM_UP_STEPS];
        bench->tokens += batch->offsets[batch->samples];
        bench->exposed += result.times.exchange;
    }
    bench->elements += ls_ranks_elements(bench->run.ranks);
    return LS_OK;
}

/* The best of the three products at the model's own feed-forward shape, a batch's tokens. */
static ls_status find_peak(step_bench *bench, ls_error *error)
{
    const ls_model_config *config = &bench->run.session.folder.config;
    const ls_op_kind kinds[] = {LS_OP_LINEAR, LS_OP_LINEAR_INPUT_GRADIENT, LS_OP_WEIGHT_GRADIENT};
    /* The run has what its budget allows; the products are measured beside it. */
    bench->run.session.device->budget = 0;
    for (int i = 0; i < 3; i++) {
        ls_product product = {.kind = kinds[i],
                              .tokens = bench->tokens / bench->steps,
                              .features = config->intermediate_size,
                              .depth = config->hidden_size};
        double rate;
        LS_TRY(ls_product_bench(bench->run.session.device, &product, 0.2, &rate, error));
        if (rate > bench->peak) bench->peak = rate;
    }
    return LS_OK;
}

static int by_time(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static ls_status print_line(ls_text *text, const char *name, const ls_op_measure *sum,
                            const step_bench *bench, ls_error *error)
{
    double rate = sum->flops / sum->seconds;
    return ls_text_print(text, error, "%-24s %9.3f %7.1f %9.1f %8.1f %8.1f\n", name,
                         1e3 * sum->seconds / (double)bench->steps,
                         100 * sum->seconds / bench->total, 1e-9 * rate,
                         1e-9 * sum->bytes / sum->seconds, 100 * rate / bench->peak);
}

/* The table has what the first device's threads did for its ops. Exchanges go on beside them. */
static ls_status print_exchanges(const step_bench *bench, ls_text *text, ls_error *error)
{
    int devices = bench->run.session.device_count;
    double steps = (double)bench->steps, bytes = (double)bench->elements * (double)sizeof(float);
    if (devices == 1) return LS_OK;
    return ls_text_print(
        text, error,
        "\nops of the first of %d devices; exchanges: %.3f MB read from one another "
        "and %.3f ms of waiting a step (%.1f %%)\n",
        devices, 1e-6 * bytes / steps, 1e3 * bench->exposed / steps,
        100 * bench->exposed / bench->total);
}

static ls_status print_steps(const step_bench *bench, ls_text *text, ls_error *error)
{
    const ls_program *program = bench->run.programs.training.program;
    ls_op_measure sums[LS_OP_COUNT] = {0}, all = {0};
    for (int32_t i = 0; i < program->op_count; i++) {
        ls_op_measure *sum = &sums[program->ops[i].kind];
        const ls_op_measure *one = &bench->measures[i];
        *sum = (ls_op_measure){sum->seconds + one->seconds, sum->flops + one->flops,
                               sum->bytes + one->bytes, sum->runs + one->runs};
        all.seconds += one->seconds;
        all.flops += one->flops;
        all.bytes += one->bytes;
    }
    LS_TRY(ls_text_print(text, error, "%-24s %9s %7s %9s %8s %8s\n", "op", "ms/step", "% time",
                         "GFLOP/s", "GB/s", "% peak"));
    for (int kind = 0; kind < LS_OP_COUNT; kind++)
        if (sums[kind].runs) LS_TRY(print_line(text, ls_op_name(kind), &sums[kind], bench, error));
    ls_op_measure rest = {.seconds = bench->total - all.seconds};
    LS_TRY(print_line(text, "outside ops", &rest, bench, error));
    all.seconds = bench->total;
    LS_TRY(print_line(text, "step", &all, bench, error));
    LS_TRY(print_exchanges(bench, text, error));
    return ls_text_print(
        text, error,
        "\n%lld steps, median %.3f ms, %.1f tokens a step, %.0f tokens/s, peak %.1f GFLOP/s "
        "(best product on %d thread%s)\n",
        (long long)bench->steps, 1e3 * bench->seconds[bench->steps / 2],
        (double)bench->tokens / (double)bench->steps, (double)bench->tokens / bench->total,
        1e-9 * bench->peak, ls_cpu_device_threads(bench->run.session.device),
        ls_cpu_device_threads(bench->run.session.device) == 1 ? "" : "s");
}

static ls_status bench_step(step_bench *bench, ls_text *text, ls_error *error)
{
    ls_status status;
    bench->steps = bench->run.used.max_steps > 0 ? bench->run.used.max_steps : DEFAULT_STEPS;
    LS_TRY_GOTO(
        status,
        LS_NEW(bench->measures, bench->run.programs.training.program->op_count, "measures", error),
        done);
    LS_TRY_GOTO(status, LS_NEW(bench->seconds, bench->steps, "step times", error), done);
    LS_TRY_GOTO(status, time_steps(bench, error), done);
    LS_TRY_GOTO(status, find_peak(bench, error), done);
    qsort(bench->seconds, (size_t)bench->steps, sizeof *bench->seconds, by_time);
    status = print_steps(bench, text, error);
done:
    ls_free(bench->measures);
    ls_free(bench->seconds);
    return status;
}

ls_status ls_bench_step_text(const ls_options *options, char **out, ls_error *error)
{
    step_bench bench = {0};
    ls_text text = {0};
    LS_TRY(ls_training_run_open(&bench.run, options, NULL, LS_COMMAND_BENCH_STEP, error));
    ls_status status = bench_step(&bench, &text, error);
    ls_training_run_close(&bench.run);
    if (status != LS_OK) ls_text_deinit(&text);
    *out = text.data;
    return status;
}

/* The products of MiniLM-sized and BERT-base-sized layers. */
static ls_status bench_products(ls_device *device, ls_text *text, ls_error *error)
{
    static const int64_t layers[][2] = {{384, 384}, {1536, 384}, {384, 1536},
                                        {768, 768}, {3072, 768}, {768, 3072}};
    static const int64_t tokens[] = {32, 108, 864, 4096};
    LS_TRY(ls_text_print(text, error, "%6s %9s %6s %9s %15s %16s\n", "tokens", "features", "depth",
                         "forward", "input gradient", "weight gradient"));
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++) {
        for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
            double rates[3];
            const ls_op_kind kinds[] = {LS_OP_LINEAR, LS_OP_LINEAR_INPUT_GRADIENT,
                                        LS_OP_WEIGHT_GRADIENT};
            for (int i = 0; i < 3; i++) {
                ls_product product = {kinds[i], tokens[t], layers[l][0], layers[l][1], 108};
                LS_TRY(ls_product_bench(device, &product, 0.1, &rates[i], error));
            }
            LS_TRY(ls_text_print(text, error, "%6lld %9lld %6lld %9.1f %15.1f %16.1f\n",
                                 (long long)tokens[t], (long long)layers[l][0],
                                 (long long)layers[l][1], 1e-9 * rates[0], 1e-9 * rates[1],
                                 1e-9 * rates[2]));
        }
    }
    return ls_text_print(text, error, "\nGFLOP/s on %d thread%s; leaves of 108 tokens\n",
                         ls_cpu_device_threads(device),
                         ls_cpu_device_threads(device) == 1 ? "" : "s");
}

ls_status ls_bench_gemm_text(const ls_options *options, char **out, ls_error *error)
{
    ls_session session = {.options = options};
    ls_text text = {0};
    LS_TRY(ls_options_check(options, LS_COMMAND_BENCH_GEMM, error));
    LS_TRY(ls_session_open_devices(&session, 1, error));
    ls_status status = bench_products(session.device, &text, error);
    ls_session_close(&session);
    if (status != LS_OK) ls_text_deinit(&text);
    *out = text.data;
    return status;
}
