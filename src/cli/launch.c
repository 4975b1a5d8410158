#include "launch/launch.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/help.h"

enum { MOST_PROCESSES = 65536, MOST_RESTARTS = 1000000 };

static const ls_own_flag flags[] = {
    {"--processes N", "processes of the run; each is a rank, or --devices ranks (needed)"},
    {"--hosts FILE", "a line 'HOST slots=N' for each host, filled in that order; without it all "
                     "processes run on this machine"},
    {"--max-restarts K", "start again up to K times after a process or host was lost, from the "
                         "newest checkpoint (default: 0)"},
    {"--min-processes M", "restart with fewer processes, but no fewer than this, when a host is "
                          "gone (default: all of --processes)"},
    {"--dry-run", "print which process runs where, and the command line; start nothing"},
    {0},
};

typedef struct launch_words {
    ls_launch_options launch;
    bool help;
} launch_words;

/* `word` is "--NAME", with '_' for '-', up to "=" if there is one. */
static bool is_flag(const char *word, const char *name)
{
    size_t i = 0;
    for (; name[i]; i++)
        if (word[i] != name[i] && !(i > 1 && name[i] == '-' && word[i] == '_')) return false;
    return !word[i] || word[i] == '=';
}

static ls_status read_count(int *out, const char *flag, const char *text, int least, int most,
                            ls_error *error)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < least || value > most)
        return ls_complain(error, LS_USAGE, "%s: '%s' is not a whole number from %d to %d", flag,
                           text, least, most);
    *out = (int)value;
    return LS_OK;
}

static ls_status set(launch_words *request, const char *word, const char *value, ls_error *error)
{
    ls_launch_options *launch = &request->launch;
    if (is_flag(word, "--processes"))
        return read_count(&launch->processes, "--processes", value, 1, MOST_PROCESSES, error);
    if (is_flag(word, "--max-restarts"))
        return read_count(&launch->max_restarts, "--max-restarts", value, 0, MOST_RESTARTS, error);
    if (is_flag(word, "--min-processes"))
        return read_count(&launch->min_processes, "--min-processes", value, 1, MOST_PROCESSES,
                          error);
    launch->hosts = value;
    return LS_OK;
}

/* Launch's own flags, up to "--". */
static ls_status read_words(launch_words *request, int count, char **words, ls_error *error)
{
    static const char *const valued[] = {"--processes", "--hosts", "--max-restarts",
                                         "--min-processes", NULL};
    for (int i = 0; i < count; i++) {
        const char *word = words[i], *const *known = valued;
        if (strcmp(word, "--") == 0) {
            request->launch.arguments = words + i + 1;
            request->launch.argument_count = (size_t)(count - i - 1);
            return LS_OK;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            request->help = true;
            return LS_OK;
        }
        if (is_flag(word, "--dry-run") && !strchr(word, '=')) {
            request->launch.dry_run = true;
            continue;
        }
        while (*known && !is_flag(word, *known))
            known++;
        if (!*known)
            return ls_complain(error, LS_USAGE,
                               "launch: '%s' is not expected before '--'; what follows '--' is the "
                               "command to start: %s",
                               word, ls_command_launch.example);
        const char *value = strchr(word, '=');
        if (value)
            value++;
        else if (i + 1 < count && strcmp(words[i + 1], "--") != 0)
            value = words[++i];
        if (!value) return ls_complain(error, LS_USAGE, "%s needs a value", word);
        ls_status status = set(request, word, value, error);
        if (status != LS_OK) return status;
    }
    return LS_OK;
}

/* The command line is read here once, instead of being refused by each process. */
static ls_status check_command(launch_words *request, ls_invocation *train, ls_error *error)
{
    ls_launch_options *launch = &request->launch;
    if (launch->processes == 0)
        return ls_complain(error, LS_USAGE, "launch needs --processes N; for example: %s",
                           ls_command_launch.example);
    if (launch->argument_count == 0)
        return ls_complain(error, LS_USAGE,
                           "launch: the command to start is missing; for "
                           "example: %s",
                           ls_command_launch.example);
    if (strcmp(launch->arguments[0], "train") != 0)
        return ls_complain(error, LS_USAGE, "launch starts 'train' only, not '%s'",
                           launch->arguments[0]);
    ls_status status = ls_arguments_parse(train, &ls_command_train, (int)launch->argument_count - 1,
                                          (char **)launch->arguments + 1, error);
    if (status == LS_OK && train->help)
        status = ls_complain(error, LS_USAGE,
                             "launch: 'lockstep train --help' shows the flags of "
                             "train");
    launch->output = train->options.output;
    return status;
}

/* Each process would be a run of its own, and all would write the same folder. */
static ls_status check_mpi(const ls_launch_options *launch, ls_error *error)
{
#ifdef LS_HAVE_MPI
    (void)launch, (void)error;
    return LS_OK;
#else
    if (launch->program || launch->dry_run || (launch->processes == 1 && !launch->hosts))
        return LS_OK;
    return ls_complain(error, LS_UNSUPPORTED,
                       "launch: this lockstep was built without MPI: install libopenmpi-dev and "
                       "openmpi-bin and build it again, or use --devices for ranks in one process");
#endif
}

static int launch(int count, char **words)
{
    launch_words request = {0};
    ls_invocation train = {0};
    ls_error error;
    int result = LS_EXIT_DONE;
    ls_status status = read_words(&request, count, words, &error);
    if (status == LS_OK && request.help) {
        ls_help_print_command(stdout, &ls_command_launch);
        return LS_EXIT_DONE;
    }
    if (status == LS_OK) status = check_command(&request, &train, &error);
    request.launch.program = getenv("LOCKSTEP_LAUNCH_PROGRAM");
    if (status == LS_OK) status = check_mpi(&request.launch, &error);
    if (status == LS_OK) status = ls_launch(&request.launch, &result, &error);
    ls_sources_free(train.sources);
    if (status != LS_OK) return ls_exit_report(status, &error);
    if (result <= 128) return result;
    /* Ended by a second signal, as whoever started us can see. */
    fflush(NULL);
    signal(result - 128, SIG_DFL);
    raise(result - 128);
    return result;
}

static int launch_rank(int count, char **words)
{
    ls_error error;
    if (count == 0)
        return ls_exit_report(ls_complain(&error, LS_USAGE, "launch-rank is for lockstep launch"),
                              &error);
    return ls_exit_report(ls_launch_rank(words, &error), &error);
}

const ls_command ls_command_launch = {
    .name = "launch",
    .summary = "start train on several processes or hosts, and see it through",
    .usage = "--processes N [flags] -- train ...",
    .example = "lockstep launch --processes 2 -- train --model M --train t.tsv --output out",
    .details =
        "Starts the processes through mpirun, of Open MPI or MPICH, with each on its own cores; a "
        "single process on this machine is started without it. Standard output is rank 0's; other "
        "ranks' lines are marked [rank N].\n"
        "An interrupt (Ctrl-C) lets the run finish its step and write the model; a second one ends "
        "all processes at once. The exit status is the run's own, 4 if a process or host was lost. "
        "A restart is made after such a loss only, 1, 2, 4, ... 60 seconds later, and not after "
        "two "
        "that made no step.",
    .run_words = launch,
    .own_flags = flags,
};

const ls_command ls_command_launch_rank = {
    .name = "launch-rank",
    .run_words = launch_rank,
};
