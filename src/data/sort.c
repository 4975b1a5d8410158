#include "data/sort.h"

/* Let keys[at] sink below its larger children in the heap keys[0 .. count - 1]. */
static void sift_down(uint64_t *keys, size_t at, size_t count)
{
    uint64_t sinking = keys[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && keys[child + 1] > keys[child]) child++;
        if (keys[child] <= sinking) break;
        keys[at] = keys[child];
    }
    keys[at] = sinking;
}

void ls_sort_keys(uint64_t *keys, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sift_down(keys, at, count);
    for (size_t last = count; last-- > 1;) {
        uint64_t largest = keys[0];
        keys[0] = keys[last];
        keys[last] = largest;
        sift_down(keys, 0, last);
    }
}
