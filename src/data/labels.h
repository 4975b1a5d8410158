/* The classes of a task: label texts and their numbers.
 *
 * They come from a model with a classification head (id2label) or, where there is none, from the
 * training file: integers ascending by value, anything else ascending by bytes. */
#ifndef LS_DATA_LABELS_H
#define LS_DATA_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_LABELS_MIN = 2, LS_LABELS_MAX = 10000 };

typedef struct ls_labels ls_labels;

/* An empty set, to be filled by ls_labels_set or by the first file that is read with it. */
ls_status ls_labels_new(ls_labels **out, ls_error *error) LS_MUST_CHECK;
void ls_labels_free(ls_labels *labels); /* NULL is allowed */

/* Fill an empty set: names[i] is class i. Fewer than LS_LABELS_MIN or more than LS_LABELS_MAX, an
 * empty or a repeated name is LS_INVALID. The texts are copied. On failure the set stays empty. */
ls_status ls_labels_set(ls_labels *labels, const char *const *names, int count,
                        ls_error *error) LS_MUST_CHECK;

int ls_labels_count(const ls_labels *labels);                 /* 0: empty */
const char *ls_labels_name(const ls_labels *labels, int id);  /* lives as long as the set */
int ls_labels_find(const ls_labels *labels, const char *name, /* class, or -1 */
                   size_t length);

/* Turns the labels of one file into classes, row by row.
 *
 * With a filled set, a file's labels are its names, or else they are all class numbers (integers
 * 0 .. count - 1, none of which is a name): the file's first label decides which. A label that
 * does not fit is LS_INVALID and names the label, the file, the line and the labels there are.
 * With an empty set, labels are numbered as they come; ls_label_reader_finish sorts them into the
 * set and renumbers. Fewer than LS_LABELS_MIN or more than LS_LABELS_MAX is LS_INVALID. */
typedef struct ls_label_reader ls_label_reader;
ls_status ls_label_reader_new(ls_label_reader **out, ls_labels *labels, const char *path,
                              ls_error *error) LS_MUST_CHECK;
void ls_label_reader_free(ls_label_reader *reader); /* NULL is allowed */

/* The class of the label at `line`, or its preliminary number where the set is empty. An empty
 * label is LS_INVALID. */
ls_status ls_label_reader_class(ls_label_reader *reader, const char *label, size_t length,
                                uint64_t line, int16_t *class_id, ls_error *error) LS_MUST_CHECK;

/* After the last row: `classes` are all numbers given out (negative: row without label). */
ls_status ls_label_reader_finish(ls_label_reader *reader, int16_t *classes, size_t count,
                                 ls_error *error) LS_MUST_CHECK;

#endif
