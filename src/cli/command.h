/* The commands, and what a command line asked of one. */
#ifndef LS_CLI_COMMAND_H
#define LS_CLI_COMMAND_H

#include <stdbool.h>

#include "lockstep.h"

typedef struct ls_invocation {
    ls_options options;
    ls_sources *sources;
    ls_deepspeed *deepspeed; /* the file of --deepspeed, applied to the options; NULL: none */
    bool quiet, help, json;
    bool has_strategy; /* the command line says --strategy */
} ls_invocation;

/* A flag that is a command's own, not a setting of the library. */
typedef struct ls_own_flag {
    const char *name, *help; /* "--hosts FILE" */
} ls_own_flag;

typedef struct ls_command {
    const char *name;
    unsigned bit; /* LS_COMMAND_ of lockstep.h */
    const char *summary;
    const char *usage;   /* what follows "lockstep NAME" */
    const char *example; /* a whole command line */
    const char *details; /* paragraphs for --help, parted by line ends */
    const char *needed[4];
    const char *const *left_out; /* settings of its bits that it does not take, then NULL */
    const char *paths[2]; /* the settings that arguments without a flag give, in their order */
    bool can_be_quiet;
    bool takes_deepspeed; /* --deepspeed FILE */
    bool is_config;       /* an argument without flag is the file of --deepspeed; --json */
    bool has_json;        /* --json */
    int (*run)(const ls_invocation *invocation); /* the exit status */
    /* Instead of the above, for a command that reads its words itself: */
    int (*run_words)(int count, char **words);
    const ls_own_flag *own_flags; /* up to one without a name */
} ls_command;

/* Each in its own file. */
extern const ls_command ls_command_train, ls_command_evaluate, ls_command_predict,
    ls_command_inspect, ls_command_tokenize, ls_command_plan, ls_command_bench_step,
    ls_command_bench_gemm, ls_command_bench_comm, ls_command_compare, ls_command_config,
    ls_command_launch, ls_command_launch_rank, ls_command_verify, ls_command_audit;

#endif
