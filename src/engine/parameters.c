#include "engine/parameters.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/scalar_math.h"

/* Numbers on their way between file and device, in pieces of this many: so few that a run which had
 * the memory to train has it to save. */
enum { PIECE = 1 << 16 };

/* Streams of initial draws lie far from those of steps: the key's second word has its top bit. */
static ls_philox_key initial_key(uint64_t seed)
{
    return (ls_philox_key){{(uint32_t)seed ^ (uint32_t)(seed >> 32), 0x80000000u}};
}

/* "…LayerNorm.weight" was once "…LayerNorm.gamma", "…bias" was "…beta". */
static bool old_norm_name(char into[320], const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot || !strstr(name, "LayerNorm.")) return false;
    const char *old = strcmp(dot, ".weight") == 0 ? "gamma" : "beta";
    snprintf(into, 320, "%.*s%s", (int)(dot - name) + 1, name, old);
    return true;
}

static const ls_safetensors_tensor *find_any_name(const ls_weights *weights, const char *name)
{
    char old[320];
    const ls_safetensors_tensor *tensor = ls_weights_find(weights, name);
    if (!tensor && old_norm_name(old, name)) tensor = ls_weights_find(weights, old);
    return tensor;
}

static const ls_safetensors_tensor *find_tensor(const ls_weights *weights,
                                                const ls_model_config *config, const char *name)
{
    const char *prefix = ls_model_definition_of(config->family)->prefix;
    const ls_safetensors_tensor *tensor = find_any_name(weights, name);
    if (!tensor && strncmp(name, prefix, strlen(prefix)) == 0)
        tensor = find_any_name(weights, name + strlen(prefix));
    return tensor;
}

ls_status ls_parameters_head_classes(const ls_weights *weights, const ls_model_config *config,
                                     int64_t *classes, ls_error *error)
{
    const ls_safetensors_tensor *head = ls_weights_find(weights, "classifier.weight");
    *classes = 0;
    if (!head) return LS_OK;
    if (head->rank != 2 || head->shape[0] != (int64_t)config->label_count)
        return ls_fail(error, LS_INVALID,
                       "%s: tensor classifier.weight has %lld rows, but %s names %zu labels: "
                       "correct id2label there or remove the head from the file",
                       ls_weights_file(weights, head), (long long)(head->rank ? head->shape[0] : 0),
                       config->path, config->label_count);
    *classes = head->shape[0];
    return LS_OK;
}

void ls_parameters_notes_deinit(ls_parameters_notes *notes)
{
    ls_text_deinit(&notes->initialised);
    ls_text_deinit(&notes->unused);
}

static ls_status add_name(ls_text *names, const char *name, ls_error *error)
{
    return ls_text_print(names, error, "%s%s", names->length ? ", " : "", name);
}

static ls_status check_shape(const ls_weights *weights, const ls_safetensors_tensor *tensor,
                             const ls_value *value, ls_error *error)
{
    bool fits = tensor->rank == value->rank;
    for (int i = 0; fits && i < tensor->rank; i++)
        fits = tensor->shape[i] == value->shape[i].constant;
    if (fits) return LS_OK;
    char shape[200], wanted[64] = "";
    int used = 0;
    for (int i = 0; i < value->rank; i++)
        used += snprintf(wanted + used, sizeof wanted - (size_t)used, "%s%lld", i ? ", " : "",
                         (long long)value->shape[i].constant);
    return ls_fail(error, LS_INVALID,
                   "%s: tensor %s has shape %s, config.json asks for [%s]: the files do not belong "
                   "together",
                   ls_weights_file(weights, tensor), tensor->name,
                   ls_safetensors_shape_text(tensor, shape, sizeof shape), wanted);
}

/* The parameter's tensor, of the right shape; NULL where there is none and none is needed. */
static ls_status find_parameter(const ls_assembly *assembly, const ls_weights *weights,
                                const ls_parameter *parameter, const ls_safetensors_tensor **tensor,
                                ls_error *error)
{
    const ls_model_config *config = assembly->model.config;
    const ls_value *value = ls_value_of(assembly->program, parameter->value);
    *tensor = find_tensor(weights, config, value->name);
    if (*tensor) return check_shape(weights, *tensor, value, error);
    if (parameter->initial != LS_INITIAL_REQUIRED) return LS_OK;
    return ls_fail(error, LS_INVALID,
                   "%s: tensor %s is missing (also looked for it without the prefix %s): is this "
                   "the model that config.json describes?",
                   ls_weights_path(weights), value->name,
                   ls_model_definition_of(config->family)->prefix);
}

ls_status ls_parameters_check(const ls_assembly *assembly, const ls_weights *weights,
                              ls_error *error)
{
    const ls_safetensors_tensor *tensor;
    for (size_t i = 0; i < assembly->model.parameter_count; i++)
        LS_TRY(find_parameter(assembly, weights, &assembly->model.parameters[i], &tensor, error));
    return LS_OK;
}

static ls_status check_finite(const ls_weights *weights, const ls_safetensors_tensor *tensor,
                              const float *piece, int64_t first, int64_t count, ls_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (!__builtin_isfinite(piece[i]))
            return ls_fail(error, LS_NOT_FINITE,
                           "%s: tensor %s, element %lld is not a finite number: the file is "
                           "damaged or its training diverged",
                           ls_weights_file(weights, tensor), tensor->name, (long long)(first + i));
    return LS_OK;
}

typedef struct transfer {
    ls_executor *executor;
    const ls_assembly *assembly;
    float *piece; /* [PIECE] */
} transfer;

static ls_status load_tensor(const transfer *t, const ls_weights *weights,
                             const ls_safetensors_tensor *tensor, ls_value_id id, ls_error *error)
{
    ls_range held = ls_executor_held(t->executor, id);
    for (int64_t first = held.begin; first < held.end; first += PIECE) {
        int64_t count = held.end - first < PIECE ? held.end - first : PIECE;
        LS_TRY(ls_weights_read_float(weights, tensor, first, count, t->piece, error));
        LS_TRY(check_finite(weights, tensor, t->piece, first, count, error));
        LS_TRY(ls_executor_put(t->executor, id, first, count, t->piece, error));
    }
    return LS_OK;
}

/* Element e of parameter p is one named draw, however the parameter is cut into pieces. */
static ls_status draw_tensor(const transfer *t, ls_value_id id, double deviation, uint64_t seed,
                             uint32_t stream, ls_error *error)
{
    int64_t elements = ls_value_elements(ls_value_of(t->assembly->program, id), &ls_fixed_extents);
    float *values = NULL;
    LS_TRY(LS_NEW(values, elements, "initial weights", error));
    if (deviation > 0) ls_normal_fill(values, elements, deviation, initial_key(seed), stream);
    ls_range held = ls_executor_held(t->executor, id);
    ls_status status = ls_executor_put(t->executor, id, held.begin, held.end - held.begin,
                                       values + held.begin, error);
    ls_free(values);
    return status;
}

static ls_status load_parameter(const transfer *t, const ls_weights *weights, size_t index,
                                uint64_t seed, ls_parameters_notes *notes, ls_error *error)
{
    const ls_model *model = &t->assembly->model;
    const ls_parameter *parameter = &model->parameters[index];
    const ls_safetensors_tensor *tensor;
    LS_TRY(find_parameter(t->assembly, weights, parameter, &tensor, error));
    if (tensor) return load_tensor(t, weights, tensor, parameter->value, error);
    LS_TRY(add_name(&notes->initialised, ls_value_of(t->assembly->program, parameter->value)->name,
                    error));
    double deviation =
        parameter->initial == LS_INITIAL_NORMAL ? model->config->initializer_range : 0.0;
    return draw_tensor(t, parameter->value, deviation, seed, (uint32_t)index, error);
}

/* Name what is left over, except buffers that carry no weights. */
static ls_status note_unused(const ls_assembly *assembly, const ls_weights *weights,
                             ls_parameters_notes *notes, ls_error *error)
{
    const ls_model *model = &assembly->model;
    for (size_t i = 0; i < ls_weights_count(weights); i++) {
        const ls_safetensors_tensor *tensor = ls_weights_at(weights, i);
        bool used = strstr(tensor->name, "position_ids") != NULL;
        for (size_t p = 0; !used && p < model->parameter_count; p++) {
            const ls_value *value = ls_value_of(assembly->program, model->parameters[p].value);
            used = find_tensor(weights, model->config, value->name) == tensor;
        }
        if (!used) LS_TRY(add_name(&notes->unused, tensor->name, error));
    }
    return LS_OK;
}

ls_status ls_parameters_load(ls_executor *executor, const ls_assembly *assembly,
                             const ls_weights *weights, uint64_t seed, ls_parameters_notes *notes,
                             ls_error *error)
{
    transfer t = {executor, assembly, NULL};
    LS_TRY(LS_NEW(t.piece, PIECE, "weights on their way", error));
    ls_status status = LS_OK;
    for (size_t i = 0; status == LS_OK && i < assembly->model.parameter_count; i++)
        status = load_parameter(&t, weights, i, seed, notes, error);
    if (status == LS_OK) status = note_unused(assembly, weights, notes, error);
    ls_free(t.piece);
    return status;
}

typedef struct saving {
    const ls_tensor_reader *reader;
    const ls_assembly *assembly;
    ls_safetensors_writer *writer;
    float *piece; /* [PIECE] */
} saving;

static ls_status save_tensor(const saving *s, size_t index, ls_error *error)
{
    ls_value_id id = s->assembly->model.parameters[index].value;
    int64_t elements = ls_value_elements(ls_value_of(s->assembly->program, id), &ls_fixed_extents);
    for (int64_t first = 0; first < elements; first += PIECE) {
        int64_t count = elements - first < PIECE ? elements - first : PIECE;
        LS_TRY(s->reader->read(s->reader->context, id, first, count, s->piece, error));
        LS_TRY(ls_safetensors_writer_write(s->writer, index, s->piece,
                                           (size_t)count * sizeof(float), error));
    }
    return LS_OK;
}

ls_status ls_parameters_save(const ls_tensor_reader *reader, const ls_assembly *assembly,
                             const char *path, ls_error *error)
{
    saving s = {.reader = reader, .assembly = assembly};
    ls_safetensors_entry *entries = NULL;
    size_t count = assembly->model.parameter_count, index;
    ls_status status;
    LS_TRY_GOTO(status, LS_NEW(s.piece, PIECE, "weights on their way", error), done);
    LS_TRY_GOTO(status, LS_NEW(entries, count, "weights to save", error), done);
    for (size_t i = 0; i < count; i++) {
        const ls_value *value = ls_value_of(assembly->program, assembly->model.parameters[i].value);
        entries[i] = (ls_safetensors_entry){
            .name = value->name, .dtype = LS_SAFETENSORS_F32, .rank = value->rank};
        for (int axis = 0; axis < value->rank; axis++)
            entries[i].shape[axis] = value->shape[axis].constant;
    }
    LS_TRY_GOTO(status, ls_safetensors_writer_new(&s.writer, path, entries, count, error), done);
    while (ls_safetensors_writer_next(s.writer, &index))
        LS_TRY_GOTO(status, save_tensor(&s, index, error), done);
    status = ls_safetensors_writer_finish(s.writer, error);
done:
    ls_safetensors_writer_free(s.writer);
    ls_free(entries);
    ls_free(s.piece);
    return status;
}
