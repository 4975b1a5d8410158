/* Any bytes as a checkpoint's trainer.json: what is accepted is a place where a run can stand. */
#include <stdint.h>
#include <stdlib.h>

#include "api/checkpoints.h"
#include "formats/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const ls_position *position)
{
    if (position->step < 0 || position->skipped_steps < 0 ||
        position->skipped_steps > position->step || position->samples < 0 || position->tokens < 0)
        abort();
    if (!(position->seconds >= 0) || !__builtin_isfinite(position->best.value) ||
        position->best.step < -1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_error error = {0};
    json_t *document = NULL;
    ls_position position;
    ls_status status = ls_json_parse(&document, (const char *)data, size, "trainer.json", &error);
    if (status == LS_OK)
        status = ls_trainer_record_read(document, "trainer.json", &position, &error);
    if (status == LS_OK)
        check(&position);
    else if (!*error.text)
        abort();
    ls_json_free(document);
    return 0;
}
