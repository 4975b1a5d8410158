#include "monitor/rank_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"

enum { LINE_BYTES = 1002 };

struct ls_rank_log {
    char *path;
};

ls_status ls_rank_log_open(ls_rank_log **out, const char *folder, int rank, ls_error *error)
{
    char name[32];
    ls_rank_log *log = NULL;
    ls_status status;
    snprintf(name, sizeof name, "rank-%d.log", rank);
    LS_TRY(LS_NEW(log, 1, "log of a rank", error));
    LS_TRY_GOTO(status, ls_path_join(&log->path, folder, name, error), fail);
    LS_TRY_GOTO(status, ls_file_write(log->path, "", 0, error), fail);
    *out = log;
    return LS_OK;
fail:
    ls_rank_log_free(log);
    return status;
}

void ls_rank_log_free(ls_rank_log *log)
{
    if (!log) return;
    ls_free(log->path);
    ls_free(log);
}

ls_status ls_rank_log_line(ls_rank_log *log, ls_error *error, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    size_t length = strlen(line);
    line[length++] = '\n';
    return ls_file_append(log->path, line, length, error);
}
