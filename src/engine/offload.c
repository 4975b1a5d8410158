#include "engine/offload.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/block_file.h"
#include "base/queue.h"
#include "program/layout.h"

enum { QUEUED_COPIES = 64, READ_PAGES = 256 };

struct ls_offload {
    const ls_program *program;
    const ls_plan *plan;
    int rank;
    ls_device *device;
    unsigned char *memory; /* [memory_bytes] */
    int64_t memory_bytes;
    ls_block_file file; /* of file.bytes; 0: there is none */
    ls_queue *queue;
    long *tickets; /* [values] the last fetch into a block, in the queue's count */
    pthread_mutex_t mutex;
    /* Under the mutex: the first failure. */
    ls_status status;
    ls_error error;
};

/* --- one copy, on the queue's thread ------------------------------------------------------------
 */

/* A part of a run, and the block on the device. A CPU device's memory is the host's, so that a file
 * is read into it and written from it without another copy. */
static ls_status copy(ls_offload *offload, ls_value_id run, int64_t first, int64_t elements,
                      void *block, bool fetch, ls_error *error)
{
    const ls_device_operations *operations = offload->device->operations;
    int64_t bytes = elements * (int64_t)sizeof(float);
    int64_t offset = offload->plan->offset[run] + first * (int64_t)sizeof(float);
    if (offload->plan->arena[run] == LS_PLAN_HOST_MEMORY) {
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
    const ls_op *op = call->op;
    bool fetch = op->kind == LS_OP_FETCH;
    for (int i = 0; i < LS_MAX_OUTPUTS; i++) {
        ls_value_id run = fetch ? op->inputs[i] : op->outputs[i];
        void *block = fetch ? call->outputs[i].data : call->inputs[i].data;
        if (run == LS_NO_VALUE) continue;
        LS_TRY(copy(offload, run, op->attributes.first_element, op->attributes.elements, block,
                    fetch, error));
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
    LS_TRY_GOTO(status, LS_NEW(offload->tickets, program->value_count, "offload", error), fail);
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
    ls_free(offload->tickets);
    pthread_mutex_destroy(&offload->mutex);
    ls_free(offload);
}

void ls_offload_run(ls_offload *offload, const ls_op_call *call)
{
    const ls_op *op = call->op;
    if (op->kind == LS_OP_AWAIT) {
        ls_queue_wait_for(offload->queue, offload->tickets[op->inputs[0]]);
        return;
    }
    if (op->kind == LS_OP_STORE) offload->device->operations->wait(offload->device);
    long ticket = ls_queue_push(offload->queue, call);
    if (op->kind == LS_OP_FETCH) offload->tickets[op->outputs[0]] = ticket;
}

ls_status ls_offload_check(ls_offload *offload, ls_error *error)
{
    pthread_mutex_lock(&offload->mutex);
    ls_status status = offload->status;
    if (status != LS_OK && error) *error = offload->error;
    pthread_mutex_unlock(&offload->mutex);
    return status;
}

/* By way of whole pages around the bytes. */
static ls_status read_file(const ls_offload *offload, int64_t offset, int64_t bytes,
                           unsigned char *into, ls_error *error)
{
    enum { MOST = READ_PAGES * LS_BLOCK_PAGE };
    unsigned char *pages = ls_allocate_pages(MOST, false);
    if (!pages)
        return ls_fail(error, LS_NO_MEMORY, "out of memory: %d bytes for a file's pages", MOST);
    ls_status status = LS_OK;
    while (status == LS_OK && bytes > 0) {
        int64_t within = offset % LS_BLOCK_PAGE, part = MOST - within;
        if (part > bytes) part = bytes;
        int64_t whole = (within + part + LS_BLOCK_PAGE - 1) / LS_BLOCK_PAGE * LS_BLOCK_PAGE;
        status = ls_block_file_read(&offload->file, pages, whole, offset - within, error);
        memcpy(into, pages + within, (size_t)part);
        into += part;
        offset += part;
        bytes -= part;
    }
    ls_free_pages(pages, MOST);
    return status;
}

/* Where an element of a value lies in its arena. */
static int64_t place_of(const ls_offload *offload, ls_value_id value, int64_t element)
{
    ls_value_id parameter = ls_layout_parameter(offload->program, value);
    int64_t position = ls_layout_position(offload->program, parameter, offload->rank);
    int64_t owned = ls_layout_owned(offload->program, parameter, offload->rank).begin;
    return offload->plan->offset[value] + (position + element - owned) * (int64_t)sizeof(float);
}

ls_status ls_offload_read(ls_offload *offload, ls_value_id value, int64_t first, int64_t count,
                          float *into, ls_error *error)
{
    int64_t bytes = count * (int64_t)sizeof *into;
    int64_t offset = place_of(offload, value, first);
    ls_queue_wait(offload->queue);
    LS_TRY(ls_offload_check(offload, error));
    if (offload->plan->arena[value] == LS_PLAN_FILE)
        return read_file(offload, offset, bytes, (unsigned char *)into, error);
    memcpy(into, offload->memory + offset, (size_t)bytes);
    return LS_OK;
}

int64_t ls_offload_bytes(const ls_offload *offload, ls_plan_arena arena)
{
    return arena == LS_PLAN_FILE ? offload->file.bytes : offload->memory_bytes;
}

bool ls_offload_is_direct(const ls_offload *offload)
{
    return offload->file.bytes == 0 || offload->file.direct;
}
