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
    X("optimizer", optimizer, TEXT, RUN, 0, "adamw", 0, 0, \
      "adamw (decoupled weight decay) or adam (decay added to the gradient)") \
    X("learning-rate", learning_rate, NUMBER, RUN, 0, "5e-05", 0, 1e6, \
      "peak learning rate") \
    X("weight-decay", weight_decay, NUMBER, RUN, 0, "0", 0, 1e6, \
      "weight decay; biases and layer norms are left out") \
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
      "linear, cosine, constant, constant_with_warmup; those of DeepSpeed: warmup, warmup_decay, " \
      "warmup_cosine") \
    X("lr-scheduler-steps", lr_scheduler_steps, INTEGER, RUN, 0, "0", 0, 1e12, \
      "steps after which a falling learning rate is at its end; 0: all steps of the run") \
    X("warmup-steps", warmup_steps, INTEGER, RUN, 0, "0", 0, 1e12, \
      "steps in which the learning rate rises from 0; when 0, --warmup-ratio counts") \
    X("warmup-ratio", warmup_ratio, NUMBER, RUN, 0, "0", 0, 1, \
      "the same as a part of all steps") \
    X("warmup-type", warmup_type, TEXT, RUN, 0, "log", 0, 0, \
      "how warmup, warmup_decay and warmup_cosine rise: log or linear") \
    X("warmup-min-lr", warmup_min_lr, NUMBER, RUN, 0, "0", 0, 1e6, \
      "warmup, warmup_decay: the learning rate from which they rise") \
    X("warmup-min-ratio", warmup_min_ratio, NUMBER, RUN, 0, "0", 0, 1, \
      "warmup_cosine: the part of the learning rate from which it rises") \
    X("cosine-min-ratio", cosine_min_ratio, NUMBER, RUN, 0, "0.0001", 0, 1, \
      "warmup_cosine: the part of the learning rate to which it falls") \
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
      "how the work is spread over devices: single, ddp (data parallel), or zero1, zero2, zero3, which " \
      "divide optimizer state, then gradients, then parameters among them; behind it +recompute stands for --recompute " \
      "layer, +offload for --offload-optimizer host and, with zero3, --offload-parameters host; " \
      "auto takes the fastest that fits and says why") \
    X("devices", devices, DEVICES, RUN | LS_COMMAND_BENCH_COMM, 0, "1", 1, 4096, \
      "devices to run on, each a group of cores with memory of its own, up to 64; plan takes a list " \
      "too, up to 4096: 1,2,4,...,4096") \
    X("bucket-size", bucket_size, BYTES, RUN, 0, "auto", 1, 9.2e18, \
      "ddp and zero1: gradients that are exchanged together while the backward pass goes on; zero1 " \
      "and zero2: parameters that are gathered together; auto: 25 MiB, between hosts 4 MiB") \
    X("overlap-communication", overlap_communication, FLAG, TRAIN, 0, "true", 0, 0, \
      "ddp and zero1: exchange gradients beside the backward pass; false: after it, to see what that " \
      "costs; the bits are the same") \
    X("prefetch-bucket-size", prefetch_bucket_size, INTEGER, RUN, 0, "-1", -1, 9.2e18, \
      "zero3: parameters gathered ahead of use, in elements, as many whole units as that holds; -1: " \
      "one unit") \
    X("persistence-threshold", persistence_threshold, INTEGER, RUN, 0, "0", 0, 9.2e18, \
      "zero3: tensors of fewer elements stay whole on every device") \
    X("recompute", recompute, TEXT, RUN, 0, "", 0, 0, \
      "activations that the backward pass makes again instead of keeping them: none, layer (a " \
      "layer's, but for its input and what its last op wrote) or attention (query, key, value, " \
      "context); none unless --strategy ends in +recompute, which means layer") \
    X("offload-optimizer", offload_optimizer, TEXT, RUN, 0, "", 0, 0, \
      "where the optimizer's moments lie: none (on the device), host (in the host's memory) or " \
      "disk; none unless --strategy has +offload, which means host") \
    X("offload-parameters", offload_parameters, TEXT, RUN, 0, "", 0, 0, \
      "the same of the parameters; needs a strategy that divides them") \
    X("offload-path", offload_path, TEXT, RUN, 0, "", 0, 0, \
      "folder on the disk that takes what is offloaded; the file there has no name") \
    X("offload-block-size", offload_block_size, BYTES, RUN, 0, "1MiB", 4096, 1 << 30, \
      "of each moment, what is on the device at a time, twice: a multiple of 4KiB") \
    X("threads", threads, INTEGER, RUN | INFER | LS_COMMAND_BENCH_GEMM, 0, "0", 0, 4096, \
      "threads of a device; 0: all cores, divided among the devices") \
    X("device-memory", device_memory, BYTES, RUN | INFER | LS_COMMAND_BENCH_GEMM, 0, "0", 0, 9.2e18, \
      "bytes that a device may use, such as 600MiB or 2GB; 0: no limit") \
    X("learning-rate-scaling", learning_rate_scaling, TEXT, RUN, 0, "none", 0, 0, \
      "none, or linear or sqrt: multiply --learning-rate by --batch-size / --base-batch-size, or by its root") \
    X("base-batch-size", base_batch_size, INTEGER, RUN, 0, "0", 0, 1 << 20, \
      "the batch for which --learning-rate is meant, with --learning-rate-scaling") \
    X("log-ranks", log_ranks, TEXT, RUN, 0, "first", 0, 0, \
      "first: one rank says what goes on; all: each writes rank-N.log into --output too") \
    X("timeout", timeout, NUMBER, RUN | LS_COMMAND_BENCH_COMM, 0, "300", 0, 1e9, \
      "several processes: seconds that one may keep the others waiting; 0: for ever") \
    X("tensorboard", tensorboard, TEXT, LS_COMMAND_TRAIN, 0, "", 0, 0, \
      "folder to write TensorBoard event files to") \
    X("csv", csv, TEXT, LS_COMMAND_TRAIN, 0, "", 0, 0, \
      "folder to write a CSV file a metric to, laid out as by DeepSpeed's csv_monitor") \
    X("job-name", job_name, TEXT, LS_COMMAND_TRAIN, 0, "lockstep", 0, 0, \
      "name of the folder below --csv") \
    X("prometheus", prometheus, TEXT, LS_COMMAND_TRAIN, 0, "", 0, 0, \
      "file to keep the latest numbers in, for a node exporter's textfile collector (*.prom)") \
    X("log-every", log_every, INTEGER, LS_COMMAND_TRAIN, 0, "0", 0, 1e12, \
      "steps between lines of progress where there is no terminal; 0: about twenty lines a run") \
    X("wall-clock-breakdown", wall_clock_breakdown, FLAG, LS_COMMAND_TRAIN, 0, "false", 0, 0, \
      "print where the time of a step went, as often as lines of progress") \
    X("profile", profile, FLAG, LS_COMMAND_TRAIN, 0, "false", 0, 0, \
      "record some steps: a trace for Perfetto and a summary in the output folder's profile/") \
    X("profile-steps", profile_steps, TEXT, LS_COMMAND_TRAIN, 0, "10:15", 0, 0, \
      "first and last step of --profile; a shorter run has its last steps recorded") \
    X("measure-peak", measure_peak, FLAG, LS_COMMAND_TRAIN, 0, "false", 0, 0, \
      "measure this machine's best product first (a second), for share_of_peak in run.json") \
    X("print", print_program, FLAG, LS_COMMAND_PLAN, 0, "false", 0, 0, \
      "print the program of a step too") \
    X("strategies", strategies, TEXT, LS_COMMAND_COMPARE, 0, "single,ddp,zero1,zero2,zero3", 0, 0, \
      "list of strategies to compare, as --strategy of train names them; single is the base and always runs") \
    X("seeds", seeds, TEXT, LS_COMMAND_COMPARE, 0, "", 0, 0, \
      "list of seeds; accuracy is the mean over them (default: the one of --seed)") \
    X("batch-sizes", batch_sizes, TEXT, LS_COMMAND_COMPARE, 0, "", 0, 0, \
      "list of further batch sizes to run each strategy with, over as many samples") \
    X("target-accuracy", target_accuracy, NUMBER, LS_COMMAND_COMPARE, 0, "0", 0, 1, \
      "show how long it takes to this accuracy on the validation file; 0: do not") \
    X("timing-rounds", timing_rounds, INTEGER, LS_COMMAND_COMPARE, 0, "5", 1, 1000, \
      "rounds of short runs, one of each strategy in turn, from which the speeds come") \
    X("timing-steps", timing_steps, INTEGER, LS_COMMAND_COMPARE, 0, "8", 1, 1e6, \
      "steps of such a run that count, after three that do not")
/* clang-format on */

#endif
