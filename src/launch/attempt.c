#include "launch/attempt.h"

#include <string.h>

/* Length of "--NAME" in a word that is it, with '_' for '-', alone or before "="; 0 if it is not.
 */
static size_t is_flag(const char *word, const char *name)
{
    size_t i = 0;
    if (strncmp(word, "--", 2) != 0) return 0;
    for (; name[i]; i++)
        if (word[2 + i] != name[i] && !(name[i] == '-' && word[2 + i] == '_')) return 0;
    return !word[2 + i] || word[2 + i] == '=' ? 2 + i : 0;
}

/* The user's words, without what would go on from elsewhere, then --resume auto. */
static ls_status add_resumed(ls_words *command, const ls_launch_options *options, ls_error *error)
{
    for (size_t i = 0; i < options->argument_count; i++) {
        const char *word = options->arguments[i];
        size_t length = is_flag(word, "resume");
        if (length > 0) {
            i += word[length] != '='; /* its value is the next word */
            continue;
        }
        if (is_flag(word, "resume-weights-only")) continue;
        LS_TRY(ls_words_add(command, error, "%s", word));
    }
    LS_TRY(ls_words_add(command, error, "--resume"));
    return ls_words_add(command, error, "auto");
}

static ls_status compose(ls_attempt *attempt, bool resume, ls_error *error)
{
    const ls_launch_context *context = attempt->context;
    const ls_launch_options *options = context->options;
    const char *program = options->program ? options->program : context->self;
    LS_TRY(ls_words_add(&attempt->command, error, "%s", program));
    if (resume)
        LS_TRY(add_resumed(&attempt->command, options, error));
    else
        LS_TRY(ls_words_add_all(&attempt->command, options->arguments, options->argument_count,
                                error));
    int here = 0;
    for (size_t i = 0; i < attempt->layout.host_count; i++)
        if (attempt->layout.list[i].here) here += attempt->layout.list[i].count;
    const ls_launcher_job job = {.layout = &attempt->layout,
                                 .self = context->self,
                                 .command = &attempt->command,
                                 .oversubscribed = here > attempt->cores};
    return ls_launcher_compose(&context->launcher, &job, &attempt->words, &attempt->environment,
                               error);
}

ls_status ls_attempt_prepare(ls_attempt *attempt, const ls_launch_context *context,
                             const ls_hosts *hosts, int processes, bool resume, ls_error *error)
{
    *attempt = (ls_attempt){.context = context, .within = ls_cores_own()};
    LS_TRY(ls_topology_new(&attempt->topology, NULL, error));
    attempt->cores = ls_topology_core_count(attempt->topology, &attempt->within);
    LS_TRY(ls_layout_make(&attempt->layout, hosts, processes, error));
    return compose(attempt, resume, error);
}

void ls_attempt_deinit(ls_attempt *attempt)
{
    ls_layout_deinit(&attempt->layout);
    ls_topology_free(attempt->topology);
    ls_words_deinit(&attempt->command);
    ls_words_deinit(&attempt->words);
    ls_words_deinit(&attempt->environment);
}

ls_status ls_attempt_print(const ls_attempt *attempt, ls_text *text, ls_error *error)
{
    const ls_launcher *launcher = &attempt->context->launcher;
    const ls_layout *layout = &attempt->layout;
    LS_TRY(ls_text_print(text, error, "lockstep launch: %d process%s on %zu host%s",
                         layout->processes, layout->processes == 1 ? "" : "es", layout->host_count,
                         layout->host_count == 1 ? "" : "s"));
    if (launcher->kind != LS_LAUNCHER_DIRECT)
        LS_TRY(ls_text_print(text, error, ", started by %s (%s %s)", launcher->program,
                             ls_launcher_name(launcher), launcher->version));
    LS_TRY(ls_text_print(text, error, "\n"));
    LS_TRY(ls_layout_print(layout, attempt->topology, &attempt->within, text, error));
    for (size_t i = 0; i < layout->host_count; i++)
        if (layout->list[i].here && layout->list[i].count > attempt->cores)
            LS_TRY(ls_text_print(text, error,
                                 "lockstep launch: warning: %d processes on %d core%s of this "
                                 "machine take turns\n",
                                 layout->list[i].count, attempt->cores,
                                 attempt->cores == 1 ? "" : "s"));
    return LS_OK;
}
