/* The texts of --help, made from the table of settings. */
#ifndef LS_CLI_HELP_H
#define LS_CLI_HELP_H

#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"

void ls_help_print_all(FILE *stream, const ls_command *const *commands, size_t count);
void ls_help_print_command(FILE *stream, const ls_command *command);

#endif
