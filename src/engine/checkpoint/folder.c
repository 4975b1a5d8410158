#include "engine/checkpoint/folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/staging.h"
#include "formats/manifest.h"

static const char prefix[] = "checkpoint-";

/* The step that a name gives; *rest is what stands behind it. -1: it is no checkpoint's name. */
static int64_t step_of(const char *name, const char **rest)
{
    size_t length = sizeof prefix - 1;
    if (strncmp(name, prefix, length) != 0) return -1;
    size_t digits = strspn(name + length, "0123456789");
    *rest = name + length + digits;
    if (digits == 0 || digits > 18 || (name[length] == '0' && digits > 1)) return -1;
    return strtoll(name + length, NULL, 10);
}

static bool is_leftover(const char *name)
{
    const char *rest;
    if (step_of(name, &rest) < 0 || strncmp(rest, ".tmp-", 5) != 0) return false;
    return rest[5] && strspn(rest + 5, "0123456789") == strlen(rest + 5);
}

bool ls_checkpoint_is_one(const char *name)
{
    const char *rest;
    return is_leftover(name) || (step_of(name, &rest) >= 0 && !*rest);
}

ls_status ls_checkpoint_path(char **out, const char *output, int64_t step, ls_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "%s%" PRId64, prefix, step);
    return ls_path_join(out, output, name, error);
}

static int rising(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

ls_status ls_checkpoint_list_read(ls_checkpoint_list *list, const char *output, ls_error *error)
{
    ls_status status = LS_OK;
    *list = (ls_checkpoint_list){0};
    DIR *folder = opendir(output);
    if (!folder && errno == ENOENT) return LS_OK;
    if (!folder)
        return ls_fail(error, LS_IO, "%s: cannot read the folder: %s", output, strerror(errno));
    for (const struct dirent *entry; status == LS_OK && (entry = readdir(folder));) {
        const char *rest;
        int64_t step = step_of(entry->d_name, &rest);
        if (step < 0 || *rest) continue;
        status = LS_GROW(list->steps, list->capacity, list->count + 1, "checkpoints", error);
        if (status == LS_OK) list->steps[list->count++] = step;
    }
    closedir(folder);
    if (list->count) qsort(list->steps, list->count, sizeof *list->steps, rising);
    if (status != LS_OK) ls_checkpoint_list_deinit(list);
    return status;
}

void ls_checkpoint_list_deinit(ls_checkpoint_list *list)
{
    ls_free(list->steps);
    *list = (ls_checkpoint_list){0};
}

ls_status ls_checkpoint_check(const char *folder, int64_t step, ls_threads *threads,
                              ls_error *error)
{
    static const char *const needed[] = {"config.json", LS_CHECKPOINT_MODEL,
                                         LS_CHECKPOINT_OPTIMIZER, LS_CHECKPOINT_TRAINER,
                                         LS_CHECKPOINT_METRICS};
    ls_manifest_report report;
    LS_TRY(
        ls_manifest_check(folder, needed, sizeof needed / sizeof *needed, threads, &report, error));
    if (step < 0 || report.step == step) return LS_OK;
    return ls_fail(error, LS_INVALID,
                   "%s/" LS_MANIFEST_NAME ": is that of step %" PRId64
                   ": files of different checkpoints are mixed",
                   folder, report.step);
}

ls_status ls_checkpoint_clean(const char *output, ls_error *error)
{
    ls_status status = LS_OK;
    DIR *folder = opendir(output);
    if (!folder)
        return ls_fail(error, LS_IO, "%s: cannot read the folder: %s", output, strerror(errno));
    for (const struct dirent *entry; status == LS_OK && (entry = readdir(folder));) {
        char *path = NULL;
        if (!is_leftover(entry->d_name)) continue;
        status = ls_path_join(&path, output, entry->d_name, error);
        if (status == LS_OK) status = ls_staging_remove_leftover(path, error);
        ls_free(path);
    }
    closedir(folder);
    return status;
}

ls_status ls_checkpoint_prune(const char *output, int64_t newest, int64_t best, int64_t limit,
                              ls_error *error)
{
    ls_checkpoint_list list;
    int64_t kept = 0;
    LS_TRY(ls_checkpoint_list_read(&list, output, error));
    ls_status status = LS_OK;
    for (size_t i = list.count; i-- > 0 && status == LS_OK;) {
        char *path = NULL;
        if (list.steps[i] > newest) continue;
        if (kept++ < limit || list.steps[i] == best) continue;
        status = ls_checkpoint_path(&path, output, list.steps[i], error);
        if (status == LS_OK) status = ls_folder_remove(path, error);
        ls_free(path);
    }
    ls_checkpoint_list_deinit(&list);
    return status;
}
