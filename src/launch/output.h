/* What comes out of mpirun, taken apart again: each rank's text, and mpirun's own.
 *
 * mpirun is told to put "[JOB,RANK]<...>:" before each piece of a rank's text. Rank 0's text is
 * passed on as it is, at once, so that a progress line works; other ranks' line by line, each after
 * "[rank N] ". What mpirun itself says is kept back: cause.h reads it. */
#ifndef LS_LAUNCH_OUTPUT_H
#define LS_LAUNCH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "launch/rank.h"

enum { LS_OUTPUT_STREAMS = 2 }; /* standard output, standard error */

typedef struct ls_output ls_output;

typedef struct ls_output_options {
    int ranks;
    bool tagged; /* false: all text is rank 0's */
    bool live;   /* into[1] is a terminal with a line that is redrawn */
    int into[LS_OUTPUT_STREAMS];
} ls_output_options;

ls_status ls_output_new(ls_output **out, const ls_output_options *options,
                        ls_error *error) LS_MUST_CHECK;
void ls_output_free(ls_output *output); /* NULL is allowed */

/* The next bytes that were read from a stream; at its end finish passes on what was kept back. */
ls_status ls_output_take(ls_output *output, int stream, const char *bytes, size_t count,
                         ls_error *error) LS_MUST_CHECK;
ls_status ls_output_finish(ls_output *output, ls_error *error) LS_MUST_CHECK;

/* Of a rank's standard error the last line that is not empty, without what steers a terminal; ""
 * if there was none. */
const char *ls_output_last_line(const ls_output *output, int rank);
/* Where a rank runs; pid 0 before it said so. */
const ls_rank_note *ls_output_note(const ls_output *output, int rank);
/* Whether all ranks said so; without tags there is nothing to wait for. */
bool ls_output_all_started(const ls_output *output);
/* What mpirun itself said; "" if nothing. */
const char *ls_output_launcher_text(const ls_output *output);

#endif
