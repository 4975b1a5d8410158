/* Lockstep: fine-tune Hugging Face transformer classifiers, with the same bits on any layout.
 *
 *     ls_options options;
 *     ls_error error;
 *     ls_options_default(&options);
 *     options.model = "all-MiniLM-L6-v2";
 *     options.train = "train.tsv";
 *     options.output = "trained";
 *     if (ls_train(&options, NULL, NULL, NULL, &error) != LS_OK) puts(error.text);
 *
 * Functions return a status and fill the caller's ls_error when it is not LS_OK. The library never
 * prints, exits or aborts. Its only global state is a memory counter and the allocator that it
 * gives to the JSON library (jansson), for the whole process. Calls on different objects may run on
 * different threads. */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/options.h"
#include "lockstep/reports.h"
#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LS_API __attribute__((visibility("default")))

LS_API const char *ls_version(void); /* "0.1.0" */
/* The instruction set in use: "avx512", "avx2" or "ref"; fails if LOCKSTEP_ISA names a set that
 * this machine lacks. */
LS_API ls_status ls_instruction_set(const char **name, ls_error *error);

/* --- settings -------------------------------------------------------------------------------- */

typedef enum ls_setting_kind {
    LS_SETTING_TEXT,
    LS_SETTING_FLAG,
    LS_SETTING_INTEGER,
    LS_SETTING_NUMBER,
    LS_SETTING_BYTES,   /* 600MiB, 2GB, 1048576 */
    LS_SETTING_SAMPLES, /* a number, "all" or "auto" */
    LS_SETTING_DEVICES, /* a number, or for plan a list: 1,2,4,...,64 */
} ls_setting_kind;

/* Which commands read a setting: a set of these bits. */
enum {
    LS_COMMAND_TRAIN = 1,
    LS_COMMAND_EVALUATE = 2,
    LS_COMMAND_PREDICT = 4,
    LS_COMMAND_INSPECT = 8,
    LS_COMMAND_TOKENIZE = 16,
    LS_COMMAND_PLAN = 32,
    LS_COMMAND_BENCH_STEP = 64,
    LS_COMMAND_BENCH_GEMM = 128,
    LS_COMMAND_VERIFY = 256,
    LS_COMMAND_AUDIT = 512,
    LS_COMMAND_BENCH_COMM = 1024,
    LS_COMMAND_COMPARE = 1 << 16, /* takes those of train, too */
};

/* One row a setting, for command lines and help texts. */
typedef struct ls_setting {
    const char *name; /* "learning-rate"; "_" is the same as "-" */
    ls_setting_kind kind;
    unsigned commands;
    const char *fallback; /* the default as text, "" for none */
    const char *help;     /* one line */
} ls_setting;

LS_API void ls_options_default(ls_options *options);
/* All settings, ended by one with a NULL name. */
LS_API const ls_setting *ls_settings(void);
/* Set one by name from text; checks type and range. An unknown name is LS_USAGE and the text names
 * the nearest known one. */
LS_API ls_status ls_options_set(ls_options *options, const char *name, const char *value,
                                ls_error *error);
/* The present value as text, as run.json shows it; into must hold 64 bytes for numbers. Text values
 * are returned as they are. NULL for an unset text. */
LS_API const char *ls_options_get(const ls_options *options, const char *name, char into[64]);

/* Whether `setting` counts with this strategy ("zero3+offload"), as far as the other options go:
 * some count only where parameters are divided, and ls_train refuses them with other strategies. */
LS_API bool ls_strategy_takes(const char *strategy, const ls_options *options, const char *setting);

/* Where each value came from, for run.json: "command line", "default", ... `source` is borrowed. A
 * setting that was never mentioned is "default" if it has its default value, "program" else. */
typedef struct ls_sources ls_sources;
LS_API ls_status ls_sources_new(ls_sources **out, ls_error *error);
LS_API void ls_sources_free(ls_sources *sources);
LS_API ls_status ls_sources_set(ls_sources *sources, const char *name, const char *source,
                                ls_error *error);

/* A DeepSpeed configuration file (ds_config.json) is another way of writing settings. Syntax, names
 * and types are checked when it is opened: unknown keys, what contradicts itself and what is not
 * built are errors that name the key. */
typedef struct ls_deepspeed ls_deepspeed;
LS_API ls_status ls_deepspeed_open(ls_deepspeed **out, const char *path, ls_error *error);
LS_API void ls_deepspeed_free(ls_deepspeed *file);
/* Set in `options` what the file says; `sources` (may be NULL) gets the keys. What `options`
 * already has otherwise than by default stays; where the file says another value for it, LS_USAGE
 * names both, unless the file says "auto". Texts in options and sources are borrowed from `file`.
 * The world of its batch rule is options->devices on each of the processes that mpirun or srun
 * started. */
LS_API ls_status ls_deepspeed_apply(ls_deepspeed *file, ls_options *options, ls_sources *sources,
                                    ls_error *error);
/* Warnings and notes, one line each, complete after ls_deepspeed_apply; NULL behind the last. */
LS_API const char *ls_deepspeed_note(const ls_deepspeed *file, size_t index);
/* Whether this process speaks for those that mpirun or srun started with it; alone: true. */
LS_API bool ls_is_first_process(void);
/* Every setting of a run with its value and where it came from, then, with a file, what each of its
 * keys does and the notes: a table for people, or with `json` a JSON object. Free with
 * ls_text_free. */
LS_API ls_status ls_config_text(const ls_options *options, const ls_sources *sources,
                                const ls_deepspeed *file, bool json, char **text, ls_error *error);

/* --- the commands ---------------------------------------------------------------------------- */

/* Fine-tune options->model on options->train and write the result to options->output:
 * model.safetensors, config.json, the tokenizer's files, metrics.jsonl, run.json, and profile/ with
 * options->profile; files of options->tensorboard, csv and prometheus where they say. `callbacks`,
 * `sources` and `report` may be NULL. Nothing is written to output before the input has been
 * checked. LS_INTERRUPTED: should_stop ended the run; the model is written all the same,
 * and a checkpoint unless options->save_on_signal is false; neither, if the data was still being
 * read (report->steps is 0 then). LS_NOT_FINITE: a weight, loss or gradient norm is not finite;
 * nothing was updated in that step, the model is not written. LS_DIFFERENT: an audit (audit_every)
 * found an error of the machine. What a save or the last checkpoint failed with, if none came
 * after it: the model is written. docs/checkpoints.md tells of all this. */
LS_API ls_status ls_train(const ls_options *options, const ls_callbacks *callbacks,
                          const ls_sources *sources, ls_train_report *report, ls_error *error);

/* A program that mpirun or srun starts in several processes calls this before it ends, after all
 * other functions of Lockstep, when it has printed what it has to say: MPI, which the first
 * training started, ends. All processes call it, but none after LS_LOST: those that are gone would
 * be waited for. Does nothing in a program that runs alone. */
LS_API void ls_finish_processes(void);

/* Evaluate options->model on the labelled file options->data: one call of callbacks->evaluation,
 * and of callbacks->prediction for each row. options->predictions is written as JSONL. */
LS_API ls_status ls_evaluate(const ls_options *options, const ls_callbacks *callbacks,
                             ls_error *error);

/* Predict the rows of a table (options->data), labels not needed. */
LS_API ls_status ls_predict(const ls_options *options, const ls_callbacks *callbacks,
                            ls_error *error);

/* A loaded model, for predicting texts one batch after the other. One thread at a time. */
typedef struct ls_classifier ls_classifier;
LS_API ls_status ls_classifier_open(ls_classifier **out, const ls_options *options,
                                    ls_error *error);
LS_API void ls_classifier_free(ls_classifier *classifier);
LS_API int32_t ls_classifier_classes(const ls_classifier *classifier);
LS_API const char *ls_classifier_label(const ls_classifier *classifier, int32_t label);
/* `texts`: `count` UTF-8 texts, NUL-terminated; probabilities [count][classes], row-major. A bad
 * text (empty, or not UTF-8) is LS_INVALID and the error names its index. */
LS_API ls_status ls_classifier_predict(ls_classifier *classifier, const char *const *texts,
                                       int64_t count, float *probabilities, ls_error *error);

/* Token ids of one text after the other, as the model's tokenizer makes them. */
typedef struct ls_text_encoder ls_text_encoder;
LS_API ls_status ls_text_encoder_open(ls_text_encoder **out, const ls_options *options,
                                      ls_error *error);
LS_API void ls_text_encoder_free(ls_text_encoder *encoder);
/* *ids is borrowed until the next call. */
LS_API ls_status ls_text_encoder_encode(ls_text_encoder *encoder, const char *text, size_t length,
                                        const int32_t **ids, int64_t *count, ls_error *error);

/* The tensors of a model folder or safetensors file, one call each in the order of their names. */
typedef struct ls_tensor_report {
    const char *name, *dtype;
    int32_t rank;
    int64_t shape[8];
    int64_t elements;
    uint64_t bytes;
    const char *file;
} ls_tensor_report;
LS_API ls_status ls_inspect(const char *path, void (*tensor)(void *, const ls_tensor_report *),
                            void *context, ls_error *error);

/* Compare two model folders, checkpoints or safetensors files to the bit, moments too where both
 * have them: LS_DIFFERENT names the first tensor and element that differ, and by how many units in
 * the last place. `other` NULL: a checkpoint against its manifest; LS_DIFFERENT names the file, and
 * the tensor where it is one. `report` may be NULL. */
typedef struct ls_verify_report {
    int64_t files; /* with a manifest */
    int64_t tensors, differing;
    uint64_t bytes;
} ls_verify_report;
LS_API ls_status ls_verify(const char *one, const char *other, ls_verify_report *report,
                           ls_error *error);

/* That the run whose output folder this is used each sample of each epoch exactly once, from its
 * run.json and metrics.jsonl: LS_DIFFERENT names the step that did not. `report` may be NULL. */
typedef struct ls_run_audit {
    int64_t steps, skipped_steps;
    int64_t rows;   /* of an epoch */
    int64_t epochs; /* whole ones */
    int64_t rest;   /* samples of the next one so far */
} ls_run_audit;
LS_API ls_status ls_audit_record(const char *folder, ls_run_audit *report, ls_error *error);

/* The memory of a run, without allocating it: one line a named part, then the total, as text that
 * ends with a newline; with options->print_program the program too. Free with ls_text_free. Of
 * several processes the first one gets it, the others NULL. */
LS_API ls_status ls_plan_text(const ls_options *options, char **text, ls_error *error);
/* The same of many layouts side by side, a line each: of every strategy, with and without offload
 * and recompute as far as the settings leave it open, or of options->strategy alone, on each number
 * of devices in options->device_list (or on options->devices). What cannot be run is a line that
 * says why. With strategy "auto" the machine is measured, and the text says what a run would choose
 * and why. `json`: a JSON object, to the byte, instead of text. */
LS_API ls_status ls_plan_table_text(const ls_options *options, bool every_strategy, bool json,
                                    char **text, ls_error *error);
/* Train for options->max_steps (20 if not given) after a warm-up, writing nothing, and print each
 * kind of op's time, FLOP/s, bytes/s and share of the best product's FLOP/s on the same cores. */
LS_API ls_status ls_bench_step_text(const ls_options *options, char **text, ls_error *error);
/* FLOP/s of the matrix products of a step at the shapes of small and base-sized models. */
LS_API ls_status ls_bench_gemm_text(const ls_options *options, char **text, ls_error *error);
/* Time and bandwidth of the exchanges between ranks, from 64 KiB to 128 MiB: options->devices of
 * each process, beside MPI_Allreduce and the speed of copying memory. Several processes: as
 * ls_plan_text. */
LS_API ls_status ls_bench_comm_text(const ls_options *options, char **text, ls_error *error);
LS_API void ls_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
