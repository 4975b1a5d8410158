#include "base/queue.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/calls.h"
#include "base/threads.h"

struct ls_queue {
    ls_queue_function function;
    void *context;
    const void **items; /* [capacity], a ring */
    int capacity;
    long pushed, done; /* items so far; all below under the mutex */
    bool stopping;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

static void *queue_main(void *argument)
{
    ls_queue *queue = argument;
    ls_float_mode_enter();
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        while (queue->done == queue->pushed && !queue->stopping)
            pthread_cond_wait(&queue->changed, &queue->mutex);
        if (queue->done == queue->pushed) break;
        const void *item = queue->items[queue->done % queue->capacity];
        pthread_mutex_unlock(&queue->mutex);
        queue->function(queue->context, item);
        pthread_mutex_lock(&queue->mutex);
        queue->done++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

ls_status ls_queue_new(ls_queue **out, int capacity, ls_queue_function function, void *context,
                       ls_error *error)
{
    ls_queue *queue = NULL;
    LS_TRY(LS_NEW(queue, 1, "queue", error));
    ls_status status = LS_NEW(queue->items, capacity, "queue", error);
    queue->capacity = capacity;
    queue->function = function;
    queue->context = context;
    if (status == LS_OK) {
        pthread_mutex_init(&queue->mutex, NULL);
        pthread_cond_init(&queue->changed, NULL);
        if (ls_call_thread(&queue->thread, queue_main, queue) == 0) {
            *out = queue;
            return LS_OK;
        }
        pthread_cond_destroy(&queue->changed);
        pthread_mutex_destroy(&queue->mutex);
        status = ls_fail(error, LS_NO_MEMORY, "cannot start the thread of a queue");
    }
    ls_free(queue->items);
    ls_free(queue);
    return status;
}

void ls_queue_free(ls_queue *queue)
{
    if (!queue) return;
    pthread_mutex_lock(&queue->mutex);
    queue->stopping = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    ls_free(queue->items);
    ls_free(queue);
}

long ls_queue_push(ls_queue *queue, const void *item)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->pushed - queue->done == queue->capacity)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    queue->items[queue->pushed++ % queue->capacity] = item;
    long number = queue->pushed;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    return number;
}

void ls_queue_wait_for(ls_queue *queue, long number)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->done < number)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    pthread_mutex_unlock(&queue->mutex);
}

void ls_queue_wait(ls_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->done != queue->pushed)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    pthread_mutex_unlock(&queue->mutex);
}
