/* What a run tells its caller while it goes on and when it is done. */
#ifndef LOCKSTEP_REPORTS_H
#define LOCKSTEP_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ls_step_report {
    int64_t step, total_steps; /* step counts from 1 */
    double epoch;              /* epochs done after this step */
    double loss;               /* true mean over the batch's samples */
    double learning_rate, gradient_norm;
    int64_t samples, tokens; /* of this step */
    double step_seconds, tokens_per_second;
    double seconds_left; /* estimate */

    int64_t samples_done, tokens_done; /* up to this step */
    int64_t skipped_steps;             /* steps so far that updated nothing */
    /* Where the step's time went, on average over the ranks; the parts add up to step_seconds. */
    double data_seconds;                      /* waiting for the batch, writing inputs */
    double forward_seconds, backward_seconds; /* computing */
    double exchange_seconds;                  /* waiting for other ranks and their bytes */
    double optimizer_seconds;
    /* The process, looked at once a second. */
    double cores_busy;       /* on average since the last look; 0 before the second one */
    int64_t host_bytes;      /* resident */
    int64_t device_bytes;    /* handed out by the device that holds most */
    bool skipped;            /* loss or norm is not finite: nothing was updated (on_nan "skip") */
    uint64_t samples_digest; /* of the ids of the samples that all ranks ran, see metrics.jsonl */
} ls_step_report;

/* Counts of one evaluation; nothing but integers and the loss decide the metrics. */
typedef struct ls_evaluation_report {
    const char *name; /* "validation", "test", or the file's path */
    double epoch;     /* -1 outside training */
    int64_t step;
    int64_t samples, tokens;
    int32_t classes;
    const char *const *labels; /* [classes] */
    const int64_t *confusion;  /* [classes][classes]: row is the true class, column the predicted */
    double loss, accuracy;
    double macro_f1; /* mean of the classes' F1; a class that never occurs counts as 0,
                        one that occurs neither in truth nor in prediction is left out */
    double seconds;
} ls_evaluation_report;

/* One prediction, in the order of the rows. Borrowed during the call. */
typedef struct ls_prediction {
    int64_t row;                        /* counted from 0, bad rows left out */
    int32_t classes, prediction, label; /* label -1: the row has none */
    const char *const *labels;          /* [classes] */
    const float *probabilities;         /* [classes] */
} ls_prediction;

/* Any function may be NULL. All but the last two are called on the caller's thread. With several
 * processes only the first one calls step, evaluation, stage and message. */
typedef struct ls_callbacks {
    void *context;
    /* A long preparation: "reading train.tsv", done of total (0: unknown). */
    void (*stage)(void *context, const char *what, int64_t done, int64_t total);
    void (*step)(void *context, const ls_step_report *report);
    void (*evaluation)(void *context, const ls_evaluation_report *report);
    void (*prediction)(void *context, const ls_prediction *prediction);
    void (*message)(void *context, const char *line); /* notes and warnings, one line */
    /* Asked after each step: true stops the run there, the model is written. Asked now and then
     * while data is read, too: true ends the call, nothing is written. */
    bool (*should_stop)(void *context);
    /* With several processes, from any thread of any of them. A rank keeps others waiting: one line
     * that says which, for how long, and for what. */
    void (*late)(void *context, const char *line);
    /* Asked many times a second while something waits: true when whoever started the processes says
     * that one of them is gone. The call then ends with LS_LOST. */
    bool (*peer_is_gone)(void *context);
} ls_callbacks;

typedef struct ls_train_report {
    int64_t steps;                         /* done in all, those before a resumed one too */
    int64_t resumed_step;                  /* the step that the run went on from; 0: the start */
    int64_t skipped_steps;                 /* of all: those that updated nothing */
    bool stopped;                          /* should_stop ended it before its time */
    double seconds;                        /* of training, evaluations not counted */
    int64_t planned_bytes, measured_bytes; /* of the device's memory, at the end */
    /* Of one device, at the end; 0 where nothing is offloaded. */
    int64_t planned_host_bytes, measured_host_bytes; /* of the host's memory */
    int64_t planned_file_bytes, measured_file_bytes; /* on a disk */
    char weights_sha256[65]; /* of model.safetensors; the first process only */
    int rank, ranks;         /* this process's first one, and how many in all */
} ls_train_report;

#endif
