/* lockstep COMMAND [flags]: finds the command, reads its command line, runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/columns.h"
#include "cli/exit_status.h"
#include "cli/help.h"
#include "cli/signals.h"

static const ls_command *const commands[] = {
    &ls_command_train,      &ls_command_evaluate, &ls_command_predict,    &ls_command_inspect,
    &ls_command_tokenize,   &ls_command_plan,     &ls_command_bench_step, &ls_command_bench_gemm,
    &ls_command_bench_comm, &ls_command_config,   &ls_command_launch,     &ls_command_compare,
    &ls_command_verify,     &ls_command_audit,
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

/* What a DeepSpeed file changes is said before the run. */
static void print_notes(const ls_invocation *invocation)
{
    if (!invocation->deepspeed || invocation->quiet || !ls_is_first_process()) return;
    for (size_t i = 0; ls_deepspeed_note(invocation->deepspeed, i); i++) {
        char line[1024];
        ls_columns_fit(line, sizeof line, ls_deepspeed_note(invocation->deepspeed, i), LS_NO_LIMIT);
        fprintf(stderr, "%s\n", line);
    }
}

static int run_command(const ls_command *command, int count, char **words)
{
    ls_invocation invocation;
    ls_error error;
    int result = LS_EXIT_DONE;
    if (command->run_words) return command->run_words(count, words);
    ls_status status = ls_arguments_parse(&invocation, command, count, words, &error);
    if (status != LS_OK)
        result = ls_exit_report(status, &error);
    else if (invocation.help)
        ls_help_print_command(stdout, command);
    else {
        if (!command->is_config) print_notes(&invocation);
        result = command->run(&invocation);
    }
    ls_sources_free(invocation.sources);
    ls_deepspeed_free(invocation.deepspeed);
    return result;
}

/* How many words of the command line name this command, 0 if it is another. */
static int matched_words(const ls_command *command, int count, char **words)
{
    if (strcmp(words[0], command->name) == 0) return 1;
    const char *space = strchr(command->name, ' ');
    if (!space || count < 2) return 0;
    size_t length = (size_t)(space - command->name);
    bool first = strlen(words[0]) == length && memcmp(words[0], command->name, length) == 0;
    return first && strcmp(words[1], space + 1) == 0 ? 2 : 0;
}

static int refuse(const char *word)
{
    ls_error error;
    char known[300] = "";
    for (int i = 0; i < COMMAND_COUNT; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", commands[i]->name);
    }
    return ls_exit_report(ls_complain(&error, LS_USAGE,
                                      "no command '%s': there are %s (lockstep --help)", word,
                                      known),
                          &error);
}

static int run(int count, char **words)
{
    if (count < 2) {
        ls_help_print_all(stderr, commands, COMMAND_COUNT);
        return LS_EXIT_USAGE;
    }
    if (strcmp(words[1], "--version") == 0) {
        printf("lockstep %s\n", ls_version());
        return LS_EXIT_DONE;
    }
    if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0) {
        ls_help_print_all(stdout, commands, COMMAND_COUNT);
        return LS_EXIT_DONE;
    }
    for (int i = 0; i < COMMAND_COUNT; i++) {
        int matched = matched_words(commands[i], count - 1, words + 1);
        if (matched) return run_command(commands[i], count - 1 - matched, words + 1 + matched);
    }
    /* No command for people: launch starts it. */
    if (matched_words(&ls_command_launch_rank, count - 1, words + 1))
        return run_command(&ls_command_launch_rank, count - 2, words + 2);
    return refuse(words[1]);
}

int main(int count, char **words)
{
    /* A limit on file sizes is then an error of write() like a full disk, not a sudden end. */
    signal(SIGXFSZ, SIG_IGN);
    int result = run(count, words);
    /* A full disk shows here at the latest. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "lockstep: cannot write standard output: %s\n", strerror(errno));
        if (result == LS_EXIT_DONE) result = LS_EXIT_FAILED;
    }
    fflush(stderr);
    /* mpirun passes on what was printed before the first process ends. */
    ls_signals_end();
    if (result != LS_EXIT_LOST) ls_finish_processes();
    return result;
}
