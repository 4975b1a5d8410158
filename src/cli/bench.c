#include <stdio.h>

#include "cli/command.h"
#include "cli/exit_status.h"

static int print(ls_status status, char *text, const ls_error *error)
{
    if (status == LS_OK && text) fputs(text, stdout);
    ls_text_free(text);
    return ls_exit_report(status, error);
}

static int bench_step(const ls_invocation *invocation)
{
    char *text = NULL;
    ls_error error;
    ls_status status = ls_bench_step_text(&invocation->options, &text, &error);
    return print(status, text, &error);
}

static int bench_gemm(const ls_invocation *invocation)
{
    char *text = NULL;
    ls_error error;
    ls_status status = ls_bench_gemm_text(&invocation->options, &text, &error);
    return print(status, text, &error);
}

static int bench_comm(const ls_invocation *invocation)
{
    char *text = NULL;
    ls_error error;
    ls_status status = ls_bench_comm_text(&invocation->options, &text, &error);
    return print(status, text, &error);
}

const ls_command ls_command_bench_step = {
    .name = "bench step",
    .bit = LS_COMMAND_BENCH_STEP,
    .summary = "where the time of a training step goes",
    .usage = "--model FOLDER --train FILE [flags of train]",
    .example = "lockstep bench step --model all-MiniLM-L6-v2 --train train.tsv --max-steps 50",
    .details = "Trains for --max-steps (20 if not given) and writes nothing. Prints, for each kind "
               "of op, its time, its share of the step, GFLOP/s, GB/s and the share of what the "
               "best matrix product reaches on the same cores.",
    .needed = {"model", "train"},
    .takes_deepspeed = true,
    .run = bench_step,
};

const ls_command ls_command_bench_gemm = {
    .name = "bench gemm",
    .bit = LS_COMMAND_BENCH_GEMM,
    .summary = "speed of the matrix products of a step",
    .usage = "[--threads N]",
    .example = "lockstep bench gemm --threads 1",
    .details = "Forward products, input gradients and weight gradients (with the summation tree) "
               "at the shapes of small and base-sized models. LOCKSTEP_ISA chooses the "
               "instruction set.",
    .run = bench_gemm,
};

const ls_command ls_command_bench_comm = {
    .name = "bench comm",
    .bit = LS_COMMAND_BENCH_COMM,
    .summary = "speed of the exchanges between ranks",
    .usage = "--devices N",
    .example = "lockstep bench comm --devices 2",
    .details = "All-reduce, reduce-scatter, all-gather and broadcast of 64 KiB to 128 MiB, over "
               "the devices of one process or, under mpirun, of several, beside MPI_Allreduce and "
               "the speed of copying memory.",
    .run = bench_comm,
};
