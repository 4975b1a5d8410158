#include "formats/deepspeed_config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "formats/relaxed_json.h"
#include "formats/utf8.h"

enum { PATH_BYTES = 256 };

/* --- texts ----------------------------------------------------------------------------------- */

ls_status ls_deepspeed_fail(const ls_deepspeed_config *config, const char *path, ls_error *error,
                            ls_status code, const char *format, ...)
{
    char what[700], where[32] = "";
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof what) what[ls_utf8_valid_prefix(what, sizeof what - 1)] = '\0';
    int line = ls_json_line_of(config->bytes, config->count, path);
    if (line) snprintf(where, sizeof where, "line %d: ", line);
    return ls_fail(error, code, "%s: %skey '%s': %s", config->name, where, path, what);
}

ls_status ls_deepspeed_warn(ls_deepspeed_config *config, ls_error *error, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof line) line[ls_utf8_valid_prefix(line, sizeof line - 1)] = '\0';
    LS_TRY(LS_GROW(config->warnings, config->warning_capacity, config->warning_count + 1,
                   "warnings", error));
    return ls_arena_text(&config->arena, &config->warnings[config->warning_count++], error, "%s",
                         line);
}

static void print_list(char into[LS_DEEPSPEED_VALUE_BYTES], const json_t *list)
{
    size_t used = 0, count = json_array_size(list);
    char digits[LS_NUMBER_BYTES];
    for (size_t i = 0; i < count && used + LS_NUMBER_BYTES + 8 < LS_DEEPSPEED_VALUE_BYTES; i++) {
        const json_t *value = json_array_get(list, i);
        const char *shown =
            json_is_number(value) ? ls_number_print(digits, json_number_value(value)) : "...";
        used += (size_t)snprintf(into + used, LS_DEEPSPEED_VALUE_BYTES - used, "%s%s",
                                 i ? ", " : "[", shown);
    }
    snprintf(into + used, LS_DEEPSPEED_VALUE_BYTES - used, "%s]", count ? "" : "[");
}

const char *ls_deepspeed_print(char into[LS_DEEPSPEED_VALUE_BYTES], const json_t *value)
{
    const char *text = json_is_object(value) ? "{...}" : ls_json_type_name(value);
    if (json_is_string(value)) text = json_string_value(value);
    if (json_is_number(value)) return ls_number_print(into, json_number_value(value));
    int length = snprintf(into, LS_DEEPSPEED_VALUE_BYTES, "%s", text);
    if (length >= LS_DEEPSPEED_VALUE_BYTES)
        into[ls_utf8_valid_prefix(into, LS_DEEPSPEED_VALUE_BYTES - 1)] = '\0';
    if (json_is_array(value)) print_list(into, value);
    return into;
}

/* --- types ----------------------------------------------------------------------------------- */

static bool is_whole(const json_t *value)
{
    double number = json_number_value(value);
    if (json_is_integer(value)) return true;
    return json_is_real(value) && number > -9e18 && number < 9e18 &&
           number == (double)(int64_t)number;
}

static bool is_pair(const json_t *value)
{
    return json_is_array(value) && json_array_size(value) == 2 &&
           json_is_number(json_array_get(value, 0)) && json_is_number(json_array_get(value, 1));
}

/* NULL if `value` is of the key's type, else what is wanted. */
static const char *wanted(const ls_deepspeed_key *key, const json_t *value)
{
    switch (key->kind) {
    case LS_DEEPSPEED_SECTION:
        return json_is_object(value) ? NULL : "an object {...}";
    case LS_DEEPSPEED_FLAG:
        return json_is_boolean(value) ? NULL : "true or false, without quotes";
    case LS_DEEPSPEED_INTEGER:
        return is_whole(value) ? NULL : "a whole number";
    case LS_DEEPSPEED_NUMBER:
        return json_is_number(value) ? NULL : "a number";
    case LS_DEEPSPEED_TEXT:
        return json_is_string(value) ? NULL : "text";
    case LS_DEEPSPEED_PAIR:
        return is_pair(value) ? NULL : "two numbers [a, b]";
    case LS_DEEPSPEED_LIST:
        return json_is_array(value) ? NULL : "a list [...]";
    case LS_DEEPSPEED_ANYTHING:
        break;
    }
    return NULL;
}

static bool is_auto(const json_t *value)
{
    return json_is_string(value) && strcmp(json_string_value(value), "auto") == 0;
}

static ls_status check_type(const ls_deepspeed_config *config, const ls_deepspeed_key *key,
                            const char *path, const json_t *value, ls_error *error)
{
    char shown[LS_DEEPSPEED_VALUE_BYTES], least[LS_NUMBER_BYTES], most[LS_NUMBER_BYTES];
    const char *want = wanted(key, value);
    if (want && json_is_string(value))
        return ls_deepspeed_fail(
            config, path, error, LS_INVALID, "is the text \"%s\", wanted is %s%s",
            ls_deepspeed_print(shown, value), want, key->automatic ? ", or \"auto\"" : "");
    if (want)
        return ls_deepspeed_fail(config, path, error, LS_INVALID, "is %s, wanted is %s%s",
                                 ls_deepspeed_print(shown, value), want,
                                 key->automatic ? ", or \"auto\"" : "");
    bool pair = key->kind == LS_DEEPSPEED_PAIR;
    for (size_t i = 0; i < (pair ? 2 : 1); i++) {
        const json_t *number = pair ? json_array_get(value, i) : value;
        double is = json_number_value(number);
        if (!json_is_number(number) || (is >= key->least && is <= key->most)) continue;
        const char *up_to = key->most < 1e300 ? ls_number_print(most, key->most) : "any";
        return ls_deepspeed_fail(
            config, path, error, LS_INVALID, "is %s, out of range: it goes from %s to %s",
            ls_deepspeed_print(shown, value), ls_number_print(least, key->least), up_to);
    }
    return LS_OK;
}

/* Whether the value is one of those in "a|b". */
static bool is_neutral(const ls_deepspeed_key *key, const json_t *value)
{
    char shown[LS_DEEPSPEED_VALUE_BYTES], one[LS_DEEPSPEED_VALUE_BYTES];
    double number;
    ls_deepspeed_print(shown, value);
    for (const char *at = key->neutral;; at++) {
        size_t length = strcspn(at, "|");
        snprintf(one, sizeof one, "%.*s", (int)length, at);
        if (strcmp(one, shown) == 0) return true;
        if (json_is_number(value) && ls_number_parse(one, &number) &&
            number == json_number_value(value))
            return true;
        at += length;
        if (!*at) return false;
    }
}

/* {"enabled": false, ...}: a section of something else that is off. */
static bool is_off(const json_t *value)
{
    return json_is_object(value) && json_is_false(json_object_get(value, "enabled"));
}

static ls_status check_built(const ls_deepspeed_config *config, const ls_deepspeed_key *key,
                             const char *path, const json_t *value, ls_error *error)
{
    char shown[LS_DEEPSPEED_VALUE_BYTES];
    if (key->effect != LS_DEEPSPEED_REFUSED || is_auto(value) || is_neutral(key, value) ||
        is_off(value))
        return LS_OK;
    return ls_deepspeed_fail(config, path, error, LS_USAGE, "%s is not supported: %s",
                             ls_deepspeed_print(shown, value), key->help);
}

/* --- walking --------------------------------------------------------------------------------- */

static ls_status fail_unknown(const ls_deepspeed_config *config, const char *path, ls_error *error)
{
    const ls_deepspeed_key *nearest = ls_deepspeed_key_nearest(path);
    if (!nearest)
        return ls_deepspeed_fail(config, path, error, LS_INVALID, "DeepSpeed has no such key");
    return ls_deepspeed_fail(config, path, error, LS_INVALID,
                             "DeepSpeed has no such key; the nearest is '%s'", nearest->path);
}

/* cpu_offload: true is the device "cpu". */
static const json_t *present_value(const ls_deepspeed_key *key, const json_t *value)
{
    if (key->kind == LS_DEEPSPEED_TEXT && json_is_boolean(value)) return NULL;
    return value;
}

static ls_status add_entry(ls_deepspeed_config *config, const ls_deepspeed_key *key,
                           const char *path, const json_t *value, ls_error *error)
{
    const ls_deepspeed_entry *other = ls_deepspeed_config_find(config, key->path);
    if (other)
        return ls_deepspeed_fail(config, path, error, LS_USAGE, "'%s' says the same; drop one",
                                 other->written);
    LS_TRY(
        LS_GROW(config->entries, config->entry_capacity, config->entry_count + 1, "keys", error));
    ls_deepspeed_entry *entry = &config->entries[config->entry_count];
    LS_TRY(ls_arena_text(&config->arena, &entry->written, error, "%s", path));
    entry->key = key;
    entry->value = present_value(key, value);
    config->entry_count++;
    return LS_OK;
}

static ls_status walk(ls_deepspeed_config *config, const json_t *object, const char *at,
                      const char *present, ls_error *error);

static ls_status read_key(ls_deepspeed_config *config, const char *written, const char *present,
                          const json_t *value, ls_error *error)
{
    const ls_deepspeed_key *key = ls_deepspeed_key_find(present), *old = NULL;
    if (!key) return fail_unknown(config, written, error);
    if (key->effect == LS_DEEPSPEED_OLD_NAME) {
        old = key;
        key = ls_deepspeed_key_find(old->target);
        LS_TRY(ls_deepspeed_warn(config, error, "%s: '%s' is an old name: write '%s'", config->name,
                                 written, key->path));
    }
    if (json_is_null(value) && strncmp(key->neutral, "null", 4) == 0) return LS_OK;
    if (key->automatic && is_auto(value)) return add_entry(config, key, written, value, error);
    LS_TRY(check_type(config, old && old->kind == LS_DEEPSPEED_FLAG ? old : key, written, value,
                      error));
    if (key->kind == LS_DEEPSPEED_SECTION) return walk(config, value, written, key->path, error);
    LS_TRY(check_built(config, key, written, value, error));
    if (old && key->kind == LS_DEEPSPEED_TEXT && json_is_false(value)) return LS_OK;
    return add_entry(config, key, written, value, error);
}

/* "zero_optimization": true, as the first versions had it, is stage 1. */
static ls_status read_first_zero(ls_deepspeed_config *config, const json_t *value, ls_error *error)
{
    LS_TRY(ls_deepspeed_warn(config, error,
                             "%s: \"zero_optimization\": %s is an old form: write "
                             "{\"stage\": %d}",
                             config->name, json_is_true(value) ? "true" : "false",
                             json_is_true(value) ? 1 : 0));
    return add_entry(config, ls_deepspeed_key_find("zero_optimization.stage"), "zero_optimization",
                     value, error);
}

/* `at` is the object's path as written, `present` under present names. The depth is bounded by the
 * table's. */
static ls_status walk(ls_deepspeed_config *config, const json_t *object, const char *at,
                      const char *present, ls_error *error)
{
    void *iterator = json_object_iter((json_t *)(uintptr_t)object);
    for (; iterator; iterator = json_object_iter_next((json_t *)(uintptr_t)object, iterator)) {
        char written[PATH_BYTES], known[PATH_BYTES];
        const char *name = json_object_iter_key(iterator), *dot = *at ? "." : "";
        const json_t *value = json_object_iter_value(iterator);
        int length = snprintf(written, sizeof written, "%s%s%s", at, dot, name);
        if (length >= (int)sizeof written)
            written[ls_utf8_valid_prefix(written, sizeof written - 1)] = '\0';
        snprintf(known, sizeof known, "%s%s%s", present, dot, name);
        /* A dot in a name would make it look like a path. */
        if (strchr(name, '.')) return fail_unknown(config, written, error);
        if (!*at && json_is_boolean(value) && strcmp(name, "zero_optimization") == 0)
            LS_TRY(read_first_zero(config, value, error));
        else
            LS_TRY(read_key(config, written, known, value, error));
    }
    return LS_OK;
}

/* --- reading --------------------------------------------------------------------------------- */

static ls_status read_root(ls_deepspeed_config *config, ls_error *error)
{
    LS_TRY(ls_json_relax(config->bytes, config->count, config->name, error));
    LS_TRY(ls_json_parse(&config->root, config->bytes, config->count, config->name, error));
    ls_json_view view;
    LS_TRY(ls_json_view_init(&view, config->root, config->name, error));
    LS_TRY(ls_deepspeed_check_types(config, error));
    LS_TRY(walk(config, config->root, "", "", error));
    return ls_deepspeed_check(config, error);
}

static ls_status finish(ls_deepspeed_config *config, ls_status status)
{
    if (status != LS_OK) ls_deepspeed_config_deinit(config);
    return status;
}

ls_status ls_deepspeed_config_parse(ls_deepspeed_config *config, const char *bytes, size_t count,
                                    const char *name, ls_error *error)
{
    *config = (ls_deepspeed_config){.count = count};
    ls_status status = ls_copy_string(&config->name, name, error);
    if (status == LS_OK) status = LS_NEW(config->bytes, count + 1, name, error);
    if (status == LS_OK && count) memcpy(config->bytes, bytes, count);
    if (status == LS_OK) status = read_root(config, error);
    return finish(config, status);
}

/* Transformers takes the file's text in base64 in place of a path: '{' makes an 'e', and a quote,
 * a space, a line end or '}' after it one of these. */
static bool is_base64_object(const char *text)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    size_t length = strlen(text);
    return length >= 4 && text[0] == 'e' && strchr("yw30", text[1]) &&
           strspn(text, digits) == length;
}

ls_status ls_deepspeed_config_load(ls_deepspeed_config *config, const char *path, ls_error *error)
{
    *config = (ls_deepspeed_config){0};
    if (!ls_path_exists(path) && (path[0] == '{' || is_base64_object(path)))
        return ls_fail(
            error, LS_USAGE,
            "--deepspeed: '%.40s%s' is the text of a configuration%s: write it to a file "
            "and give the file",
            path, strlen(path) > 40 ? "..." : "", path[0] == '{' ? "" : " in base64");
    ls_status status = ls_copy_string(&config->name, path, error);
    if (status == LS_OK)
        status =
            ls_file_read(&config->bytes, &config->count, path, LS_DEEPSPEED_LARGEST_FILE, error);
    if (status == LS_IO) status = ls_fail_context(error, status, "--deepspeed");
    if (status == LS_OK) status = read_root(config, error);
    return finish(config, status);
}

void ls_deepspeed_config_deinit(ls_deepspeed_config *config)
{
    ls_json_free(config->root);
    ls_free(config->name);
    ls_free(config->bytes);
    ls_free(config->entries);
    ls_free(config->warnings);
    ls_arena_deinit(&config->arena);
    *config = (ls_deepspeed_config){0};
}
