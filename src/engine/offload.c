#include "engine/offload.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/block_file.h"
#include "base/queue.h"
#include "program/layout.h"

enum { QUEUED_COPIES = 64, PAGES_AT_ONCE = 256, ELEMENT = sizeof(float) };

struct ls_offload {
    const ls_program *program;
    const ls_plan *plan;
    int rank;
    ls_device *device;
    unsigned char *memory; /* [memory_bytes] */
    int64_t memory_bytes;
    ls_block_file file; /* of file.bytes; 0: there is none */
    ls_queue *queue;
    pthread_mutex_t mutex;
    /* Under the mutex: the first failure. */
    ls_status status;
    ls_error error;
};

/* --- one copy, on the queue's thread ------------------------------------------------------------
 */

/* A part of a run, and the block on the device. A CPU device's memory is the host's, so that a file
 * is read into it and written from it without another copy. */
static ls_status copy(ls_offload *offload, const ls_operand *run, ls_range part, void *block,
                      bool fetch, ls_error *error)
{
    const ls_device_operations *operations = offload->device->operations;
    int64_t bytes = (part.end - part.begin) * ELEMENT, offset = (run->first + part.begin) * ELEMENT;
    if (run->value->space == LS_SPACE_HOST_MEMORY) {
        if (fetch)
            operations->upload(offload->device, block, offload->memory + offset, bytes);
        else
            operations->download(offload->device, offload->memory + offset, block, bytes);
        return LS_OK;
    }
    if (fetch) return ls_block_file_read(&offload->file, block, bytes, offset, error);
    return ls_block_file_write(&offload->file, block, bytes, offset, error);
}

static ls_status copy_all(ls_offload *offload, const ls_op_call *call, ls_error *error)
{
    bool fetch = call->op->kind == LS_OP_FETCH;
    for (int i = 0; i < LS_MAX_OUTPUTS; i++) {
        const ls_operand *run = fetch ? &call->inputs[i] : &call->outputs[i];
        void *block = fetch ? call->outputs[i].data : call->inputs[i].data;
        if (run->value) LS_TRY(copy(offload, run, call->owned, block, fetch, error));
    }
    return LS_OK;
}

static void run_queued(void *context, const void *item)
{
    ls_offload *offload = context;
    ls_error error;
    if (ls_offload_check(offload, NULL) != LS_OK) return;
    ls_status status = copy_all(offload, item, &error);
    if (status == LS_OK) return;
    pthread_mutex_lock(&offload->mutex);
    offload->status = status;
    offload->error = error;
    pthread_mutex_unlock(&offload->mutex);
}

/* --- the public functions -----------------------------------------------------------------------
 */

static ls_status take_file(ls_offload *offload, const char *folder, int64_t bytes, ls_error *error)
{
    ls_error cause;
    ls_status status = ls_block_file_open(&offload->file, folder, bytes, &cause);
    if (status == LS_OK) return LS_OK;
    return ls_fail(error, status, "--offload-path %s", cause.text);
}

static ls_status take(ls_offload *offload, const char *folder, ls_error *error)
{
    int64_t memory = offload->plan->bytes[LS_PLAN_HOST_MEMORY];
    int64_t file = offload->plan->bytes[LS_PLAN_FILE];
    if (memory) {
        offload->memory = ls_allocate_pages((size_t)memory, true);
        if (!offload->memory)
            return ls_fail(error, LS_NO_MEMORY,
                           "out of memory: %lld bytes of host memory for the optimizer's state",
                           (long long)memory);
        offload->memory_bytes = memory;
    }
    return file ? take_file(offload, folder, file, error) : LS_OK;
}

ls_status ls_offload_new(ls_offload **out, const ls_program *program, const ls_plan *plan, int rank,
                         ls_device *device, const char *folder, ls_error *error)
{
    ls_offload *offload = NULL;
    ls_status status;
    LS_TRY(LS_NEW(offload, 1, "offload", error));
    offload->program = program;
    offload->plan = plan;
    offload->rank = rank;
    offload->device = device;
    pthread_mutex_init(&offload->mutex, NULL);
    LS_TRY_GOTO(status, take(offload, folder, error), fail);
    LS_TRY_GOTO(status, ls_queue_new(&offload->queue, QUEUED_COPIES, run_queued, offload, error),
                fail);
    *out = offload;
    return LS_OK;
fail:
    ls_offload_free(offload);
    return status;
}

void ls_offload_free(ls_offload *offload)
{
    if (!offload) return;
    ls_queue_free(offload->queue);
    ls_block_file_close(&offload->file);
    ls_free_pages(offload->memory, (size_t)offload->memory_bytes);
    pthread_mutex_destroy(&offload->mutex);
    ls_free(offload);
}

long ls_offload_enqueue(ls_offload *offload, const ls_op_call *call)
{
    if (call->op->kind == LS_OP_STORE) offload->device->operations->wait(offload->device);
    return ls_queue_push(offload->queue, call);
}

void ls_offload_wait_for(ls_offload *offload, long number)
{
    ls_queue_wait_for(offload->queue, number);
}

ls_status ls_offload_check(ls_offload *offload, ls_error *error)
{
    pthread_mutex_lock(&offload->mutex);
    ls_status status = offload->status;
    if (status != LS_OK && error) *error = offload->error;
    pthread_mutex_unlock(&offload->mutex);
    return status;
}

/* Elements of a value, in its arena and in the caller's memory; one of the two pointers. */
typedef struct transfer {
    int64_t offset, bytes;
    unsigned char *into;
    const unsigned char *from;
} transfer;

/* The part of a transfer that lies in the file's pages at `offset`: through `pages`. */
static ls_status transfer_pages(const ls_offload *offload, const transfer *t, unsigned char *pages,
                                ls_error *error)
{
    int64_t within = t->offset % LS_BLOCK_PAGE;
    int64_t whole = (within + t->bytes + LS_BLOCK_PAGE - 1) / LS_BLOCK_PAGE * LS_BLOCK_PAGE;
    LS_TRY(ls_block_file_read(&offload->file, pages, whole, t->offset - within, error));
    if (t->into) {
        memcpy(t->into, pages + within, (size_t)t->bytes);
        return LS_OK;
    }
    memcpy(pages + within, t->from, (size_t)t->bytes);
    return ls_block_file_write(&offload->file, pages, whole, t->offset - within, error);
}

static ls_status transfer_file(const ls_offload *offload, transfer whole, ls_error *error)
{
    enum { MOST = PAGES_AT_ONCE * LS_BLOCK_PAGE };
    unsigned char *pages = ls_allocate_pages(MOST, false);
    if (!pages)
        return ls_fail(error, LS_NO_MEMORY, "out of memory: %d bytes for a file's pages", MOST);
    ls_status status = LS_OK;
    for (int64_t done = 0; status == LS_OK && done < whole.bytes;) {
        transfer part = whole;
        part.offset += done;
        part.bytes = MOST - part.offset % LS_BLOCK_PAGE;
        if (part.bytes > whole.bytes - done) part.bytes = whole.bytes - done;
        if (part.into) part.into += done;
        if (part.from) part.from += done;
        status = transfer_pages(offload, &part, pages, error);
        done += part.bytes;
    }
    ls_free_pages(pages, MOST);
    return status;
}

static ls_status transfer_now(ls_offload *offload, ls_value_id value, int64_t first, transfer t,
                              ls_error *error)
{
    ls_value_id parameter = ls_layout_parameter(offload->program, value);
    int64_t position = ls_layout_position(offload->program, parameter, offload->rank);
    int64_t owned = ls_layout_owned(offload->program, parameter, offload->rank).begin;
    t.offset = offload->plan->offset[value] + (position + first - owned) * ELEMENT;
    ls_queue_wait(offload->queue);
    LS_TRY(ls_offload_check(offload, error));
    if (ls_value_of(offload->program, value)->space == LS_SPACE_FILE)
        return transfer_file(offload, t, error);
    if (t.into)
        memcpy(t.into, offload->memory + t.offset, (size_t)t.bytes);
    else
        memcpy(offload->memory + t.offset, t.from, (size_t)t.bytes);
    return LS_OK;
}

ls_status ls_offload_read(ls_offload *offload, ls_value_id value, int64_t first, int64_t count,
                          float *into, ls_error *error)
{
    transfer t = {.bytes = count * ELEMENT, .into = (unsigned char *)into};
    return transfer_now(offload, value, first, t, error);
}

ls_status ls_offload_write(ls_offload *offload, ls_value_id value, int64_t first, int64_t count,
                           const float *from, ls_error *error)
{
    transfer t = {.bytes = count * ELEMENT, .from = (const unsigned char *)from};
    return transfer_now(offload, value, first, t, error);
}

int64_t ls_offload_bytes(const ls_offload *offload, ls_plan_arena arena)
{
    return arena == LS_PLAN_FILE ? offload->file.bytes : offload->memory_bytes;
}

bool ls_offload_is_direct(const ls_offload *offload)
{
    return offload->file.bytes == 0 || offload->file.direct;
}
