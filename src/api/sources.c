/* Where each setting's value came from. */
#include <string.h>

#include "api/settings.h"
#include "base/alloc.h"

struct ls_sources {
    const char **source; /* for each row of ls_settings; NULL: never mentioned */
};

ls_status ls_sources_new(ls_sources **out, ls_error *error)
{
    ls_sources *sources = NULL;
    size_t count = 0;
    LS_TRY(LS_NEW(sources, 1, "sources of settings", error));
    while (ls_settings()[count].name)
        count++;
    ls_status status = LS_NEW(sources->source, count, "sources of settings", error);
    if (status != LS_OK) {
        ls_sources_free(sources);
        return status;
    }
    *out = sources;
    return LS_OK;
}

void ls_sources_free(ls_sources *sources)
{
    if (!sources) return;
    ls_free(sources->source);
    ls_free(sources);
}

ls_status ls_sources_set(ls_sources *sources, const char *name, const char *source, ls_error *error)
{
    int row = ls_setting_find(name);
    if (row < 0) return ls_fail(error, LS_USAGE, "no setting --%s", name);
    sources->source[row] = source;
    return LS_OK;
}

static bool is_default(const ls_options *options, const char *name)
{
    ls_options fresh;
    char now[64], then[64];
    ls_options_default(&fresh);
    const char *value = ls_options_get(options, name, now);
    const char *fallback = ls_options_get(&fresh, name, then);
    if (!value || !fallback) return value == fallback;
    return strcmp(value, fallback) == 0;
}

const char *ls_sources_get(const ls_sources *sources, const ls_options *options, const char *name)
{
    int row = sources ? ls_setting_find(name) : -1;
    if (row >= 0 && sources->source[row]) return sources->source[row];
    return is_default(options, name) ? "default" : "program";
}
