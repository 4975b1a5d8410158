/* lockstep COMMAND [flags]: finds the command, reads its command line, runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/help.h"

static const ls_command *const commands[] = {
    &ls_command_train,   &ls_command_evaluate, &ls_command_predict,
    &ls_command_inspect, &ls_command_tokenize, &ls_command_plan,
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static int run_command(const ls_command *command, int count, char **words)
{
    ls_invocation invocation;
    ls_error error;
    int result = LS_EXIT_DONE;
    ls_status status = ls_arguments_parse(&invocation, command, count, words, &error);
    if (status != LS_OK)
        result = ls_exit_report(status, &error);
    else if (invocation.help)
        ls_help_print_command(stdout, command);
    else
        result = command->run(&invocation);
    ls_sources_free(invocation.sources);
    return result;
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
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(words[1], commands[i]->name) == 0)
            return run_command(commands[i], count - 2, words + 2);
    ls_error error;
    return ls_exit_report(
        ls_complain(&error, LS_USAGE,
                    "no command '%s': there are train, evaluate, predict, inspect, tokenize and "
                    "plan (lockstep --help)",
                    words[1]),
        &error);
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
    return result;
}
