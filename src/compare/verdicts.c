/* Plain sentences about a finished comparison. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compare/rows.h"

/* Speeds closer than this are called equal: rounds of one strategy differ as much. */
static const double equal_speeds = 0.02;
/* From here on a cause is worth a sentence. */
static const double bandwidth_limit = 0.7, waiting_limit = 0.05, optimizer_limit = 0.1;

typedef struct sentence {
    char text[LS_COMPARE_VERDICT_BYTES];
} sentence;

static void __attribute__((format(printf, 2, 3))) add(sentence *into, const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(into->text);
    va_start(arguments, format);
    vsnprintf(into->text + used, sizeof into->text - used, format, arguments);
    va_end(arguments);
}

static void conclude(ls_comparison *comparison, const char *kind, const sentence *text)
{
    if (comparison->verdict_count == LS_COMPARE_VERDICTS) return;
    ls_compare_verdict *verdict = &comparison->verdicts[comparison->verdict_count++];
    verdict->kind = kind;
    memcpy(verdict->text, text->text, sizeof verdict->text);
}

static double value(const ls_compare_row *row, ls_measure measure)
{
    return row->values[measure];
}

static double speed(const ls_compare_row *row)
{
    return value(row, LS_MEASURE_SAMPLES_PER_SECOND);
}

/* Three figures: 1,234 is "1234", 45.678 is "45.7". */
static const char *figures(char into[32], double number)
{
    int decimals = number >= 100 ? 0 : number >= 10 ? 1 : 2;
    snprintf(into, 32, "%.*f", decimals, number);
    return into;
}

static const char *mebibytes(char into[32], double bytes)
{
    snprintf(into, 32, "%.1f MiB", bytes / (1 << 20));
    return into;
}

/* "ddp on 2 devices", "single", "single, all cores". */
static const char *title(char into[128], const ls_compare_row *row)
{
    if (row->devices > 1)
        snprintf(into, 128, "%s on %" PRId64 " devices", row->name, row->devices);
    else
        snprintf(into, 128, "%s", row->name);
    return into;
}

static bool is_done(const ls_compare_row *row)
{
    return row->state == LS_COMPARE_DONE;
}

/* The row with the most or the least of a measure, of those with several devices or of all. */
static const ls_compare_row *extreme(const ls_comparison *comparison, ls_measure measure, int sign,
                                     bool several_devices)
{
    const ls_compare_row *best = NULL;
    for (size_t i = 0; i < comparison->strategy_rows; i++) {
        const ls_compare_row *row = &comparison->rows[i];
        double here = row->values[measure];
        if (!is_done(row) || !isfinite(here) || (several_devices && row->devices == 1)) continue;
        if (!best || sign * here > sign * best->values[measure]) best = row;
    }
    return best;
}

static void judge_failures(ls_comparison *comparison)
{
    for (size_t i = 0; i < comparison->row_count; i++) {
        const ls_compare_row *row = &comparison->rows[i];
        sentence text = {""};
        if (is_done(row)) continue;
        add(&text, "%s was not compared (%s): %s", row->name, ls_compare_state_name(row->state),
            row->reason);
        conclude(comparison, "failed", &text);
    }
}

static void judge_speed(ls_comparison *comparison)
{
    const ls_compare_row *best = extreme(comparison, LS_MEASURE_SAMPLES_PER_SECOND, 1, false);
    char name[128], number[32], ratio[32];
    sentence text = {""};
    if (!best) return;
    add(&text, "Fastest: %s with %s samples/s", title(name, best), figures(number, speed(best)));
    if (isfinite(value(best, LS_MEASURE_SPEED_UP)) && strcmp(best->name, LS_COMPARE_BASE) != 0)
        add(&text, ", %s times single", figures(ratio, value(best, LS_MEASURE_SPEED_UP)));
    const char *separator = "; as fast, within 2 %: ";
    for (size_t i = 0; i < comparison->strategy_rows; i++) {
        const ls_compare_row *row = &comparison->rows[i];
        if (row == best || !is_done(row) || !(speed(row) > (1 - equal_speeds) * speed(best)))
            continue;
        add(&text, "%s%s", separator, title(name, row));
        separator = ", ";
    }
    add(&text, ".");
    conclude(comparison, "fastest", &text);
}

static void judge_memory(ls_comparison *comparison)
{
    const ls_compare_row *best = extreme(comparison, LS_MEASURE_PEAK_DEVICE_BYTES, -1, false);
    const ls_compare_row *base = ls_compare_base(comparison, comparison->options->batch_size);
    char name[128], number[32], ratio[32];
    sentence text = {""};
    if (!best) return;
    double bytes = value(best, LS_MEASURE_PEAK_DEVICE_BYTES);
    add(&text, "Smallest: %s with %s on a device", title(name, best), mebibytes(number, bytes));
    if (base && base != best)
        add(&text, ", %s times what single needs",
            figures(ratio, bytes / value(base, LS_MEASURE_PEAK_DEVICE_BYTES)));
    add(&text, ".");
    conclude(comparison, "smallest", &text);
}

/* Adds why `row` is not as fast as its devices could be, as far as it was measured. */
static void add_causes(sentence *text, const ls_comparison *comparison, const ls_compare_row *row)
{
    double machine = comparison->machine.bytes_per_second;
    double bytes = value(row, LS_MEASURE_OP_BYTES_PER_SECOND);
    double waiting = value(row, LS_MEASURE_SHARE_EXCHANGE);
    double optimizer = value(row, LS_MEASURE_SHARE_OPTIMIZER);
    size_t before = strlen(text->text);
    char first[32], second[32];
    figures(first, 1e-9 * bytes);
    figures(second, 1e-9 * machine);
    if (bytes > machine)
        add(text,
            " Memory bandwidth: ops of %" PRId64 " devices touch %s GB/s, more than the %s that "
            "memory was measured to move: caches help, or other programs ran meanwhile.",
            row->devices, first, second);
    else if (bytes >= bandwidth_limit * machine)
        add(text, " Memory bandwidth: %" PRId64 " devices read and write %s GB/s of %s.",
            row->devices, first, second);
    if (waiting >= waiting_limit)
        add(text, " Communication: %.0f %% of a step is spent waiting for the exchange.",
            100 * waiting);
    if (optimizer >= optimizer_limit)
        add(text, " The optimizer takes %.0f %% of a step.", 100 * optimizer);
    /* Behind the semicolon is a rate of the profile's steps: the table has that of the timing. */
    if (strlen(text->text) == before && *row->full.bottleneck)
        add(text, " Its profile names %.*s.", (int)strcspn(row->full.bottleneck, ";"),
            row->full.bottleneck);
}

static void judge_devices(ls_comparison *comparison)
{
    const ls_compare_options *options = comparison->options;
    const ls_compare_row *several = extreme(comparison, LS_MEASURE_SAMPLES_PER_SECOND, 1, true);
    const ls_compare_row *whole = ls_compare_all_cores(comparison);
    char name[128], ratio[32];
    sentence text = {""};
    if (!several || !whole) return;
    double gain = speed(several) / speed(whole);
    if (gain > 1 + equal_speeds) {
        add(&text,
            "More devices pay on this machine: %s is %s times as fast as one device with the "
            "same %" PRId64 " cores.",
            title(name, several), figures(ratio, gain), whole->threads);
        conclude(comparison, "devices", &text);
        return;
    }
    add(&text,
        "More devices do not make it faster on this machine: %s has %s times the speed of one "
        "device with the same %" PRId64 " cores.",
        title(name, several), figures(ratio, gain), whole->threads);
    if (options->devices > options->cores)
        add(&text, " There are fewer cores (%" PRId64 ") than devices: they take turns.",
            options->cores);
    size_t before = strlen(text.text);
    add_causes(&text, comparison, several);
    if (strlen(text.text) == before)
        add(&text, " Nothing stands out: one device uses the same cores as well.");
    const ls_compare_row *small = extreme(comparison, LS_MEASURE_PEAK_DEVICE_BYTES, -1, true);
    if (small && value(small, LS_MEASURE_PEAK_DEVICE_BYTES) <
                     0.95 * value(whole, LS_MEASURE_PEAK_DEVICE_BYTES))
        add(&text, " What they give here is room: %s takes %s times the memory on each.",
            title(name, small),
            figures(ratio, value(small, LS_MEASURE_PEAK_DEVICE_BYTES) /
                               value(whole, LS_MEASURE_PEAK_DEVICE_BYTES)));
    conclude(comparison, "devices", &text);
}

static void judge_scaling(ls_comparison *comparison)
{
    const ls_compare_row *several = extreme(comparison, LS_MEASURE_SPEED_UP, 1, true);
    const ls_compare_row *whole = ls_compare_all_cores(comparison);
    char name[128], ratio[32];
    sentence text = {""};
    if (!several) return;
    add(&text,
        "Scaling: %s is %s times as fast as one device of the same size, %.0f %% of what its "
        "devices could give.",
        title(name, several), figures(ratio, value(several, LS_MEASURE_SPEED_UP)),
        100 * value(several, LS_MEASURE_EFFICIENCY));
    /* Where devices do not pay the causes were given already. */
    bool told = whole && speed(several) <= (1 + equal_speeds) * speed(whole);
    if (value(several, LS_MEASURE_EFFICIENCY) < 0.9 && !told)
        add_causes(&text, comparison, several);
    conclude(comparison, "scaling", &text);
}

static void judge_bits(ls_comparison *comparison)
{
    size_t equal = 0, different = 0;
    sentence text = {""};
    for (size_t i = 0; i < comparison->row_count; i++) {
        const ls_compare_row *row = &comparison->rows[i];
        equal += is_done(row) && row->same_bits == 1;
        if (row->same_bits != 0) continue;
        add(&text, "%s%s (batch size %" PRId64 ")",
            different++ ? ", " : "Other bits than single: ", row->name, row->batch_size);
    }
    const ls_compare_row *base = ls_compare_base(comparison, comparison->options->batch_size);
    if (different) {
        add(&text, ". This must not be: please report it.");
    } else if (equal > 1 && base) {
        add(&text, "Same bits: all %zu rows that ran end with the weights of single", equal);
        if (isfinite(value(base, LS_MEASURE_ACCURACY)))
            add(&text, ", so accuracy is the same for all: %.4f on the %s file",
                value(base, LS_MEASURE_ACCURACY), base->full.evaluated_on);
        add(&text, ".");
    }
    if (*text.text) conclude(comparison, "bits", &text);
}

static void judge_target(ls_comparison *comparison)
{
    const ls_compare_options *options = comparison->options;
    char name[128], number[32];
    sentence text = {""};
    if (!(options->target_accuracy > 0)) return;
    const ls_compare_row *best =
        extreme(comparison, LS_MEASURE_SECONDS_TO_TARGET_ACCURACY, -1, false);
    if (best)
        add(&text, "Accuracy %g on the validation file is reached first by %s, after %s s.",
            options->target_accuracy, title(name, best),
            figures(number, value(best, LS_MEASURE_SECONDS_TO_TARGET_ACCURACY)));
    else
        add(&text, "Accuracy %g on the validation file was not reached.", options->target_accuracy);
    conclude(comparison, "target", &text);
}

/* The fastest of the study, beside the same strategy at the base batch size. */
static void judge_batch_sizes(ls_comparison *comparison)
{
    const ls_compare_row *best = NULL, *base = NULL;
    char first[32], second[32];
    sentence text = {""};
    for (size_t i = comparison->strategy_rows; i < comparison->row_count; i++) {
        const ls_compare_row *row = &comparison->rows[i];
        if (is_done(row) && (!best || speed(row) > speed(best))) best = row;
    }
    for (size_t i = 0; best && i < comparison->strategy_rows; i++)
        if (strcmp(comparison->rows[i].name, best->name) == 0) base = &comparison->rows[i];
    if (!base || !is_done(base)) return;
    add(&text, "Batch size %" PRId64 " gives %s samples/s under %s, %s times batch size %" PRId64,
        best->batch_size, figures(first, speed(best)), best->name,
        figures(second, speed(best) / speed(base)), base->batch_size);
    if (isfinite(value(best, LS_MEASURE_ACCURACY)))
        add(&text, "; accuracy is %.4f instead of %.4f", value(best, LS_MEASURE_ACCURACY),
            value(base, LS_MEASURE_ACCURACY));
    add(&text, ".");
    conclude(comparison, "batch", &text);
}

void ls_compare_judge(ls_comparison *comparison)
{
    comparison->verdict_count = 0;
    judge_speed(comparison);
    judge_memory(comparison);
    judge_devices(comparison);
    judge_scaling(comparison);
    judge_bits(comparison);
    judge_target(comparison);
    judge_batch_sizes(comparison);
    judge_failures(comparison);
}
