/* A device: memory in spaces, queues of work, and one function for each op.
 *
 * Written so that a GPU is one more folder: nothing here returns a result of the work itself, op
 * functions only enqueue, and the host reads a value by downloading it and waiting for the queue.
 * The CPU device's compute queue runs each op at once, on all of the device's cores. */
#ifndef LS_DEVICES_DEVICE_H
#define LS_DEVICES_DEVICE_H

#include "base/leaf_schedule.h"
#include "program/layout.h"
#include "program/program.h"

typedef struct ls_device ls_device;

typedef struct ls_operand {
    const ls_value *value; /* NULL: left out */
    void *data;            /* device address, or host address of a host value */
    /* The element at `data`: 0, or the first that the rank owns, where it holds no others. (Of a
     * row-sparse gradient: the element of its table; `data` is the first touched row that ends
     * behind it.) */
    int64_t first;
} ls_operand;

/* One op made ready to run. Lives as long as the executor that made it. */
typedef struct ls_op_call {
    const ls_op *op;
    const ls_extents *extents; /* of the pass that runs */
    ls_operand inputs[LS_MAX_INPUTS], outputs[LS_MAX_OUTPUTS];
    ls_range owned; /* ops with attributes.owned: the elements of their parameter to work on */
} ls_op_call;

typedef void (*ls_device_function)(ls_device *device, const ls_op_call *call);

/* What a pass at capacity asks of a device's own working memory. */
typedef struct ls_device_limits {
    int64_t tokens, sequence_length, largest_depth, head_size;
} ls_device_limits;

/* What memory is for. */
typedef enum ls_memory_use {
    LS_MEMORY_SPARSE, /* much of it is not touched in an ordinary step */
    LS_MEMORY_DENSE,  /* most of it is used in every step */
    LS_MEMORY_SHARED, /* dense, and other ranks read it */
} ls_memory_use;

/* Where memory comes from that ranks in other processes read. */
typedef struct ls_shared_memory {
    void *context;
    /* Zeroed, at the beginning of a page, kept until the processes part. */
    ls_status (*allocate)(void *context, int64_t bytes, const char *what, void **out,
                          ls_error *error);
} ls_shared_memory;

typedef struct ls_device_operations {
    const char *name;
    void (*free)(ls_device *device);
    /* Bytes on the device, zeroed, at the beginning of a page; LS_NO_MEMORY with the budget in its
     * text when they are not to be had. */
    ls_status (*allocate)(ls_device *device, int64_t bytes, ls_memory_use use, const char *what,
                          void **out, ls_error *error);
    void (*release)(ls_device *device, void *pointer);
    /* Working memory: how much (before anything is allocated), and taking it. */
    int64_t (*scratch_bytes)(const ls_device *device, const ls_device_limits *limits);
    ls_status (*reserve_scratch)(ls_device *device, const ls_device_limits *limits,
                                 ls_error *error);
    /* NULL: the device cannot run this kind of op. */
    ls_device_function (*function)(const ls_device *device, ls_op_kind kind);
    /* Also on another thread than the compute queue's, with memory that no op there uses. */
    void (*upload)(ls_device *device, void *to, const void *from, int64_t bytes);
    void (*download)(ls_device *device, void *to, const void *from, int64_t bytes);
    /* Partial sums of ranks, in place or in reach of the device. On the caller's thread, beside
     * what the compute queue does. */
    void (*ordered_sum)(ls_device *device, const ls_ordered_sum *sum);
    void (*wait)(ls_device *device); /* until all that was enqueued is done */
} ls_device_operations;

struct ls_device {
    const ls_device_operations *operations;
    int64_t budget;                 /* bytes it may hand out; 0: no limit */
    int64_t allocated_bytes;        /* handed out now */
    const ls_shared_memory *shared; /* NULL: no rank is in another process; borrowed */
};

/* A group of this machine's cores as a device. */
ls_status ls_cpu_device_new(ls_device **out, int threads, int64_t budget,
                            ls_error *error) LS_MUST_CHECK;
void ls_device_free(ls_device *device); /* NULL is allowed */
int ls_cpu_device_threads(const ls_device *device);
/* The device's threads, for other work between steps (tokenizing). */
struct ls_threads *ls_cpu_device_pool(ls_device *device);

#endif
