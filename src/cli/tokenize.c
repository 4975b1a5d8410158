#include <inttypes.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/exit_status.h"
#include "cli/lines.h"

enum { LINES_AT_ONCE = 64 };

static ls_status print_ids(ls_text_encoder *encoder, const ls_line *line, ls_error *error)
{
    const int32_t *ids;
    int64_t count;
    ls_status status =
        ls_text_encoder_encode(encoder, line->text, line->length, &ids, &count, error);
    if (status != LS_OK) return status;
    for (int64_t i = 0; i < count; i++)
        printf(i ? " %" PRId32 : "%" PRId32, ids[i]);
    putchar('\n');
    return LS_OK;
}

static ls_status tokenize_lines(ls_text_encoder *encoder, ls_lines *lines, ls_error *error)
{
    ls_line batch[LINES_AT_ONCE];
    size_t count = 1;
    ls_status status = LS_OK;
    while (count && status == LS_OK) {
        status = ls_lines_next(lines, batch, LINES_AT_ONCE, &count, error);
        for (size_t i = 0; i < count && status == LS_OK; i++)
            status = print_ids(encoder, &batch[i], error);
        fflush(stdout);
    }
    return status;
}

static int tokenize(const ls_invocation *invocation)
{
    ls_text_encoder *encoder = NULL;
    ls_lines lines;
    ls_error error;
    ls_status status = ls_lines_open(&lines, invocation->options.data, &error);
    if (status == LS_OK) status = ls_text_encoder_open(&encoder, &invocation->options, &error);
    if (status == LS_OK) status = tokenize_lines(encoder, &lines, &error);
    ls_text_encoder_free(encoder);
    ls_lines_close(&lines);
    return ls_exit_report(status, &error);
}

const ls_command ls_command_tokenize = {
    .name = "tokenize",
    .bit = LS_COMMAND_TOKENIZE,
    .summary = "token ids, one line a text",
    .usage = "--model FOLDER [--data FILE] [flags]",
    .example = "echo 'a warm and funny film' | lockstep tokenize --model all-MiniLM-L6-v2",
    .details = "Reads the lines of --data or of standard input and prints the ids of each, special "
               "tokens included, parted by spaces. An empty line has the special tokens only.",
    .needed = {"model"},
    .run = tokenize,
};
