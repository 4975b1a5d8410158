/* A comparison in a terminal: tables where they fit, a line a number where they do not. */
#ifndef LS_CLI_COMPARE_TABLE_H
#define LS_CLI_COMPARE_TABLE_H

#include <stdio.h>

#include "compare/compare.h"

/* `columns`: of the terminal. Rows that were not compared have their reason in the first table. */
void ls_compare_table_print(FILE *stream, int columns, const ls_comparison *comparison);

/* The verdicts, one paragraph each. */
void ls_compare_verdicts_print(FILE *stream, int columns, const ls_comparison *comparison);

#endif
