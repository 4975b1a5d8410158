/* ls_classifier: texts in, probabilities out. */
#include <string.h>

#include "api/inference.h"
#include "base/alloc.h"
#include "formats/utf8.h"

enum { PASS_SAMPLES = 32 };

struct ls_classifier {
    ls_options options; /* a copy: the session points here */
    ls_session session;
    ls_inference inference;
    ls_tokenizer_scratch *scratch;
    /* One pass's batch. */
    int32_t *ids, *offsets, *labels;
    uint8_t *types;
    uint32_t *sample_ids;
    int64_t pass_samples;
};

static ls_status allocate_batch(ls_classifier *c, ls_error *error)
{
    int64_t samples = c->inference.assembly.samples_per_pass;
    int64_t tokens = samples * c->session.max_length;
    c->pass_samples = samples;
    LS_TRY(LS_NEW(c->ids, tokens, "token ids", error));
    LS_TRY(LS_NEW(c->types, tokens, "token types", error));
    LS_TRY(LS_NEW(c->offsets, samples + 1, "offsets", error));
    LS_TRY(LS_NEW(c->labels, samples, "labels", error));
    LS_TRY(LS_NEW(c->sample_ids, samples, "sample ids", error));
    for (int64_t i = 0; i < samples; i++) {
        c->labels[i] = -1;
        c->sample_ids[i] = (uint32_t)i;
    }
    return ls_tokenizer_scratch_new(&c->scratch, error);
}

ls_status ls_classifier_open(ls_classifier **out, const ls_options *options, ls_error *error)
{
    ls_classifier *c = NULL;
    ls_status status;
    LS_TRY(LS_NEW(c, 1, "classifier", error));
    c->options = *options;
    LS_TRY_GOTO(status,
                ls_session_open(&c->session, &c->options, NULL, LS_COMMAND_PREDICT, 0, error),
                fail);
    LS_TRY_GOTO(status, ls_session_need_head(&c->session, error), fail);
    LS_TRY_GOTO(status,
                ls_inference_open(&c->inference, &c->session, PASS_SAMPLES, INT32_MAX,
                                  c->session.max_length, error),
                fail);
    LS_TRY_GOTO(status, allocate_batch(c, error), fail);
    *out = c;
    return LS_OK;
fail:
    ls_classifier_free(c);
    return status;
}

void ls_classifier_free(ls_classifier *c)
{
    if (!c) return;
    ls_tokenizer_scratch_free(c->scratch);
    ls_free(c->ids);
    ls_free(c->types);
    ls_free(c->offsets);
    ls_free(c->labels);
    ls_free(c->sample_ids);
    ls_inference_close(&c->inference);
    ls_session_close(&c->session);
    ls_free(c);
}

int32_t ls_classifier_classes(const ls_classifier *classifier)
{
    return classifier->inference.classes;
}

const char *ls_classifier_label(const ls_classifier *classifier, int32_t label)
{
    if (label < 0 || label >= classifier->inference.classes) return NULL;
    return classifier->inference.label_names[label];
}

static ls_status check_text(const char *text, int64_t index, ls_error *error)
{
    size_t length = strlen(text);
    if (length == 0) return ls_fail(error, LS_INVALID, "text %lld is empty", (long long)index);
    if (ls_utf8_valid_prefix(text, length) != length)
        return ls_fail(error, LS_INVALID, "text %lld is not valid UTF-8 at byte %zu",
                       (long long)index, ls_utf8_valid_prefix(text, length));
    return LS_OK;
}

ls_status ls_classifier_predict(ls_classifier *c, const char *const *texts, int64_t count,
                                float *probabilities, ls_error *error)
{
    for (int64_t i = 0; i < count; i++)
        LS_TRY(check_text(texts[i], i, error));
    for (int64_t first = 0; first < count; first += c->pass_samples) {
        int32_t samples = 0;
        for (; samples < c->pass_samples && first + samples < count; samples++) {
            const char *text = texts[first + samples];
            ls_encoding encoding;
            LS_TRY(ls_tokenizer_encode(c->session.folder.tokenizer, c->scratch, text, strlen(text),
                                       NULL, 0, (int)c->session.max_length, &encoding, error));
            int32_t at = c->offsets[samples];
            memcpy(c->ids + at, encoding.ids, (size_t)encoding.length * sizeof *c->ids);
            memcpy(c->types + at, encoding.types, (size_t)encoding.length);
            c->offsets[samples + 1] = at + encoding.length;
        }
        ls_batch batch = {samples, c->offsets, c->ids, c->types, c->sample_ids, c->labels};
        ls_batch_outputs outputs;
        LS_TRY(ls_evaluator_run(c->inference.evaluator, &batch, 0, samples, &outputs, error));
        memcpy(probabilities + first * c->inference.classes, outputs.probabilities,
               (size_t)samples * (size_t)c->inference.classes * sizeof(float));
    }
    return LS_OK;
}
