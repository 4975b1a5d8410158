#include "base/memory_limit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, FILE_BYTES = 16384 };

/* A version of control groups: where its folders are, and its files. */
typedef struct group_files {
    const char *folder, *limit, *swap;
} group_files;

/* The beginning of a small file as text; "" if it cannot be read. */
static const char *read_text(const char *root, const char *path, char text[FILE_BYTES])
{
    char whole[2 * PATH_BYTES];
    *text = '\0';
    snprintf(whole, sizeof whole, "%s%s", root, path);
    int descriptor = open(whole, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return text;
    ssize_t count = read(descriptor, text, FILE_BYTES - 1);
    close(descriptor);
    text[count > 0 ? count : 0] = '\0';
    return text;
}

/* "MemTotal:   123 kB" in bytes, 0 if there is no such line. */
static int64_t kilobytes(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    return line ? 1024 * strtoll(line + strlen(key), NULL, 10) : 0;
}

/* A number of bytes in a file; -1: there is none ("max", or no such file). */
static int64_t read_bytes(const char *root, const char *path)
{
    char text[FILE_BYTES];
    const char *digits = read_text(root, path, text);
    return *digits >= '0' && *digits <= '9' ? strtoll(digits, NULL, 10) : -1;
}

static void take_lower(ls_memory_limit *limit, const char *root, const group_files *files,
                       const char *group, int64_t machine_swap)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s%s/%s", files->folder, group, files->limit);
    int64_t bytes = read_bytes(root, path);
    if (bytes < 0) return;
    if (files->swap) {
        char swap_path[PATH_BYTES];
        snprintf(swap_path, sizeof swap_path, "%s%s/%s", files->folder, group, files->swap);
        int64_t swap = read_bytes(root, swap_path);
        if (swap < 0 || swap > machine_swap) swap = machine_swap;
        bytes = bytes < INT64_MAX - swap ? bytes + swap : INT64_MAX;
    }
    if (bytes >= limit->bytes) return;
    limit->bytes = bytes;
    snprintf(limit->who, sizeof limit->who, "the control group of %.500s allows", path);
}

/* The group and all above it. A container may see its own group's folder as the top one. */
static void take_groups(ls_memory_limit *limit, const char *root, const group_files *files,
                        const char *group, size_t length, int64_t machine_swap)
{
    char path[PATH_BYTES];
    if (length >= sizeof path) return;
    memcpy(path, group, length);
    path[length] = '\0';
    for (;;) {
        if (strcmp(path, "/") == 0) *path = '\0';
        take_lower(limit, root, files, path, machine_swap);
        char *last = strrchr(path, '/');
        if (!last) return;
        *last = '\0';
    }
}

ls_memory_limit ls_memory_limit_read(const char *root)
{
    static const group_files version_2 = {"/sys/fs/cgroup", "memory.max", "memory.swap.max"};
    static const group_files version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", NULL};
    ls_memory_limit limit = {.bytes = INT64_MAX, .who = "this machine has"};
    char text[FILE_BYTES];
    read_text(root, "/proc/meminfo", text);
    int64_t memory = kilobytes(text, "MemTotal:"), swap = kilobytes(text, "SwapTotal:");
    if (memory > 0) limit.bytes = memory + swap;
    /* Lines "0::/group" and "4:memory,hugetlb:/group". */
    read_text(root, "/proc/self/cgroup", text);
    for (char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        char *group = memchr(line, '/', length);
        size_t group_length = group ? length - (size_t)(group - line) : 0;
        if (group && strncmp(line, "0::", 3) == 0)
            take_groups(&limit, root, &version_2, group, group_length, swap);
        else if (group &&
                 (memmem(line, length, ":memory:", 8) || memmem(line, length, ":memory,", 8) ||
                  memmem(line, length, ",memory:", 8) || memmem(line, length, ",memory,", 8)))
            take_groups(&limit, root, &version_1, group, group_length, swap);
        line += length + (line[length] == '\n');
    }
    return limit;
}
