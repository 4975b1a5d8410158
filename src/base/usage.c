#include "base/usage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* "VmRSS:      1234 kB" in bytes, 0 if there is no such line. */
static int64_t read_kilobytes(const char *status, const char *key)
{
    const char *line = strstr(status, key);
    return line ? 1024 * strtoll(line + strlen(key), NULL, 10) : 0;
}

ls_usage ls_usage_now(void)
{
    ls_usage usage = {0};
    struct timespec cpu;
    char status[8192];
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
        usage.cpu_seconds = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec;
    int descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return usage;
    ssize_t bytes = read(descriptor, status, sizeof status - 1);
    close(descriptor);
    if (bytes <= 0) return usage;
    status[bytes] = '\0';
    usage.resident_bytes = read_kilobytes(status, "\nVmRSS:");
    usage.peak_bytes = read_kilobytes(status, "\nVmHWM:");
    return usage;
}

/* proc(5): "5" resets the high water mark. */
void ls_usage_forget_peak(void)
{
    int descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    ssize_t wrote = write(descriptor, "5", 1);
    (void)wrote; /* then the peak counts on */
    close(descriptor);
}

void ls_usage_meter_update(ls_usage_meter *meter)
{
    double now = ls_seconds(), passed = now - meter->sampled;
    if (meter->sampled > 0 && passed < 1) return;
    ls_usage usage = ls_usage_now();
    if (meter->sampled > 0) meter->cores = (usage.cpu_seconds - meter->usage.cpu_seconds) / passed;
    meter->usage = usage;
    meter->sampled = now;
}
