#include "formats/deepspeed_keys.h"

#include <stdint.h>
#include <string.h>

#include "base/names.h"
#include "formats/deepspeed_keys_table.h"

/* A macro more, so that pairs such as FROM0 are two arguments. */
#define ROW(path, kind, automatic, neutral, effect, target, least, most, help)                     \
    {path, LS_DEEPSPEED_##kind, automatic, neutral, LS_DEEPSPEED_##effect, target, least, most,    \
     help},
#define KEY(...) ROW(__VA_ARGS__)

static const ls_deepspeed_key keys[] = {LS_DEEPSPEED_KEYS(KEY){0}};

const ls_deepspeed_key *ls_deepspeed_keys(void)
{
    return keys;
}

const ls_deepspeed_key *ls_deepspeed_key_find(const char *path)
{
    for (const ls_deepspeed_key *key = keys; key->path; key++)
        if (strcmp(key->path, path) == 0) return key;
    return NULL;
}

/* What follows the last dot. */
static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static bool same_section(const char *left, const char *right)
{
    size_t a = (size_t)(last_part(left) - left), b = (size_t)(last_part(right) - right);
    return a == b && memcmp(left, right, a) == 0;
}

const ls_deepspeed_key *ls_deepspeed_key_nearest(const char *path)
{
    const ls_deepspeed_key *best = NULL, *elsewhere = NULL;
    size_t least = SIZE_MAX;
    const char *name = last_part(path);
    for (const ls_deepspeed_key *key = keys; key->path; key++) {
        if (key->effect == LS_DEEPSPEED_OLD_NAME) continue;
        size_t here = ls_name_distance(name, last_part(key->path));
        if (here == 0 && !elsewhere) elsewhere = key;
        if (!same_section(path, key->path) || here >= least) continue;
        least = here;
        best = key;
    }
    /* A name that is right in another section stands in the wrong place, unless its own section has
     * nearly the same one. */
    return elsewhere && least > 2 ? elsewhere : best;
}
