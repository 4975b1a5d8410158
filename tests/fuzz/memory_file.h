/* For fuzz targets of readers that take a path: the input as a file in memory. */
#ifndef LS_TESTS_FUZZ_MEMORY_FILE_H
#define LS_TESTS_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A path that opens a file of these bytes; one file, rewritten on each call. */
static const char *memory_file(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    static char path[64];
    if (descriptor < 0) {
        descriptor = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    }
    if (descriptor < 0 || ftruncate(descriptor, 0) != 0 ||
        pwrite(descriptor, data, size, 0) != (ssize_t)size)
        abort();
    return path;
}

#endif
