#include "ops/inputs.h"

static ls_status declare(ls_program *program, ls_value_id *out, const char *name, ls_dtype dtype,
                         int rank, ls_dimension dimension, ls_space space, ls_error *error)
{
    ls_value value = {.dtype = dtype,
                      .role = LS_ROLE_INPUT,
                      .space = space,
                      .rank = rank,
                      .shape = {dimension},
                      .parameter = LS_NO_VALUE,
                      .touched = LS_NO_VALUE};
    return ls_program_value(program, out, value, error, "%s", name);
}

static ls_status declare_tables(ls_program *program, ls_inputs *inputs, ls_touched_capacity touched,
                                ls_error *error)
{
    const struct {
        ls_table_inputs *table;
        const char *schedule, *touched;
        int64_t rows;
    } tables[] = {
        {&inputs->word, "word_schedule", "word_touched", touched.word},
        {&inputs->position, "position_schedule", "position_touched", touched.position},
        {&inputs->type, "type_schedule", "type_touched", touched.type},
    };
    for (int i = 0; i < 3; i++) {
        if (program->training)
            LS_TRY(declare(program, &tables[i].table->schedule, tables[i].schedule, LS_U8, 0,
                           ls_fixed(1), LS_SPACE_HOST, error));
        LS_TRY(declare(program, &tables[i].table->touched, tables[i].touched, LS_I32, 1,
                       ls_fixed(tables[i].rows), LS_SPACE_HOST, error));
    }
    return LS_OK;
}

ls_status ls_inputs_declare_rows(ls_program *program, ls_inputs *inputs, ls_error *error)
{
    const struct {
        ls_table_inputs *table;
        const char *rows;
    } tables[] = {{&inputs->word, "word_rows"},
                  {&inputs->position, "position_rows"},
                  {&inputs->type, "type_rows"}};
    for (int i = 0; i < 3; i++)
        LS_TRY(declare(program, &tables[i].table->rows, tables[i].rows, LS_I32, 1,
                       ls_per(LS_SYMBOL_TOKENS), LS_SPACE_DEVICE, error));
    return LS_OK;
}

static ls_status declare_training(ls_program *program, ls_inputs *inputs, ls_error *error)
{
    const struct {
        ls_value_id *out;
        const char *name;
    } scalars[] = {
        {&inputs->loss_scale, "loss_scale"},
        {&inputs->learning_rate, "learning_rate"},
        {&inputs->correction1, "correction1"},
        {&inputs->correction2_root, "correction2_root"},
    };
    for (int i = 0; i < 4; i++)
        LS_TRY(declare(program, scalars[i].out, scalars[i].name, LS_F32, 0, ls_fixed(1),
                       LS_SPACE_DEVICE, error));
    LS_TRY(declare(program, &inputs->random_key, "random_key", LS_I32, 1, ls_fixed(2),
                   LS_SPACE_DEVICE, error));
    LS_TRY(declare(program, &inputs->schedules.tokens, "token_schedule", LS_U8, 0, ls_fixed(1),
                   LS_SPACE_HOST, error));
    LS_TRY(declare(program, &inputs->schedules.samples, "sample_schedule", LS_U8, 0, ls_fixed(1),
                   LS_SPACE_HOST, error));
    return declare(program, &inputs->roots, "roots", LS_U8, 0, ls_fixed(1), LS_SPACE_HOST, error);
}

ls_status ls_inputs_declare(ls_program *program, ls_inputs *inputs, ls_touched_capacity touched,
                            ls_error *error)
{
    ls_dimension tokens = ls_per(LS_SYMBOL_TOKENS), samples = ls_per(LS_SYMBOL_SEQUENCES);
    ls_dimension borders = {LS_SYMBOL_SEQUENCES, 1, 1};
    const struct {
        ls_value_id *out;
        const char *name;
        ls_dimension dimension;
    } arrays[] = {
        {&inputs->ids, "ids", tokens},          {&inputs->positions, "positions", tokens},
        {&inputs->types, "types", tokens},      {&inputs->token_samples, "token_samples", tokens},
        {&inputs->offsets, "offsets", borders}, {&inputs->samples, "samples", samples},
        {&inputs->labels, "labels", samples},
    };
    for (int i = 0; i < 7; i++)
        LS_TRY(declare(program, arrays[i].out, arrays[i].name, LS_I32, 1, arrays[i].dimension,
                       LS_SPACE_DEVICE, error));
    inputs->random_key = inputs->loss_scale = inputs->learning_rate = LS_NO_VALUE;
    inputs->correction1 = inputs->correction2_root = inputs->roots = LS_NO_VALUE;
    inputs->schedules = (ls_schedules){LS_NO_VALUE, LS_NO_VALUE};
    inputs->word = inputs->position = inputs->type =
        (ls_table_inputs){LS_NO_VALUE, LS_NO_VALUE, LS_NO_VALUE};
    if (program->training) LS_TRY(declare_training(program, inputs, error));
    return touched.word ? declare_tables(program, inputs, touched, error) : LS_OK;
}
