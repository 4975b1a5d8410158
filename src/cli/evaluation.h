/* The block of numbers that an evaluation prints. */
#ifndef LS_CLI_EVALUATION_H
#define LS_CLI_EVALUATION_H

#include <stdio.h>

#include "lockstep.h"

/* Accuracy, macro-F1, loss and rows; then the confusion table (rows are true classes, columns
 * predicted ones), or where it does not fit, a line a class with precision, recall and F1. Fitted
 * to the width of the stream's terminal, 80 columns elsewhere. */
void ls_evaluation_print(FILE *stream, const ls_evaluation_report *report);

/* The same at a given width. */
void ls_evaluation_print_fitted(FILE *stream, const ls_evaluation_report *report, int columns);

#endif
