/* Waiting without taking the core that computes, and without waiting for ever: who is awaited, is
 * it still there, has patience an end. */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "base/clock.h"
#include "comm/mpi/internal.h"

enum { SPIN_POLLS = 50, LONGEST_NAP_US = 200 };

static const double warn_after = 10.0, check_every = 0.02;

void futex_wait(_Atomic uint32_t *word, uint32_t value, double seconds)
{
    struct timespec limit = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* --- is it still there? ------------------------------------------------------------------------
 */

/* Field 22 of /proc/PID/stat; 0 if there is no such process, or only what its parent has not
 * collected yet. */
static uint64_t start_of(int64_t pid)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *at = strrchr(line, ')'); /* the name may hold anything */
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') return 0;
    at += 2;
    for (int field = 3; field < 22; field++) {
        at = strchr(at, ' ');
        if (!at) return 0;
        at++;
    }
    return strtoull(at, NULL, 10);
}

process_life process_life_own(void)
{
    return (process_life){getpid(), start_of(getpid())};
}

bool process_alive(const process_life *life)
{
    return start_of(life->pid) == life->start && life->start != 0;
}

/* --- texts ------------------------------------------------------------------------------------ */

enum { PHRASE_BYTES = 400 };

static int ranks_a_process(const wait_site *site)
{
    return site->group ? site->group->devices : 1;
}

static const char *host_of_rank(const wait_site *site, int rank)
{
    return ls_processes_host_name(&site->processes->base, rank / ranks_a_process(site));
}

static const char *noun(const wait_site *site)
{
    return site->group ? "rank" : "process";
}

/* One process of those that wait for another says so. */
static bool tells(const wait_site *site)
{
    if (!site->processes_wait) return true;
    return site->rank == 0 || (site->awaited == 0 && site->rank == ranks_a_process(site));
}

/* Of a barrier: the first rank of the host that has not come, or whom that one waits for. */
static int late_rank(const wait_site *site, bool *first_waiter)
{
    const rank_group *group = site->group;
    const rank_slot *slots = group->control->ranks;
    uint64_t mine = atomic_load(&slots[site->rank - group->first].entered[site->lane]);
    int late = NO_RANK;
    *first_waiter = false;
    for (int i = group->local_count - 1; i >= 0; i--) {
        if (atomic_load(&slots[i].entered[site->lane]) < mine)
            late = group->first + i;
        else
            *first_waiter = group->first + i == site->rank;
    }
    int other =
        late == NO_RANK ? 0 : atomic_load(&slots[late - group->first].waits_for[site->lane]);
    if (other > 0) {
        *first_waiter = false; /* that one says so */
        return other - 1;
    }
    return late;
}

/* "rank 0 on a waits for rank 1 on b in step 17: bucket.2" */
static void describe(const wait_site *site, int late, char into[PHRASE_BYTES])
{
    char who[120], when[40] = "";
    if (late == NO_RANK)
        snprintf(who, sizeof who, "the others");
    else
        snprintf(who, sizeof who, "%s %d on %s", noun(site), late, host_of_rank(site, late));
    if (site->step > 0) snprintf(when, sizeof when, " in step %" PRId64, site->step);
    snprintf(into, PHRASE_BYTES, "%s %d on %s waits for %s%s, for %s", noun(site), site->rank,
             host_of_rank(site, site->rank), who, when, site->task ? site->task : "its start");
}

void wait_describe_loss(const wait_site *site, char into[WAIT_TEXT_BYTES])
{
    char phrase[PHRASE_BYTES];
    bool first;
    int late = site->awaited;
    if (late == NO_RANK && site->group) late = late_rank(site, &first);
    describe(site, late, phrase);
    snprintf(into, WAIT_TEXT_BYTES, "a process of this run is gone: %s", phrase);
}

/* --- the checks ------------------------------------------------------------------------------- */

wait_site wait_begin(mpi_processes *processes, const rank_group *group, int rank, int64_t step,
                     const char *task)
{
    return (wait_site){.processes = processes,
                       .group = group,
                       .rank = rank,
                       .awaited = NO_RANK,
                       .step = step,
                       .task = task,
                       .since = ls_seconds()};
}

static ls_status fail_with(const wait_site *site, const failure *why, ls_error *error)
{
    if (why->status == LS_LOST) {
        atomic_store(&site->processes->lost, 1);
        return ls_fail(error, LS_LOST, "%s", why->text);
    }
    return ls_fail(error, LS_INTERRUPTED, "%s %d stops because rank %d has failed", noun(site),
                   site->rank, why->rank);
}

/* Someone has given up. */
static ls_status check_aborts(const wait_site *site, ls_error *error)
{
    mpi_processes *m = site->processes;
    if (site->last) return LS_OK;
    for (const rank_group *group = m->groups; group; group = group->next)
        if (atomic_load(&group->control->failed))
            return fail_with(site, &group->control->why, error);
    look_for_aborts(m);
    return atomic_load(&m->aborted) ? fail_with(site, &m->abort_received, error) : LS_OK;
}

static ls_status lose(const wait_site *site, ls_error *error)
{
    mpi_processes *m = site->processes;
    atomic_store(&m->lost, 1);
    for (rank_group *group = m->groups; group; group = group->next)
        spread_failure(m, group, site->rank, error);
    return LS_LOST;
}

static ls_status check_lives(const wait_site *site, int late, ls_error *error)
{
    mpi_processes *m = site->processes;
    char phrase[PHRASE_BYTES];
    for (int i = 0; i < m->base.place.local_count; i++) {
        if (m->lives[i].pid == 0 || process_alive(&m->lives[i])) continue;
        int process = m->base.place.index - m->base.place.local_index + i;
        int rank = process * ranks_a_process(site);
        describe(site, late == NO_RANK ? rank : late, phrase);
        ls_fail(error, LS_LOST, "%s %d on %s is gone (its process %" PRId64 " has ended): %s",
                noun(site), rank, host_of_rank(site, rank), m->lives[i].pid, phrase);
        return lose(site, error);
    }
    return LS_OK;
}

/* Its host's other processes see that of themselves. */
static ls_status check_neighbours(const wait_site *site, int late, ls_error *error)
{
    int process = atomic_load(&site->processes->gone) - 1;
    int rank = process * ranks_a_process(site);
    char phrase[PHRASE_BYTES];
    if (process < 0) return LS_OK;
    describe(site, late == NO_RANK ? rank : late, phrase);
    ls_fail(error, LS_LOST, "%s %d on %s is gone (its connection has ended): %s", noun(site), rank,
            host_of_rank(site, rank), phrase);
    return lose(site, error);
}

static void tell_late(wait_site *site, int late, double waited)
{
    const ls_processes_options *options = &site->processes->base.options;
    char line[PHRASE_BYTES + 100], phrase[PHRASE_BYTES];
    site->warned = true;
    if (!options->warn || late == NO_RANK) return;
    describe(site, late, phrase);
    snprintf(line, sizeof line, "%s %d on %s is %.0f s late: %s", noun(site), late,
             host_of_rank(site, late), waited, phrase);
    options->warn(options->context, line);
}

ls_status wait_check(wait_site *site, ls_error *error)
{
    const ls_processes_options *options = &site->processes->base.options;
    double waited = ls_seconds() - site->since;
    bool tell = tells(site);
    char phrase[PHRASE_BYTES];
    ls_error own; /* spread even if the caller wants no text */
    if (!error) error = &own;
    site->checked = ls_seconds();
    LS_TRY(check_aborts(site, error));
    int late = site->awaited;
    if (late == NO_RANK && site->group) late = late_rank(site, &tell);
    LS_TRY(check_lives(site, late, error));
    LS_TRY(check_neighbours(site, late, error));
    if (options->peer_is_gone && options->peer_is_gone(options->context)) {
        char text[WAIT_TEXT_BYTES];
        wait_describe_loss(site, text);
        ls_fail(error, LS_LOST, "%s", text);
        return lose(site, error);
    }
    if (options->timeout > 0 && waited > options->timeout) {
        describe(site, late, phrase);
        ls_fail(error, LS_LOST, "%s %d on %s did not come within %.0f s (--timeout): %s",
                noun(site), late == NO_RANK ? site->rank : late,
                host_of_rank(site, late == NO_RANK ? site->rank : late), options->timeout, phrase);
        return lose(site, error);
    }
    if (tell && !site->warned && waited > warn_after) tell_late(site, late, waited);
    return LS_OK;
}

ls_status wait_more(wait_site *site, ls_error *error)
{
    site->polls++;
    if (site->polls < SPIN_POLLS) {
        _mm_pause();
        return LS_OK;
    }
    int nap = (site->polls - SPIN_POLLS) / 4 + 20;
    struct timespec pause = {0, (nap < LONGEST_NAP_US ? nap : LONGEST_NAP_US) * 1000L};
    nanosleep(&pause, NULL);
    return ls_seconds() - site->checked > check_every ? wait_check(site, error) : LS_OK;
}
