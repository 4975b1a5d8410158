/* Sorting without allocation (the C library's qsort may take memory). */
#ifndef LS_DATA_SORT_H
#define LS_DATA_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Ascending, in place, O(count log count). */
void ls_sort_keys(uint64_t *keys, size_t count);

#endif
