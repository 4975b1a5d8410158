/* How fast ranks exchange: the collectives of a step, alone. */
#ifndef LS_ENGINE_COMM_BENCH_H
#define LS_ENGINE_COMM_BENCH_H

#include "comm/processes.h"
#include "devices/device.h"

typedef enum ls_comm_bench_kind {
    LS_BENCH_ALL_REDUCE,
    LS_BENCH_REDUCE_SCATTER,
    LS_BENCH_ALL_GATHER,
    LS_BENCH_BROADCAST,
    LS_BENCH_COPY,           /* each rank copies that many bytes within its own memory */
    LS_BENCH_MPI_ALL_REDUCE, /* MPI's own, whose order of additions is its own */
    LS_BENCH_KINDS
} ls_comm_bench_kind;

typedef struct ls_comm_bench ls_comm_bench;

/* Ranks of this process, one for each device, with room for messages of up to `most_bytes`. All
 * processes call it, as all below. */
ls_status ls_comm_bench_new(ls_comm_bench **out, ls_processes *processes, ls_device *const *devices,
                            int count, int64_t most_bytes, ls_error *error) LS_MUST_CHECK;
void ls_comm_bench_free(ls_comm_bench *bench); /* NULL is allowed */

/* Seconds of one such call on `bytes` (of fp32 elements: all ranks' result of a gather, each one's
 * operand of a sum), the mean over many, as the first rank of the process sees it. LS_UNSUPPORTED
 * for MPI's without MPI or with several ranks a process. */
ls_status ls_comm_bench_run(ls_comm_bench *bench, ls_comm_bench_kind kind, int64_t bytes,
                            double *seconds, ls_error *error) LS_MUST_CHECK;

#endif
