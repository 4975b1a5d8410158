#include "launch/output.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"

/* A run of so many '-' or '=' is the border of something that mpirun says. */
enum {
    LAUNCHER = -1,
    MOST_TAG_BYTES = 40,
    BORDER_BYTES = 60,
    MOST_HELD = 256,
    MOST_LINE = 8192,
    MOST_LAUNCHER_TEXT = 1 << 16,
    LAST_LINE_BYTES = 240
};

typedef struct rank_text {
    ls_text line[LS_OUTPUT_STREAMS]; /* begun, not ended; of rank 0 only until it has said hello */
    char begun[LAST_LINE_BYTES], last[LAST_LINE_BYTES];
    size_t begun_length;
    bool in_escape;
    ls_rank_note note;
} rank_text;

typedef struct tagged_stream {
    int source; /* a rank, or LAUNCHER */
    bool at_line_start;
    char held[MOST_HELD]; /* what may be the start of a tag or border */
    size_t held_length;
    ls_text ready; /* rank 0's, to be written in one piece */
    bool drawn;    /* something of rank 0's stands in a line that was not ended */
} tagged_stream;

struct ls_output {
    ls_output_options options;
    rank_text *ranks;
    tagged_stream streams[LS_OUTPUT_STREAMS];
    ls_text launcher;
};

ls_status ls_output_new(ls_output **out, const ls_output_options *options, ls_error *error)
{
    ls_output *output = NULL;
    LS_TRY(LS_NEW(output, 1, "output of ranks", error));
    output->options = *options;
    for (int i = 0; i < LS_OUTPUT_STREAMS; i++)
        output->streams[i] =
            (tagged_stream){.source = options->tagged ? LAUNCHER : 0, .at_line_start = true};
    ls_status status = LS_NEW(output->ranks, options->ranks, "output of ranks", error);
    if (status != LS_OK) {
        ls_output_free(output);
        return status;
    }
    *out = output;
    return LS_OK;
}

void ls_output_free(ls_output *output)
{
    if (!output) return;
    for (int rank = 0; output->ranks && rank < output->options.ranks; rank++)
        for (int i = 0; i < LS_OUTPUT_STREAMS; i++)
            ls_text_deinit(&output->ranks[rank].line[i]);
    for (int i = 0; i < LS_OUTPUT_STREAMS; i++)
        ls_text_deinit(&output->streams[i].ready);
    ls_text_deinit(&output->launcher);
    ls_free(output->ranks);
    ls_free(output);
}

/* --- writing --------------------------------------------------------------------------------- */

static ls_status write_all(int descriptor, const char *bytes, size_t count, ls_error *error)
{
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return ls_fail(error, LS_IO, "cannot pass on the run's output: %s", strerror(errno));
        } else if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        }
    }
    return LS_OK;
}

static ls_status flush(ls_output *output, int index, ls_error *error)
{
    ls_text *ready = &output->streams[index].ready;
    ls_status status = write_all(output->options.into[index], ready->data, ready->length, error);
    ls_text_clear(ready);
    return status;
}

/* Another rank's line. A live line of rank 0 is wiped; its next step draws it again. */
static ls_status write_line(ls_output *output, int index, int rank, const ls_text *line,
                            ls_error *error)
{
    ls_text whole = {0};
    const char *wipe = output->options.live ? "\r\x1b[K" : "";
    LS_TRY(flush(output, index, error));
    ls_status status = ls_text_print(&whole, error, "%s[rank %d] %.*s\n", wipe, rank,
                                     (int)line->length, line->data);
    if (status == LS_OK)
        status = write_all(output->options.into[index], whole.data, whole.length, error);
    output->streams[index].drawn = false;
    ls_text_deinit(&whole);
    return status;
}

/* --- lines ----------------------------------------------------------------------------------- */

/* Follow a rank's standard error for its last line; whether the byte is text of it. */
static bool note_byte(rank_text *rank, char byte)
{
    if (byte == '\n' || byte == '\r') {
        rank->begun[rank->begun_length] = '\0';
        if (rank->begun_length > 0) memcpy(rank->last, rank->begun, rank->begun_length + 1);
        rank->begun_length = 0;
    } else if (byte == '\x1b') {
        rank->in_escape = true;
    } else if (rank->in_escape) {
        rank->in_escape = byte == '[' || !(byte >= '@' && byte <= '~');
    } else if ((unsigned char)byte >= ' ') {
        if (rank->begun_length < LAST_LINE_BYTES - 1) rank->begun[rank->begun_length++] = byte;
        return true;
    }
    return false;
}

/* A whole line of another rank, or the first one of rank 0. */
static ls_status end_line(ls_output *output, int index, int rank, ls_error *error)
{
    rank_text *text = &output->ranks[rank];
    ls_text *line = &text->line[index];
    ls_status status = LS_OK;
    if (index == 1 && text->note.pid == 0 && line->data &&
        ls_rank_note_read(&text->note, line->data))
        text->last[0] = '\0';
    else if (rank == 0)
        status = ls_text_print(&output->streams[index].ready, error, "%.*s\n", (int)line->length,
                               line->data ? line->data : "");
    else
        status = write_line(output, index, rank, line, error);
    ls_text_clear(line);
    return status;
}

static ls_status take_byte(ls_output *output, int index, char byte, ls_error *error)
{
    tagged_stream *stream = &output->streams[index];
    int source = stream->source;
    stream->at_line_start = byte == '\n';
    if (source == LAUNCHER) {
        if (output->launcher.length >= MOST_LAUNCHER_TEXT) return LS_OK;
        return ls_text_append(&output->launcher, &byte, 1, error);
    }
    rank_text *rank = &output->ranks[source];
    ls_text *line = &rank->line[index];
    bool shown = index == 0 || note_byte(rank, byte);
    /* Rank 0 is kept back only while it may be saying hello. */
    bool hello = index == 1 && rank->note.pid == 0 && output->options.tagged &&
                 (line->length > 0 || byte == LS_RANK_MARK);
    if (source == 0 && !hello) {
        if (shown || byte == '\n' || byte == '\r') stream->drawn = byte != '\n' && byte != '\r';
        return ls_text_append(&stream->ready, &byte, 1, error);
    }
    if (byte == '\n' || line->length >= MOST_LINE) return end_line(output, index, source, error);
    /* What a carriage return would overwrite is gone. */
    if (index == 1 && shown && !hello && rank->begun_length == 1) ls_text_clear(line);
    return shown || hello ? ls_text_append(line, &byte, 1, error) : LS_OK;
}

/* --- tags ------------------------------------------------------------------------------------ */

typedef enum match_result { MATCH_NO, MATCH_PARTLY, MATCH_WHOLE } match_result;

static size_t skip_digits(const char *text, size_t at, size_t count)
{
    while (at < count && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* "[JOB,RANK]<WORD>:" */
static match_result match_tag(const char *text, size_t count, int ranks, int *rank)
{
    size_t comma = skip_digits(text, 1, count);
    if (text[0] != '[' || count > MOST_TAG_BYTES) return MATCH_NO;
    if (comma == count) return MATCH_PARTLY;
    if (comma == 1 || text[comma] != ',') return MATCH_NO;
    size_t end = skip_digits(text, comma + 1, count);
    if (end == count) return MATCH_PARTLY;
    if (end == comma + 1 || end - comma > 7 || text[end] != ']') return MATCH_NO;
    if (end + 1 == count) return MATCH_PARTLY;
    if (text[end + 1] != '<') return MATCH_NO;
    *rank = 0;
    for (size_t i = comma + 1; i < end; i++)
        *rank = *rank * 10 + (text[i] - '0');
    if (*rank >= ranks) return MATCH_NO;
    size_t word = end + 2;
    while (word < count && text[word] >= 'a' && text[word] <= 'z')
        word++;
    if (word == count) return MATCH_PARTLY;
    if (text[word] != '>') return MATCH_NO;
    if (word + 1 == count) return MATCH_PARTLY;
    return text[word + 1] == ':' ? MATCH_WHOLE : MATCH_NO;
}

/* A long line of '-' or '=': mpirun speaks, even where a rank's line was not ended. */
static match_result match_border(const char *text, size_t count)
{
    size_t length = 0;
    while (length < count && text[length] == text[0])
        length++;
    if (length == count) return count < MOST_HELD ? MATCH_PARTLY : MATCH_NO;
    return length >= BORDER_BYTES && text[length] == '\n' ? MATCH_WHOLE : MATCH_NO;
}

/* Open MPI says this in the middle of a rank's line. */
static match_result match_forwarding(const char *text, size_t count)
{
    static const char said[] = "mpirun: Forwarding signal ";
    size_t length = sizeof said - 1;
    if (memcmp(text, said, count < length ? count : length) != 0) return MATCH_NO;
    return count < length ? MATCH_PARTLY : MATCH_WHOLE;
}

static match_result match_held(const ls_output *output, const tagged_stream *stream, int *source)
{
    *source = LAUNCHER;
    if (stream->held[0] == '[')
        return match_tag(stream->held, stream->held_length, output->options.ranks, source);
    if (stream->held[0] == 'm') return match_forwarding(stream->held, stream->held_length);
    return match_border(stream->held, stream->held_length);
}

static ls_status release(ls_output *output, int index, ls_error *error)
{
    tagged_stream *stream = &output->streams[index];
    for (size_t i = 0; i < stream->held_length; i++)
        LS_TRY(take_byte(output, index, stream->held[i], error));
    stream->held_length = 0;
    return LS_OK;
}

static ls_status take_tagged(ls_output *output, int index, char byte, ls_error *error)
{
    tagged_stream *stream = &output->streams[index];
    int source = LAUNCHER;
    bool starts = byte == '[' || byte == '-' || byte == '=' || byte == 'm';
    if (stream->held_length == 0 && !starts) {
        /* Every line of a rank has a tag. */
        if (stream->at_line_start) stream->source = LAUNCHER;
        return take_byte(output, index, byte, error);
    }
    stream->held[stream->held_length++] = byte;
    switch (match_held(output, stream, &source)) {
    case MATCH_PARTLY:
        return LS_OK;
    case MATCH_WHOLE:
        /* A line that mpirun talks into is as long as it will be. */
        if (source == LAUNCHER && stream->source != LAUNCHER && index == 1)
            note_byte(&output->ranks[stream->source], '\n');
        stream->held_length = 0;
        stream->at_line_start = false;
        stream->source = source;
        return LS_OK;
    case MATCH_NO:
        break;
    }
    if (stream->at_line_start) stream->source = LAUNCHER;
    /* The byte that did not fit may start a tag itself. */
    bool again = starts && stream->held_length > 1;
    if (again) stream->held_length--;
    LS_TRY(release(output, index, error));
    return again ? take_tagged(output, index, byte, error) : LS_OK;
}

ls_status ls_output_take(ls_output *output, int stream, const char *bytes, size_t count,
                         ls_error *error)
{
    for (size_t i = 0; i < count; i++)
        LS_TRY(output->options.tagged ? take_tagged(output, stream, bytes[i], error)
                                      : take_byte(output, stream, bytes[i], error));
    return flush(output, stream, error);
}

ls_status ls_output_finish(ls_output *output, ls_error *error)
{
    for (int index = 0; index < LS_OUTPUT_STREAMS; index++) {
        LS_TRY(release(output, index, error));
        for (int rank = 0; rank < output->options.ranks; rank++)
            if (output->ranks[rank].line[index].length > 0)
                LS_TRY(end_line(output, index, rank, error));
        /* A line that rank 0 could not end. */
        if (index == 1 && output->streams[index].drawn)
            LS_TRY(ls_text_append(&output->streams[index].ready, "\n", 1, error));
        LS_TRY(flush(output, index, error));
    }
    for (int rank = 0; rank < output->options.ranks; rank++)
        note_byte(&output->ranks[rank], '\n');
    return LS_OK;
}

const char *ls_output_last_line(const ls_output *output, int rank)
{
    return output->ranks[rank].last;
}

const ls_rank_note *ls_output_note(const ls_output *output, int rank)
{
    return &output->ranks[rank].note;
}

bool ls_output_all_started(const ls_output *output)
{
    for (int rank = 0; output->options.tagged && rank < output->options.ranks; rank++)
        if (output->ranks[rank].note.pid == 0) return false;
    return true;
}

const char *ls_output_launcher_text(const ls_output *output)
{
    return output->launcher.data ? output->launcher.data : "";
}
