#include "compare/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "compare/documents.h"
#include "formats/json.h"
#include "formats/utf8.h"

enum { LARGEST_TRACE = 64 << 20, MOST_EVENTS = 4000 };

typedef struct window {
    double from, to; /* microseconds */
    const char *name;
} window;

static const char *text_of(const json_t *event, const char *key)
{
    const char *value = json_string_value(json_object_get(event, key));
    return value ? value : "";
}

static double number_of(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static bool is_complete(const json_t *event)
{
    return strcmp(text_of(event, "ph"), "X") == 0;
}

static bool is_step(const json_t *event)
{
    return is_complete(event) && strcmp(text_of(event, "cat"), "step") == 0 &&
           number_of(event, "pid") == 0;
}

/* The step in the middle of those recorded; false: none. */
static bool find_step(const json_t *events, window *step)
{
    size_t count = 0, index;
    json_t *event;
    json_array_foreach((json_t *)(uintptr_t)events, index, event) count += is_step(event);
    size_t wanted = count / 2, seen = 0;
    json_array_foreach((json_t *)(uintptr_t)events, index, event)
    {
        if (!is_step(event) || seen++ != wanted) continue;
        step->from = number_of(event, "ts");
        step->to = step->from + number_of(event, "dur");
        step->name = text_of(event, "name");
        return isfinite(step->to);
    }
    return false;
}

/* "rank 0 compute": by the names that the trace gives to the event's process and thread. */
static const char *thread_name(const json_t *events, double pid, double tid)
{
    size_t index;
    json_t *event;
    json_array_foreach((json_t *)(uintptr_t)events, index, event)
    {
        if (strcmp(text_of(event, "ph"), "M") == 0 &&
            strcmp(text_of(event, "name"), "thread_name") == 0 && number_of(event, "pid") == pid &&
            number_of(event, "tid") == tid)
            return text_of(json_object_get(event, "args"), "name");
    }
    return "thread";
}

static ls_status put_milliseconds(ls_text *text, const char *before, double microseconds,
                                  ls_error *error)
{
    char digits[LS_NUMBER_BYTES];
    double rounded = round(microseconds) / 1e3;
    return ls_text_print(text, error, "%s%s", before, ls_number_print(digits, rounded));
}

static ls_status put_event(ls_text *text, const json_t *events, const json_t *event,
                           const window *step, bool first, ls_error *error)
{
    double from = number_of(event, "ts"), to = from + number_of(event, "dur");
    double pid = number_of(event, "pid"), tid = number_of(event, "tid");
    const char *layer = text_of(json_object_get(event, "args"), "layer");
    LS_TRY(
        ls_text_print(text, error, "%s{\"rank\": %.0f, \"thread\": ", first ? "\n" : ",\n", pid));
    LS_TRY(ls_utf8_json(text, thread_name(events, pid, tid), error));
    LS_TRY(ls_text_print(text, error, ", \"name\": "));
    LS_TRY(ls_utf8_json(text, text_of(event, "name"), error));
    LS_TRY(ls_text_print(text, error, ", \"layer\": "));
    LS_TRY(ls_utf8_json(text, *layer ? layer : NULL, error));
    LS_TRY(ls_text_print(text, error, ", \"category\": "));
    LS_TRY(ls_utf8_json(text, text_of(event, "cat"), error));
    LS_TRY(put_milliseconds(text, ", \"from_ms\": ", fmax(from - step->from, 0), error));
    LS_TRY(put_milliseconds(text, ", \"to_ms\": ", fmin(to, step->to) - step->from, error));
    return ls_text_append(text, "}", 1, error);
}

static ls_status put_step(ls_text *text, const json_t *events, const char *name, const window *step,
                          ls_error *error)
{
    size_t index, written = 0;
    json_t *event;
    LS_TRY(ls_text_print(text, error, "{\"name\": "));
    LS_TRY(ls_utf8_json(text, name, error));
    LS_TRY(ls_text_print(text, error, ", \"step\": "));
    LS_TRY(ls_utf8_json(text, step->name, error));
    LS_TRY(ls_text_print(text, error, ", \"events\": ["));
    json_array_foreach((json_t *)(uintptr_t)events, index, event)
    {
        double from = number_of(event, "ts"), to = from + number_of(event, "dur");
        bool inside = from < step->to && to > step->from;
        if (!is_complete(event) || strcmp(text_of(event, "cat"), "step") == 0 || !inside) continue;
        if (written == MOST_EVENTS) break;
        LS_TRY(put_event(text, events, event, step, written == 0, error));
        written++;
    }
    return ls_text_print(text, error, "]}");
}

ls_status ls_compare_timeline(ls_text *text, const char *folder, const char *name, ls_error *error)
{
    char *path = NULL;
    json_t *root = NULL;
    window step;
    LS_TRY(ls_path_join(&path, folder, "profile/trace.json", error));
    ls_status status = LS_OK;
    if (ls_path_exists(path)) status = ls_json_load(&root, path, LARGEST_TRACE, error);
    const json_t *events = root ? json_object_get(root, "traceEvents") : NULL;
    if (status == LS_OK && events && find_step(events, &step))
        status = put_step(text, events, name, &step, error);
    ls_json_free(root);
    ls_free(path);
    return status;
}
