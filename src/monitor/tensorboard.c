#include "monitor/tensorboard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "monitor/record_file.h"
#include "monitor/scalars.h"

enum { HEADER_BYTES = 12, FOOTER_BYTES = 4, RECORD_BYTES = 1 << 12, TAG_BYTES = 128 };

typedef struct message {
    unsigned char bytes[RECORD_BYTES];
    size_t length;
} message;

typedef struct tensorboard {
    ls_sink sink;
    ls_record_file file;
    message event, part; /* the record that is being made, and what is nested in it */
} tensorboard;

/* --- protocol buffers (protobuf.dev/programming-guides/encoding) -------------------------------
 */

enum { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_LENGTH = 2, WIRE_32_BITS = 5 };

static void put_bytes(message *m, const void *bytes, size_t count)
{
    if (m->length + count > sizeof m->bytes - FOOTER_BYTES) return; /* no report is that long */
    memcpy(m->bytes + m->length, bytes, count);
    m->length += count;
}

static void put_varint(message *m, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (unsigned char)(value | 0x80);
    bytes[count++] = (unsigned char)value;
    put_bytes(m, bytes, count);
}

static void put_key(message *m, unsigned field, unsigned wire)
{
    put_varint(m, field << 3 | wire);
}

static void put_double(message *m, unsigned field, double value)
{
    put_key(m, field, WIRE_64_BITS);
    put_bytes(m, &value, sizeof value);
}

static void put_field(message *m, unsigned field, const void *bytes, size_t count)
{
    put_key(m, field, WIRE_LENGTH);
    put_varint(m, count);
    put_bytes(m, bytes, count);
}

/* A Summary.Value: tag = 1, simple_value = 2. */
static void put_scalar(message *summary, const char *group, const char *name, double value)
{
    char tag[TAG_BYTES];
    message one = {.length = 0};
    float single = (float)value;
    int length = snprintf(tag, sizeof tag, "%s/%s", group, name);
    if (length >= TAG_BYTES) length = TAG_BYTES - 1;
    put_field(&one, 1, tag, (size_t)length);
    put_key(&one, 2, WIRE_32_BITS);
    put_bytes(&one, &single, sizeof single);
    put_field(summary, 1, one.bytes, one.length);
}

/* --- records -----------------------------------------------------------------------------------
 */

uint32_t ls_masked_crc32c(const void *bytes, size_t count)
{
    const unsigned char *from = bytes;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= from[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

/* An Event: wall_time = 1. The record's head is filled in when the length is known. */
static message *begin_event(tensorboard *board)
{
    board->event.length = HEADER_BYTES;
    put_double(&board->event, 1, ls_wall_seconds());
    return &board->event;
}

static ls_status write_event(tensorboard *board, ls_error *error)
{
    message *event = &board->event;
    uint64_t length = event->length - HEADER_BYTES;
    uint32_t head = ls_masked_crc32c(&length, sizeof length);
    uint32_t body = ls_masked_crc32c(event->bytes + HEADER_BYTES, (size_t)length);
    memcpy(event->bytes, &length, sizeof length);
    memcpy(event->bytes + sizeof length, &head, sizeof head);
    memcpy(event->bytes + event->length, &body, sizeof body);
    return ls_record_file_write(&board->file, event->bytes, event->length + FOOTER_BYTES, error);
}

/* step = 2, summary = 5 */
static ls_status write_scalars(tensorboard *board, int64_t step, const char *group,
                               const ls_scalar *scalars, const double *values, int count,
                               ls_error *error)
{
    message *event = begin_event(board);
    put_key(event, 2, WIRE_VARINT);
    put_varint(event, (uint64_t)step);
    board->part.length = 0;
    for (int i = 0; i < count; i++)
        put_scalar(&board->part, group, scalars[i].name, values[i]);
    put_field(event, 5, board->part.bytes, board->part.length);
    return write_event(board, error);
}

static ls_status write_step(ls_sink *sink, const ls_step_report *report, ls_error *error)
{
    double values[LS_STEP_SCALARS];
    ls_step_values(report, values);
    return write_scalars((tensorboard *)sink, report->step, "train", ls_step_scalars, values,
                         LS_STEP_SCALARS, error);
}

static ls_status write_evaluation(ls_sink *sink, const ls_evaluation_report *report,
                                  ls_error *error)
{
    double values[LS_EVALUATION_SCALARS];
    ls_evaluation_values(report, values);
    return write_scalars((tensorboard *)sink, report->step, report->name, ls_evaluation_scalars,
                         values, LS_EVALUATION_SCALARS, error);
}

static ls_status finish(ls_sink *sink, ls_error *error)
{
    return ls_record_file_finish(&((tensorboard *)sink)->file, error);
}

static void free_tensorboard(ls_sink *sink)
{
    tensorboard *board = (tensorboard *)sink;
    ls_record_file_deinit(&board->file);
    ls_free(board);
}

static const ls_sink_operations operations = {
    .name = "TensorBoard",
    .step = write_step,
    .evaluation = write_evaluation,
    .finish = finish,
    .free = free_tensorboard,
};

/* TensorBoard looks for "tfevents" and sorts by the time in the name; host and process make it one
 * of its own. */
static ls_status new_path(char **out, const char *folder, ls_error *error)
{
    char host[65] = "host", name[160];
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "host");
    for (int number = 0;; number++) {
        snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%ld.%d",
                 (long long)ls_wall_seconds(), host, (long)getpid(), number);
        LS_TRY(ls_path_join(out, folder, name, error));
        if (!ls_path_exists(*out)) return LS_OK;
        ls_free(*out);
    }
}

ls_status ls_tensorboard_open(ls_sink **out, const char *folder, ls_error *error)
{
    static const char version[] = "brain.Event:2";
    tensorboard *board = NULL;
    char *path = NULL;
    ls_status status;
    LS_TRY(LS_NEW(board, 1, "TensorBoard", error));
    board->sink.operations = &operations;
    LS_TRY_GOTO(status, ls_folder_make(folder, error), fail);
    LS_TRY_GOTO(status, new_path(&path, folder, error), fail);
    LS_TRY_GOTO(status, ls_record_file_open(&board->file, path, false, error), fail);
    put_field(begin_event(board), 3, version, sizeof version - 1); /* file_version = 3 */
    LS_TRY_GOTO(status, write_event(board, error), fail);
    *out = &board->sink;
    return LS_OK;
fail:
    free_tensorboard(&board->sink);
    return status;
}
