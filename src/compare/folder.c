#include "compare/folder.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"

static const char *const documents_of[] = {"compare.json", "compare.csv", "report.html"};
enum { DOCUMENTS = sizeof documents_of / sizeof *documents_of, OPEN_FOLDERS = 16 };

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about;
    (void)kind;
    (void)walk;
    return remove(path);
}

ls_status ls_remove_tree(const char *path, ls_error *error)
{
    if (nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
        return LS_OK;
    return ls_fail(error, LS_IO, "%s: cannot remove the folder: %s", path, strerror(errno));
}

/* A document, or one that was being written when its program was killed. */
static bool is_document(const char *name)
{
    for (int i = 0; i < DOCUMENTS; i++) {
        size_t length = strlen(documents_of[i]);
        if (strncmp(name, documents_of[i], length) == 0 &&
            (!name[length] || strncmp(name + length, ".tmp-", 5) == 0))
            return true;
    }
    return false;
}

static bool has(const char *folder, const char *name)
{
    char *path = NULL;
    if (ls_path_join(&path, folder, name, NULL) != LS_OK) return false;
    bool there = ls_path_exists(path);
    ls_free(path);
    return there;
}

static ls_status check(const char *path, ls_error *error)
{
    char foreign[256] = "";
    bool empty = true;
    if (!ls_path_exists(path)) return LS_OK;
    DIR *folder = opendir(path);
    if (!folder)
        return ls_fail(error, LS_IO, "%s: cannot read the output folder: %s", path,
                       strerror(errno));
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        empty = false;
        if (!is_document(name) && strcmp(name, "runs") != 0 && strcmp(name, "running") != 0)
            snprintf(foreign, sizeof foreign, "%s", name);
    }
    closedir(folder);
    if (empty) return LS_OK;
    bool former = has(path, "compare.json") || has(path, "running/command.txt") ||
                  has(path, "runs/command.txt");
    if (*foreign || !former)
        return ls_fail(error, LS_INVALID,
                       "%s: the output folder holds something else (%s): choose a new or empty "
                       "folder, or that of a former comparison",
                       path, *foreign ? foreign : "files of no comparison");
    return LS_OK;
}

static ls_status write_command(const ls_compare_folder *folder, const char *command,
                               ls_error *error)
{
    char *path = NULL;
    LS_TRY(ls_compare_folder_run(folder, "command.txt", &path, error));
    ls_status status = ls_file_write(path, command, strlen(command), error);
    ls_free(path);
    return status;
}

/* The part of `path` that is there already, as a length. */
static size_t length_there(const char *path)
{
    char *there = NULL;
    if (ls_copy_string(&there, path, NULL) != LS_OK) return strlen(path);
    size_t length = strlen(there);
    while (length && !ls_path_exists(there)) {
        while (length && there[length - 1] == '/')
            length--;
        while (length && there[length - 1] != '/')
            length--;
        there[length] = '\0';
    }
    ls_free(there);
    return length;
}

ls_status ls_compare_folder_open(ls_compare_folder *folder, const char *path, const char *command,
                                 ls_error *error)
{
    *folder = (ls_compare_folder){.path = path};
    LS_TRY(check(path, error));
    folder->made = strlen(path) - length_there(path);
    LS_TRY(ls_path_join(&folder->running, path, "running", error));
    ls_status status = ls_remove_tree(folder->running, error);
    if (status == LS_OK) status = ls_folder_make(folder->running, error);
    if (status == LS_OK) status = write_command(folder, command, error);
    if (status != LS_OK) ls_compare_folder_close(folder);
    return status;
}

void ls_compare_folder_name(char into[LS_COMPARE_FOLDER_BYTES], const char *row, int64_t batch_size,
                            int64_t seed)
{
    snprintf(into, LS_COMPARE_FOLDER_BYTES, "%s-batch%" PRId64 "-seed%" PRId64, row, batch_size,
             seed);
    size_t used = 0;
    for (const char *at = into; *at; at++) {
        if (*at == ',') continue;
        into[used++] = *at == ' ' || *at == '/' ? '-' : *at;
    }
    into[used] = '\0';
}

ls_status ls_compare_folder_run(const ls_compare_folder *folder, const char *name, char **out,
                                ls_error *error)
{
    return ls_path_join(out, folder->running, name, error);
}

/* Beside the runs, where a disk that is full harms nothing yet. */
static ls_status write_beside(const ls_compare_folder *folder,
                              const ls_compare_documents *documents, ls_error *error)
{
    const char *const texts[DOCUMENTS] = {documents->json, documents->csv, documents->report};
    for (int i = 0; i < DOCUMENTS; i++) {
        char *path = NULL;
        LS_TRY(ls_compare_folder_run(folder, documents_of[i], &path, error));
        ls_status status = ls_file_write(path, texts[i], strlen(texts[i]), error);
        ls_free(path);
        LS_TRY(status);
    }
    return LS_OK;
}

static ls_status move(const char *from, const char *to, ls_error *error)
{
    if (rename(from, to) == 0) return LS_OK;
    return ls_fail(error, LS_IO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

/* The former comparison goes, compare.json first: it says that all is there. The new one comes, and
 * its compare.json last. */
static ls_status replace(ls_compare_folder *folder, const char *runs,
                         char *const paths[DOCUMENTS][2], ls_error *error)
{
    for (int i = 0; i < DOCUMENTS; i++)
        if (unlink(paths[i][1]) != 0 && errno != ENOENT)
            return ls_fail(error, LS_IO, "%s: cannot remove the file: %s", paths[i][1],
                           strerror(errno));
    LS_TRY(ls_remove_tree(runs, error));
    LS_TRY(move(folder->running, runs, error));
    folder->made = 0;
    for (int i = DOCUMENTS - 1; i >= 0; i--)
        LS_TRY(move(paths[i][0], paths[i][1], error));
    return LS_OK;
}

ls_status ls_compare_folder_finish(ls_compare_folder *folder, const ls_compare_documents *documents,
                                   ls_error *error)
{
    char *runs = NULL, *paths[DOCUMENTS][2] = {{NULL}}; /* in runs/, and in their places */
    LS_TRY(write_beside(folder, documents, error));
    ls_status status = ls_path_join(&runs, folder->path, "runs", error);
    for (int i = 0; status == LS_OK && i < DOCUMENTS; i++) {
        status = ls_path_join(&paths[i][0], runs, documents_of[i], error);
        if (status == LS_OK)
            status = ls_path_join(&paths[i][1], folder->path, documents_of[i], error);
    }
    if (status == LS_OK) status = replace(folder, runs, paths, error);
    for (int i = 0; i < DOCUMENTS; i++) {
        ls_free(paths[i][0]);
        ls_free(paths[i][1]);
    }
    ls_free(runs);
    return status;
}

void ls_compare_folder_close(ls_compare_folder *folder)
{
    if (folder->running && ls_remove_tree(folder->running, NULL) == LS_OK && folder->made) {
        char *path = NULL;
        size_t kept = strlen(folder->path) - folder->made;
        if (ls_copy_string(&path, folder->path, NULL) == LS_OK)
            while (strlen(path) > kept && rmdir(path) == 0)
                path[length_there(path)] = '\0';
        ls_free(path);
    }
    ls_free(folder->running);
    *folder = (ls_compare_folder){0};
}
