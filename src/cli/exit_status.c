#include "cli/exit_status.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/columns.h"

int ls_exit_status(ls_status status)
{
    switch (status) {
    case LS_OK:
        return LS_EXIT_DONE;
    case LS_USAGE:
        return LS_EXIT_USAGE;
    case LS_NOT_FINITE:
        return LS_EXIT_NOT_FINITE;
    case LS_DIFFERENT:
        return LS_EXIT_DIFFERENT;
    case LS_INTERRUPTED:
        return LS_EXIT_STOPPED;
    case LS_LOST:
        return LS_EXIT_LOST;
    case LS_INVALID:
    case LS_UNSUPPORTED:
    case LS_IO:
    case LS_NO_MEMORY:
    case LS_INTERNAL:
        break;
    }
    return LS_EXIT_FAILED;
}

int ls_exit_report(ls_status status, const ls_error *error)
{
    char text[sizeof error->text];
    /* Empty where another process of the run says it. */
    if (status != LS_OK && *error->text) {
        fflush(stdout);
        ls_columns_fit(text, sizeof text, error->text, LS_NO_LIMIT);
        fprintf(stderr, "lockstep: %s\n", text);
    }
    return ls_exit_status(status);
}

ls_status ls_complain(ls_error *error, ls_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    *error = (ls_error){.code = status};
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}
