/* SHA-256 of a file, as sha256sum prints it. */
#ifndef LS_BASE_DIGEST_H
#define LS_BASE_DIGEST_H

#include "base/status.h"

enum { LS_SHA256_CHARACTERS = 65 };

ls_status ls_file_sha256(const char *path, char text[LS_SHA256_CHARACTERS],
                         ls_error *error) LS_MUST_CHECK;

#endif
