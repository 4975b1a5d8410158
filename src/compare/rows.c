#include "compare/rows.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

const char *ls_compare_state_name(ls_compare_state state)
{
    static const char *const names[] = {"done", "refused", "failed", "killed"};
    return names[state];
}

/* In whatever state it is. */
static const ls_compare_row *find_base(const ls_comparison *comparison, int64_t batch_size)
{
    for (size_t i = 0; i < comparison->row_count; i++) {
        const ls_compare_row *row = &comparison->rows[i];
        if (strcmp(row->name, LS_COMPARE_BASE) == 0 && row->batch_size == batch_size) return row;
    }
    return NULL;
}

const ls_compare_row *ls_compare_base(const ls_comparison *comparison, int64_t batch_size)
{
    const ls_compare_row *base = find_base(comparison, batch_size);
    return base && base->state == LS_COMPARE_DONE ? base : NULL;
}

const ls_compare_row *ls_compare_all_cores(const ls_comparison *comparison)
{
    for (size_t i = 0; i < comparison->strategy_rows; i++) {
        const ls_compare_row *row = &comparison->rows[i];
        if (row->devices == 1 && row->threads > comparison->options->threads &&
            row->state == LS_COMPARE_DONE)
            return row;
    }
    return NULL;
}

/* The round of median speed; of an even number the slower one in the middle. */
static const ls_run_facts *median_round(const ls_compare_row *row)
{
    for (size_t i = 0; i < row->round_count; i++) {
        size_t slower = 0, equal = 0;
        double speed = row->rounds[i].values[LS_MEASURE_SAMPLES_PER_SECOND];
        for (size_t k = 0; k < row->round_count; k++) {
            slower += row->rounds[k].values[LS_MEASURE_SAMPLES_PER_SECOND] < speed;
            equal += row->rounds[k].values[LS_MEASURE_SAMPLES_PER_SECOND] == speed;
        }
        size_t middle = (row->round_count - 1) / 2;
        if (slower <= middle && middle < slower + equal) return &row->rounds[i];
    }
    return NULL;
}

static ls_status fill_step_times(ls_compare_row *row, ls_error *error)
{
    double *times;
    size_t count = 0, used = 0;
    for (size_t i = 0; i < row->round_count; i++)
        count += row->rounds[i].step_count;
    LS_TRY(LS_NEW(times, count, "step times", error));
    for (size_t i = 0; i < row->round_count; i++)
        for (size_t k = 0; k < row->rounds[i].step_count; k++)
            times[used++] = row->rounds[i].step_ms[k];
    row->values[LS_MEASURE_STEP_MS_MEDIAN] = ls_median(times, used);
    row->values[LS_MEASURE_STEP_MS_P95] = ls_percentile(times, used, 95);
    ls_free(times);
    return LS_OK;
}

static ls_status fill_seeds(ls_compare_row *row, ls_error *error)
{
    static const ls_measure means[] = {LS_MEASURE_FINAL_LOSS, LS_MEASURE_ACCURACY,
                                       LS_MEASURE_MACRO_F1};
    static const ls_measure deviations[] = {LS_MEASURE_FINAL_LOSS_DEVIATION,
                                            LS_MEASURE_ACCURACY_DEVIATION,
                                            LS_MEASURE_MACRO_F1_DEVIATION};
    double *values;
    LS_TRY(LS_NEW(values, row->seed_count, "seeds", error));
    for (int m = 0; m < 3; m++) {
        for (size_t i = 0; i < row->seed_count; i++)
            values[i] = m == 0   ? row->seeds[i].final_loss
                        : m == 1 ? row->seeds[i].accuracy
                                 : row->seeds[i].macro_f1;
        ls_mean_and_deviation(values, row->seed_count, &row->values[means[m]],
                              &row->values[deviations[m]]);
    }
    ls_free(values);
    return LS_OK;
}

/* Of the full runs that ended, also where a later run of the row or of the base failed. */
static void fill_bits(ls_compare_row *row, const ls_compare_row *base)
{
    for (size_t i = 0; i < row->seed_count; i++) {
        bool known = base && i < base->seed_count;
        row->seeds[i].same_bits =
            known ? strcmp(row->seeds[i].weights_sha256, base->seeds[i].weights_sha256) == 0 : -1;
    }
    row->same_bits = base && row->seed_count ? 1 : -1;
    for (size_t i = 0; i < row->seed_count; i++)
        if (row->seeds[i].same_bits != 1) row->same_bits = row->seeds[i].same_bits;
}

/* From the speed of the timing runs, so that it is as even-handed as they are. */
static void fill_target(ls_compare_row *row, double target)
{
    for (size_t i = 0; target > 0 && i < row->full.accuracy_count; i++) {
        const ls_compare_point *point = &row->full.accuracies[i];
        if (!(point->y >= target)) continue;
        row->values[LS_MEASURE_SECONDS_TO_TARGET_ACCURACY] =
            point->x * (double)row->batch_size / row->values[LS_MEASURE_SAMPLES_PER_SECOND];
        return;
    }
}

/* The best rate that a row's runs have shown: its profile's peak, or a timing run's own. */
static double best_rate(const ls_compare_row *row)
{
    double best = row->full.peak_flops_per_second;
    for (size_t i = 0; i < row->round_count; i++)
        best = fmax(best, row->rounds[i].values[LS_MEASURE_FLOPS_PER_SECOND]);
    return best;
}

/* Each profile measured the peak of its cores, perhaps while something else had a part of them: the
 * best that runs on as many cores have shown counts for all, so that none is above it. */
static void fill_share_of_peak(const ls_comparison *comparison, ls_compare_row *row)
{
    double peak = row->full.peak_flops_per_second;
    for (size_t i = 0; isfinite(peak) && i < comparison->row_count; i++) {
        const ls_compare_row *other = &comparison->rows[i];
        bool alike = other->devices * other->threads == row->devices * row->threads;
        if (alike && other->state == LS_COMPARE_DONE) peak = fmax(peak, best_rate(other));
    }
    row->values[LS_MEASURE_SHARE_OF_PEAK] = row->values[LS_MEASURE_FLOPS_PER_SECOND] / peak;
}

static void fill_speed_up(ls_compare_row *row, const ls_compare_row *base)
{
    if (!base) return;
    double speed_up =
        row->values[LS_MEASURE_SAMPLES_PER_SECOND] / base->values[LS_MEASURE_SAMPLES_PER_SECOND];
    double size = (double)(row->devices * row->threads) / (double)(base->devices * base->threads);
    row->values[LS_MEASURE_SPEED_UP] = speed_up;
    row->values[LS_MEASURE_EFFICIENCY] = speed_up / size;
}

ls_status ls_compare_rows_finish(ls_comparison *comparison, ls_error *error)
{
    for (size_t i = 0; i < comparison->row_count; i++) {
        ls_compare_row *row = &comparison->rows[i];
        for (int m = 0; m < LS_MEASURE_COUNT; m++)
            row->values[m] = NAN;
        row->same_bits = -1;
        comparison->any_failed |= row->state != LS_COMPARE_DONE;
        if (row->state != LS_COMPARE_DONE) continue;
        const ls_run_facts *middle = median_round(row);
        for (int m = 0; m < LS_MEASURE_COUNT; m++) {
            ls_measure_source source = ls_measure_table[m].source;
            if (source == LS_MEASURE_FULL) row->values[m] = row->full.values[m];
            if (source == LS_MEASURE_TIMING && middle) row->values[m] = middle->values[m];
        }
        LS_TRY(fill_step_times(row, error));
        LS_TRY(fill_seeds(row, error));
        fill_target(row, comparison->options->target_accuracy);
    }
    for (size_t i = 0; i < comparison->row_count; i++) {
        ls_compare_row *row = &comparison->rows[i];
        const ls_compare_row *base = ls_compare_base(comparison, row->batch_size);
        fill_bits(row, find_base(comparison, row->batch_size));
        comparison->any_different |= row->same_bits == 0;
        if (row->state != LS_COMPARE_DONE) continue;
        fill_share_of_peak(comparison, row);
        fill_speed_up(row, base);
    }
    return LS_OK;
}
