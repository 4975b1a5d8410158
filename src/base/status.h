/* Internal helpers over the public status codes. */
#ifndef LS_BASE_STATUS_H
#define LS_BASE_STATUS_H

#include "lockstep/status.h"

#if defined(__GNUC__)
#define LS_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define LS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define LS_PRINTF(text, first)
#define LS_MUST_CHECK
#endif

/* Fill *error (NULL is allowed) with a printf-style text and return `code`, so that
 * `return ls_fail(error, LS_INVALID, "%s: ...", path)` is the idiom everywhere. */
ls_status ls_fail(ls_error *error, ls_status code, const char *format, ...) LS_PRINTF(3, 4);

/* Put "context: " before the text already in *error; returns error's code. */
ls_status ls_fail_context(ls_error *error, ls_status code, const char *format, ...) LS_PRINTF(3, 4);

/* Return, or jump to the function's one cleanup label, when a call fails. */
#define LS_TRY(call)                                                                               \
    do {                                                                                           \
        ls_status try_status = (call);                                                             \
        if (try_status != LS_OK) return try_status;                                                \
    } while (0)
#define LS_TRY_GOTO(status, call, label)                                                           \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != LS_OK) goto label;                                                           \
    } while (0)

#endif
