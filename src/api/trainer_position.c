/* Of trainer.json: where the run stands that goes on from it. */
#include "api/checkpoints.h"
#include "formats/json.h"

static ls_status read_best(const ls_json_view *root, ls_best *best, ls_error *error)
{
    ls_json_view view;
    *best = (ls_best){.step = -1};
    LS_TRY(ls_json_get_object(root, "best", LS_JSON_OPTIONAL, &view, error));
    LS_TRY(ls_json_get_integer(&view, "step", LS_JSON_OPTIONAL, 0, INT64_MAX, &best->step, error));
    best->lost = ls_json_find(&view, "checkpoint") == NULL;
    return ls_json_get_number(&view, "value", LS_JSON_OPTIONAL, -1e300, 1e300, &best->value, error);
}

ls_status ls_trainer_record_read(const json_t *document, const char *path, ls_position *position,
                                 ls_error *error)
{
    ls_json_view root;
    int64_t version;
    *position = (ls_position){0};
    LS_TRY(ls_json_view_init(&root, document, path, error));
    LS_TRY(ls_json_get_integer(&root, "format_version", LS_JSON_REQUIRED, 1, LS_TRAINER_VERSION,
                               &version, error));
    LS_TRY(
        ls_json_get_integer(&root, "step", LS_JSON_REQUIRED, 0, INT64_MAX, &position->step, error));
    LS_TRY(ls_json_get_integer(&root, "skipped_steps", LS_JSON_REQUIRED, 0, position->step,
                               &position->skipped_steps, error));
    LS_TRY(ls_json_get_integer(&root, "samples_consumed", LS_JSON_REQUIRED, 0, INT64_MAX,
                               &position->samples, error));
    LS_TRY(ls_json_get_integer(&root, "tokens_consumed", LS_JSON_REQUIRED, 0, INT64_MAX,
                               &position->tokens, error));
    LS_TRY(ls_json_get_number(&root, "seconds", LS_JSON_REQUIRED, 0, 1e300, &position->seconds,
                              error));
    LS_TRY(ls_json_get_bool(&root, "validation_done", LS_JSON_REQUIRED, &position->validation_done,
                            error));
    return read_best(&root, &position->best, error);
}
