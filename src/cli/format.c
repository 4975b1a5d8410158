#include "cli/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *ls_format_count(char into[LS_FORMAT_BYTES], int64_t count)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, count < 0 ? -(uint64_t)count : (uint64_t)count);
    size_t length = strlen(digits), used = 0;
    if (count < 0) into[used++] = '-';
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) into[used++] = ',';
        into[used++] = digits[i];
    }
    into[used] = '\0';
    return into;
}

const char *ls_format_bytes(char into[LS_FORMAT_BYTES], int64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes < 1024) {
        snprintf(into, LS_FORMAT_BYTES, "%" PRId64 " bytes", bytes);
        return into;
    }
    while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    snprintf(into, LS_FORMAT_BYTES, "%.1f %s", value, units[unit]);
    return into;
}

const char *ls_format_duration(char into[LS_FORMAT_BYTES], double seconds)
{
    if (!(seconds >= 0 && seconds < 1e7)) {
        snprintf(into, LS_FORMAT_BYTES, "-:--");
        return into;
    }
    int64_t whole = (int64_t)(seconds + 0.5);
    int hours = (int)(whole / 3600), minutes = (int)(whole / 60 % 60), rest = (int)(whole % 60);
    if (hours)
        snprintf(into, LS_FORMAT_BYTES, "%d:%02d:%02d", hours, minutes, rest);
    else
        snprintf(into, LS_FORMAT_BYTES, "%d:%02d", minutes, rest);
    return into;
}
