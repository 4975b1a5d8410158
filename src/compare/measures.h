/* The numbers of a row: one list for compare.json, compare.csv and what is read of run.json. */
#ifndef LS_COMPARE_MEASURES_H
#define LS_COMPARE_MEASURES_H

#include <stddef.h>
#include <stdint.h>

/* Where a number comes from. */
typedef enum ls_measure_source {
    LS_MEASURE_TIMING, /* the timing run of median speed */
    LS_MEASURE_FULL,   /* the first seed's full run */
    LS_MEASURE_SEEDS,  /* full runs: the mean over the seeds, or its deviation */
    LS_MEASURE_ROWS,   /* from other rows and numbers */
} ls_measure_source;

/* X(name, key in compare.json and compare.csv, key in run.json or "", source). Keys in run.json are
 * looked up in "results", then at the root; "a.b" is key b of object a. */
#define LS_MEASURES(X)                                                                             \
    X(SAMPLES_PER_SECOND, "samples_per_second", "", TIMING)                                        \
    X(REAL_TOKENS_PER_SECOND, "real_tokens_per_second", "", TIMING)                                \
    X(STEP_MS_MEDIAN, "step_ms_median", "", ROWS)                                                  \
    X(STEP_MS_P95, "step_ms_p95", "", ROWS)                                                        \
    X(SPEED_UP, "speed_up", "", ROWS)                                                              \
    X(EFFICIENCY, "efficiency", "", ROWS)                                                          \
    X(PLANNED_DEVICE_BYTES, "planned_device_bytes", "planned_bytes", FULL)                         \
    X(PEAK_DEVICE_BYTES, "peak_device_bytes", "measured_bytes", FULL)                              \
    X(HOST_PEAK_BYTES, "host_peak_bytes", "host_peak_bytes", FULL)                                 \
    X(ELEMENTS_SENT_PER_STEP, "elements_sent_per_step", "elements_sent_per_step", FULL)            \
    X(BYTES_SENT_PER_STEP, "bytes_sent_per_step", "bytes_sent_per_step", FULL)                     \
    X(EXPOSED_COMMUNICATION_MS, "exposed_communication_ms", "exposed_communication_ms", TIMING)    \
    X(SHARE_FORWARD, "share_forward", "share.forward", TIMING)                                     \
    X(SHARE_BACKWARD, "share_backward", "share.backward", TIMING)                                  \
    X(SHARE_EXCHANGE, "share_exchange", "share.exchange", TIMING)                                  \
    X(SHARE_OPTIMIZER, "share_optimizer", "share.optimizer", TIMING)                               \
    X(SHARE_DATA, "share_data", "share.data", TIMING)                                              \
    X(FLOPS_PER_STEP, "flops_per_step", "flops_per_step", TIMING)                                  \
    X(FLOPS_PER_SECOND, "flops_per_second", "flops_per_second", TIMING)                            \
    X(SHARE_OF_PEAK, "share_of_peak", "", ROWS)                                                    \
    X(OP_BYTES_PER_SECOND, "op_bytes_per_second", "", FULL)                                        \
    X(SECONDS_TO_TARGET_ACCURACY, "seconds_to_target_accuracy", "", ROWS)                          \
    X(FINAL_LOSS, "final_loss", "", SEEDS)                                                         \
    X(FINAL_LOSS_DEVIATION, "final_loss_deviation", "", SEEDS)                                     \
    X(ACCURACY, "accuracy", "", SEEDS)                                                             \
    X(ACCURACY_DEVIATION, "accuracy_deviation", "", SEEDS)                                         \
    X(MACRO_F1, "macro_f1", "", SEEDS)                                                             \
    X(MACRO_F1_DEVIATION, "macro_f1_deviation", "", SEEDS)

typedef enum ls_measure {
#define LS_MEASURE_ENUM(name, key, run_key, source) LS_MEASURE_##name,
    LS_MEASURES(LS_MEASURE_ENUM)
#undef LS_MEASURE_ENUM
        LS_MEASURE_COUNT
} ls_measure;

typedef struct ls_measure_row {
    const char *key, *run_key;
    ls_measure_source source;
} ls_measure_row;
extern const ls_measure_row ls_measure_table[LS_MEASURE_COUNT];

/* Median and percentile (0 .. 100, nearest rank) of `count` values, NaN for none; `values` is put
 * in order. Mean and sample deviation: NaN for none; the deviation of one value is NaN. */
double ls_percentile(double *values, size_t count, double percent);
double ls_median(double *values, size_t count);
void ls_mean_and_deviation(const double *values, size_t count, double *mean, double *deviation);

#endif
