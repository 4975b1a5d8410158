/* TCP connections to the processes before and after this one in a ring, where they are on other
 * hosts. The kernel closes them when a process ends, whatever ends it and whether or not anyone
 * started the processes who looks after them; a stopped process keeps them. They carry nothing else
 * but the text of a failure, since MPI may not come back to send it after a process has ended, and
 * a byte that says goodbye. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/mpi/internal.h"

enum { MOST_ADDRESSES = 8, MOST_CALLERS = 8, BEFORE = 0, AFTER = 1 };
enum { GOODBYE = 'g', FAILURE = 'f' };

static const double patience = 5.0;

/* Where a process listens. Its token tells it from others at the same address: hosts have bridges
 * of containers with addresses that are not unique. */
typedef struct invitation {
    uint64_t token;
    in_addr_t addresses[MOST_ADDRESSES];
    int32_t count;
    in_port_t port;
} invitation;

/* While connections are made. */
typedef struct opening {
    int listener;
    int callers[MOST_CALLERS]; /* accepted, have not said the token yet; -1: free */
    int calls[MOST_ADDRESSES]; /* to the process after this one, at each of its addresses; -1: none
                                */
    bool said[MOST_ADDRESSES]; /* its token */
} opening;

static void close_socket(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void say_goodbye(int *fd)
{
    const char byte = GOODBYE;
    if (*fd >= 0) (void)send(*fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    close_socket(fd);
}

/* --- making them ------------------------------------------------------------------------------ */

static int new_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void invite(invitation *own, int *listener)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t length = sizeof name;
    struct ifaddrs *all = NULL;
    *listener = new_socket();
    if (*listener < 0) return;
    if (bind(*listener, (struct sockaddr *)&name, length) != 0 || listen(*listener, 8) != 0 ||
        getsockname(*listener, (struct sockaddr *)&name, &length) != 0 || getifaddrs(&all) != 0) {
        close_socket(listener);
        return;
    }
    own->port = name.sin_port;
    for (const struct ifaddrs *one = all; one && own->count < MOST_ADDRESSES; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
        if (!(one->ifa_flags & IFF_UP) || one->ifa_flags & IFF_LOOPBACK) continue;
        own->addresses[own->count++] =
            ((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr.s_addr;
    }
    freeifaddrs(all);
}

static void call_all(opening *o, const invitation *other)
{
    for (int i = 0; i < other->count; i++) {
        struct sockaddr_in name = {
            .sin_family = AF_INET, .sin_port = other->port, .sin_addr.s_addr = other->addresses[i]};
        o->calls[i] = new_socket();
        if (o->calls[i] < 0) continue;
        if (connect(o->calls[i], (struct sockaddr *)&name, sizeof name) != 0 &&
            errno != EINPROGRESS)
            close_socket(&o->calls[i]);
    }
}

static void accept_caller(opening *o)
{
    int fd = accept4(o->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    for (int i = 0; i < MOST_CALLERS && fd >= 0; i++) {
        if (o->callers[i] >= 0) continue;
        o->callers[i] = fd;
        return;
    }
    close_socket(&fd);
}

static bool hears(int fd, uint64_t token)
{
    uint64_t heard;
    return recv(fd, &heard, sizeof heard, MSG_DONTWAIT) == (ssize_t)sizeof heard && heard == token;
}

static bool says(int fd, uint64_t token)
{
    return send(fd, &token, sizeof token, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof token;
}

/* A caller that knows this process's token gets it back, the first one only. */
static void hear_caller(opening *o, int index, uint64_t own, neighbour *before)
{
    int *fd = &o->callers[index];
    if (before->socket >= 0 || !hears(*fd, own) || !says(*fd, own)) {
        close_socket(fd);
        return;
    }
    before->socket = *fd;
    *fd = -1;
}

static void go_on_calling(opening *o, int index, uint64_t token, neighbour *after)
{
    int *fd = &o->calls[index], failed = 0;
    socklen_t length = sizeof failed;
    if (!o->said[index]) {
        getsockopt(*fd, SOL_SOCKET, SO_ERROR, &failed, &length);
        o->said[index] = true;
        if (failed || !says(*fd, token)) close_socket(fd);
        return;
    }
    if (after->socket >= 0 || !hears(*fd, token)) {
        close_socket(fd);
        return;
    }
    after->socket = *fd;
    *fd = -1;
}

static bool calls_left(const opening *o)
{
    for (int i = 0; i < MOST_ADDRESSES; i++)
        if (o->calls[i] >= 0) return true;
    return false;
}

/* One look at all sockets. */
static void meet(mpi_processes *m, opening *o, uint64_t own, uint64_t other)
{
    struct pollfd polls[1 + MOST_CALLERS + MOST_ADDRESSES];
    polls[0] = (struct pollfd){.fd = o->listener, .events = POLLIN};
    for (int i = 0; i < MOST_CALLERS; i++)
        polls[1 + i] = (struct pollfd){.fd = o->callers[i], .events = POLLIN};
    for (int i = 0; i < MOST_ADDRESSES; i++)
        polls[1 + MOST_CALLERS + i] =
            (struct pollfd){.fd = o->calls[i], .events = o->said[i] ? POLLIN : POLLOUT};
    if (poll(polls, sizeof polls / sizeof *polls, 100) <= 0) return;
    for (int i = 0; i < MOST_CALLERS; i++)
        if (polls[1 + i].revents) hear_caller(o, i, own, &m->neighbours[BEFORE]);
    for (int i = 0; i < MOST_ADDRESSES; i++)
        if (polls[1 + MOST_CALLERS + i].revents) go_on_calling(o, i, other, &m->neighbours[AFTER]);
    if (polls[0].revents) accept_caller(o);
}

/* A host that is gone without a word is missed after twenty seconds: networks may be away for
 * some. */
static void keep_alive(int fd)
{
    const int on = 1, seconds = 5, probes = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static void warn_missing(const mpi_processes *m, int process)
{
    const ls_processes_options *options = &m->base.options;
    char line[300];
    if (!options->warn) return;
    snprintf(
        line, sizeof line,
        "process %d on %s has no TCP connection with process %d on %s: should one of them end, "
        "the other sees it by what started them or by --timeout; let these hosts reach each "
        "other's ports",
        m->base.place.index, ls_processes_host_name(&m->base, m->base.place.index), process,
        ls_processes_host_name(&m->base, process));
    options->warn(options->context, line);
}

/* Both ways of two processes would be the same. */
static void find_neighbours(mpi_processes *m)
{
    const ls_processes_place *place = &m->base.place;
    int others[] = {(place->index + place->count - 1) % place->count,
                    (place->index + 1) % place->count};
    for (int i = 0; i < 2; i++) {
        bool again = place->count == 2 && i == place->index;
        bool far = m->host_of[others[i]] != place->host;
        m->neighbours[i] = (neighbour){.process = far && !again ? others[i] : -1, .socket = -1};
    }
}

static bool lacks(const neighbour *one)
{
    return one->process >= 0 && one->socket < 0;
}

ls_status neighbours_connect(mpi_processes *m, ls_error *error)
{
    invitation own = {.port = 0}, *all = NULL;
    opening o = {.listener = -1};
    neighbour *before = &m->neighbours[BEFORE], *after = &m->neighbours[AFTER];
    memset(o.callers, -1, sizeof o.callers);
    memset(o.calls, -1, sizeof o.calls);
    find_neighbours(m);
    LS_TRY(mpi_together(LS_NEW(all, m->base.place.count, "processes", error), error));
    if (getrandom(&own.token, sizeof own.token, 0) != (ssize_t)sizeof own.token)
        own.token = (uint64_t)getpid();
    if (before->process >= 0) invite(&own, &o.listener);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, m->world);
    const invitation *other = after->process >= 0 ? &all[after->process] : &own;
    if (after->process >= 0) call_all(&o, other);
    double end = ls_seconds() + patience;
    while (ls_seconds() < end &&
           ((lacks(before) && o.listener >= 0) || (lacks(after) && calls_left(&o))))
        meet(m, &o, own.token, other->token);
    close_socket(&o.listener);
    for (int i = 0; i < MOST_CALLERS; i++)
        close_socket(&o.callers[i]);
    for (int i = 0; i < MOST_ADDRESSES; i++)
        say_goodbye(&o.calls[i]);
    for (int i = 0; i < 2; i++) {
        if (lacks(&m->neighbours[i])) warn_missing(m, m->neighbours[i].process);
        if (m->neighbours[i].socket >= 0) keep_alive(m->neighbours[i].socket);
    }
    ls_free(all);
    return LS_OK;
}

/* --- looking after them ------------------------------------------------------------------------
 */

static void tell(mpi_processes *m, const failure *why, const neighbour *but)
{
    unsigned char message[1 + sizeof *why] = {FAILURE};
    memcpy(message + 1, why, sizeof *why);
    for (int i = 0; i < 2; i++) {
        const neighbour *one = &m->neighbours[i];
        if (one != but && one->socket >= 0)
            (void)send(one->socket, message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

void neighbours_tell(mpi_processes *m, const failure *why)
{
    pthread_mutex_lock(&m->neighbours_mutex);
    tell(m, why, NULL);
    pthread_mutex_unlock(&m->neighbours_mutex);
}

/* Whole or not at all: it is shorter than any packet. */
static void take_failure(mpi_processes *m, const neighbour *from, const failure *why)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&m->aborting, &none, 1)) {
        m->abort_received = *why;
        m->abort_received.text[sizeof why->text - 1] = '\0';
        atomic_store(&m->aborted, 1);
    }
    tell(m, why, from);
}

static void look_at(mpi_processes *m, neighbour *one)
{
    unsigned char message[1 + sizeof(failure)];
    ssize_t got = recv(one->socket, message, sizeof message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    failure why;
    if (got == (ssize_t)sizeof message && message[0] == FAILURE) {
        memcpy(&why, message + 1, sizeof why);
        take_failure(m, one, &why);
        return;
    }
    if (got <= 0) atomic_store(&m->gone, one->process + 1);
    close_socket(&one->socket);
}

void neighbours_look(mpi_processes *m, int milliseconds)
{
    struct pollfd polls[2];
    for (int i = 0; i < 2; i++)
        polls[i] = (struct pollfd){.fd = m->neighbours[i].socket, .events = POLLIN};
    if (poll(polls, 2, milliseconds) <= 0) return;
    pthread_mutex_lock(&m->neighbours_mutex);
    for (int i = 0; i < 2; i++)
        if (polls[i].revents) look_at(m, &m->neighbours[i]);
    pthread_mutex_unlock(&m->neighbours_mutex);
}

void neighbours_leave(mpi_processes *m, bool lost)
{
    for (int i = 0; i < 2; i++) {
        if (lost)
            close_socket(&m->neighbours[i].socket);
        else
            say_goodbye(&m->neighbours[i].socket);
    }
}
