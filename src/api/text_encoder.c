/* ls_text_encoder: a model's tokenizer with the buffers of one thread. */
#include "api/settings.h"
#include "base/alloc.h"
#include "tokenizer/tokenizer.h"

struct ls_text_encoder {
    ls_tokenizer *tokenizer;
    ls_tokenizer_scratch *scratch;
    int max_length; /* 0: no limit */
};

ls_status ls_text_encoder_open(ls_text_encoder **out, const ls_options *options, ls_error *error)
{
    ls_text_encoder *encoder = NULL;
    ls_status status;
    LS_TRY(ls_options_check(options, LS_COMMAND_TOKENIZE, error));
    LS_TRY(LS_NEW(encoder, 1, "text encoder", error));
    encoder->max_length = (int)options->max_length;
    LS_TRY_GOTO(status, ls_tokenizer_open(&encoder->tokenizer, options->model, error), fail);
    LS_TRY_GOTO(status, ls_tokenizer_scratch_new(&encoder->scratch, error), fail);
    *out = encoder;
    return LS_OK;
fail:
    ls_text_encoder_free(encoder);
    return status;
}

void ls_text_encoder_free(ls_text_encoder *encoder)
{
    if (!encoder) return;
    ls_tokenizer_scratch_free(encoder->scratch);
    ls_tokenizer_free(encoder->tokenizer);
    ls_free(encoder);
}

ls_status ls_text_encoder_encode(ls_text_encoder *encoder, const char *text, size_t length,
                                 const int32_t **ids, int64_t *count, ls_error *error)
{
    ls_encoding encoding;
    LS_TRY(ls_tokenizer_encode(encoder->tokenizer, encoder->scratch, text, length, NULL, 0,
                               encoder->max_length, &encoding, error));
    *ids = encoding.ids;
    *count = encoding.length;
    return LS_OK;
}
