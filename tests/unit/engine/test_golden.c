/* Right answers: logits, gradients and twenty AdamW steps against PyTorch in float64
 * (tools/golden/README.md says what the files hold and where the bounds come from). */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/evaluator.h"
#include "engine/feeder.h"
#include "engine/parameters.h"
#include "engine/trainer.h"

enum { STEPS = 20, MAX_SAMPLES = 16, MAX_TOKENS = 1024 };

typedef struct golden {
    ls_safetensors *file;
    ls_model_config config;
    ls_weights *weights;
    ls_device *device;
    int64_t classes;
} golden;

typedef struct golden_batch {
    ls_batch batch;
    int32_t offsets[MAX_SAMPLES + 1], ids[MAX_TOKENS], labels[MAX_SAMPLES];
    uint8_t types[MAX_TOKENS];
    uint32_t sample_ids[MAX_SAMPLES];
} golden_batch;

static ls_error error;

static golden open_golden(const char *name, int64_t classes)
{
    golden g = {.classes = classes};
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", LS_TEST_SOURCE, name);
    assert_ok(ls_safetensors_open(&g.file, path, &error), error);
    snprintf(path, sizeof path, "%s/tests/data/%s", LS_TEST_SOURCE, name);
    assert_ok(ls_model_config_load(&g.config, path, &error), error);
    g.config.hidden_dropout = g.config.attention_dropout = g.config.classifier_dropout = 0;
    assert_ok(ls_weights_open(&g.weights, path, &error), error);
    assert_ok(ls_cpu_device_new(&g.device, 2, 0, &error), error);
    return g;
}

static void close_golden(golden *g)
{
    ls_device_free(g->device);
    ls_weights_free(g->weights);
    ls_model_config_deinit(&g->config);
    ls_safetensors_free(g->file);
}

static int64_t read_raw(const golden *g, const char *name, void *into)
{
    const ls_safetensors_tensor *tensor = ls_safetensors_find(g->file, name);
    if (!tensor) fail_msg("golden file has no %s", name);
    assert_ok(ls_safetensors_read_raw(g->file, tensor, 0, tensor->elements, into, &error), error);
    return tensor->elements;
}

/* Fresh memory with the tensor as floats. */
static float *read_floats(const golden *g, const char *prefix, const char *name, int64_t *count)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const ls_safetensors_tensor *tensor = ls_safetensors_find(g->file, full);
    if (!tensor) fail_msg("golden file has no %s", full);
    float *values = malloc((size_t)tensor->elements * sizeof *values + 4);
    *count = tensor->elements;
    assert_ok(ls_safetensors_read_float(g->file, tensor, 0, *count, values, &error), error);
    return values;
}

static void read_batch(const golden *g, int index, golden_batch *b)
{
    char name[64];
    int32_t lengths[MAX_SAMPLES], types[MAX_TOKENS];
    snprintf(name, sizeof name, "batch.%d.input_ids", index);
    int64_t tokens = read_raw(g, name, b->ids);
    snprintf(name, sizeof name, "batch.%d.types", index);
    read_raw(g, name, types);
    snprintf(name, sizeof name, "batch.%d.lengths", index);
    int64_t samples = read_raw(g, name, lengths);
    snprintf(name, sizeof name, "batch.%d.labels", index);
    read_raw(g, name, b->labels);
    for (int64_t t = 0; t < tokens; t++)
        b->types[t] = (uint8_t)types[t];
    b->offsets[0] = 0;
    for (int64_t i = 0; i < samples; i++) {
        b->offsets[i + 1] = b->offsets[i] + lengths[i];
        b->sample_ids[i] = (uint32_t)i;
    }
    b->batch = (ls_batch){(int32_t)samples, b->offsets, b->ids, b->types, b->sample_ids, b->labels};
}

static void write_initial_head(const golden *g, const ls_assembly *assembly, ls_executor *executor)
{
    for (size_t i = 0; i < assembly->model.parameter_count; i++) {
        ls_value_id id = assembly->model.parameters[i].value;
        char name[512];
        snprintf(name, sizeof name, "initial.%s", ls_value_of(assembly->program, id)->name);
        if (!ls_safetensors_find(g->file, name)) continue;
        int64_t count;
        float *values = read_floats(g, "", name, &count);
        ls_executor_write(executor, id, values, &ls_fixed_extents);
        free(values);
    }
}

static void load(const golden *g, const ls_assembly *assembly, ls_executor *executor)
{
    ls_parameters_notes notes = {0};
    assert_ok(ls_parameters_load(executor, assembly, g->weights, 1, &notes, &error), error);
    ls_parameters_notes_deinit(&notes);
    write_initial_head(g, assembly, executor);
}

static ls_assembly_options options_of(const golden *g, bool training, int64_t samples_per_pass)
{
    return (ls_assembly_options){
        .config = &g->config,
        .classes = g->classes,
        .training = training,
        .optimizer = {.beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .epsilon = 1e-8f,
                      .weight_decay = 0.1f,
                      .max_norm = 1.0f},
        .batch_size = MAX_SAMPLES,
        .leaf_size = 4,
        .samples_per_pass = samples_per_pass,
        .longest_row = 64,
    };
}

static void check_logits(const golden *g)
{
    ls_assembly assembly;
    ls_assembly_options options = options_of(g, false, MAX_SAMPLES);
    ls_evaluator *evaluator;
    golden_batch b;
    assert_ok(ls_assembly_make(&assembly, &options, g->device, &error), error);
    assert_ok(ls_evaluator_new(&evaluator, &assembly, g->device, 0, NULL, &error), error);
    load(g, &assembly, ls_evaluator_executor(evaluator));
    read_batch(g, 0, &b);
    ls_batch_outputs outputs;
    assert_ok(ls_evaluator_run(evaluator, &b.batch, 0, b.batch.samples, &outputs, &error), error);
    double wanted[MAX_SAMPLES * 8], loss;
    read_raw(g, "logits", wanted);
    read_raw(g, "loss", &loss);
    double mean = 0;
    for (int32_t i = 0; i < b.batch.samples; i++) {
        /* Probabilities are what the program gives; logits up to a constant of the row. */
        double sum = 0;
        for (int64_t c = 0; c < g->classes; c++)
            sum += exp(wanted[i * g->classes + c]);
        for (int64_t c = 0; c < g->classes; c++)
            assert_true(fabs(log((double)outputs.probabilities[i * g->classes + c]) -
                             (wanted[i * g->classes + c] - log(sum))) < 1e-5);
        mean += (double)outputs.losses[i] / b.batch.samples;
    }
    assert_true(fabs(mean - loss) < 1e-5);
    ls_evaluator_free(evaluator);
    ls_assembly_deinit(&assembly);
}

/* The whole gradient of a parameter: slot 0, a table's rows put where they belong. */
static double *whole_gradient(const ls_assembly *assembly, ls_executor *executor, ls_value_id id,
                              const golden_batch *b, int64_t count)
{
    const ls_value *gradient = ls_value_of(assembly->program, id);
    const float *slot = ls_executor_address(executor, id);
    double *whole = calloc((size_t)count, sizeof *whole);
    if (!gradient->row_sparse) {
        for (int64_t i = 0; i < count; i++)
            whole[i] = (double)slot[i];
        return whole;
    }
    /* Touched rows, ascending: found again here from the batch itself. */
    const ls_value *table = ls_value_of(assembly->program, gradient->parameter);
    int64_t rows = table->shape[0].constant, hidden = table->shape[1].constant, next = 0;
    for (int64_t row = 0; row < rows; row++) {
        bool touched = false;
        for (int32_t s = 0; s < b->batch.samples; s++)
            for (int32_t t = b->offsets[s]; t < b->offsets[s + 1]; t++)
                touched |= strstr(table->name, "word")       ? b->ids[t] == row
                           : strstr(table->name, "position") ? t - b->offsets[s] == row
                                                             : b->types[t] == row;
        if (!touched) continue;
        for (int64_t e = 0; e < hidden; e++)
            whole[row * hidden + e] = (double)slot[next * hidden + e];
        next++;
    }
    return whole;
}

/* A key's bias moves all scores of a query alike, which softmax does not see: its exact gradient is
 * zero, what is left is rounding. */
static bool is_key_bias(const char *name)
{
    return strstr(name, "attention.self.key.bias") || strstr(name, "attention.k_lin.bias");
}

static void compare(const char *name, const double *got, const float *wanted, int64_t count,
                    double relative, double key_bias_bound)
{
    double difference = 0, size = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = got[i] - (double)wanted[i];
        difference += d * d;
        size += (double)wanted[i] * (double)wanted[i];
        if (fabs(got[i]) > largest) largest = fabs(got[i]);
    }
    if (is_key_bias(name)) {
        if (largest > key_bias_bound) fail_msg("%s: %g", name, largest);
    } else if (!(sqrt(difference) <= relative * sqrt(size))) {
        fail_msg("%s: relative L2 %g, bound %g", name, sqrt(difference / size), relative);
    }
}

static void check_gradients(const golden *g, int64_t samples_per_pass)
{
    ls_assembly assembly;
    ls_assembly_options options = options_of(g, true, samples_per_pass);
    ls_trainer *trainer;
    golden_batch b;
    assert_ok(ls_assembly_make(&assembly, &options, g->device, &error), error);
    ls_trainer_options training = {.assembly = &assembly,
                                   .device = g->device,
                                   .leaf_size = 4,
                                   .schedule = {.total_steps = 1},
                                   .beta1 = 0.9,
                                   .beta2 = 0.999};
    assert_ok(ls_trainer_new(&trainer, &training, &error), error);
    load(g, &assembly, ls_trainer_executor(trainer));
    read_batch(g, 0, &b);
    ls_step_result result;
    assert_ok(ls_trainer_step(trainer, 1, &b.batch, &result, &error), error);
    int compared = 0;
    for (ls_value_id id = 0; id < assembly.program->value_count; id++) {
        const ls_value *gradient = ls_value_of(assembly.program, id);
        if (gradient->role != LS_ROLE_GRADIENT) continue;
        int64_t count;
        float *wanted = read_floats(g, "", gradient->name, &count);
        double *got = whole_gradient(&assembly, ls_trainer_executor(trainer), id, &b, count);
        compare(gradient->name, got, wanted, count, 1e-5, 1e-6);
        free(got);
        free(wanted);
        compared++;
    }
    assert_int_equal(compared, assembly.model.parameter_count);
    ls_trainer_free(trainer);
    ls_assembly_deinit(&assembly);
}

static void check_steps(const golden *g, const char *variant, bool decay_all)
{
    ls_assembly assembly;
    ls_assembly_options options = options_of(g, true, MAX_SAMPLES);
    options.optimizer.decay_all = decay_all;
    ls_trainer *trainer;
    assert_ok(ls_assembly_make(&assembly, &options, g->device, &error), error);
    ls_trainer_options training = {.assembly = &assembly,
                                   .device = g->device,
                                   .leaf_size = 4,
                                   .schedule = {.kind = LS_SCHEDULE_LINEAR,
                                                .peak = 1e-3,
                                                .warmup_steps = 4,
                                                .total_steps = STEPS},
                                   .beta1 = 0.9,
                                   .beta2 = 0.999};
    assert_ok(ls_trainer_new(&trainer, &training, &error), error);
    ls_executor *executor = ls_trainer_executor(trainer);
    load(g, &assembly, executor);
    size_t count = assembly.model.parameter_count;
    float **before = calloc(count, sizeof *before);
    for (size_t i = 0; i < count; i++) {
        ls_value_id id = assembly.model.parameters[i].value;
        int64_t bytes = ls_value_bytes(ls_value_of(assembly.program, id), &ls_fixed_extents);
        before[i] = malloc((size_t)bytes);
        ls_executor_read(executor, id, before[i], &ls_fixed_extents);
    }
    double losses[STEPS], norms[STEPS], rates[STEPS];
    char name[512];
    snprintf(name, sizeof name, "loss.%s", variant);
    read_raw(g, name, losses);
    snprintf(name, sizeof name, "gradient_norm.%s", variant);
    read_raw(g, name, norms);
    read_raw(g, "learning_rate", rates);
    for (int step = 0; step < STEPS; step++) {
        golden_batch b;
        read_batch(g, step, &b);
        ls_step_result result;
        assert_ok(ls_trainer_step(trainer, step + 1, &b.batch, &result, &error), error);
        if (!(fabs(result.loss - losses[step]) < 1e-5))
            fail_msg("step %d: loss %.9g, golden %.9g", step, result.loss, losses[step]);
        assert_true(fabs(result.gradient_norm - norms[step]) < 1e-4 * norms[step]);
        assert_true(fabs(result.learning_rate - rates[step]) < 1e-12);
    }
    for (size_t i = 0; i < count; i++) {
        const ls_value *value = ls_value_of(assembly.program, assembly.model.parameters[i].value);
        const float *after = ls_executor_address(executor, assembly.model.parameters[i].value);
        int64_t elements;
        snprintf(name, sizeof name, "movement.%s.", variant);
        float *wanted = read_floats(g, name, value->name, &elements);
        double *moved = malloc((size_t)elements * sizeof *moved);
        for (int64_t e = 0; e < elements; e++)
            moved[e] = (double)after[e] - (double)before[i][e];
        compare(value->name, moved, wanted, elements, 1e-3, 0.01);
        free(moved);
        free(wanted);
        free(before[i]);
    }
    free(before);
    ls_trainer_free(trainer);
    ls_assembly_deinit(&assembly);
}

static void check_model(const char *name, int64_t classes)
{
    golden g = open_golden(name, classes);
    check_logits(&g);
    check_gradients(&g, MAX_SAMPLES);
    check_gradients(&g, 3);
    check_steps(&g, "decay_all", true);
    check_steps(&g, "decay_excluded", false);
    close_golden(&g);
}

static void bert_matches_float64(void **state)
{
    (void)state;
    check_model("tiny-bert", 3);
}

static void distilbert_matches_float64(void **state)
{
    (void)state;
    check_model("tiny-distilbert", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bert_matches_float64),
        cmocka_unit_test(distilbert_matches_float64),
    };
    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
