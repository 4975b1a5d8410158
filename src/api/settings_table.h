/* The settings, one row each, in the order of the help text:
 *
 *   X(name, field of ls_options, kind, commands, needed by, default, least, most, help)
 *
 * Text takes one of the choices that settings.c lists, where it lists any; its default "" is NULL.
 * `least` and `most` bound numbers, both included; the two macros stand for an open end. */
#ifndef LS_API_SETTINGS_TABLE_H
#define LS_API_SETTINGS_TABLE_H

#include <float.h>

#define ABOVE_ZERO DBL_MIN
#define BELOW_ONE (1.0 - DBL_EPSILON / 2)

#define RUN (LS_COMMAND_TRAIN | LS_COMMAND_PLAN | LS_COMMAND_BENCH_STEP)
#define TRAIN LS_COMMAND_TRAIN
#define SAVED (LS_COMMAND_TRAIN | LS_COMMAND_PLAN)
#define INFER (LS_COMMAND_EVALUATE | LS_COMMAND_PREDICT)
#define EVERY (RUN | INFER | LS_COMMAND_INSPECT | LS_COMMAND_TOKENIZE)

/* clang-format off */
#define LS_SETTINGS(X) \
    X("model", model, TEXT, EVERY | LS_COMMAND_VERIFY, RUN | INFER | LS_COMMAND_TOKENIZE, "", 0, 0, \
      "Hugging Face model folder; inspect takes a safetensors file too") \
    X("train", train, TEXT, RUN, LS_COMMAND_TRAIN | LS_COMMAND_BENCH_STEP, "", 0, 0, \
      "TSV, CSV or JSONL file of labelled texts to train on") \
    X("validation", validation, TEXT, RUN, 0, "", 0, 0, \
      "labelled file to evaluate on after each epoch") \
    X("test", test, TEXT, RUN, 0, "", 0, 0, \
      "labelled file to evaluate on once, at the end") \
    X("data", data, TEXT, INFER | LS_COMMAND_TOKENIZE, LS_COMMAND_EVALUATE, "", 0, 0, \
      "file to read: TSV, CSV or JSONL; predict and tokenize: another file has one text a line") \
    X("other", other, TEXT, LS_COMMAND_VERIFY, 0, "", 0, 0, \
      "the model, checkpoint or safetensors file to compare with") \
    X("output", output, TEXT, RUN | LS_COMMAND_AUDIT, LS_COMMAND_TRAIN, "", 0, 0, \
      "folder for the trained model: new, empty or that of a former run") \
    X("predictions", predictions, TEXT, LS_COMMAND_EVALUATE, 0, "", 0, 0, \
      "JSONL file to write with row, prediction and probabilities") \
    X("text-column", text_column, TEXT, RUN | INFER, 0, "", 0, 0, \
      "column of the text; guessed when not given (text, sentence, sentence1, ...)") \
    X("text-pair-column", text_pair_column, TEXT, RUN | INFER, 0, "", 0, 0, \
      "column of the second text of a pair; guessed when not given (sentence2, ...)") \
    X("label-column", label_column, TEXT, RUN | INFER, 0, "", 0, 0, \
      "column of the label; guessed when not given (label, labels)") \
    X("skip-bad-rows", skip_bad_rows, FLAG, RUN | INFER, 0, "false", 0, 0, \
      "leave bad rows out and count them, instead of stopping at the first") \
    X("epochs", epochs, NUMBER, RUN, 0, "3", ABOVE_ZERO, 1e6, \
      "passes over the training data; may be a fraction") \
    X("max-steps", max_steps, INTEGER, RUN, 0, "-1", -1, 1e12, \
      "stop after this many steps, whatever --epochs says; -1: as many as the epochs have") \
    X("batch-size", batch_size, INTEGER, RUN | INFER, 0, "32", 1, 1 << 20, \
      "samples of a step, over all devices together") \
    X("leaf-size", leaf_size, INTEGER, RUN | INFER, 0, "4", 1, 1 << 20, \
      "consecutive samples summed as one chain; unlike threads, passes and devices it changes the bits") \
    X("samples-per-pass", samples_per_pass, SAMPLES, RUN | INFER, 0, "auto", 1, 1 << 20, \
      "samples in a device's memory at once: a number, all, or auto (what --device-memory allows)") \
    X("max-length", max_length, INTEGER, RUN | INFER | LS_COMMAND_TOKENIZE, 0, "0", 0, 1 << 20, \
      "tokens of a text, special ones included; longer ones are cut; 0: 128 to train, the length " \
      "written with the model to evaluate and predict, no limit to tokenize") \
    X("seed", seed, INTEGER, RUN, 0, "42", 0, 9223372036854775807.0, \
      "of the order of rows, the dropout and the new weights") \
    X("learning-rate", learning_rate, NUMBER, RUN, 0, "5e-05", 0, 1e6, \
      "peak learning rate of AdamW") \
    X("weight-decay", weight_decay, NUMBER, RUN, 0, "0", 0, 1e6, \
      "decoupled weight decay; biases and layer norms are left out") \
    X("weight-decay-all", weight_decay_all, FLAG, RUN, 0, "false", 0, 0, \
      "decay biases and layer norms too") \
    X("adam-beta1", adam_beta1, NUMBER, RUN, 0, "0.9", 0, BELOW_ONE, \
      "decay of the mean of gradients") \
    X("adam-beta2", adam_beta2, NUMBER, RUN, 0, "0.999", 0, BELOW_ONE, \
      "decay of the mean of squared gradients") \
    X("adam-epsilon", adam_epsilon, NUMBER, RUN, 0, "1e-08", 0, 1e6, \
      "added to the root of the second moment") \
    X("max-grad-norm", max_grad_norm, NUMBER, RUN, 0, "1", 0, 1e30, \
      "clip the gradient to this norm; 0: do not clip") \
    X("lr-scheduler-type", lr_scheduler_type, TEXT, RUN, 0, "linear", 0, 0, \
      "linear, cosine, constant or constant_with_warmup") \
    X("warmup-steps", warmup_steps, INTEGER, RUN, 0, "0", 0, 1e12, \
      "steps in which the learning rate rises from 0; when 0, --warmup-ratio counts") \
    X("warmup-ratio", warmup_ratio, NUMBER, RUN, 0, "0", 0, 1, \
      "the same as a part of all steps") \
    X("on-nan", on_nan, TEXT, TRAIN, 0, "stop", 0, 0, \
      "a step whose loss or gradient is not finite: stop the run, or skip the step") \
    X("audit-every", audit_every, INTEGER, SAVED, 0, "0", 0, 1e12, \
      "in every so many steps look for errors of the machine: compare the ranks' weights, compute " \
      "one rank's pass again; 0: never") \
    X("save-every", save_every, INTEGER, SAVED, 0, "0", 0, 1e12, \
      "write a checkpoint after every so many steps; 0: none but for --keep-best and a stop") \
    X("save-total-limit", save_total_limit, INTEGER, TRAIN, 0, "2", 1, 1e6, \
      "checkpoints to keep; the oldest goes first, the best one never") \
    X("keep-best", keep_best, TEXT, SAVED, 0, "", 0, 0, \
      "write and keep a checkpoint of the best validation by accuracy, macro_f1 or loss") \
    X("save-on-signal", save_on_signal, FLAG, TRAIN, 0, "true", 0, 0, \
      "a run that is stopped (Ctrl-C) leaves a checkpoint to go on from") \
    X("save-async", save_async, FLAG, SAVED, 0, "true", 0, 0, \
      "write checkpoints beside training, from a copy in memory") \
    X("resume", resume, TEXT, TRAIN, 0, "", 0, 0, \
      "go on from this checkpoint folder; auto: from the newest whole one in --output, if any") \
    X("resume-weights-only", resume_weights_only, FLAG, TRAIN, 0, "false", 0, 0, \
      "take the checkpoint of --resume as the model of a new run") \
    X("strategy", strategy, TEXT, RUN, 0, "single", 0, 0, \
      "how the work is spread over devices: single, or ddp (data parallel)") \
    X("devices", devices, INTEGER, RUN, 0, "1", 1, 64, \
      "devices to run on, each a group of cores with memory of its own") \
    X("bucket-size", bucket_size, BYTES, RUN, 0, "25MiB", 1, 9.2e18, \
      "ddp: gradients that are exchanged together while the backward pass goes on") \
    X("threads", threads, INTEGER, RUN | INFER | LS_COMMAND_BENCH_GEMM, 0, "0", 0, 4096, \
      "threads of a device; 0: all cores, divided among the devices") \
    X("device-memory", device_memory, BYTES, RUN | INFER | LS_COMMAND_BENCH_GEMM, 0, "0", 0, 9.2e18, \
      "bytes that a device may use, such as 600MiB or 2GB; 0: no limit") \
    X("print", print_program, FLAG, LS_COMMAND_PLAN, 0, "false", 0, 0, \
      "print the program of a step too")
/* clang-format on */

#endif
