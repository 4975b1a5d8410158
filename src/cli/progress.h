/* What a run shows while it goes on: one line redrawn on a terminal, now and then a line elsewhere.
 *
 * Progress goes to standard error; results go to standard output, after the live line was taken
 * away. */
#ifndef LS_CLI_PROGRESS_H
#define LS_CLI_PROGRESS_H

#include <stdbool.h>

#include "lockstep.h"

typedef enum ls_progress_mode {
    LS_PROGRESS_LIVE,
    LS_PROGRESS_PLAIN,
    LS_PROGRESS_NONE
} ls_progress_mode;

typedef struct ls_progress {
    ls_progress_mode mode;
    bool shown;        /* a live line stands on the terminal */
    double last;       /* when something was last shown, seconds */
    bool breakdown;    /* of a step's time, as often as plain lines */
    int64_t log_every; /* steps between plain lines; 0: a line a twentieth of the run */
    int last_part;     /* twentieth of the run that a plain line was last printed for */
    char stage[256];   /* the stage that a plain line was last printed for */
    double speed;      /* tokens a second, smoothed: lengths differ from step to step */
    int64_t tokens;    /* so far */
} ls_progress;

void ls_progress_init(ls_progress *progress, bool quiet);

/* Callbacks that show everything; their context is `progress`. A command changes what it wants. */
ls_callbacks ls_progress_callbacks(ls_progress *progress);

/* Take the live line away, before anything else is printed. */
void ls_progress_clear(ls_progress *progress);

#endif
