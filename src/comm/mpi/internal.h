/* What the files of this folder share. Nothing else of Lockstep sees mpi.h. */
#ifndef LS_COMM_MPI_INTERNAL_H
#define LS_COMM_MPI_INTERNAL_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/threads.h"
#include "comm/processes_internal.h"

enum {
    MOST_DEVICES = 64, /* of a process: a message's tag holds the devices of both ends */
    /* Tags between processes. */
    TAG_GATHER = 1,
    TAG_AGREE,
    TAG_ABORT,
    TAG_WELL,
    NO_RANK = -1,
};

/* Memory that the host's processes read from one another. */
typedef struct window {
    MPI_Win mpi;
    unsigned char **bases; /* [local processes] where each one's part begins, in this process */
    int64_t bytes;
    struct window *next;
} window;

/* Why everyone stops: in shared memory, and in a message to other hosts. */
typedef struct failure {
    int32_t rank, status;
    char text[500];
} failure;

/* In the host's shared memory, zeroed at first. */
typedef struct rank_slot {
    _Alignas(64) _Atomic int64_t step;
    _Atomic uint64_t entered[LS_COMM_LANES]; /* barriers that it has come to */
    _Atomic int waits_for[LS_COMM_LANES];    /* rank + 1 of another host whose message it awaits */
    /* What it shares: */
    void *address;
    int64_t offset; /* in its process's part of window number `window` */
    int32_t window; /* -1: none */
} rank_slot;

typedef struct barrier {
    _Alignas(64) _Atomic uint32_t generation; /* barriers that are over: the futex */
    _Atomic uint32_t arrived;
} barrier;

typedef struct control {
    barrier barriers[LS_COMM_LANES];
    _Atomic int failing; /* who sets it to 1 writes `failure`, then `failed` */
    _Atomic int failed;
    failure why;
    rank_slot ranks[]; /* [local ranks] */
} control;

typedef struct mpi_processes mpi_processes;
typedef struct wait_site wait_site;

/* The ranks that one call of ls_processes_comms made. */
typedef struct rank_group {
    mpi_processes *processes;
    int devices, size, first; /* of a process; all ranks; the host's first rank */
    int local_count;          /* ranks of the host */
    int *host_begin;          /* [hosts + 1] */
    control *control;
    _Atomic int users;
    struct rank_group *next;
} rank_group;

typedef struct process_life {
    int64_t pid;
    uint64_t start; /* of the process, in the kernel's ticks: a number may be given out again */
} process_life;

/* A process on another host that this one has a connection with. */
typedef struct neighbour {
    int process; /* -1: none */
    int socket;  /* -1: none, or not any more */
} neighbour;

struct mpi_processes {
    ls_processes base;
    _Atomic int lost;      /* something is gone: nobody can be waited for */
    pthread_mutex_t mutex; /* one thread at a time is in MPI */
    MPI_Comm world;        /* all, in the order of ranks: for the processes' messages */
    MPI_Comm ranks;        /* the same, for the ranks' messages */
    MPI_Comm local;        /* those of this host */
    int *host_of;          /* [count] */
    int *host_first;       /* [hosts + 1] first process of each host */
    process_life *lives;   /* [local processes]; pid 0: cannot be seen from here */
    window *windows;       /* newest first */
    int window_count;
    rank_group *groups;
    MPI_Request *requests;        /* [2 * count] for gathers */
    ls_cores *cores;              /* [count] of the host's processes, while they join */
    int well_sent, well_received; /* of mpi_all_well */
    failure abort_sent, abort_received;
    _Atomic int aborting; /* who sets it to 1 writes abort_received, then `aborted` */
    _Atomic int aborted;
    _Atomic int giving_up;   /* who sets it to 1 writes abort_sent and sends it */
    neighbour neighbours[2]; /* before and after this one; read by the watcher alone */
    pthread_mutex_t neighbours_mutex;
    _Atomic int gone; /* process + 1 whose connection has ended */
    MPI_Request abort_request;
    pthread_t watcher;
    bool watching;
    _Atomic int leaving;
    pthread_mutex_t watched_mutex;
    wait_site *watched; /* in MPI now, the latest first; under its mutex */
};

/* Something that is waited for, for texts and for the end of patience. */
struct wait_site {
    mpi_processes *processes;
    const rank_group *group; /* NULL: processes wait, not ranks */
    int rank;                /* who waits: a rank, or without a group a process */
    int lane;                /* of the group */
    bool processes_wait;     /* for a message of another process: ranks stand for processes */
    int awaited;             /* whose message; NO_RANK: a barrier of the group's host */
    int64_t step;
    const char *task;
    bool last; /* an abort does not end it */
    double since, checked;
    int polls;
    bool warned;
    wait_site *next; /* of those that are watched */
};

/* "a process of this run is gone: rank 0 on a waits for ..." */
enum { WAIT_TEXT_BYTES = 500 };
void wait_describe_loss(const wait_site *site, char into[WAIT_TEXT_BYTES]);

/* While a thread is in MPI for this wait the watcher can tell of it. */
void watch_begin(wait_site *site);
void watch_end(const wait_site *site);
ls_status watcher_start(mpi_processes *m, ls_error *error);
void watcher_stop(mpi_processes *m);

/* Collective; where there can be no connection a line says so. */
ls_status neighbours_connect(mpi_processes *m, ls_error *error);
/* By the watcher's thread: waits that long for something to happen. */
void neighbours_look(mpi_processes *m, int milliseconds);
void neighbours_tell(mpi_processes *m, const failure *why); /* any thread */
void neighbours_leave(mpi_processes *m, bool lost);

wait_site wait_begin(mpi_processes *processes, const rank_group *group, int rank, int64_t step,
                     const char *task);
/* Called by every wait between its polls: rests a moment, longer as time goes on, and looks now and
 * then whether there is still something to wait for. */
ls_status wait_more(wait_site *site, ls_error *error);
/* The same without the rest. */
ls_status wait_check(wait_site *site, ls_error *error);
bool process_alive(const process_life *life);
process_life process_life_own(void);

/* One MPI call after the other; what MPI says of an error. */
#define MPI_DO(m, call)                                                                            \
    do {                                                                                           \
        pthread_mutex_lock(&(m)->mutex);                                                           \
        call;                                                                                      \
        pthread_mutex_unlock(&(m)->mutex);                                                         \
    } while (0)
/* All processes go on, or none: that of this one, or else that another could not. */
ls_status mpi_together(ls_status mine, ls_error *error);
ls_status mpi_status(mpi_processes *m, int code, const char *what, ls_error *error);

/* Wait for a message from or to `awaited`. */
ls_status wait_request(wait_site *site, MPI_Request *request, int awaited, ls_error *error);
void drop_request(mpi_processes *m, MPI_Request *request);
/* Is the host's every process well? They exchange a word each; one that gives up before it gets
 * here ends the wait: LS_INTERRUPTED. `well` becomes the answer. */
ls_status mpi_all_well(mpi_processes *m, bool *well, const char *task, ls_error *error);
ls_status mpi_gather(ls_processes *processes, const void *mine, int64_t bytes, void *all,
                     const char *task, bool last, ls_error *error);

void futex_wait(_Atomic uint32_t *word, uint32_t value, double seconds);
void futex_wake(_Atomic uint32_t *word);
/* Make everyone stop. */
void spread_failure(mpi_processes *m, rank_group *group, int rank, const ls_error *why);
void look_for_aborts(mpi_processes *m);
void mpi_give_up(ls_processes *processes, const ls_error *why);

ls_status mpi_allocate(ls_processes *processes, int64_t bytes, const char *what, void **out,
                       ls_error *error);
void free_windows(mpi_processes *m);
/* Where process `local` has what lies at `offset` of window number `index`. */
void *window_address(const mpi_processes *m, int index, int local, int64_t offset);
/* The window that holds an address of this process, -1 for none. */
int window_find(const mpi_processes *m, const void *address, int64_t *offset);

ls_status mpi_comms(ls_processes *processes, ls_comm **comms, int devices, ls_error *error);
void free_group(rank_group *group);

#endif
