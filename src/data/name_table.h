/* Distinct names in the order in which they were added, found by hash. All zero is an empty one. */
#ifndef LS_DATA_NAME_TABLE_H
#define LS_DATA_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_name_table {
    char **names; /* NUL-terminated copies */
    size_t *lengths;
    size_t name_capacity, length_capacity;
    int count;
    int32_t *slots; /* index of a name, -1: free; open addressing, at most half full */
    size_t slot_count;
} ls_name_table;

int ls_name_table_find(const ls_name_table *table, const char *name, size_t length); /* or -1 */

/* The name must not be in the table yet; it gets index `count`. */
ls_status ls_name_table_add(ls_name_table *table, const char *name, size_t length,
                            ls_error *error) LS_MUST_CHECK;
void ls_name_table_deinit(ls_name_table *table);

#endif
