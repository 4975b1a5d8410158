#include "compare/measures.h"

#include <math.h>
#include <stdlib.h>

const ls_measure_row ls_measure_table[LS_MEASURE_COUNT] = {
#define LS_MEASURE_ROW(name, key, run_key, source) {key, run_key, LS_MEASURE_##source},
    LS_MEASURES(LS_MEASURE_ROW)
#undef LS_MEASURE_ROW
};

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

double ls_percentile(double *values, size_t count, double percent)
{
    if (count == 0) return NAN;
    qsort(values, count, sizeof *values, by_value);
    double rank = ceil(percent / 100 * (double)count);
    size_t index = rank > 1 ? (size_t)rank - 1 : 0;
    return values[index < count ? index : count - 1];
}

double ls_median(double *values, size_t count)
{
    if (count == 0) return NAN;
    qsort(values, count, sizeof *values, by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

void ls_mean_and_deviation(const double *values, size_t count, double *mean, double *deviation)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    *mean = count ? sum / (double)count : NAN;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - *mean) * (values[i] - *mean);
    *deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : NAN;
}
