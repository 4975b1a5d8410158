#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exit_status.h"

/* A handler can reach nothing but globals. */
static volatile sig_atomic_t stop_requested, peer_gone;

static void say(const char *note)
{
    int kept = errno;
    ssize_t ignored = write(STDERR_FILENO, note, strlen(note));
    (void)ignored;
    errno = kept;
}

static void handle(int signal_number)
{
    if (stop_requested) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    stop_requested = 1;
    say("\nlockstep: stopping after this step; again to end at once\n");
}

/* All processes get it; one says so, when it has stopped. */
static void handle_request(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

/* A rank that waits ends by itself and says what for; one that computes does not come to that in
 * time. */
static void handle_loss(int signal_number)
{
    (void)signal_number;
    peer_gone = 1;
    alarm(1);
}

static void handle_alarm(int signal_number)
{
    (void)signal_number;
    say("lockstep: a process of this run is gone, and mpirun ends the others\n");
    _exit(LS_EXIT_LOST);
}

static void install(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

/* Open MPI's and MPICH's; srun sends SIGTERM as a plain shell does. */
static bool started_by_mpirun(void)
{
    if (getenv("SLURM_STEP_NUM_TASKS") && !getenv("OMPI_COMM_WORLD_SIZE")) return false;
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE");
}

void ls_signals_install(void)
{
    install(SIGINT, handle);
    if (started_by_mpirun()) {
        install(SIGUSR1, handle_request);
        install(SIGTERM, handle_loss);
        install(SIGALRM, handle_alarm);
        signal(SIGPIPE, SIG_IGN); /* mpirun may be gone before the last words are written */
    } else {
        install(SIGTERM, handle);
        install(SIGUSR1, handle);
    }
    /* `launch` holds it back from a rank until here. */
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &held, NULL);
}

void ls_signals_end(void)
{
    if (!started_by_mpirun()) return;
    signal(SIGTERM, SIG_IGN);
    signal(SIGALRM, SIG_IGN);
}

bool ls_signals_stop_requested(void *context)
{
    (void)context;
    return stop_requested != 0;
}

bool ls_signals_peer_is_gone(void *context)
{
    (void)context;
    return peer_gone != 0;
}
