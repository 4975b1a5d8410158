/* How many of its cases a test runs: all of them with LOCKSTEP_TEST_LONG=1, else its own sample,
 * and of that a part under the sanitizers. Those look for misuse of memory and for races; which
 * layouts have the same bits is shown by the build without them. */
#ifndef LS_TESTS_EFFORT_H
#define LS_TESTS_EFFORT_H

#include <stdbool.h>

bool test_all(void);

/* About how many times as long a run takes under this build's sanitizer; 1 without. */
int test_slowness(void);

/* Whether to run the next case of a sample, which `*asked` counts from 0: each; one in three under
 * the address sanitizer, in five under the thread sanitizer. */
bool test_takes(int *asked);

#endif
