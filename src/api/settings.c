/* ls_options by name: the table, its defaults, its text form. */
#include "api/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/settings_table.h"
#include "api/strategy.h"
#include "base/names.h"
#include "base/numbers.h"

static const ls_setting settings[] = {
#define LS_PUBLIC_ROW(name, field, kind, commands, needed, fallback, least, most, help)            \
    {name, LS_SETTING_##kind, commands, fallback, help},
    LS_SETTINGS(LS_PUBLIC_ROW){0},
#undef LS_PUBLIC_ROW
};

/* The rest of each row. */
static const struct place {
    size_t offset;
    unsigned needed;
    double least, most;
} places[] = {
#define LS_PRIVATE_ROW(name, field, kind, commands, needed, fallback, least, most, help)           \
    {offsetof(ls_options, field), needed, least, most},
    LS_SETTINGS(LS_PRIVATE_ROW)
#undef LS_PRIVATE_ROW
};

enum { COUNT = sizeof places / sizeof *places };

/* Texts that are one of a list. */
static const struct choice {
    const char *name, *noun;
    const char *known[8];
} choices[] = {
    {"learning-rate-scaling", "ways", {"none", "linear", "sqrt"}},
    {"log-ranks", "choices", {"first", "all"}},
    {"strategy", "strategies", {"single", "ddp", "zero1", "zero2", "zero3", "auto"}},
    {"recompute", "ways", {"none", "layer", "attention"}},
    {"offload-optimizer", "places", {"none", "host", "disk"}},
    {"offload-parameters", "places", {"none", "host", "disk"}},
    {"optimizer", "optimizers", {"adamw", "adam"}},
    {"lr-scheduler-type",
     "schedules",
     {"linear", "cosine", "constant", "constant_with_warmup", "warmup", "warmup_decay",
      "warmup_cosine"}},
    {"warmup-type", "warm-ups", {"log", "linear"}},
    {"on-nan", "ways", {"stop", "skip"}},
    {"keep-best", "metrics", {"accuracy", "macro_f1", "loss"}},
};

/* --- names ----------------------------------------------------------------------------------- */

static char canonical(char c)
{
    return c == '_' ? '-' : c;
}

int ls_setting_find(const char *name)
{
    for (int row = 0; row < COUNT; row++) {
        const char *known = settings[row].name, *at = name;
        while (*at && canonical(*at) == *known)
            at++, known++;
        if (!*at && !*known) return row;
    }
    return -1;
}

static const char *nearest(const char *name)
{
    size_t best = SIZE_MAX;
    const char *found = "";
    for (int row = 0; row < COUNT; row++) {
        size_t here = ls_name_distance(name, settings[row].name);
        if (here < best) {
            best = here;
            found = settings[row].name;
        }
    }
    return found;
}

/* --- checks ---------------------------------------------------------------------------------- */

static const char *bound(char into[LS_NUMBER_BYTES], double value)
{
    if (value == ABOVE_ZERO) return "above 0";
    if (value == BELOW_ONE) return "below 1";
    return ls_number_print(into, value);
}

static ls_status fail_range(int row, const char *value, ls_error *error)
{
    char least[LS_NUMBER_BYTES], most[LS_NUMBER_BYTES];
    return ls_fail(error, LS_USAGE, "--%s: %s is out of range: it goes from %s to %s",
                   settings[row].name, value, bound(least, places[row].least),
                   bound(most, places[row].most));
}

/* Also refuses a NaN. */
static bool in_range(int row, double value)
{
    return value >= places[row].least && value <= places[row].most;
}

static ls_status check_choice(int row, const char *value, ls_error *error)
{
    /* What stands behind a + is no part of the name. */
    size_t length = strcspn(value, "+");
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct choice *choice = &choices[i];
        if (strcmp(choice->name, settings[row].name) != 0) continue;
        char list[160] = "";
        if (strcmp(choice->name, "strategy") != 0) length = strlen(value);
        for (size_t k = 0; choice->known[k]; k++) {
            const char *known = choice->known[k];
            if (strlen(known) == length && memcmp(known, value, length) == 0) return LS_OK;
            size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", choice->known[k]);
        }
        return ls_fail(error, LS_USAGE, "--%s: '%.*s' is not built yet: known %s are %s",
                       choice->name, (int)length, value, choice->noun, list);
    }
    return LS_OK;
}

/* A size that a run may find by itself: then it is 0. */
static bool may_be_auto(int row)
{
    return settings[row].kind == LS_SETTING_BYTES && strcmp(settings[row].fallback, "auto") == 0;
}

static ls_status check_row(const ls_options *options, int row, ls_error *error)
{
    const void *field = (const char *)options + places[row].offset;
    const char *text;
    double number = 0;
    char buffer[64];
    switch (settings[row].kind) {
    case LS_SETTING_FLAG:
        return LS_OK;
    case LS_SETTING_TEXT:
        text = *(const char *const *)field;
        if (text) return check_choice(row, text, error);
        if (!*settings[row].fallback) return LS_OK;
        return ls_fail(error, LS_USAGE, "--%s: no value", settings[row].name);
    case LS_SETTING_NUMBER:
        number = *(const double *)field;
        break;
    case LS_SETTING_SAMPLES:
        number = (double)*(const int64_t *)field;
        if (number == LS_SAMPLES_ALL || number == LS_SAMPLES_AUTO) return LS_OK;
        break;
    case LS_SETTING_BYTES:
        number = (double)*(const int64_t *)field;
        if (number == 0 && may_be_auto(row)) return LS_OK;
        break;
    case LS_SETTING_INTEGER:
    case LS_SETTING_DEVICES:
        number = (double)*(const int64_t *)field;
        break;
    }
    if (in_range(row, number)) return LS_OK;
    return fail_range(row, ls_options_get(options, settings[row].name, buffer), error);
}

ls_status ls_options_check(const ls_options *options, unsigned command, ls_error *error)
{
    for (int row = 0; row < COUNT; row++) {
        if (!(settings[row].commands & command)) continue;
        LS_TRY(check_row(options, row, error));
        const char *const *text =
            (const char *const *)(const void *)((const char *)options + places[row].offset);
        if ((places[row].needed & command) && !*text)
            return ls_fail(error, LS_USAGE, "--%s is needed: %s", settings[row].name,
                           settings[row].help);
    }
    return ls_options_check_combinations(options, command, error);
}

/* --- from text ------------------------------------------------------------------------------- */

static ls_status parse_integer(int row, const char *value, int64_t *out, ls_error *error)
{
    char *end;
    const char *digits = value + (value[0] == '-' || value[0] == '+');
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end)
        return ls_fail(error, LS_USAGE, "--%s: '%s' is not a whole number%s", settings[row].name,
                       value,
                       settings[row].kind == LS_SETTING_SAMPLES ? ", \"all\" or \"auto\"" : "");
    if (errno == ERANGE || !in_range(row, (double)number)) return fail_range(row, value, error);
    *out = number;
    return LS_OK;
}

static ls_status parse_bytes(int row, const char *value, int64_t *out, ls_error *error)
{
    static const struct unit {
        const char *name;
        double bytes;
    } units[] = {
        {"", 1},         {"B", 1},        {"KiB", 1024.0}, {"MiB", 1048576.0},
        {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"kB", 1e3},     {"KB", 1e3},
        {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
    };
    char digits[32];
    size_t length = strspn(value, "0123456789.");
    double number;
    if (may_be_auto(row) && strcmp(value, "auto") == 0) {
        *out = 0;
        return LS_OK;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)(length < 31 ? length : 31), value);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(value + length, units[i].name) != 0 || !ls_number_parse(digits, &number))
            continue;
        if (!in_range(row, number * units[i].bytes)) return fail_range(row, value, error);
        *out = (int64_t)(number * units[i].bytes);
        return LS_OK;
    }
    return ls_fail(error, LS_USAGE,
                   "--%s: '%s' is not a size: a number with nothing, kB, MB, GB, TB, KiB, MiB, "
                   "GiB or TiB after it%s",
                   settings[row].name, value, may_be_auto(row) ? ", or \"auto\"" : "");
}

static ls_status parse_flag(int row, const char *value, bool *out, ls_error *error)
{
    bool yes = strcmp(value, "true") == 0;
    if (!yes && strcmp(value, "false") != 0)
        return ls_fail(error, LS_USAGE, "--%s: '%s' is neither true nor false", settings[row].name,
                       value);
    *out = yes;
    return LS_OK;
}

static ls_status parse_number(int row, const char *value, double *out, ls_error *error)
{
    double number;
    if (!ls_number_parse(value, &number))
        return ls_fail(error, LS_USAGE, "--%s: '%s' is not a number", settings[row].name, value);
    if (!in_range(row, number)) return fail_range(row, value, error);
    *out = number;
    return LS_OK;
}

static ls_status parse_text(int row, const char *value, const char **out, ls_error *error)
{
    if (!*value) return ls_fail(error, LS_USAGE, "--%s: empty text", settings[row].name);
    LS_TRY(check_choice(row, value, error));
    if (strcmp(settings[row].name, "strategy") == 0)
        LS_TRY(ls_strategy_check_endings(value, error));
    *out = value;
    return LS_OK;
}

/* A list is read in full by who uses it; here its first number. */
static ls_status set_devices(ls_options *options, int row, const char *value, ls_error *error)
{
    char first[16];
    size_t length = strcspn(value, ",");
    options->device_list = NULL;
    if (!value[length]) return parse_integer(row, value, &options->devices, error);
    snprintf(first, sizeof first, "%.*s", (int)(length < 15 ? length : 15), value);
    LS_TRY(parse_integer(row, first, &options->devices, error));
    options->device_list = value;
    return LS_OK;
}

static ls_status set_row(ls_options *options, int row, const char *value, ls_error *error)
{
    void *field = (char *)options + places[row].offset;
    switch (settings[row].kind) {
    case LS_SETTING_TEXT:
        return parse_text(row, value, field, error);
    case LS_SETTING_FLAG:
        return parse_flag(row, value, field, error);
    case LS_SETTING_NUMBER:
        return parse_number(row, value, field, error);
    case LS_SETTING_BYTES:
        return parse_bytes(row, value, field, error);
    case LS_SETTING_SAMPLES:
        if (strcmp(value, "all") == 0 || strcmp(value, "auto") == 0) {
            *(int64_t *)field = value[1] == 'l' ? LS_SAMPLES_ALL : LS_SAMPLES_AUTO;
            return LS_OK;
        }
        break;
    case LS_SETTING_DEVICES:
        return set_devices(options, row, value, error);
    case LS_SETTING_INTEGER:
        break;
    }
    return parse_integer(row, value, field, error);
}

/* --- the public functions -------------------------------------------------------------------- */

const ls_setting *ls_settings(void)
{
    return settings;
}

void ls_options_default(ls_options *options)
{
    *options = (ls_options){0};
    for (int row = 0; row < COUNT; row++)
        if (*settings[row].fallback) (void)set_row(options, row, settings[row].fallback, NULL);
}

ls_status ls_options_set(ls_options *options, const char *name, const char *value, ls_error *error)
{
    int row = ls_setting_find(name);
    if (row < 0)
        return ls_fail(error, LS_USAGE, "no setting --%s; the nearest is --%s", name,
                       nearest(name));
    return set_row(options, row, value, error);
}

const char *ls_options_get(const ls_options *options, const char *name, char into[64])
{
    int row = ls_setting_find(name);
    if (row < 0) return NULL;
    const void *field = (const char *)options + places[row].offset;
    int64_t integer;
    switch (settings[row].kind) {
    case LS_SETTING_TEXT:
        return *(const char *const *)field;
    case LS_SETTING_FLAG:
        return *(const bool *)field ? "true" : "false";
    case LS_SETTING_NUMBER:
        return ls_number_print(into, *(const double *)field);
    case LS_SETTING_DEVICES:
        if (options->device_list) return options->device_list;
        break;
    case LS_SETTING_SAMPLES:
    case LS_SETTING_BYTES:
    case LS_SETTING_INTEGER:
        break;
    }
    integer = *(const int64_t *)field;
    if (settings[row].kind == LS_SETTING_SAMPLES && integer == LS_SAMPLES_ALL) return "all";
    if (settings[row].kind == LS_SETTING_SAMPLES && integer == LS_SAMPLES_AUTO) return "auto";
    if (integer == 0 && may_be_auto(row)) return "auto";
    snprintf(into, 64, "%" PRId64, integer);
    return into;
}
