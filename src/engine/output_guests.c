#include "engine/output_guests.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

size_t ls_final_length(const char *name)
{
    const char *ending = strstr(name, ".tmp-");
    if (ending && ending[5] && strspn(ending + 5, "0123456789") == strlen(ending + 5))
        return (size_t)(ending - name);
    return strlen(name);
}

bool ls_is_same_folder(const char *one, const char *two)
{
    struct stat first, second;
    return stat(one, &first) == 0 && stat(two, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* The entry of `output` below which, or as which, `guest` lies; *out stays NULL if it does not.
 * Folders on the way need not be there yet. */
static ls_status find(const char *output, const char *guest, char **out, ls_error *error)
{
    char *path = NULL;
    LS_TRY(ls_copy_string(&path, guest, error));
    ls_status status = LS_OK;
    for (bool more = true; more && status == LS_OK;) {
        for (size_t length = strlen(path); length > 1 && path[length - 1] == '/';)
            path[--length] = '\0';
        char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        const char *parent = !slash ? "." : slash == path ? "/" : path;
        if (slash) *slash = '\0';
        more = slash && slash != path;
        if (!*name || !ls_is_same_folder(parent, output)) continue;
        more = false;
        status = ls_copy_string(out, name, error);
    }
    ls_free(path);
    return status;
}

ls_status ls_guest_names_find(ls_guest_names *names, const char *output,
                              const ls_output_guests *guests, ls_error *error)
{
    *names = (ls_guest_names){.count = guests->count};
    LS_TRY(LS_NEW(names->names, guests->count + 1, "files of the run", error));
    ls_status status = LS_OK;
    for (int i = 0; i < guests->count && status == LS_OK; i++) {
        names->events |= ls_is_same_folder(guests->paths[i], output);
        status = find(output, guests->paths[i], &names->names[i], error);
    }
    if (status != LS_OK) ls_guest_names_deinit(names);
    return status;
}

void ls_guest_names_deinit(ls_guest_names *names)
{
    for (int i = 0; names->names && i < names->count; i++)
        ls_free(names->names[i]);
    ls_free(names->names);
    *names = (ls_guest_names){0};
}

bool ls_guest_names_have(const ls_guest_names *names, const char *name)
{
    static const char event_file[] = "events.out.tfevents.";
    size_t length = ls_final_length(name);
    if (names->events && strncmp(name, event_file, sizeof event_file - 1) == 0) return true;
    for (int i = 0; i < names->count; i++)
        if (names->names[i] &&
            (strcmp(names->names[i], name) == 0 ||
             (strlen(names->names[i]) == length && memcmp(names->names[i], name, length) == 0)))
            return true;
    return false;
}
