/* ls_bench_comm_text: how fast ranks exchange. */
#include <string.h>

#include "api/session.h"
#include "api/settings.h"
#include "base/alloc.h"
#include "base/text.h"
#include "engine/exchange/comm_bench.h"

static const int64_t least_bytes = 64 << 10, most_bytes = 128 << 20;

static const char *const names[] = {
    [LS_BENCH_ALL_REDUCE] = "all-reduce",
    [LS_BENCH_REDUCE_SCATTER] = "reduce-scatter",
    [LS_BENCH_ALL_GATHER] = "all-gather",
    [LS_BENCH_BROADCAST] = "broadcast",
};

/* Bytes on the bus for each byte of the operand: nccl-tests, doc/PERFORMANCE.md. */
static double bus_factor(ls_comm_bench_kind kind, int ranks)
{
    double n = ranks;
    if (kind == LS_BENCH_ALL_REDUCE) return 2 * (n - 1) / n;
    return kind == LS_BENCH_BROADCAST ? 1 : (n - 1) / n;
}

/* Bytes of memory that are read or written for each byte of the operand, all ranks together: an
 * owner reads every rank's part and writes its own; a copy is read and written. */
static double touched_factor(ls_comm_bench_kind kind, int ranks)
{
    double n = ranks, sum = n + 1, gather = 2 * (n - 1);
    if (kind == LS_BENCH_ALL_REDUCE) return sum + gather;
    return kind == LS_BENCH_REDUCE_SCATTER ? sum : gather;
}

static ls_status measure(ls_comm_bench *bench, int ranks, ls_comm_bench_kind kind, int64_t bytes,
                         double copied_per_second, bool beside_mpi, ls_text *text, ls_error *error)
{
    double seconds, mpi = 0;
    LS_TRY(ls_comm_bench_run(bench, kind, bytes, &seconds, error));
    if (kind == LS_BENCH_ALL_REDUCE && beside_mpi)
        LS_TRY(ls_comm_bench_run(bench, LS_BENCH_MPI_ALL_REDUCE, bytes, &mpi, error));
    double rate = (double)bytes / seconds;
    double ceiling = touched_factor(kind, ranks) * (double)bytes / copied_per_second;
    LS_TRY(ls_text_print(text, error, "%-15s %11lld %11.1f %9.2f %9.2f %10.2f", names[kind],
                         (long long)bytes, 1e6 * seconds, 1e-9 * rate,
                         1e-9 * rate * bus_factor(kind, ranks), seconds / ceiling));
    if (mpi > 0) LS_TRY(ls_text_print(text, error, " %14.1f", 1e6 * mpi));
    return ls_text_print(text, error, "\n");
}

static ls_status bench(const ls_session *session, ls_comm_bench *b, ls_text *text, ls_error *error)
{
    const ls_processes_place *here = ls_session_place(session);
    int ranks = ls_session_ranks(session);
    bool beside_mpi = here->count > 1 && session->device_count == 1;
    LS_TRY(ls_text_print(text, error,
                         "%d ranks: %d process%s of %d device%s, %d host%s; fp32, sums in the "
                         "order of the tree\n\n%-15s %11s %11s %9s %9s %10s %14s\n",
                         ranks, here->count, here->count == 1 ? "" : "es", session->device_count,
                         session->device_count == 1 ? "" : "s", here->hosts,
                         here->hosts == 1 ? "" : "s", "collective", "bytes", "us", "alg GB/s",
                         "bus GB/s", "x ceiling", "MPI_Allreduce"));
    for (int64_t bytes = least_bytes; bytes <= most_bytes; bytes *= bytes < 32 << 20 ? 8 : 4) {
        double copy;
        LS_TRY(ls_comm_bench_run(b, LS_BENCH_COPY, bytes, &copy, error));
        /* All ranks copy at once; each byte is read and written. */
        double copied = 2.0 * ranks * (double)bytes / copy;
        for (int kind = LS_BENCH_ALL_REDUCE; kind <= LS_BENCH_BROADCAST; kind++)
            LS_TRY(measure(b, ranks, kind, bytes, copied, beside_mpi, text, error));
    }
    return ls_text_print(text, error,
                         "\nx ceiling: times what copying as many bytes takes when all ranks copy "
                         "at once; alg and bus as nccl-tests defines them\n");
}

static ls_status allocate_shared(void *context, int64_t bytes, const char *what, void **out,
                                 ls_error *error)
{
    return ls_processes_allocate(context, bytes, what, out, error);
}

static ls_status check_ranks(const ls_session *session, ls_error *error)
{
    if (ls_session_ranks(session) > 1) return LS_OK;
    return ls_fail(error, LS_USAGE,
                   "one rank has nobody to exchange with: use --devices 2, or start the command "
                   "with mpirun");
}

static ls_status run(ls_session *session, ls_text *text, ls_error *error)
{
    ls_comm_bench *b = NULL;
    ls_shared_memory shared = {session->processes, allocate_shared};
    for (int i = 0; i < session->device_count; i++)
        if (ls_session_place(session)->local_count > 1) session->devices[i]->shared = &shared;
    ls_status status = ls_comm_bench_new(&b, session->processes, session->devices,
                                         session->device_count, most_bytes, error);
    status = ls_session_agree(session, status, "the start of the ranks", error);
    if (status == LS_OK) status = bench(session, b, text, error);
    status = ls_session_agree(session, status, "the end of the benchmark", error);
    ls_comm_bench_free(b);
    return status;
}

ls_status ls_bench_comm_text(const ls_options *options, char **out, ls_error *error)
{
    ls_session session;
    ls_text text = {0};
    LS_TRY(ls_options_check(options, LS_COMMAND_BENCH_COMM, error));
    ls_status status = ls_session_open_ranks(&session, options, error);
    if (status == LS_OK) status = check_ranks(&session, error);
    if (status == LS_OK) status = run(&session, &text, error);
    bool first = ls_session_is_first(&session);
    if (!first && error && status != LS_OK && status != LS_LOST) error->text[0] = '\0';
    ls_session_close(&session);
    if (status != LS_OK || !first) ls_text_deinit(&text);
    *out = text.data;
    return status;
}
