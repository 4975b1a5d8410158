#include "cli/progress_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/format.h"

enum { PART_BYTES = 64, SMALLEST_BAR = 6, LARGEST_BAR = 32 };

/* In the order of the line. */
enum { STEP, LOSS, RATE, NORM, SPEED, LEFT, MEMORY, PARTS };

int ls_progress_percent(int64_t done, int64_t total)
{
    if (total <= 0 || done <= 0) return 0;
    if (done >= total) return 100;
    return (int)((double)done / (double)total * 100);
}

static void write_parts(char part[PARTS][PART_BYTES], const ls_step_report *report)
{
    char number[LS_FORMAT_BYTES];
    /* As wide at the first step as at the last, so that nothing moves. */
    snprintf(number, sizeof number, "%" PRId64, report->total_steps);
    snprintf(part[STEP], PART_BYTES, "%*" PRId64 "/%s", (int)strlen(number), report->step, number);
    snprintf(part[LOSS], PART_BYTES, "loss %.4f", report->loss);
    snprintf(part[RATE], PART_BYTES, "lr %.2e", report->learning_rate);
    snprintf(part[NORM], PART_BYTES, "norm %.3g", report->gradient_norm);
    double speed = report->tokens_per_second;
    snprintf(part[SPEED], PART_BYTES, "%s tok/s",
             ls_format_count(number, speed > 0 && speed < 1e15 ? (int64_t)speed : 0));
    snprintf(part[LEFT], PART_BYTES, "%s left", ls_format_duration(number, report->seconds_left));
    snprintf(part[MEMORY], PART_BYTES, "%s a device",
             ls_format_bytes(number, report->device_bytes));
}

/* "[=====>    ]" of `width` columns. */
static void draw_bar(char *into, int width, const ls_step_report *report)
{
    int room = width - 2, filled = 0;
    if (report->total_steps > 0)
        filled = (int)((double)report->step / (double)report->total_steps * room);
    if (filled > room) filled = room;
    *into++ = '[';
    for (int i = 0; i < room; i++)
        *into++ = i < filled - 1 ? '=' : i == filled - 1 ? (filled == room ? '=' : '>') : ' ';
    *into++ = ']';
    *into = '\0';
}

void ls_progress_live_line(char *into, size_t bytes, int columns, const ls_step_report *report)
{
    /* Least wanted first; the step itself always stays. */
    static const int dropped[] = {MEMORY, NORM, RATE, SPEED, LEFT, LOSS};
    char part[PARTS][PART_BYTES], line[512], bar[LARGEST_BAR + 1];
    bool kept[PARTS] = {true, true, true, true, true, true, report->device_bytes > 0};
    int used = 0, bar_columns = 0;
    size_t at = 0;
    write_parts(part, report);
    for (int i = 0; i < PARTS; i++)
        if (kept[i]) used += (int)strlen(part[i]) + (i ? 2 : 0);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        if (used + SMALLEST_BAR + 1 <= columns) break;
        /* The bar is worth less than the loss and the time left. */
        if (i >= 4 && used <= columns) break;
        if (!kept[dropped[i]]) continue;
        kept[dropped[i]] = false;
        used -= (int)strlen(part[dropped[i]]) + 2;
    }
    if (columns - used - 1 >= SMALLEST_BAR) {
        bar_columns = columns - used - 1 < LARGEST_BAR ? columns - used - 1 : LARGEST_BAR;
        draw_bar(bar, bar_columns, report);
        at += (size_t)snprintf(line, sizeof line, "%s ", bar);
    }
    for (int i = 0; i < PARTS; i++)
        if (kept[i])
            at += (size_t)snprintf(line + at, sizeof line - at, "%s%s", i ? "  " : "", part[i]);
    ls_columns_fit(into, bytes, line, columns);
}

void ls_progress_plain_line(char *into, size_t bytes, const ls_step_report *report)
{
    char speed[LS_FORMAT_BYTES], left[LS_FORMAT_BYTES];
    double tokens = report->tokens_per_second;
    snprintf(into, bytes,
             "step %" PRId64 "/%" PRId64 " (%d %%)  epoch %.2f  loss %.4f  learning rate %.2e  "
             "gradient norm %.3g  %s tokens/s  %s left",
             report->step, report->total_steps,
             ls_progress_percent(report->step, report->total_steps), report->epoch, report->loss,
             report->learning_rate, report->gradient_norm,
             ls_format_count(speed, tokens > 0 && tokens < 1e15 ? (int64_t)tokens : 0),
             ls_format_duration(left, report->seconds_left));
}

void ls_progress_breakdown_line(char *into, size_t bytes, const ls_step_report *report)
{
    snprintf(into, bytes,
             "step %lld/%lld  data %.2f ms  forward %.2f ms  backward %.2f ms  exchange %.2f ms  "
             "optimizer %.2f ms",
             (long long)report->step, (long long)report->total_steps, 1e3 * report->data_seconds,
             1e3 * report->forward_seconds, 1e3 * report->backward_seconds,
             1e3 * report->exchange_seconds, 1e3 * report->optimizer_seconds);
}

void ls_progress_stage_line(char *into, size_t bytes, int columns, const char *what, int64_t done,
                            int64_t total)
{
    char percent[16] = "";
    if (total > 0) snprintf(percent, sizeof percent, " %d %%", ls_progress_percent(done, total));
    int rest = (int)strlen(percent);
    if (columns <= rest || bytes <= (size_t)rest) {
        into[0] = '\0';
        return;
    }
    ls_columns_fit(into, bytes - (size_t)rest, what, columns - rest);
    memcpy(into + strlen(into), percent, (size_t)rest + 1);
}
