#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ls_status ls_fail(ls_error *error, ls_status code, const char *format, ...)
{
    if (!error) return code;
    va_list arguments;
    va_start(arguments, format);
    error->code = code;
    error->rank = 0;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return code;
}

ls_status ls_fail_context(ls_error *error, ls_status code, const char *format, ...)
{
    if (!error) return code;
    char inner[sizeof error->text];
    memcpy(inner, error->text, sizeof inner);
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used + 3 < sizeof error->text)
        snprintf(error->text + used, sizeof error->text - (size_t)used, ": %s", inner);
    error->code = code;
    return code;
}
