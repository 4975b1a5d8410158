#include "comm/threads/mailbox.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/comm.h"

typedef struct letter {
    bool open, sending;
    int peer;
    uint64_t number; /* in the order of posting */
    const void *from;
    void *to;
    int64_t bytes;
} letter;

struct ls_mailbox {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool closed;
    int ranks;
    uint64_t posted;
    letter *letters; /* [ranks][LS_COMM_REQUESTS] */
};

ls_status ls_mailbox_new(ls_mailbox **out, int ranks, ls_error *error)
{
    ls_mailbox *mailbox = NULL;
    LS_TRY(LS_NEW(mailbox, 1, "mailbox", error));
    ls_status status = LS_NEW(mailbox->letters, ranks * LS_COMM_REQUESTS, "mailbox", error);
    if (status != LS_OK) {
        ls_free(mailbox);
        return status;
    }
    mailbox->ranks = ranks;
    pthread_mutex_init(&mailbox->mutex, NULL);
    pthread_cond_init(&mailbox->changed, NULL);
    *out = mailbox;
    return LS_OK;
}

void ls_mailbox_free(ls_mailbox *mailbox)
{
    if (!mailbox) return;
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->mutex);
    ls_free(mailbox->letters);
    ls_free(mailbox);
}

/* The oldest open letter of `owner` to or from `peer`. */
static letter *oldest(ls_mailbox *mailbox, int owner, int peer, bool sending)
{
    letter *found = NULL;
    for (int i = 0; i < LS_COMM_REQUESTS; i++) {
        letter *one = &mailbox->letters[owner * LS_COMM_REQUESTS + i];
        if (!one->open || one->sending != sending || one->peer != peer) continue;
        if (!found || one->number < found->number) found = one;
    }
    return found;
}

static void post(ls_mailbox *mailbox, int rank, int request, letter what)
{
    pthread_mutex_lock(&mailbox->mutex);
    what.open = true;
    what.number = mailbox->posted++;
    mailbox->letters[rank * LS_COMM_REQUESTS + request] = what;
    int sender = what.sending ? rank : what.peer, receiver = what.sending ? what.peer : rank;
    letter *from = oldest(mailbox, sender, receiver, true);
    letter *to = oldest(mailbox, receiver, sender, false);
    if (from && to && !mailbox->closed) {
        int64_t bytes = from->bytes < to->bytes ? from->bytes : to->bytes;
        if (bytes) memcpy(to->to, from->from, (size_t)bytes);
        from->open = to->open = false;
        pthread_cond_broadcast(&mailbox->changed);
    }
    pthread_mutex_unlock(&mailbox->mutex);
}

void ls_mailbox_send(ls_mailbox *mailbox, int rank, int request, int to, const void *bytes,
                     int64_t count)
{
    post(mailbox, rank, request,
         (letter){.sending = true, .peer = to, .from = bytes, .bytes = count});
}

void ls_mailbox_receive(ls_mailbox *mailbox, int rank, int request, int from, void *bytes,
                        int64_t room)
{
    post(mailbox, rank, request, (letter){.peer = from, .to = bytes, .bytes = room});
}

void ls_mailbox_wait(ls_mailbox *mailbox, int rank, int request)
{
    const letter *one = &mailbox->letters[rank * LS_COMM_REQUESTS + request];
    pthread_mutex_lock(&mailbox->mutex);
    while (one->open && !mailbox->closed)
        pthread_cond_wait(&mailbox->changed, &mailbox->mutex);
    pthread_mutex_unlock(&mailbox->mutex);
}

void ls_mailbox_close(ls_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->mutex);
    mailbox->closed = true;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->mutex);
}
