#include "cli/compare_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/exit_status.h"
#include "compare/machine.h"

enum { NUMBER_BYTES = 64 };

/* Settings that a comparison gives to each run itself. */
static const char *const own_settings[] = {"strategy",   "devices", "threads",   "seed",
                                           "batch-size", "epochs",  "max-steps", "validation",
                                           "test",       "output"};

const char *const ls_compare_left_out[] = {
    "strategy",  "tensorboard", "csv",           "job-name",     "prometheus",
    "log-every", "profile",     "profile-steps", "measure-peak", NULL};

static ls_status fail_memory(ls_error *error)
{
    return ls_complain(error, LS_NO_MEMORY, "out of memory for a command line");
}

/* --- lists
 * ----------------------------------------------------------------------------------------- */

/* The next of a list's parts into `part`, *list moved behind it; false at the end. */
static bool next_part(const char **list, char *part, size_t bytes)
{
    if (!**list) return false;
    size_t length = strcspn(*list, ",");
    snprintf(part, bytes, "%.*s", (int)length, *list);
    *list += length;
    if (**list == ',') (*list)++;
    return true;
}

/* Each part is checked as the setting `like` would be. */
static ls_status read_integers(int64_t *into, size_t *count, const char *name, const char *like,
                               const char *list, ls_error *error)
{
    char part[NUMBER_BYTES];
    ls_options scratch;
    ls_options_default(&scratch);
    for (*count = 0; next_part(&list, part, sizeof part); ++*count) {
        if (*count == LS_COMPARE_MOST)
            return ls_complain(error, LS_USAGE, "--%s: more than %d", name, LS_COMPARE_MOST);
        if (ls_options_set(&scratch, like, part, error) != LS_OK)
            return ls_complain(error, LS_USAGE,
                               "--%s: '%s' is none: whole numbers with commas, such as 1,2,3", name,
                               part);
        into[*count] = strtoll(part, NULL, 10);
        for (size_t i = 0; i < *count; i++)
            if (into[i] == into[*count])
                return ls_complain(error, LS_USAGE, "--%s: %s stands there twice", name, part);
    }
    return LS_OK;
}

/* --- strategies
 * -------------------------------------------------------------------------------------- */

/* Checked as `lockstep train` checks it; "+offload" and the like belong to the name. */
static ls_status read_strategy(ls_compare_strategy *strategy, const char *name, ls_error *error)
{
    ls_options scratch;
    ls_options_default(&scratch);
    if (!*name) return ls_complain(error, LS_USAGE, "--strategies: an empty name in the list");
    size_t bare = strcspn(name, "+");
    *strategy = (ls_compare_strategy){.single = bare == strlen(LS_COMPARE_BASE) &&
                                                strncmp(name, LS_COMPARE_BASE, bare) == 0};
    snprintf(strategy->name, sizeof strategy->name, "%s", name);
    return ls_options_set(&scratch, "strategy", name, error);
}

static ls_status read_strategies(ls_compare_request *request, const char *list, ls_error *error)
{
    char name[LS_COMPARE_NAME_BYTES];
    size_t count = 1;
    ls_status status = read_strategy(&request->strategies[0], LS_COMPARE_BASE, error);
    while (status == LS_OK && next_part(&list, name, sizeof name)) {
        if (strcmp(name, LS_COMPARE_BASE) == 0) continue;
        for (size_t i = 0; i < count; i++)
            if (strcmp(request->strategies[i].name, name) == 0)
                return ls_complain(error, LS_USAGE, "--strategies: '%s' stands there twice", name);
        if (count == LS_COMPARE_MOST)
            return ls_complain(error, LS_USAGE, "--strategies: more than %d", LS_COMPARE_MOST);
        status = read_strategy(&request->strategies[count++], name, error);
    }
    request->options.strategies = request->strategies;
    request->options.strategy_count = count;
    return status;
}

/* --- flags of every run
 * ------------------------------------------------------------------------------- */

static bool is_own(const char *name)
{
    for (size_t i = 0; i < sizeof own_settings / sizeof *own_settings; i++)
        if (strcmp(own_settings[i], name) == 0) return true;
    return false;
}

/* The command line cannot say it: it comes from a file. */
static bool is_left_out(const char *name)
{
    for (const char *const *other = ls_compare_left_out; *other; other++)
        if (strcmp(*other, name) == 0) return true;
    return false;
}

/* The value in use if it is not the default, else NULL. */
static const char *changed(const ls_options *options, const ls_setting *setting,
                           char into[NUMBER_BYTES])
{
    char fallback[NUMBER_BYTES];
    ls_options defaults;
    ls_options_default(&defaults);
    const char *value = ls_options_get(options, setting->name, into);
    const char *was = ls_options_get(&defaults, setting->name, fallback);
    return value && !(was && strcmp(value, was) == 0) ? value : NULL;
}

static bool has_flag(const ls_compare_request *request, const char *start)
{
    for (char **flag = request->flags; *flag; flag++)
        if (strncmp(*flag, start, strlen(start)) == 0) return true;
    return false;
}

/* A rate that follows the batch size is meant for the comparison's own, unless another one is
 * named. */
static ls_status add_base_batch(ls_compare_request *request, ls_error *error)
{
    char flag[NUMBER_BYTES];
    bool scaled = has_flag(request, "--learning-rate-scaling=");
    if (!scaled || has_flag(request, "--base-batch-size=")) return LS_OK;
    snprintf(flag, sizeof flag, "--base-batch-size=%" PRId64, request->options.batch_size);
    char **last = &request->flags[request->options.flag_count++];
    *last = strdup(flag);
    return *last ? LS_OK : fail_memory(error);
}

/* Each strategy's list out of request->flags. What none takes is an error, unless it may be a
 * DeepSpeed file's: a file of stage 3 says what counts there only, and may be compared without. */
static ls_status choose_flags(ls_compare_request *request, const ls_invocation *invocation,
                              ls_error *error)
{
    size_t count = request->options.flag_count, strategies = request->options.strategy_count;
    request->chosen = calloc(count * strategies + 1, sizeof *request->chosen);
    if (!request->chosen) return fail_memory(error);
    for (size_t s = 0; s < strategies; s++)
        request->strategies[s].flags = request->chosen + s * count;
    for (size_t i = 0; i < count; i++) {
        char name[NUMBER_BYTES], *flag = request->flags[i];
        bool taken = false;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(flag + 2, "="), flag + 2);
        for (size_t s = 0; s < strategies; s++) {
            ls_compare_strategy *strategy = &request->strategies[s];
            if (!ls_strategy_takes(strategy->name, &invocation->options, name)) continue;
            request->chosen[s * count + strategy->flag_count++] = flag;
            taken = true;
        }
        if (!taken && !invocation->deepspeed)
            return ls_complain(error, LS_USAGE,
                               "--%s counts where parameters are divided: none of --strategies "
                               "does so, add zero3",
                               name);
    }
    return LS_OK;
}

/* What of the file is not used. */
static void note_file(ls_compare_request *request, const ls_options *options)
{
    static const char *const monitors[] = {"csv", "tensorboard"};
    char buffer[NUMBER_BYTES], *note = request->note;
    size_t base = strcspn(options->strategy, "+"), room = sizeof request->note;
    bool named = false;
    for (size_t i = 0; i < request->options.strategy_count; i++) {
        const char *name = request->strategies[i].name;
        named |= strcspn(name, "+") == base && strncmp(name, options->strategy, base) == 0;
    }
    if (!named)
        snprintf(note, room, "--deepspeed: the file means %.40s, which is not among --strategies",
                 options->strategy);
    for (size_t i = 0; i < sizeof monitors / sizeof *monitors; i++) {
        size_t used = strlen(note);
        if (ls_options_get(options, monitors[i], buffer))
            snprintf(note + used, room - used, "%s --%s is left out in a comparison",
                     used ? ";" : "--deepspeed:", monitors[i]);
    }
}

static ls_status collect_flags(ls_compare_request *request, const ls_options *options,
                               ls_error *error)
{
    size_t count = 0, most = 0;
    char buffer[NUMBER_BYTES];
    for (const ls_setting *setting = ls_settings(); setting->name; setting++)
        most++;
    /* One more that is added, and the end. */
    request->flags = calloc(most + 2, sizeof *request->flags);
    if (!request->flags) return fail_memory(error);
    for (const ls_setting *setting = ls_settings(); setting->name; setting++) {
        const char *value = changed(options, setting, buffer);
        if (!(setting->commands & LS_COMMAND_TRAIN) || is_own(setting->name) || !value) continue;
        if (is_left_out(setting->name)) continue;
        size_t length = strlen(setting->name) + strlen(value) + 4;
        request->flags[count] = malloc(length);
        if (!request->flags[count]) return fail_memory(error);
        snprintf(request->flags[count++], length, "--%s=%s", setting->name, value);
    }
    request->options.flags = (const char *const *)request->flags;
    request->options.flag_count = count;
    return add_base_batch(request, error);
}

/* In single quotes where a shell would do something with it. */
static void print_quoted(FILE *stream, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./,:@%";
    if (value[strspn(value, plain)] == '\0') {
        fputs(value, stream);
        return;
    }
    fputc('\'', stream);
    for (; *value; value++)
        fputs(*value == '\'' ? "'\\''" : (char[2]){*value, '\0'}, stream);
    fputc('\'', stream);
}

static ls_status write_command(ls_compare_request *request, const ls_options *options,
                               ls_error *error)
{
    char buffer[NUMBER_BYTES];
    size_t length;
    FILE *stream = open_memstream(&request->command, &length);
    if (!stream) return fail_memory(error);
    fputs("lockstep compare", stream);
    for (const ls_setting *setting = ls_settings(); setting->name; setting++) {
        bool taken = setting->commands & (LS_COMMAND_TRAIN | LS_COMMAND_COMPARE);
        if (is_left_out(setting->name)) continue;
        const char *value = taken ? changed(options, setting, buffer) : NULL;
        if (!value) continue;
        fprintf(stream, " --%s", setting->name);
        if (setting->kind == LS_SETTING_FLAG) continue;
        fputc(' ', stream);
        print_quoted(stream, value);
    }
    fputc('\n', stream);
    if (fclose(stream) != 0 || !request->command) return fail_memory(error);
    request->command[strlen(request->command) - 1] = '\0';
    request->options.command = request->command;
    return LS_OK;
}

/* --- all
 * ------------------------------------------------------------------------------------------------
 */

static ls_status read_sizes(ls_compare_request *request, const ls_options *options, ls_error *error)
{
    ls_compare_options *out = &request->options;
    ls_status status = ls_compare_core_count(&out->cores, error);
    if (status != LS_OK) return status;
    out->devices = options->devices;
    out->threads = options->threads;
    if (out->threads == 0) out->threads = out->cores / out->devices;
    if (out->threads < 1) out->threads = 1;
    if (options->max_steps == 0)
        return ls_complain(error, LS_USAGE, "--max-steps: 0 steps train nothing");
    request->seeds[0] = (int64_t)options->seed;
    out->seed_count = 1;
    if (options->seeds)
        status =
            read_integers(request->seeds, &out->seed_count, "seeds", "seed", options->seeds, error);
    if (status == LS_OK && options->batch_sizes)
        status = read_integers(request->batch_sizes, &out->batch_size_count, "batch-sizes",
                               "batch-size", options->batch_sizes, error);
    out->seeds = request->seeds;
    out->batch_sizes = request->batch_sizes;
    return status;
}

ls_status ls_compare_request_init(ls_compare_request *request, const ls_invocation *invocation,
                                  ls_error *error)
{
    const ls_options *options = &invocation->options;
    *request =
        (ls_compare_request){.options = {.output = options->output,
                                         .model = options->model,
                                         .train = options->train,
                                         .validation = options->validation,
                                         .test = options->test,
                                         .batch_size = options->batch_size,
                                         .max_steps = options->max_steps,
                                         .epochs = options->epochs,
                                         .target_accuracy = options->target_accuracy,
                                         .rounds = options->timing_rounds,
                                         .round_steps = options->timing_steps,
                                         /* A child is this program still when it looks: the same
                                          * one even if the file was replaced meanwhile. */
                                         .program = "/proc/self/exe",
                                         .version = ls_version()}};
    ls_status status = ls_instruction_set(&request->options.instruction_set, error);
    if (status == LS_OK) status = read_strategies(request, options->strategies, error);
    if (status == LS_OK) status = read_sizes(request, options, error);
    if (status == LS_OK) status = collect_flags(request, options, error);
    if (status == LS_OK) status = choose_flags(request, invocation, error);
    if (status == LS_OK && invocation->deepspeed) note_file(request, options);
    if (status == LS_OK) status = write_command(request, options, error);
    return status;
}

void ls_compare_request_deinit(ls_compare_request *request)
{
    for (char **flag = request->flags; flag && *flag; flag++)
        free(*flag);
    free(request->flags);
    free(request->chosen);
    free(request->command);
}
