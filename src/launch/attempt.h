/* One attempt at the run: which ranks, where, by which command line. */
#ifndef LS_LAUNCH_ATTEMPT_H
#define LS_LAUNCH_ATTEMPT_H

#include "base/status.h"
#include "base/text.h"
#include "base/topology.h"
#include "launch/hosts.h"
#include "launch/launch.h"
#include "launch/launcher.h"
#include "launch/layout.h"
#include "launch/words.h"

/* What stays the same over all attempts. */
typedef struct ls_launch_context {
    const ls_launch_options *options;
    const ls_hosts *hosts; /* NULL: this machine */
    const char *self;      /* this program's path */
    ls_launcher launcher;
} ls_launch_context;

typedef struct ls_attempt {
    const ls_launch_context *context;
    ls_layout layout;
    ls_topology *topology;
    ls_cores within; /* what this process may use */
    int cores;       /* physical ones in it */
    ls_words command, words, environment;
} ls_attempt;

/* `hosts` may be fewer than the context's; NULL: this machine. `resume`: go on from the newest
 * checkpoint of the output folder instead of where the user's --resume says. Call deinit in any
 * case. */
ls_status ls_attempt_prepare(ls_attempt *attempt, const ls_launch_context *context,
                             const ls_hosts *hosts, int processes, bool resume,
                             ls_error *error) LS_MUST_CHECK;
void ls_attempt_deinit(ls_attempt *attempt);

/* A heading, the table of ranks, and a warning where they are more than the cores. */
ls_status ls_attempt_print(const ls_attempt *attempt, ls_text *text, ls_error *error) LS_MUST_CHECK;

#endif
