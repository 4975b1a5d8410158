/* Memory between two pages that nobody may touch: a read or write past either end stops the test.
 */
#ifndef LS_TESTS_GUARDED_H
#define LS_TESTS_GUARDED_H

#include <stddef.h>
#include <stdint.h>

typedef struct guarded {
    char *base; /* the first guard page */
    size_t bytes;
} guarded;

void guarded_init(guarded *memory, size_t capacity);
void guarded_deinit(guarded *memory);

/* `count` floats that end where the guard begins, or, with `at_start`, begin where it ends. What
 * the memory held before is lost. Fails the test when there is not enough. */
float *guarded_floats(guarded *memory, int64_t count, int at_start);

#endif
