/* A queue of work with a thread of its own, asleep while there is none: the communication queue and
 * the copy queue. */
#ifndef LS_BASE_QUEUE_H
#define LS_BASE_QUEUE_H

#include "base/status.h"

typedef struct ls_queue ls_queue;
typedef void (*ls_queue_function)(void *context, const void *item);

/* `function` is called with each item in the order of pushing, on the queue's thread. At most
 * `capacity` items wait. */
ls_status ls_queue_new(ls_queue **out, int capacity, ls_queue_function function, void *context,
                       ls_error *error) LS_MUST_CHECK;
void ls_queue_free(ls_queue *queue); /* after what was pushed is done; NULL is allowed */

/* The item is borrowed until it is done. Waits while the queue is full. Returns its number, which
 * counts from 1. */
long ls_queue_push(ls_queue *queue, const void *item);
void ls_queue_wait_for(ls_queue *queue, long number); /* until item `number` is done */
void ls_queue_wait(ls_queue *queue);                  /* until all items are done */

#endif
