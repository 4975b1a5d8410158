/* What every test program includes: cmocka, and the few helpers that tests share. */
#ifndef LS_TESTS_TESTING_H
#define LS_TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lockstep/status.h"

/* Fail the test, showing the error's text, unless the call succeeded. */
#define assert_ok(call, error)                                                                     \
    do {                                                                                           \
        ls_status test_status = (call);                                                            \
        if (test_status != LS_OK) fail_msg("%s: %d: %s", #call, test_status, (error).text);        \
    } while (0)

/* A new empty folder below $TMPDIR, and its removal with all that is in it. */
char *test_folder(void);
void test_folder_remove(char *folder);

/* "FOLDER/NAME" in memory that lives until the next 16 calls. */
const char *test_path(const char *folder, const char *name);

/* Write a file whole, as a user's editor would. */
void test_write_file(const char *path, const void *bytes, size_t count);

#endif
