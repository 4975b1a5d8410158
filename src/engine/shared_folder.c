#include "engine/shared_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"

enum { TOKEN_BYTES = 33, NAME_BYTES = 64, NAME_DIGITS = 16 };

static const char prefix[] = ".lockstep-";

bool ls_shared_folder_is_token(const char *name)
{
    size_t start = sizeof prefix - 1;
    if (strncmp(name, prefix, start) != 0) return false;
    if (strspn(name + start, "0123456789abcdef") != NAME_DIGITS) return false;
    name += start + NAME_DIGITS;
    return !*name || strncmp(name, ".tmp-", 5) == 0;
}

static ls_status draw_token(char token[TOKEN_BYTES], ls_error *error)
{
    uint64_t words[2];
    if (getrandom(words, sizeof words, 0) != (ssize_t)sizeof words)
        return ls_fail(error, LS_IO, "the system gives no random numbers");
    snprintf(token, TOKEN_BYTES, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    return LS_OK;
}

static ls_status read_token(const ls_processes *processes, const char *folder, const char *path,
                            const char *token, ls_error *error)
{
    char *text = NULL;
    size_t bytes;
    ls_error ignored;
    int own = ls_processes_here(processes)->index;
    ls_status status = ls_file_read(&text, &bytes, path, TOKEN_BYTES, &ignored);
    bool same = status == LS_OK && strcmp(text, token) == 0;
    ls_free(text);
    if (same) return LS_OK;
    return ls_fail(error, LS_INVALID,
                   "%s: process %d on %s does not see the output folder of process 0 on %s: all "
                   "hosts need one that they share, under the same path",
                   folder, own, ls_processes_host_name(processes, own),
                   ls_processes_host_name(processes, 0));
}

/* The file's name, new each time, so that no cache of a network's file system has it. */
static ls_status check(ls_processes *processes, const char *folder, const char *tokens,
                       ls_error *error)
{
    bool first = ls_processes_here(processes)->index == 0;
    char name[NAME_BYTES], *path = NULL;
    snprintf(name, sizeof name, "%s%.*s", prefix, NAME_DIGITS, tokens);
    ls_status status = ls_path_join(&path, folder, name, error);
    if (status == LS_OK && first) status = ls_file_write(path, tokens, TOKEN_BYTES - 1, error);
    status = ls_processes_agree(processes, status, "the check of the output folder", error);
    bool written = status == LS_OK;
    if (written) status = read_token(processes, folder, path, tokens, error);
    status = ls_processes_agree(processes, status, "the check of the output folder", error);
    if (first && written) unlink(path);
    ls_free(path);
    return status;
}

ls_status ls_shared_folder_check(ls_processes *processes, const char *folder, ls_error *error)
{
    const ls_processes_place *here = ls_processes_here(processes);
    char own[TOKEN_BYTES] = "", *tokens = NULL;
    if (here->count == 1) return LS_OK;
    ls_status status = here->index == 0 ? draw_token(own, error) : LS_OK;
    if (status == LS_OK) status = LS_NEW(tokens, here->count * TOKEN_BYTES, "output folder", error);
    status = ls_processes_agree(processes, status, "the check of the output folder", error);
    if (status == LS_OK)
        status = ls_processes_gather(processes, own, TOKEN_BYTES, tokens,
                                     "the check of the output folder", error);
    if (status == LS_OK) status = check(processes, folder, tokens, error);
    ls_free(tokens);
    return status;
}
