#include "engine/rank_group.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/calls.h"
#include "base/threads.h"

typedef struct rank {
    struct ls_rank_group *group;
    int index;
    bool started, bound;
    ls_cores cores; /* where it runs, if bound */
    pthread_t thread;
    ls_comm *comm;
    ls_status status;
    ls_error error;
} rank;

struct ls_rank_group {
    int size;
    rank *ranks;
    ls_comm **comms;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Under the mutex: */
    long task; /* one more for each run */
    int busy;  /* ranks that have not finished the run */
    bool stopping;
    ls_rank_function function;
    void *context;
};

static void run_rank(rank *self)
{
    ls_rank_group *group = self->group;
    uint32_t former = ls_float_mode_enter(); /* scalars are computed outside the pool too */
    self->status = group->function(group->context, self->index, &self->error);
    ls_float_mode_leave(former);
    if (self->status == LS_OK) return;
    self->error.rank = self->comm->rank;
    self->comm->operations->abort(self->comm, &self->error);
}

/* On the caller's thread, which gets its cores back. */
static void run_first(rank *self)
{
    if (!self->bound) {
        run_rank(self);
        return;
    }
    ls_cores former = ls_cores_own();
    ls_cores_bind(&self->cores);
    run_rank(self);
    ls_cores_bind(&former);
}

static void *rank_main(void *argument)
{
    rank *self = argument;
    ls_rank_group *group = self->group;
    long seen = 0;
    if (self->bound) ls_cores_bind(&self->cores);
    pthread_mutex_lock(&group->mutex);
    for (;;) {
        while (group->task == seen && !group->stopping)
            pthread_cond_wait(&group->changed, &group->mutex);
        if (group->stopping) break;
        seen++;
        pthread_mutex_unlock(&group->mutex);
        run_rank(self);
        pthread_mutex_lock(&group->mutex);
        group->busy--;
        pthread_cond_broadcast(&group->changed);
    }
    pthread_mutex_unlock(&group->mutex);
    return NULL;
}

static ls_status new_group(ls_rank_group **out, ls_comm *const *comms, int size, ls_error *error)
{
    ls_rank_group *group = NULL;
    ls_status status = LS_NEW(group, 1, "ranks", error);
    if (status == LS_OK) status = LS_NEW(group->comms, size, "ranks", error);
    for (int i = 0; i < size; i++) {
        if (status == LS_OK)
            group->comms[i] = comms[i];
        else
            ls_comm_free(comms[i]);
    }
    if (status != LS_OK) ls_free(group);
    *out = group;
    return status;
}

ls_status ls_rank_group_new(ls_rank_group **out, ls_comm *const *comms, int size,
                            const ls_cores *cores, ls_error *error)
{
    ls_rank_group *group = NULL;
    ls_status status;
    LS_TRY(new_group(&group, comms, size, error));
    group->size = size;
    pthread_mutex_init(&group->mutex, NULL);
    pthread_cond_init(&group->changed, NULL);
    LS_TRY_GOTO(status, LS_NEW(group->ranks, size, "ranks", error), fail);
    for (int i = 0; i < size; i++) {
        rank *one = &group->ranks[i];
        *one = (rank){.group = group, .index = i, .comm = group->comms[i]};
        one->bound = cores != NULL;
        if (cores) one->cores = cores[i];
        if (i == 0) continue;
        if (ls_call_thread(&one->thread, rank_main, one) != 0) {
            status = ls_fail(error, LS_NO_MEMORY, "cannot start rank %d of %d", i, size);
            goto fail;
        }
        one->started = true;
    }
    *out = group;
    return LS_OK;
fail:
    ls_rank_group_free(group);
    return status;
}

void ls_rank_group_free(ls_rank_group *group)
{
    if (!group) return;
    pthread_mutex_lock(&group->mutex);
    group->stopping = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
    for (int i = 0; group->ranks && i < group->size; i++)
        if (group->ranks[i].started) pthread_join(group->ranks[i].thread, NULL);
    for (int i = 0; group->comms && i < group->size; i++)
        ls_comm_free(group->comms[i]);
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->mutex);
    ls_free(group->ranks);
    ls_free(group->comms);
    ls_free(group);
}

int ls_rank_group_size(const ls_rank_group *group)
{
    return group->size;
}

ls_comm *ls_rank_group_comm(ls_rank_group *group, int index)
{
    return group->comms[index];
}

ls_status ls_rank_group_run(ls_rank_group *group, ls_rank_function function, void *context,
                            ls_error *error)
{
    pthread_mutex_lock(&group->mutex);
    group->function = function;
    group->context = context;
    group->busy = group->size - 1;
    group->task++;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
    run_first(&group->ranks[0]);
    pthread_mutex_lock(&group->mutex);
    while (group->busy)
        pthread_cond_wait(&group->changed, &group->mutex);
    pthread_mutex_unlock(&group->mutex);
    const rank *first = NULL;
    for (int i = 0; i < group->size; i++) {
        const rank *one = &group->ranks[i];
        if (one->status == LS_OK) continue;
        if (!first || first->status == LS_INTERRUPTED) first = one;
    }
    if (!first) return LS_OK;
    if (error) *error = first->error;
    return first->status;
}
