#include "base/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/calls.h"
#include "base/fail_point.h"

enum { SMALL_PAGE_BYTES = 4096, HUGE_PAGE_BYTES = 2 << 20 };

static ls_allocation_hook allocation_hook;
static void *allocation_context;
static _Atomic size_t allocated_bytes;
static _Atomic uint64_t allocation_count;

void ls_set_allocation_hook(ls_allocation_hook hook, void *context)
{
    allocation_hook = hook;
    allocation_context = context;
}

void *ls_allocate_plain(size_t bytes)
{
    if (bytes == 0) bytes = 1;
    if (bytes > PTRDIFF_MAX - 64) return NULL;
    if (allocation_hook && allocation_hook(allocation_context, bytes) != 0) return NULL;
    if (ls_fail_point("memory") > 0) return NULL;
    void *pointer = NULL;
    if (posix_memalign(&pointer, 64, bytes) != 0) return NULL;
    atomic_fetch_add(&allocated_bytes, malloc_usable_size(pointer));
    atomic_fetch_add(&allocation_count, 1);
    return pointer;
}

void *ls_allocate(size_t bytes)
{
    void *pointer = ls_allocate_plain(bytes);
    if (pointer) memset(pointer, 0, bytes ? bytes : 1);
    return pointer;
}

void *ls_allocate_array(size_t count, size_t element_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, element_bytes, &bytes)) return NULL;
    return ls_allocate(bytes);
}

ls_status ls_new(void **out, size_t count, size_t element_bytes, const char *what, ls_error *error)
{
    *out = ls_allocate_array(count, element_bytes);
    if (*out) return LS_OK;
    return ls_fail(error, LS_NO_MEMORY, "out of memory: %zu x %zu bytes for %s", count,
                   element_bytes, what);
}

ls_status ls_grow(void **array, size_t *capacity, size_t needed, size_t element_bytes,
                  const char *what, ls_error *error)
{
    if (needed <= *capacity) return LS_OK;
    size_t larger = *capacity < 8 ? 8 : *capacity + *capacity / 2;
    if (larger < needed) larger = needed;
    void *grown = NULL;
    LS_TRY(ls_new(&grown, larger, element_bytes, what, error));
    if (*array) memcpy(grown, *array, *capacity * element_bytes);
    ls_free(*array);
    *array = grown;
    *capacity = larger;
    return LS_OK;
}

ls_status ls_copy_string(char **out, const char *text, ls_error *error)
{
    size_t length = strlen(text) + 1;
    LS_TRY(ls_new((void **)out, length, 1, "text", error));
    memcpy(*out, text, length);
    return LS_OK;
}

/* A multiple of the huge page's size, so that the last part of an arena can be one as well. */
static size_t whole_pages(size_t bytes)
{
    size_t unit = bytes < HUGE_PAGE_BYTES ? SMALL_PAGE_BYTES : HUGE_PAGE_BYTES;
    return (bytes + unit - 1) / unit * unit;
}

void *ls_allocate_pages(size_t bytes, bool dense)
{
    if (bytes == 0) bytes = 1;
    if (bytes > PTRDIFF_MAX - HUGE_PAGE_BYTES) return NULL;
    if (allocation_hook && allocation_hook(allocation_context, bytes) != 0) return NULL;
    size_t mapped = whole_pages(bytes);
    void *pages = ls_call_map(mapped);
    if (!pages) return NULL;
    if (dense && mapped >= HUGE_PAGE_BYTES)
        madvise(pages, mapped, MADV_HUGEPAGE); /* a wish, not a need */
    atomic_fetch_add(&allocated_bytes, mapped);
    atomic_fetch_add(&allocation_count, 1);
    return pages;
}

void ls_free_pages(void *pages, size_t bytes)
{
    if (!pages) return;
    size_t mapped = whole_pages(bytes ? bytes : 1);
    atomic_fetch_sub(&allocated_bytes, mapped);
    munmap(pages, mapped);
}

void ls_free(void *pointer)
{
    if (!pointer) return;
    atomic_fetch_sub(&allocated_bytes, malloc_usable_size(pointer));
    free(pointer);
}

size_t ls_allocated_bytes(void)
{
    return atomic_load(&allocated_bytes);
}

uint64_t ls_allocation_count(void)
{
    return atomic_load(&allocation_count);
}
