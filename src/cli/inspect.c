/* The tensors of a model folder or safetensors file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/exit_status.h"
#include "cli/format.h"

enum { SHAPE_BYTES = 200, NAME_BYTES = 1024, WIDEST_NAME = 80 };

typedef struct sums {
    int name, shape; /* columns of the widest */
    int64_t tensors, elements;
    uint64_t bytes;
} sums;

static int write_shape(char into[SHAPE_BYTES], const ls_tensor_report *tensor)
{
    int used = snprintf(into, SHAPE_BYTES, "[");
    for (int axis = 0; axis < tensor->rank; axis++)
        used += snprintf(into + used, (size_t)(SHAPE_BYTES - used), "%s%" PRId64, axis ? ", " : "",
                         tensor->shape[axis]);
    used += snprintf(into + used, (size_t)(SHAPE_BYTES - used), "]");
    return used;
}

static void measure(void *context, const ls_tensor_report *tensor)
{
    sums *totals = context;
    char shape[SHAPE_BYTES];
    int name = ls_columns_of(tensor->name), columns = write_shape(shape, tensor);
    if (name > WIDEST_NAME) name = WIDEST_NAME;
    if (name > totals->name) totals->name = name;
    if (columns > totals->shape) totals->shape = columns;
    totals->tensors++;
    totals->elements += tensor->elements;
    totals->bytes += tensor->bytes;
}

static void show(void *context, const ls_tensor_report *tensor)
{
    const sums *totals = context;
    char name[NAME_BYTES], shape[SHAPE_BYTES], bytes[LS_FORMAT_BYTES];
    int columns = ls_columns_fit(name, sizeof name, tensor->name, LS_NO_LIMIT);
    write_shape(shape, tensor);
    printf("%s%*s  %-4s  %-*s  %12s bytes\n", name,
           columns < totals->name ? totals->name - columns : 0, "", tensor->dtype, totals->shape,
           shape, ls_format_count(bytes, (int64_t)tensor->bytes));
}

static int inspect(const ls_invocation *invocation)
{
    const char *path = invocation->options.model;
    sums totals = {0};
    ls_error error;
    char tensors[LS_FORMAT_BYTES], elements[LS_FORMAT_BYTES], bytes[LS_FORMAT_BYTES];
    char exactly[LS_FORMAT_BYTES];
    /* Twice: the first time for the widths, so that nothing is printed of a file that is bad. */
    ls_status status = ls_inspect(path, measure, &totals, &error);
    if (status == LS_OK) status = ls_inspect(path, show, &totals, &error);
    if (status == LS_OK)
        printf("%s tensors, %s elements, %s (%s bytes)\n", ls_format_count(tensors, totals.tensors),
               ls_format_count(elements, totals.elements),
               ls_format_bytes(bytes, (int64_t)totals.bytes),
               ls_format_count(exactly, (int64_t)totals.bytes));
    return ls_exit_report(status, &error);
}

const ls_command ls_command_inspect = {
    .name = "inspect",
    .bit = LS_COMMAND_INSPECT,
    .summary = "the tensors of a model folder or safetensors file",
    .usage = "PATH",
    .example = "lockstep inspect all-MiniLM-L6-v2",
    .details =
        "Prints name, dtype, shape and size of each tensor, in the order of their names, and "
        "the sums. Reads the headers of the files only.",
    .needed = {"model"},
    .paths = {"model"},
    .run = inspect,
};
