/* How a DeepSpeed configuration file becomes settings: what deepspeed*.c share. */
#ifndef LS_API_DEEPSPEED_H
#define LS_API_DEEPSPEED_H

#include "api/settings.h"
#include "base/text.h"
#include "formats/deepspeed_config.h"

struct ls_deepspeed {
    ls_deepspeed_config config;
    ls_arena texts;     /* sources, values */
    const char **notes; /* one line each */
    size_t note_count, note_capacity;
};

/* One application of a file to options. A key's value and one that is already there for the same
 * setting must agree; those that do not are collected and told together. */
typedef struct ls_deepspeed_merge {
    ls_deepspeed *file;
    ls_options *options;
    ls_sources *sources; /* or NULL */
    ls_text contradictions;
    int64_t devices; /* of the whole run: processes x options->devices */
    int64_t processes;
    int64_t hidden_size; /* of the model, for "auto"; 0: not known */
} ls_deepspeed_merge;

ls_status ls_deepspeed_note_add(ls_deepspeed *file, ls_error *error, const char *format, ...)
    LS_PRINTF(3, 4) LS_MUST_CHECK;

/* The key's entry, NULL when absent. */
const ls_deepspeed_entry *ls_deepspeed_entry_of(const ls_deepspeed_merge *merge, const char *path);

/* Whether the command line or the program says this setting. */
bool ls_deepspeed_is_given(const ls_deepspeed_merge *merge, const char *setting);

/* Add "--SETTING VALUE (SOURCE) and WHAT" to the contradictions. */
ls_status ls_deepspeed_contradict(ls_deepspeed_merge *merge, const char *setting, const char *what,
                                  ls_error *error) LS_MUST_CHECK;

/* The key says that the setting has this value; `value` is borrowed as long as the options live. A
 * setting that does not exist is LS_USAGE. */
ls_status ls_deepspeed_propose(ls_deepspeed_merge *merge, const ls_deepspeed_entry *entry,
                               const char *setting, const char *value,
                               ls_error *error) LS_MUST_CHECK;
/* What a number of the file follows to, unless the setting is given. */
ls_status ls_deepspeed_derive(ls_deepspeed_merge *merge, const char *setting, const char *value,
                              ls_error *error, const char *source, ...)
    LS_PRINTF(5, 6) LS_MUST_CHECK;
/* The key is "auto" and the setting keeps its value. */
ls_status ls_deepspeed_leave(ls_deepspeed_merge *merge, const ls_deepspeed_entry *entry,
                             const char *setting, ls_error *error) LS_MUST_CHECK;

/* Batch, micro batch, accumulation: in deepspeed_batch.c. */
ls_status ls_deepspeed_merge_batch(ls_deepspeed_merge *merge, ls_error *error) LS_MUST_CHECK;
/* Optimizer and schedule: in deepspeed_optimizer.c. */
ls_status ls_deepspeed_merge_optimizer(ls_deepspeed_merge *merge, ls_error *error) LS_MUST_CHECK;
/* A key whose number is the setting's, or "auto"; absent: nothing. */
ls_status ls_deepspeed_merge_number(ls_deepspeed_merge *merge, const char *path,
                                    const char *setting, ls_error *error) LS_MUST_CHECK;

#endif
