/* Event files, CSV files and the Prometheus file, read back as their readers do. */
#include "testing.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "monitor/csv.h"
#include "monitor/prometheus.h"
#include "monitor/tensorboard.h"

static const int64_t confusion[] = {5, 1, 2, 4};
static const ls_evaluation_report evaluation_report = {.name = "validation",
                                                       .step = 3,
                                                       .samples = 12,
                                                       .classes = 2,
                                                       .confusion = confusion,
                                                       .loss = 0.5,
                                                       .accuracy = 0.75,
                                                       .macro_f1 = 0.74};

static ls_step_report report_of(int64_t step, double loss)
{
    return (ls_step_report){.step = step,
                            .total_steps = 10,
                            .loss = loss,
                            .learning_rate = 5e-5,
                            .gradient_norm = 1.5,
                            .samples = 32,
                            .tokens = 900,
                            .step_seconds = 0.25,
                            .tokens_per_second = 3600,
                            .samples_done = 32 * step,
                            .tokens_done = 900 * step,
                            .skipped_steps = 1,
                            .backward_seconds = 0.125};
}

/* Three steps, the second one with a loss that is no number, and an evaluation. */
static void write_run(ls_sink *sink)
{
    ls_error error;
    for (int64_t step = 1; step <= 3; step++) {
        ls_step_report report = report_of(step, step == 2 ? NAN : (double)step / 4);
        assert_ok(sink->operations->step(sink, &report, &error), error);
    }
    assert_ok(sink->operations->evaluation(sink, &evaluation_report, &error), error);
    assert_ok(sink->operations->finish(sink, &error), error);
    sink->operations->free(sink);
}

static char *read_whole(const char *path, size_t *bytes)
{
    ls_error error;
    char *text = NULL;
    assert_ok(ls_file_read(&text, bytes, path, 1 << 20, &error), error);
    return text;
}

/* --- TensorBoard -------------------------------------------------------------------------------
 */

/* The only file of the folder. */
static const char *event_file(const char *folder)
{
    static char path[4096];
    int files = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        assert_non_null(strstr(entry->d_name, "events.out.tfevents."));
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files++;
    }
    closedir(entries);
    assert_int_equal(files, 1);
    return path;
}

static uint64_t read_varint(const unsigned char **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        value |= (uint64_t)(**at & 0x7f) << shift;
        if (!(*(*at)++ & 0x80)) return value;
    }
}

typedef struct event {
    int64_t step;
    char tags[16][64];
    float values[16];
    int count;
    char version[64];
} event;

static void read_value(event *into, const unsigned char *at, const unsigned char *end)
{
    while (at < end) {
        uint64_t key = read_varint(&at);
        if (key == (1 << 3 | 2)) {
            uint64_t length = read_varint(&at);
            snprintf(into->tags[into->count], 64, "%.*s", (int)length, (const char *)at);
            at += length;
        } else {
            assert_int_equal(key, 2 << 3 | 5);
            memcpy(&into->values[into->count], at, 4);
            at += 4;
        }
    }
    into->count++;
}

static event read_event(const unsigned char *at, const unsigned char *end)
{
    event found = {0};
    while (at < end) {
        uint64_t key = read_varint(&at), length;
        switch (key) {
        case 1 << 3 | 1: /* wall_time */
            at += 8;
            break;
        case 2 << 3 | 0:
            found.step = (int64_t)read_varint(&at);
            break;
        case 3 << 3 | 2:
            length = read_varint(&at);
            snprintf(found.version, sizeof found.version, "%.*s", (int)length, (const char *)at);
            at += length;
            break;
        default:
            assert_int_equal(key, 5 << 3 | 2);
            length = read_varint(&at);
            for (const unsigned char *stop = at + length; at < stop;) {
                assert_int_equal(read_varint(&at), 1 << 3 | 2);
                length = read_varint(&at);
                read_value(&found, at, at + length);
                at += length;
            }
        }
    }
    return found;
}

static int read_events(const unsigned char *bytes, size_t count, event *events, int most)
{
    int found = 0;
    for (size_t at = 0; at < count;) {
        uint64_t length;
        uint32_t head, body;
        assert_true(found < most && at + 16 <= count);
        memcpy(&length, bytes + at, 8);
        memcpy(&head, bytes + at + 8, 4);
        assert_int_equal(head, ls_masked_crc32c(bytes + at, 8));
        assert_true(at + 16 + length <= count);
        memcpy(&body, bytes + at + 12 + length, 4);
        assert_int_equal(body, ls_masked_crc32c(bytes + at + 12, length));
        events[found++] = read_event(bytes + at + 12, bytes + at + 12 + length);
        at += 16 + length;
    }
    return found;
}

static float value_of(const event *from, const char *tag)
{
    for (int i = 0; i < from->count; i++)
        if (strcmp(from->tags[i], tag) == 0) return from->values[i];
    fail_msg("no %s in the event of step %lld", tag, (long long)from->step);
    return 0;
}

/* RFC 3720, appendix B.4: 32 zero bytes, and 32 ascending ones. */
static void the_checksum_is_crc32c(void **state)
{
    (void)state;
    unsigned char zeros[32] = {0}, ascending[32];
    for (int i = 0; i < 32; i++)
        ascending[i] = (unsigned char)i;
    const struct known {
        const unsigned char *bytes;
        uint32_t crc;
    } known[] = {{zeros, 0x8a9136aa}, {ascending, 0x46dd794e}};
    for (int i = 0; i < 2; i++) {
        uint32_t crc = known[i].crc;
        assert_int_equal(ls_masked_crc32c(known[i].bytes, 32),
                         (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8));
    }
}

static void an_event_file_holds_every_number(void **state)
{
    (void)state;
    ls_error error;
    ls_sink *sink = NULL;
    event events[8];
    char *folder = test_folder();
    const char *board = test_path(folder, "new/board");
    assert_ok(ls_tensorboard_open(&sink, board, &error), error);
    write_run(sink);
    size_t bytes;
    char *file = read_whole(event_file(board), &bytes);
    assert_int_equal(read_events((unsigned char *)file, bytes, events, 8), 5);
    assert_string_equal(events[0].version, "brain.Event:2");
    assert_int_equal(events[1].step, 1);
    assert_true(value_of(&events[1], "train/loss") == 0.25f);
    assert_true(isnan(value_of(&events[2], "train/loss")));
    assert_int_equal(events[3].step, 3);
    assert_true(value_of(&events[3], "train/learning_rate") == 5e-5f);
    assert_true(value_of(&events[3], "train/gradient_norm") == 1.5f);
    assert_true(value_of(&events[3], "train/tokens_per_second") == 3600);
    assert_true(value_of(&events[3], "train/skipped_steps") == 1);
    assert_true(value_of(&events[4], "validation/accuracy") == 0.75f);
    assert_true(value_of(&events[4], "validation/loss") == 0.5f);
    ls_free(file);
    test_folder_remove(folder);
}

/* --- CSV ---------------------------------------------------------------------------------------
 */

static void check_file(const char *folder, const char *name, const char *wanted)
{
    size_t bytes;
    char *text = read_whole(test_path(folder, name), &bytes);
    assert_string_equal(text, wanted);
    ls_free(text);
}

static void csv_files_are_those_of_deepspeed(void **state)
{
    (void)state;
    ls_error error;
    ls_sink *sink = NULL;
    char *folder = test_folder();
    for (int run = 0; run < 3; run++) {
        assert_ok(ls_csv_open(&sink, folder, "job", run == 2, &error), error);
        write_run(sink);
        if (run == 2) break;
        check_file(folder, "job/Train_Samples_lr.csv", "step,lr\n32,5e-05\n64,5e-05\n96,5e-05\n");
        check_file(folder, "job/Train_Samples_train_loss.csv",
                   "step,train_loss\n32,0.25\n64,nan\n96,0.75\n");
        check_file(folder, "job/Train_Samples_elapsed_time_ms_backward.csv",
                   "step,elapsed_time_ms_backward\n32,125\n64,125\n96,125\n");
        check_file(folder, "job/Validation_Samples_accuracy.csv", "step,accuracy\n96,0.75\n");
    }
    /* A run that goes on writes no second header. */
    check_file(folder, "job/Validation_Samples_accuracy.csv", "step,accuracy\n96,0.75\n96,0.75\n");
    test_folder_remove(folder);
}

/* --- Prometheus --------------------------------------------------------------------------------
 */

static void has_line(const char *text, const char *line)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, "\n%s\n", line);
    if (!strstr(text, wanted)) fail_msg("no line '%s' in\n%s", line, text);
}

static void the_prometheus_file_holds_the_last_numbers(void **state)
{
    (void)state;
    ls_error error;
    ls_sink *sink = NULL;
    size_t bytes;
    char *folder = test_folder();
    const char *path = test_path(folder, "lockstep.prom");
    assert_ok(ls_prometheus_open(&sink, path, "out\"put\\", &error), error);
    char *text = read_whole(path, &bytes);
    assert_null(strstr(text, "train_loss")); /* no step yet, no loss */
    ls_free(text);
    write_run(sink);
    text = read_whole(path, &bytes);
    has_line(text, "lockstep_steps_total{run=\"out\\\"put\\\\\"} 3");
    has_line(text, "lockstep_samples_total{run=\"out\\\"put\\\\\"} 96");
    has_line(text, "lockstep_skipped_steps_total{run=\"out\\\"put\\\\\"} 1");
    has_line(text, "# TYPE lockstep_train_loss gauge");
    has_line(text, "lockstep_train_loss{run=\"out\\\"put\\\\\"} 0.75");
    has_line(text, "lockstep_evaluation_accuracy{run=\"out\\\"put\\\\\",file=\"validation\"} 0.75");
    ls_free(text);
    test_folder_remove(folder);
}

static ino_t inode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_ino;
}

static void it_is_replaced_whole_and_seldom(void **state)
{
    (void)state;
    ls_error error;
    ls_sink *sink = NULL;
    size_t bytes;
    char *folder = test_folder();
    const char *path = test_path(folder, "lockstep.prom");
    assert_ok(ls_prometheus_open(&sink, path, "run", &error), error);
    ino_t first = inode_of(path);
    for (int64_t step = 1; step <= 50; step++) {
        ls_step_report report = report_of(step, INFINITY);
        assert_ok(sink->operations->step(sink, &report, &error), error);
    }
    assert_int_equal(inode_of(path), first); /* 50 steps in much less than a second */
    assert_ok(sink->operations->finish(sink, &error), error);
    sink->operations->free(sink);
    assert_true(inode_of(path) != first);
    char *text = read_whole(path, &bytes);
    has_line(text, "lockstep_steps_total{run=\"run\"} 50");
    has_line(text, "lockstep_train_loss{run=\"run\"} +Inf");
    ls_free(text);
    test_folder_remove(folder);
}

/* --- all of them -------------------------------------------------------------------------------
 */

static ls_status open_kind(int kind, ls_sink **sink, const char *folder, ls_error *error)
{
    if (kind == 0) return ls_tensorboard_open(sink, test_path(folder, "board"), error);
    if (kind == 1) return ls_csv_open(sink, test_path(folder, "csv"), "job", false, error);
    return ls_prometheus_open(sink, test_path(folder, "run.prom"), "run", error);
}

static int refuse(void *context, size_t bytes)
{
    (void)context, (void)bytes;
    return 1;
}

static void steps_allocate_nothing(void **state)
{
    (void)state;
    ls_error error;
    char *folder = test_folder();
    for (int kind = 0; kind < 3; kind++) {
        ls_sink *sink = NULL;
        assert_ok(open_kind(kind, &sink, folder, &error), error);
        ls_set_allocation_hook(refuse, NULL);
        ls_step_report report = report_of(INT64_MAX / 2000, -1.7976931348623157e308);
        ls_status status = sink->operations->step(sink, &report, &error);
        if (status == LS_OK) status = sink->operations->finish(sink, &error);
        ls_set_allocation_hook(NULL, NULL);
        assert_ok(status, error);
        sink->operations->free(sink);
    }
    test_folder_remove(folder);
}

static _Atomic long allocations_left;

static int fail_in_turn(void *context, size_t bytes)
{
    (void)context, (void)bytes;
    return allocations_left-- <= 0;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    char *folder = test_folder();
    for (int kind = 0; kind < 3; kind++) {
        size_t bytes = ls_allocated_bytes();
        ls_status status = LS_NO_MEMORY;
        for (long turn = 0; status != LS_OK; turn++) {
            ls_error error;
            ls_sink *sink = NULL;
            char *inside = test_folder();
            allocations_left = turn;
            ls_set_allocation_hook(fail_in_turn, NULL);
            status = open_kind(kind, &sink, inside, &error);
            ls_set_allocation_hook(NULL, NULL);
            if (status == LS_OK) sink->operations->free(sink);
            assert_true(status == LS_OK || status == LS_NO_MEMORY);
            assert_int_equal(ls_allocated_bytes(), bytes);
            test_folder_remove(inside);
        }
    }
    test_folder_remove(folder);
}

/* The limit on a file's size stands for a full disk. */
static void a_full_disk_is_named_and_leaves_whole_records(void **state)
{
    (void)state;
    struct rlimit former, tiny;
    event events[8];
    ls_error error;
    char *folder = test_folder();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &former), 0);
    for (int kind = 0; kind < 3; kind++) {
        ls_sink *sink = NULL;
        ls_status status = LS_OK;
        assert_ok(open_kind(kind, &sink, folder, &error), error);
        tiny = (struct rlimit){700, former.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
        for (int64_t step = 1; step <= 200 && status == LS_OK; step++) {
            ls_step_report report = report_of(step, 1);
            status = sink->operations->step(sink, &report, &error);
        }
        if (status == LS_OK) status = sink->operations->finish(sink, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &former), 0);
        sink->operations->free(sink);
        assert_int_equal(status, LS_IO);
        static const char *const names[] = {"tfevents", "Train_Samples_", "run.prom"};
        assert_non_null(strstr(error.text, names[kind]));
    }
    size_t bytes;
    char *file = read_whole(event_file(test_path(folder, "board")), &bytes);
    assert_true(read_events((unsigned char *)file, bytes, events, 8) >= 2);
    ls_free(file);
    test_folder_remove(folder);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_crc32c),
        cmocka_unit_test(an_event_file_holds_every_number),
        cmocka_unit_test(csv_files_are_those_of_deepspeed),
        cmocka_unit_test(the_prometheus_file_holds_the_last_numbers),
        cmocka_unit_test(it_is_replaced_whole_and_seldom),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_full_disk_is_named_and_leaves_whole_records),
    };
    return cmocka_run_group_tests_name("monitor/sinks", tests, NULL, NULL);
}
