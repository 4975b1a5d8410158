/* All heap memory of the library comes from here: one place to count, to limit and to make fail.
 *
 * The hook is process-wide and set once before any other call (tests: count, or fail the n-th).
 * Sizes are checked for overflow by the array form; zero bytes give a valid, unique pointer. */
#ifndef LS_BASE_ALLOC_H
#define LS_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Returns 0 to let the allocation happen, anything else to make it fail. `bytes` > 0. */
typedef int (*ls_allocation_hook)(void *context, size_t bytes);
void ls_set_allocation_hook(ls_allocation_hook hook, void *context);

/* Zeroed, 64-byte aligned, NULL on failure. Free with ls_free. */
void *ls_allocate(size_t bytes);
void *ls_allocate_array(size_t count, size_t element_bytes);

/* Whole zeroed pages for a large arena: fresh ones, so that what is never touched takes no memory.
 * `dense`: most of it will be touched, so that huge pages are worth it where the system has them.
 * NULL on failure. Free with ls_free_pages. */
void *ls_allocate_pages(size_t bytes, bool dense);
void ls_free_pages(void *pages, size_t bytes); /* as allocated; NULL is allowed */

/* As above, but failing with "out of memory: N bytes for WHAT". */
ls_status ls_new(void **out, size_t count, size_t element_bytes, const char *what,
                 ls_error *error) LS_MUST_CHECK;
#define LS_NEW(pointer, count, what, error)                                                        \
    ls_new((void **)&(pointer), (size_t)(count), sizeof *(pointer), what, error)

/* Grow an array of `*capacity` elements to hold `needed`; contents kept, new part zeroed. */
ls_status ls_grow(void **array, size_t *capacity, size_t needed, size_t element_bytes,
                  const char *what, ls_error *error) LS_MUST_CHECK;
#define LS_GROW(array, capacity, needed, what, error)                                              \
    ls_grow((void **)&(array), &(capacity), (size_t)(needed), sizeof *(array), what, error)

ls_status ls_copy_string(char **out, const char *text, ls_error *error) LS_MUST_CHECK;
void ls_free(void *pointer);

/* malloc-compatible pair for libraries that take one (jansson). */
void *ls_allocate_plain(size_t bytes);

/* Bytes now held and allocations made since start, over the whole process (atomic counters). */
size_t ls_allocated_bytes(void);
uint64_t ls_allocation_count(void);

#endif
