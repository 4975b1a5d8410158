#include "data/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/name_table.h"

enum { SHOWN_BYTES = 60, LIST_BYTES = 400 };

struct ls_labels {
    ls_name_table table;
};

typedef enum label_mode {
    LABELS_UNDECIDED, /* a filled set, no label read yet */
    LABELS_BY_NAME,
    LABELS_BY_NUMBER,
    LABELS_COLLECTED
} label_mode;

struct ls_label_reader {
    ls_labels *labels;
    char *path;
    label_mode mode;
    ls_name_table found; /* while collecting */
};

/* A label as an error shows it: on one line, cut where it is long (between characters). */
static const char *show(char shown[SHOWN_BYTES + 4], const char *label, size_t length)
{
    size_t kept = length < SHOWN_BYTES ? length : SHOWN_BYTES;
    while (kept < length && kept > 0 && ((unsigned char)label[kept] & 0xc0) == 0x80)
        kept--;
    for (size_t at = 0; at < kept; at++)
        shown[at] = (unsigned char)label[at] < 0x20 || label[at] == 0x7f ? '?' : label[at];
    memcpy(shown + kept, kept < length ? "..." : "", kept < length ? 4 : 1);
    return shown;
}

/* "a, b, c" or "a, b, ... (57 in all)". */
static const char *list_names(char list[LIST_BYTES], const ls_name_table *table)
{
    char shown[SHOWN_BYTES + 4];
    size_t used = 0;
    for (int id = 0; id < table->count; id++) {
        show(shown, table->names[id], table->lengths[id]);
        if (used + strlen(shown) + 40 > LIST_BYTES) {
            snprintf(list + used, LIST_BYTES - used, ", ... (%d in all)", table->count);
            break;
        }
        used += (size_t)snprintf(list + used, LIST_BYTES - used, "%s%s", id ? ", " : "", shown);
    }
    return list;
}

/* An integer as a program would write it: no plus sign, no leading zero, fits easily in 64 bits. */
static bool parse_integer(const char *text, size_t length, int64_t *value)
{
    bool negative = length > 0 && text[0] == '-';
    size_t at = negative;
    int64_t sum = 0;
    if (at == length || length - at > 18) return false;
    if (text[at] == '0' && (negative || length > 1)) return false;
    for (; at < length; at++) {
        if (text[at] < '0' || text[at] > '9') return false;
        sum = sum * 10 + (text[at] - '0');
    }
    *value = negative ? -sum : sum;
    return true;
}

ls_status ls_labels_new(ls_labels **out, ls_error *error)
{
    return LS_NEW(*out, 1, "labels", error);
}

void ls_labels_free(ls_labels *labels)
{
    if (!labels) return;
    ls_name_table_deinit(&labels->table);
    ls_free(labels);
}

ls_status ls_labels_set(ls_labels *labels, const char *const *names, int count, ls_error *error)
{
    char shown[SHOWN_BYTES + 4];
    ls_name_table table = {0};
    ls_status status = LS_OK;
    if (count < LS_LABELS_MIN || count > LS_LABELS_MAX)
        return ls_fail(error, LS_INVALID, "%d labels: a classifier needs %d to %d", count,
                       LS_LABELS_MIN, LS_LABELS_MAX);
    for (int id = 0; status == LS_OK && id < count; id++) {
        size_t length = strlen(names[id]);
        int other = ls_name_table_find(&table, names[id], length);
        if (length == 0)
            status = ls_fail(error, LS_INVALID, "label %d is empty: give it a name", id);
        else if (other >= 0)
            status = ls_fail(error, LS_INVALID, "labels %d and %d are both \"%s\": rename one",
                             other, id, show(shown, names[id], length));
        else
            status = ls_name_table_add(&table, names[id], length, error);
    }
    if (status != LS_OK) {
        ls_name_table_deinit(&table);
        return status;
    }
    ls_name_table_deinit(&labels->table);
    labels->table = table;
    return LS_OK;
}

int ls_labels_count(const ls_labels *labels)
{
    return labels->table.count;
}

const char *ls_labels_name(const ls_labels *labels, int id)
{
    return labels->table.names[id];
}

int ls_labels_find(const ls_labels *labels, const char *name, size_t length)
{
    return ls_name_table_find(&labels->table, name, length);
}

ls_status ls_label_reader_new(ls_label_reader **out, ls_labels *labels, const char *path,
                              ls_error *error)
{
    ls_label_reader *reader = NULL;
    LS_TRY(LS_NEW(reader, 1, "label reader", error));
    ls_status status = ls_copy_string(&reader->path, path, error);
    if (status != LS_OK) {
        ls_free(reader);
        return status;
    }
    reader->labels = labels;
    reader->mode = labels->table.count ? LABELS_UNDECIDED : LABELS_COLLECTED;
    *out = reader;
    return LS_OK;
}

void ls_label_reader_free(ls_label_reader *reader)
{
    if (!reader) return;
    ls_name_table_deinit(&reader->found);
    ls_free(reader->path);
    ls_free(reader);
}

static ls_status collect(ls_label_reader *reader, const char *label, size_t length, uint64_t line,
                         int16_t *class_id, ls_error *error)
{
    int id = ls_name_table_find(&reader->found, label, length);
    if (id < 0) {
        id = reader->found.count;
        if (id == LS_LABELS_MAX)
            return ls_fail(error, LS_INVALID,
                           "%s:%llu: more than %d different labels: is the label column right?",
                           reader->path, (unsigned long long)line, LS_LABELS_MAX);
        LS_TRY(ls_name_table_add(&reader->found, label, length, error));
    }
    *class_id = (int16_t)id;
    return LS_OK;
}

ls_status ls_label_reader_class(ls_label_reader *reader, const char *label, size_t length,
                                uint64_t line, int16_t *class_id, ls_error *error)
{
    const ls_name_table *table = &reader->labels->table;
    unsigned long long at_line = line;
    char shown[SHOWN_BYTES + 4], list[LIST_BYTES];
    int64_t number = -1;
    if (length == 0)
        return ls_fail(error, LS_INVALID, "%s:%llu: empty label: give the row a label or remove it",
                       reader->path, at_line);
    if (reader->mode == LABELS_COLLECTED)
        return collect(reader, label, length, line, class_id, error);

    int id = ls_name_table_find(table, label, length);
    bool in_range = parse_integer(label, length, &number) && number >= 0 && number < table->count;
    if (reader->mode == LABELS_UNDECIDED && (id >= 0 || in_range))
        reader->mode = id >= 0 ? LABELS_BY_NAME : LABELS_BY_NUMBER;
    if (reader->mode == LABELS_BY_NAME && id >= 0) {
        *class_id = (int16_t)id;
        return LS_OK;
    }
    if (reader->mode == LABELS_BY_NUMBER && id < 0 && in_range) {
        *class_id = (int16_t)number;
        return LS_OK;
    }
    if (reader->mode == LABELS_BY_NUMBER && id >= 0)
        return ls_fail(error, LS_INVALID,
                       "%s:%llu: label \"%s\" is a name, but the rows before it have class "
                       "numbers: use one or the other",
                       reader->path, at_line, show(shown, label, length));
    return ls_fail(
        error, LS_INVALID,
        "%s:%llu: label \"%s\" is not among the known labels: %s; correct it or remove the row",
        reader->path, at_line, show(shown, label, length), list_names(list, table));
}

typedef struct sorted_label {
    const char *name;
    int64_t number;
    int old_id;
} sorted_label;

static int compare_numbers(const void *left, const void *right)
{
    int64_t a = ((const sorted_label *)left)->number, b = ((const sorted_label *)right)->number;
    return (a > b) - (a < b);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const sorted_label *)left)->name, ((const sorted_label *)right)->name);
}

/* Fill the set with the names found, sorted; new_id[i] becomes the class of found name i. */
static ls_status sort_into_set(ls_label_reader *reader, int16_t *new_id, ls_error *error)
{
    const ls_name_table *found = &reader->found;
    sorted_label *sorted = NULL;
    const char **names = NULL;
    bool numbers = true;
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(sorted, found->count, "labels", error), done);
    LS_TRY_GOTO(status, LS_NEW(names, found->count, "labels", error), done);
    for (int id = 0; id < found->count; id++) {
        sorted[id] = (sorted_label){.name = found->names[id], .old_id = id};
        numbers =
            numbers && parse_integer(found->names[id], found->lengths[id], &sorted[id].number);
    }
    qsort(sorted, (size_t)found->count, sizeof *sorted, numbers ? compare_numbers : compare_names);
    for (int id = 0; id < found->count; id++) {
        names[id] = sorted[id].name;
        new_id[sorted[id].old_id] = (int16_t)id;
    }
    status = ls_labels_set(reader->labels, names, found->count, error);
done:
    ls_free(sorted);
    ls_free(names);
    return status;
}

ls_status ls_label_reader_finish(ls_label_reader *reader, int16_t *classes, size_t count,
                                 ls_error *error)
{
    char list[LIST_BYTES];
    int16_t *new_id = NULL;
    if (reader->mode != LABELS_COLLECTED) return LS_OK;
    if (reader->found.count == 0)
        return ls_fail(error, LS_INVALID, "%s: no row has a label: at least %d classes are needed",
                       reader->path, LS_LABELS_MIN);
    if (reader->found.count < LS_LABELS_MIN)
        return ls_fail(error, LS_INVALID,
                       "%s: all labels are \"%s\": at least %d classes are needed; is the label "
                       "column right?",
                       reader->path, list_names(list, &reader->found), LS_LABELS_MIN);
    LS_TRY(LS_NEW(new_id, reader->found.count, "labels", error));
    ls_status status = sort_into_set(reader, new_id, error);
    for (size_t row = 0; status == LS_OK && row < count; row++)
        if (classes[row] >= 0) classes[row] = new_id[classes[row]];
    ls_free(new_id);
    return status;
}
