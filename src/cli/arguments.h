/* From the words of a command line to options. */
#ifndef LS_CLI_ARGUMENTS_H
#define LS_CLI_ARGUMENTS_H

#include "cli/command.h"

/* `words` are what follows the command's name; texts stay borrowed from it. Free
 * invocation->sources and invocation->deepspeed, also after a failure. `--flag value` and
 * `--flag=value` are the same, so are '-' and '_'; a setting that is a flag takes its value by '='
 * only. Missing settings that the command needs are an error unless help was asked for. */
ls_status ls_arguments_parse(ls_invocation *invocation, const ls_command *command, int count,
                             char **words, ls_error *error);

/* This command has this setting. */
bool ls_command_takes(const ls_command *command, const ls_setting *setting);

#endif
