#include "effort.h"

#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
#define SLOWNESS 13
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWNESS 5
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOWNESS 13
#elif __has_feature(address_sanitizer)
#define SLOWNESS 5
#endif
#endif
#ifndef SLOWNESS
#define SLOWNESS 1
#endif

bool test_all(void)
{
    return getenv("LOCKSTEP_TEST_LONG") != NULL;
}

int test_slowness(void)
{
    return SLOWNESS;
}

bool test_takes(int *asked)
{
    const int of_how_many = SLOWNESS == 1 ? 1 : SLOWNESS < 10 ? 3 : 5;
    return test_all() || (*asked)++ % of_how_many == 0;
}
