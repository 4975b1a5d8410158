/* Optimizer and schedule of a DeepSpeed configuration. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/deepspeed.h"
#include "base/numbers.h"

/* DeepSpeed's own default. */
static const char default_warmup_steps[] = "1000";

static ls_status merge_kind(ls_deepspeed_merge *merge, ls_error *error)
{
    const ls_deepspeed_entry *type = ls_deepspeed_entry_of(merge, "optimizer.type");
    const ls_deepspeed_entry *mode = ls_deepspeed_entry_of(merge, "optimizer.params.adam_w_mode");
    bool adam = strcasecmp(ls_deepspeed_text(type, ""), "Adam") == 0;
    bool l2 = adam && !ls_deepspeed_flag(mode, true);
    if (!adam && !ls_deepspeed_flag(mode, true))
        LS_TRY(ls_deepspeed_note_add(
            merge->file, error, "'%s' false has no effect with the type AdamW", mode->written));
    LS_TRY(
        ls_deepspeed_propose(merge, l2 ? mode : type, "optimizer", l2 ? "adam" : "adamw", error));
    return ls_deepspeed_derive(merge, "weight-decay-all", "true", error,
                               "optimizer: all parameters decay");
}

static ls_status merge_betas(ls_deepspeed_merge *merge, ls_error *error)
{
    static const char *const settings[] = {"adam-beta1", "adam-beta2"};
    const ls_deepspeed_entry *betas = ls_deepspeed_entry_of(merge, "optimizer.params.betas");
    for (size_t i = 0; betas && i < 2; i++) {
        char digits[LS_NUMBER_BYTES];
        if (ls_deepspeed_is_auto(betas)) {
            LS_TRY(ls_deepspeed_leave(merge, betas, settings[i], error));
            continue;
        }
        ls_number_print(digits, json_number_value(json_array_get(betas->value, i)));
        LS_TRY(ls_deepspeed_propose(merge, betas, settings[i], digits, error));
    }
    return LS_OK;
}

/* The schedule's rate stands in place of the optimizer's, as there. */
static ls_status merge_rate(ls_deepspeed_merge *merge, ls_error *error)
{
    const ls_deepspeed_entry *rate = ls_deepspeed_entry_of(merge, "optimizer.params.lr");
    const ls_deepspeed_entry *peak = ls_deepspeed_entry_of(merge, "scheduler.params.warmup_max_lr");
    double own = ls_deepspeed_number(rate, -1), most = ls_deepspeed_number(peak, -1);
    char left[LS_NUMBER_BYTES], right[LS_NUMBER_BYTES];
    if (own >= 0 && most >= 0 && own != most)
        LS_TRY(ls_deepspeed_note_add(merge->file, error, "'%s' %s stands in place of '%s' %s",
                                     peak->written, ls_number_print(left, most), rate->written,
                                     ls_number_print(right, own)));
    if (most >= 0 || (peak && own < 0))
        return ls_deepspeed_merge_number(merge, "scheduler.params.warmup_max_lr", "learning-rate",
                                         error);
    return ls_deepspeed_merge_number(merge, "optimizer.params.lr", "learning-rate", error);
}

static ls_status merge_warmup_steps(ls_deepspeed_merge *merge, ls_error *error)
{
    const ls_deepspeed_entry *steps =
        ls_deepspeed_entry_of(merge, "scheduler.params.warmup_num_steps");
    bool ratio = ls_deepspeed_is_given(merge, "warmup-ratio") && merge->options->warmup_ratio > 0;
    if (!steps && ratio) return LS_OK;
    if (!steps)
        return ls_deepspeed_derive(merge, "warmup-steps", default_warmup_steps, error,
                                   "no scheduler.params.warmup_num_steps: DeepSpeed's default");
    if (ratio && !ls_deepspeed_is_auto(steps)) {
        char what[100];
        snprintf(what, sizeof what, "'%.60s' %" PRId64, steps->written,
                 ls_deepspeed_integer(steps, 0));
        return ls_deepspeed_contradict(merge, "warmup-ratio", what, error);
    }
    return ls_deepspeed_merge_number(merge, "scheduler.params.warmup_num_steps", "warmup-steps",
                                     error);
}

static ls_status merge_schedule(ls_deepspeed_merge *merge, ls_error *error)
{
    const ls_deepspeed_entry *type = ls_deepspeed_entry_of(merge, "scheduler.type");
    const ls_deepspeed_entry *rise = ls_deepspeed_entry_of(merge, "scheduler.params.warmup_type");
    const char *name = "warmup";
    if (strcasecmp(ls_deepspeed_text(type, ""), "WarmupDecayLR") == 0) name = "warmup_decay";
    if (strcasecmp(ls_deepspeed_text(type, ""), "WarmupCosineLR") == 0) name = "warmup_cosine";
    LS_TRY(ls_deepspeed_propose(merge, type, "lr-scheduler-type", name, error));
    LS_TRY(merge_warmup_steps(merge, error));
    if (rise)
        LS_TRY(ls_deepspeed_propose(merge, rise, "warmup-type", ls_deepspeed_text(rise, "log"),
                                    error));
    LS_TRY(
        ls_deepspeed_merge_number(merge, "scheduler.params.warmup_min_lr", "warmup-min-lr", error));
    LS_TRY(ls_deepspeed_merge_number(merge, "scheduler.params.warmup_min_ratio", "warmup-min-ratio",
                                     error));
    LS_TRY(ls_deepspeed_merge_number(merge, "scheduler.params.cos_min_ratio", "cosine-min-ratio",
                                     error));
    return ls_deepspeed_merge_number(merge, "scheduler.params.total_num_steps",
                                     "lr-scheduler-steps", error);
}

ls_status ls_deepspeed_merge_optimizer(ls_deepspeed_merge *merge, ls_error *error)
{
    if (ls_deepspeed_config_has(&merge->file->config, "optimizer")) {
        LS_TRY(merge_kind(merge, error));
        LS_TRY(merge_betas(merge, error));
        LS_TRY(ls_deepspeed_merge_number(merge, "optimizer.params.eps", "adam-epsilon", error));
        LS_TRY(ls_deepspeed_merge_number(merge, "optimizer.params.weight_decay", "weight-decay",
                                         error));
    }
    LS_TRY(merge_rate(merge, error));
    if (!ls_deepspeed_config_has(&merge->file->config, "scheduler")) return LS_OK;
    return merge_schedule(merge, error);
}
