/* Messages between threads, for ranks that are supposed to be on different hosts. */
#ifndef LS_COMM_THREADS_MAILBOX_H
#define LS_COMM_THREADS_MAILBOX_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_mailbox ls_mailbox;

ls_status ls_mailbox_new(ls_mailbox **out, int ranks, ls_error *error) LS_MUST_CHECK;
void ls_mailbox_free(ls_mailbox *mailbox); /* NULL is allowed */

/* As the operations of comm.h. The bytes are copied when both sides have called. */
void ls_mailbox_send(ls_mailbox *mailbox, int rank, int request, int to, const void *bytes,
                     int64_t count);
void ls_mailbox_receive(ls_mailbox *mailbox, int rank, int request, int from, void *bytes,
                        int64_t room);
void ls_mailbox_wait(ls_mailbox *mailbox, int rank, int request);
/* Nobody waits any more. */
void ls_mailbox_close(ls_mailbox *mailbox);

#endif
