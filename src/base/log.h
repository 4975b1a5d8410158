/* The library never prints: it hands lines to the one log hook, if there is one. */
#ifndef LS_BASE_LOG_H
#define LS_BASE_LOG_H

#include "base/status.h"

typedef enum ls_log_level { LS_LOG_INFO, LS_LOG_WARNING } ls_log_level;
typedef void (*ls_log_function)(void *context, ls_log_level level, const char *line);

void ls_set_log(ls_log_function function, void *context);
void ls_log(ls_log_level level, const char *format, ...) LS_PRINTF(2, 3);

#endif
