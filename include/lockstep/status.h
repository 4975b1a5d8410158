/* Status codes and the error record: the one way in which any Lockstep function reports failure. */
#ifndef LOCKSTEP_STATUS_H
#define LOCKSTEP_STATUS_H

/* Name and text of every code. Negative, so that a function may also return a count. */
#define LS_STATUS_LIST(X)                                                                          \
    X(OK, 0, "success")                                                                            \
    X(INVALID, -1, "invalid input")                                                                \
    X(USAGE, -2, "illegal combination of settings")                                                \
    X(UNSUPPORTED, -3, "not supported")                                                            \
    X(IO, -4, "input or output failed")                                                            \
    X(NO_MEMORY, -5, "out of memory")                                                              \
    X(NOT_FINITE, -6, "a number is not finite")                                                    \
    X(INTERRUPTED, -7, "stopped by request")                                                       \
    X(INTERNAL, -8, "internal error")                                                              \
    X(DIFFERENT, -9, "a comparison found a difference")                                            \
    X(LOST, -10, "a rank was lost or is too late")

typedef enum ls_status {
#define LS_STATUS_ENUM(name, code, text) LS_##name = code,
    LS_STATUS_LIST(LS_STATUS_ENUM)
#undef LS_STATUS_ENUM
} ls_status;

/* Caller-owned. `text` says what was wrong, where (file, line, key, tensor) and what to do next. */
typedef struct ls_error {
    ls_status code;
    int rank;        /* rank that failed, 0 on one device */
    char text[1000]; /* UTF-8, one line, no final newline */
} ls_error;

#endif
