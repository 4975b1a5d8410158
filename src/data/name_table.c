#include "data/name_table.h"

#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"

enum { FIRST_SLOTS = 64 };

void ls_name_table_deinit(ls_name_table *table)
{
    for (int id = 0; id < table->count; id++)
        ls_free(table->names[id]);
    ls_free(table->names);
    ls_free(table->lengths);
    ls_free(table->slots);
    *table = (ls_name_table){0};
}

/* The slot that holds the name, or the free one where it would go. */
static size_t find_slot(const ls_name_table *table, const char *name, size_t length)
{
    size_t mask = table->slot_count - 1, slot = XXH3_64bits(name, length) & mask;
    for (;; slot = (slot + 1) & mask) {
        int32_t id = table->slots[slot];
        if (id < 0) return slot;
        if (table->lengths[id] == length && memcmp(table->names[id], name, length) == 0)
            return slot;
    }
}

int ls_name_table_find(const ls_name_table *table, const char *name, size_t length)
{
    return table->count ? table->slots[find_slot(table, name, length)] : -1;
}

static ls_status rehash(ls_name_table *table, size_t slot_count, ls_error *error)
{
    int32_t *slots = NULL;
    LS_TRY(LS_NEW(slots, slot_count, "labels", error));
    memset(slots, 0xff, slot_count * sizeof *slots);
    ls_free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    for (int id = 0; id < table->count; id++)
        slots[find_slot(table, table->names[id], table->lengths[id])] = id;
    return LS_OK;
}

ls_status ls_name_table_add(ls_name_table *table, const char *name, size_t length, ls_error *error)
{
    size_t needed = (size_t)table->count + 1;
    LS_TRY(LS_GROW(table->names, table->name_capacity, needed, "labels", error));
    LS_TRY(LS_GROW(table->lengths, table->length_capacity, needed, "labels", error));
    if (needed * 2 > table->slot_count) {
        size_t slots = table->slot_count ? table->slot_count * 2 : FIRST_SLOTS;
        LS_TRY(rehash(table, slots, error));
    }
    char *copy = NULL;
    LS_TRY(LS_NEW(copy, length + 1, "labels", error));
    memcpy(copy, name, length);
    table->names[table->count] = copy;
    table->lengths[table->count] = length;
    table->slots[find_slot(table, name, length)] = table->count;
    table->count++;
    return LS_OK;
}
