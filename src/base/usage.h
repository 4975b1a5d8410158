/* What this process takes of the machine, from /proc. */
#ifndef LS_BASE_USAGE_H
#define LS_BASE_USAGE_H

#include <stdint.h>

typedef struct ls_usage {
    double cpu_seconds;     /* of all threads so far, user and system */
    int64_t resident_bytes; /* now; 0 where /proc does not say */
    int64_t peak_bytes;     /* the most so far: VmHWM */
} ls_usage;

/* Allocates nothing; takes some tens of microseconds. */
ls_usage ls_usage_now(void);

/* Let peak_bytes begin anew at what is resident now, where the system allows it. */
void ls_usage_forget_peak(void);

/* Cores that were busy on average since the sample before, and the sample itself, looked at no more
 * than once a second. All zero before the first. */
typedef struct ls_usage_meter {
    double sampled; /* ls_seconds */
    double cores;   /* busy in the time up to the last sample */
    ls_usage usage; /* the last sample */
} ls_usage_meter;
void ls_usage_meter_update(ls_usage_meter *meter);

#endif
