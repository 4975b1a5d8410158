/* Names in an output folder that are those of files which the user has asked for elsewhere on the
 * command line; and how names and folders are compared there. */
#ifndef LS_ENGINE_OUTPUT_GUESTS_H
#define LS_ENGINE_OUTPUT_GUESTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/model_folder.h"

typedef struct ls_guest_names {
    char **names; /* [count]; NULL where a guest lies elsewhere */
    int count;
    bool events; /* a guest is the folder itself: event files of TensorBoard lie in it */
} ls_guest_names;

ls_status ls_guest_names_find(ls_guest_names *names, const char *output,
                              const ls_output_guests *guests, ls_error *error) LS_MUST_CHECK;
void ls_guest_names_deinit(ls_guest_names *names);
/* Whether an entry of the folder is a guest or the way to one, half-written ones included. */
bool ls_guest_names_have(const ls_guest_names *names, const char *name);

/* The length of `name` without the ending that a file has while it is written (base/files.h). */
size_t ls_final_length(const char *name);
bool ls_is_same_folder(const char *one, const char *two); /* both exist */

#endif
