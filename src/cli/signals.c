#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

/* A handler can reach nothing but globals. */
static volatile sig_atomic_t stop_requested;

static void handle(int signal_number)
{
    static const char note[] = "\nlockstep: stopping after this step; again to end at once\n";
    if (stop_requested) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    int kept = errno;
    stop_requested = 1;
    ssize_t ignored = write(STDERR_FILENO, note, sizeof note - 1);
    (void)ignored;
    errno = kept;
}

void ls_signals_install(void)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    /* `launch` holds it back from a rank until here. */
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &held, NULL);
}

bool ls_signals_stop_requested(void *context)
{
    (void)context;
    return stop_requested != 0;
}
