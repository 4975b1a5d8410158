/* The batch rule of DeepSpeed: batch = micro batch x accumulation steps x devices. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/deepspeed.h"

/* 0: not known. What the command line says counts where the file does not have a number. */
typedef struct triangle {
    const ls_deepspeed_entry *batch_key, *micro_key, *passes_key;
    int64_t batch, micro, passes, devices;
    bool batch_given, micro_given; /* by a setting instead of the file */
} triangle;

enum { MOST_TRIPLES = 3, TRIPLE_BYTES = 64 };

static void read_triangle(triangle *t, const ls_deepspeed_merge *merge)
{
    *t = (triangle){
        .batch_key = ls_deepspeed_entry_of(merge, "train_batch_size"),
        .micro_key = ls_deepspeed_entry_of(merge, "train_micro_batch_size_per_gpu"),
        .passes_key = ls_deepspeed_entry_of(merge, "gradient_accumulation_steps"),
        .devices = merge->devices,
    };
    t->batch = ls_deepspeed_integer(t->batch_key, 0);
    t->micro = ls_deepspeed_integer(t->micro_key, 0);
    t->passes = ls_deepspeed_integer(t->passes_key, 0);
}

static void complete_from_settings(triangle *t, const ls_deepspeed_merge *merge)
{
    const ls_options *options = merge->options;
    t->batch_given = !t->batch && ls_deepspeed_is_given(merge, "batch-size");
    t->micro_given = !t->micro && ls_deepspeed_is_given(merge, "samples-per-pass") &&
                     options->samples_per_pass > 0;
    if (t->micro_given) t->micro = options->samples_per_pass;
    /* With the number of passes alone the batch is that of the settings. */
    if (t->batch_given || (!t->batch && !t->micro)) t->batch = options->batch_size;
}

/* --- what does not fit ----------------------------------------------------------------------- */

typedef struct triples {
    char text[MOST_TRIPLES][TRIPLE_BYTES];
    int count;
} triples;

static void suggest(triples *list, const triangle *t, int64_t micro, int64_t passes)
{
    char text[TRIPLE_BYTES];
    if (micro < 1 || passes < 1 || list->count == MOST_TRIPLES) return;
    snprintf(text, sizeof text, "%" PRId64 " = %" PRId64 " x %" PRId64 " x %" PRId64,
             micro * passes * t->devices, micro, passes, t->devices);
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->text[i], text) == 0) return;
    memcpy(list->text[list->count++], text, sizeof text);
}

/* Numbers that fit and are near to those given. */
static void suggest_all(triples *list, const triangle *t)
{
    int64_t devices = t->devices;
    if (t->micro && t->passes) {
        suggest(list, t, t->micro, t->passes);
        if (t->batch % (t->micro * devices) == 0)
            suggest(list, t, t->micro, t->batch / (t->micro * devices));
        if (t->batch % (t->passes * devices) == 0)
            suggest(list, t, t->batch / (t->passes * devices), t->passes);
    }
    if (t->micro) {
        suggest(list, t, t->micro, t->batch / (t->micro * devices));
        suggest(list, t, t->micro, t->batch / (t->micro * devices) + 1);
    }
    int64_t passes = t->passes ? t->passes : 1;
    suggest(list, t, t->batch / (passes * devices), passes);
    suggest(list, t, t->batch / (passes * devices) + 1, passes);
}

static const char *shown(char into[32], int64_t number)
{
    snprintf(into, 32, "%" PRId64, number);
    return number ? into : "not given";
}

static ls_status fail_triangle(const ls_deepspeed_merge *merge, const triangle *t, ls_error *error)
{
    char batch[32], micro[32], passes[32], by[100] = "",
                                           nearest[MOST_TRIPLES * (TRIPLE_BYTES + 2)] = "";
    char world[64] = "";
    triples list = {0};
    suggest_all(&list, t);
    for (int i = 0; i < list.count; i++) {
        size_t used = strlen(nearest);
        snprintf(nearest + used, sizeof nearest - used, "%s%s", i ? "; " : "", list.text[i]);
    }
    if (t->batch_given || t->micro_given)
        snprintf(by, sizeof by, " (%s%s%s given)", t->batch_given ? "--batch-size" : "",
                 t->batch_given && t->micro_given ? " and " : "",
                 t->micro_given ? "--samples-per-pass" : "");
    if (merge->processes > 1)
        snprintf(world, sizeof world, " (%" PRId64 " processes of --devices %" PRId64 ")",
                 merge->processes, merge->options->devices);
    return ls_fail(
        error, LS_USAGE,
        "%s: train_batch_size %s is not train_micro_batch_size_per_gpu %s x "
        "gradient_accumulation_steps %s x %" PRId64 " device%s%s%s; nearest that fit: %s",
        merge->file->config.name, shown(batch, t->batch), shown(micro, t->micro),
        shown(passes, t->passes), t->devices, t->devices == 1 ? "" : "s", world, by, nearest);
}

/* --- what follows ---------------------------------------------------------------------------- */

static bool fits(const triangle *t)
{
    return t->micro >= 1 && t->passes >= 1 && t->batch % t->devices == 0 &&
           t->batch / t->devices % t->micro == 0 && t->batch / t->devices / t->micro == t->passes;
}

static ls_status solve(const ls_deepspeed_merge *merge, triangle *t, ls_error *error)
{
    triangle whole = *t;
    if (!whole.passes && !(whole.batch && whole.micro)) whole.passes = 1;
    if (!whole.batch) whole.batch = whole.micro * whole.passes * whole.devices;
    if (!whole.micro) whole.micro = whole.batch / (whole.passes * whole.devices);
    if (!whole.passes) whole.passes = whole.batch / (whole.micro * whole.devices);
    if (!fits(&whole)) return fail_triangle(merge, t, error);
    *t = whole;
    return LS_OK;
}

/* A number that stands in the file, or one that follows from the others there. */
static ls_status set_number(ls_deepspeed_merge *merge, const ls_deepspeed_entry *key,
                            const char *setting, int64_t number, const char *from, ls_error *error)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRId64, number);
    if (key && !ls_deepspeed_is_auto(key))
        return ls_deepspeed_propose(merge, key, setting, digits, error);
    return ls_deepspeed_derive(merge, setting, digits, error, "%s", from);
}

ls_status ls_deepspeed_merge_batch(ls_deepspeed_merge *merge, ls_error *error)
{
    triangle t;
    read_triangle(&t, merge);
    if (!t.batch && !t.micro && !t.passes) {
        if (t.batch_key) LS_TRY(ls_deepspeed_leave(merge, t.batch_key, "batch-size", error));
        if (!t.micro_key) return LS_OK;
        return ls_deepspeed_leave(merge, t.micro_key, "samples-per-pass", error);
    }
    /* With the batch alone the passes are the settings' business, if they say anything of them. */
    if (!t.micro && !t.passes && ls_deepspeed_is_given(merge, "samples-per-pass"))
        return set_number(merge, t.batch_key, "batch-size", t.batch, "", error);
    complete_from_settings(&t, merge);
    LS_TRY(solve(merge, &t, error));
    LS_TRY(set_number(merge, t.batch_key, "batch-size", t.batch,
                      "micro batch x accumulation steps x devices", error));
    LS_TRY(set_number(merge, t.micro_key, "samples-per-pass", t.micro,
                      "train_batch_size / accumulation steps / devices", error));
    int leaf = t.micro % 4 == 0 ? 4 : t.micro % 2 == 0 ? 2 : 1;
    char digits[8];
    snprintf(digits, sizeof digits, "%d", leaf);
    LS_TRY(ls_deepspeed_derive(merge, "leaf-size", digits, error,
                               "the largest of 4, 2, 1 that divides the micro batch %" PRId64,
                               t.micro));
    return ls_deepspeed_note_add(merge->file, error,
                                 "batch of %" PRId64 " = %" PRId64 " samples a pass x %" PRId64
                                 " pass%s x %" PRId64 " device%s, leaves of %" PRId64,
                                 t.batch, t.micro, t.passes, t.passes == 1 ? "" : "es", t.devices,
                                 t.devices == 1 ? "" : "s", merge->options->leaf_size);
}
