#include "launch/run_progress.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL_BYTES = 1 << 16, PATH_BYTES = 4096 };

/* The number in "checkpoint-120", -1 for any other name. */
static int64_t checkpoint_step(const char *name)
{
    static const char prefix[] = "checkpoint-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
    name += sizeof prefix - 1;
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && digits < 19 && !name[digits] ? strtoll(name, NULL, 10) : -1;
}

static int64_t newest_checkpoint(const char *folder)
{
    int64_t newest = -1;
    DIR *entries = opendir(folder);
    if (!entries) return -1;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        int64_t step = checkpoint_step(entry->d_name);
        if (step > newest) newest = step;
    }
    closedir(entries);
    return newest;
}

/* The step of the last whole line. The writer's own form: {"step": N, ... */
static int64_t last_step(int descriptor, int64_t bytes)
{
    static const char key[] = "{\"step\":";
    char tail[TAIL_BYTES + 1];
    int64_t start = bytes > TAIL_BYTES ? bytes - TAIL_BYTES : 0, step = 0;
    ssize_t count = pread(descriptor, tail, TAIL_BYTES, start);
    if (count <= 0) return 0;
    tail[count] = '\0';
    for (char *line = tail, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        if (strncmp(line, key, sizeof key - 1) == 0)
            step = strtoll(line + sizeof key - 1, NULL, 10);
    return step > 0 ? step : 0;
}

ls_run_progress ls_run_progress_read(const char *folder)
{
    ls_run_progress progress = {.checkpoint = -1};
    char path[PATH_BYTES];
    struct stat about;
    if (!folder) return progress;
    progress.checkpoint = newest_checkpoint(folder);
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return progress;
    if (fstat(descriptor, &about) == 0) {
        progress.bytes = about.st_size;
        progress.changed[0] = about.st_mtim.tv_sec;
        progress.changed[1] = about.st_mtim.tv_nsec;
        progress.step = last_step(descriptor, progress.bytes);
    }
    close(descriptor);
    return progress;
}

int64_t ls_run_progress_step(const ls_run_progress *progress)
{
    return progress->step > progress->checkpoint ? progress->step : progress->checkpoint;
}

bool ls_run_progress_made(const ls_run_progress *before, const ls_run_progress *after)
{
    if (after->checkpoint > before->checkpoint) return true;
    bool written = after->bytes != before->bytes || after->changed[0] != before->changed[0] ||
                   after->changed[1] != before->changed[1];
    return written && after->step > (before->checkpoint > 0 ? before->checkpoint : 0);
}
