#include "launch/rank.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/topology.h"

/* Open MPI's name, then MPICH's. */
static ls_status read_number(int *out, const char *openmpi, const char *mpich, ls_error *error)
{
    const char *text = getenv(openmpi);
    if (!text) text = getenv(mpich);
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    if (value < 0 || value > LS_MOST_SLOTS || end == text || *end)
        return ls_fail(error, LS_USAGE,
                       "neither %s nor %s says which rank this is: lockstep launch starts ranks, "
                       "through mpirun",
                       openmpi, mpich);
    *out = (int)value;
    return LS_OK;
}

ls_status ls_rank_place_read(ls_rank_place *place, ls_error *error)
{
    LS_TRY(read_number(&place->rank, "OMPI_COMM_WORLD_RANK", "PMI_RANK", error));
    LS_TRY(read_number(&place->local_rank, "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", error));
    LS_TRY(read_number(&place->local_size, "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", error));
    if (place->local_rank >= place->local_size)
        return ls_fail(error, LS_USAGE, "rank %d of %d on this host: there is none",
                       place->local_rank, place->local_size);
    return LS_OK;
}

void ls_rank_note_print(char into[LS_RANK_LINE_BYTES], const ls_rank_note *note)
{
    snprintf(into, LS_RANK_LINE_BYTES, "%crank %d pid %ld host %s", LS_RANK_MARK, note->rank,
             note->pid, note->host);
}

bool ls_rank_note_read(ls_rank_note *note, const char *line)
{
    char mark = 0;
    return sscanf(line, "%crank %d pid %ld host %255s", &mark, &note->rank, &note->pid,
                  note->host) == 4 &&
           mark == LS_RANK_MARK;
}

static ls_status bind_to_part(const ls_rank_place *place, ls_error *error)
{
    ls_topology *topology = NULL;
    const ls_cores all = ls_cores_own();
    LS_TRY(ls_topology_new(&topology, NULL, error));
    ls_cores part = ls_topology_part(topology, &all, place->local_size, place->local_rank);
    ls_topology_free(topology);
    ls_cores_bind(&part);
    return LS_OK;
}

ls_status ls_rank_become(char *const *words, ls_error *error)
{
    ls_rank_place place;
    char line[LS_RANK_LINE_BYTES];
    pid_t parent = getppid();
    sigset_t stop;
    LS_TRY(ls_rank_place_read(&place, error));
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        return ls_fail(error, LS_IO, "rank %d: mpirun is gone", place.rank);
    LS_TRY(bind_to_part(&place, error));
    sigemptyset(&stop);
    sigaddset(&stop, SIGUSR1);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    ls_rank_note note = {.rank = place.rank, .pid = getpid()};
    gethostname(note.host, sizeof note.host - 1);
    ls_rank_note_print(line, &note);
    fprintf(stderr, "%s\n", line);
    execv(words[0], words);
    return ls_fail(error, LS_IO, "cannot start %s: %s", words[0], strerror(errno));
}
