/* The commands, and what a command line asked of one. */
#ifndef LS_CLI_COMMAND_H
#define LS_CLI_COMMAND_H

#include <stdbool.h>

#include "lockstep.h"

typedef struct ls_invocation {
    ls_options options;
    ls_sources *sources;
    bool quiet, help;
} ls_invocation;

typedef struct ls_command {
    const char *name;
    unsigned bit; /* LS_COMMAND_ of lockstep.h */
    const char *summary;
    const char *usage;   /* what follows "lockstep NAME" */
    const char *example; /* a whole command line */
    const char *details; /* paragraphs for --help, parted by line ends */
    const char *needed[4];
    const char *paths[2]; /* the settings that arguments without a flag give, in their order */
    bool can_be_quiet;
    int (*run)(const ls_invocation *invocation); /* the exit status */
} ls_command;

/* Each in its own file. */
extern const ls_command ls_command_train, ls_command_evaluate, ls_command_predict,
    ls_command_inspect, ls_command_tokenize, ls_command_plan, ls_command_bench_step,
    ls_command_bench_gemm, ls_command_verify, ls_command_audit;

#endif
