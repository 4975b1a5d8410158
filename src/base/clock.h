/* Durations from monotonic time only: wall clocks jump. */
#ifndef LS_BASE_CLOCK_H
#define LS_BASE_CLOCK_H

/* Seconds since an arbitrary start. */
double ls_seconds(void);
/* At least as long, unless a signal comes. */
void ls_sleep(double seconds);

/* Seconds since 1970, for stamps that other programs read; never for a duration. */
double ls_wall_seconds(void);

#endif
