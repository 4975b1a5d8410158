/* What `lockstep launch-rank PROGRAM ...` does on each rank before it becomes PROGRAM: the part of
 * starting a rank that must happen where the rank runs. */
#ifndef LS_LAUNCH_RANK_H
#define LS_LAUNCH_RANK_H

#include <stddef.h>

#include "base/status.h"
#include "launch/hosts.h"

/* Which rank this is, by the environment that mpirun gave. */
typedef struct ls_rank_place {
    int rank;                   /* of all */
    int local_rank, local_size; /* on this host */
} ls_rank_place;
ls_status ls_rank_place_read(ls_rank_place *place, ls_error *error) LS_MUST_CHECK;

/* The rank's first line on standard error, which `launch` reads and does not show. */
enum { LS_RANK_MARK = 0x1e, LS_RANK_LINE_BYTES = 512 };
typedef struct ls_rank_note {
    int rank;
    long pid;
    char host[LS_HOST_NAME_BYTES];
} ls_rank_note;
void ls_rank_note_print(char into[LS_RANK_LINE_BYTES], const ls_rank_note *note);
/* False for any other line. */
bool ls_rank_note_read(ls_rank_note *note, const char *line);

/* Take this rank's part of the host's cores, die with mpirun, hold SIGUSR1 back until the program
 * takes it, say who it is, and become words[0], a path. Returns only if that fails. */
ls_status ls_rank_become(char *const *words, ls_error *error) LS_MUST_CHECK;

#endif
