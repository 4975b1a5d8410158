/* The settings of a run. One plain struct for all commands: each reads the fields it needs. */
#ifndef LOCKSTEP_OPTIONS_H
#define LOCKSTEP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Special values of samples_per_pass, and of bucket_size. */
enum { LS_SAMPLES_ALL = 0, LS_SAMPLES_AUTO = -1, LS_BUCKET_AUTO = 0 };

/* Text is borrowed and must outlive the call that takes the options. Fill with ls_options_default,
 * then set fields, or set them by name with ls_options_set. Names and defaults follow the Hugging
 * Face Trainer where it has the thing. */
typedef struct ls_options {
    /* Files. */
    const char *model;       /* a Hugging Face model folder */
    const char *train;       /* TSV, CSV or JSONL of labelled texts */
    const char *validation;  /* evaluated after each epoch; NULL: none */
    const char *test;        /* evaluated once at the end; NULL: none */
    const char *data;        /* what evaluate, predict and tokenize read */
    const char *output;      /* folder of the trained model: must be new, empty or a former run's */
    const char *other;       /* verify: the second of two */
    const char *predictions; /* evaluate: JSONL file of predictions; NULL: none */
    const char *text_column, *text_pair_column, *label_column; /* NULL: guessed */
    bool skip_bad_rows; /* leave bad rows out and count them, instead of failing */

    /* How long, how much at once. */
    double epochs;
    int64_t max_steps;        /* -1: as many as the epochs have */
    int64_t batch_size;       /* samples of a step over all devices */
    int64_t leaf_size;        /* samples of a leaf of the summation tree: changes the bits */
    int64_t samples_per_pass; /* a device and pass; LS_SAMPLES_ALL, LS_SAMPLES_AUTO */
    int64_t max_length;       /* tokens of a row, special ones included; longer rows are cut */
    uint64_t seed;

    /* Optimizer. */
    double learning_rate, weight_decay, adam_beta1, adam_beta2, adam_epsilon;
    double max_grad_norm;          /* 0: no clipping */
    const char *lr_scheduler_type; /* "linear", "cosine", "constant", "constant_with_warmup";
                                      DeepSpeed's: "warmup", "warmup_decay", "warmup_cosine" */
    int64_t warmup_steps;          /* when 0, warmup_ratio counts */
    double warmup_ratio;
    bool weight_decay_all;   /* biases and layer norms too */
    const char *optimizer;   /* "adamw", "adam" */
    const char *warmup_type; /* DeepSpeed's schedules: "log", "linear" */
    double warmup_min_lr, warmup_min_ratio, cosine_min_ratio;
    int64_t lr_scheduler_steps; /* of a schedule that falls; 0: the run's */
    const char *on_nan;         /* "stop" or "skip": a step whose loss or gradient is not finite */

    /* Checkpoints. */
    int64_t save_every;       /* steps; 0: none but where keep_best or a stop asks for one */
    int64_t save_total_limit; /* checkpoints to keep, the best one not counted */
    const char *keep_best;    /* "accuracy", "macro_f1", "loss" of the validation; NULL: none */
    bool save_on_signal;      /* a stop by request leaves a checkpoint */
    bool save_async;          /* written beside training, from a copy in memory */
    const char *resume;       /* a checkpoint, or "auto": the newest whole one of output */
    int64_t audit_every;      /* steps; 0: never */
    bool resume_weights_only; /* a new run that starts from the checkpoint's model */

    /* Devices. */
    /* "single", "ddp", "zero1", "zero2", "zero3"; and +offload, +recompute; or "auto" */
    const char *strategy;
    int64_t bucket_size;        /* bytes of gradients that are exchanged together; LS_BUCKET_AUTO */
    bool overlap_communication; /* ddp, zero1: exchanges begin before the backward pass ends */
    const char *recompute; /* "none", "layer", "attention"; NULL: as the strategy's name says */
    /* What is not on the device: "none", "host", "disk"; NULL: as the strategy's name says. */
    const char *offload_optimizer, *offload_parameters;
    const char *offload_path; /* disk: a folder; the file there has no name */
    /* zero3, in elements: parameters that are gathered ahead of use, -1: one unit; tensors below
     * this many stay whole on every device. */
    int64_t prefetch_bucket_size, persistence_threshold;
    int64_t offload_block_size; /* bytes of each moment that are copied at a time */
    int64_t devices;
    const char *device_list; /* plan: "1,2,4,...,4096" instead of one number; NULL: none */
    int64_t threads;         /* a device; 0: all cores, divided among the devices */
    int64_t device_memory;   /* bytes a device may use; 0: no limit */
    bool print_program;      /* plan: print the program too */

    /* Several processes, started by mpirun or srun: each has `devices` ranks. */
    const char *learning_rate_scaling; /* "none", "linear", "sqrt": of batch_size to the next */
    int64_t base_batch_size; /* the batch for which learning_rate is meant; 0: none given */
    const char *log_ranks;   /* "first", "all": rank-N.log in the output folder */
    double timeout;          /* seconds that a rank may keep the others waiting; 0: for ever */
    /* Monitoring. */
    const char *tensorboard;   /* folder of TensorBoard event files; NULL: none */
    const char *csv;           /* folder of CSV files as DeepSpeed's csv_monitor has them; NULL */
    const char *job_name;      /* of the folder in it */
    const char *prometheus;    /* file for a node exporter's textfile collector; NULL: none */
    int64_t log_every;         /* steps from one plain line of progress to the next; 0: about 20 */
    bool wall_clock_breakdown; /* the program: print the parts of a step's time */
    bool profile;              /* write output/profile */
    const char *profile_steps; /* "10:15": the first and the last step of the profile */
    bool measure_peak;         /* for share_of_peak in run.json; a profile does it too */
    /* Comparison of strategies: read by the program `lockstep`, not by the library. */
    const char *strategies, *seeds, *batch_sizes; /* lists with commas; NULL: none */
    double target_accuracy;                       /* 0: none */
    int64_t timing_rounds, timing_steps;
} ls_options;

#endif
