#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static ls_log_function log_function;
static void *log_context;

void ls_set_log(ls_log_function function, void *context)
{
    log_function = function;
    log_context = context;
}

void ls_log(ls_log_level level, const char *format, ...)
{
    if (!log_function) return;
    char line[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    log_function(log_context, level, line);
}
