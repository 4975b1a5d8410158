/* mpirun's output taken apart: rank 0 as it is, others marked, mpirun's own words kept back; and
 * the first cause of a failure found in those. */
#include "testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "launch/cause.h"
#include "launch/output.h"

enum { STREAM = 1, TEXT_BYTES = 8192 };

typedef struct captured {
    ls_output *output;
    int files[2];
} captured;

static void open_capture(captured *capture, int ranks, bool tagged)
{
    ls_error error;
    for (int i = 0; i < 2; i++)
        capture->files[i] = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    const ls_output_options options = {
        .ranks = ranks, .tagged = tagged, .into = {capture->files[0], capture->files[1]}};
    assert_true(capture->files[0] >= 0 && capture->files[1] >= 0);
    assert_ok(ls_output_new(&capture->output, &options, &error), error);
}

/* In pieces of so many bytes. */
static void feed(captured *capture, const char *text, size_t piece)
{
    ls_error error;
    for (size_t at = 0, length = strlen(text); at < length; at += piece) {
        size_t count = length - at < piece ? length - at : piece;
        assert_ok(ls_output_take(capture->output, STREAM, text + at, count, &error), error);
    }
}

static const char *written(captured *capture, int stream)
{
    static char text[TEXT_BYTES];
    ssize_t count = pread(capture->files[stream], text, TEXT_BYTES - 1, 0);
    assert_true(count >= 0);
    text[count] = '\0';
    return text;
}

static void finish(captured *capture)
{
    ls_error error;
    assert_ok(ls_output_finish(capture->output, &error), error);
}

static void close_capture(captured *capture)
{
    ls_output_free(capture->output);
    close(capture->files[0]);
    close(capture->files[1]);
}

#define BORDER "--------------------------------------------------------------------------\n"

/* As Open MPI 4.1 writes it, with a progress line in pieces. */
static const char sample[] =
    "[1,1]<stderr>:\x1erank 1 pid 77 host vm\n"
    "[1,0]<stderr>:\x1erank 0 pid 76 host vm\n"
    "[1,0]<stderr>:reading [1,2] - \xe2\x80\xa6\n"
    "[1,0]<stderr>:\rstep 0 of [9]\x1b[K[1,0]<stderr>:\rstep 1 of [9]\x1b[K[1,1]<stderr>:lockstep: "
    "bad\n"
    "[1,0]<stderr>:\rstep 2 of [9]\x1b[K" BORDER "Primary job  terminated normally\n" BORDER
    "[1,0]<stderr>:last\n" BORDER "mpirun noticed that process rank 1 with PID 0 on node vm exited "
    "on signal 9 (Killed).\n" BORDER;

static void ranks_are_told_apart_however_the_bytes_come(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 120; piece += piece < 20 ? 1 : 33) {
        captured capture;
        open_capture(&capture, 2, true);
        feed(&capture, sample, piece);
        finish(&capture);
        assert_string_equal(written(&capture, 1), "reading [1,2] - \xe2\x80\xa6\n"
                                                  "\rstep 0 of [9]\x1b[K\rstep 1 of [9]\x1b[K"
                                                  "[rank 1] lockstep: bad\n"
                                                  "\rstep 2 of [9]\x1b[Klast\n");
        assert_string_equal(written(&capture, 0), "");
        assert_string_equal(ls_output_last_line(capture.output, 0), "last");
        assert_string_equal(ls_output_last_line(capture.output, 1), "lockstep: bad");
        assert_int_equal(ls_output_note(capture.output, 1)->pid, 77);
        assert_string_equal(ls_output_note(capture.output, 1)->host, "vm");
        assert_non_null(strstr(ls_output_launcher_text(capture.output), "noticed that process"));
        assert_null(strstr(ls_output_launcher_text(capture.output), "step"));
        close_capture(&capture);
    }
}

static void rank_0_is_passed_on_at_once(void **state)
{
    (void)state;
    captured capture;
    open_capture(&capture, 2, true);
    feed(&capture, "[1,0]<stderr>:\x1erank 0 pid 1 host h\n[1,0]<stderr>:\rstep 1", 1000);
    assert_string_equal(written(&capture, 1), "\rstep 1");
    feed(&capture, "mpirun: Forwarding signal 10 to job\n[1,0]<stderr>:\rstep 2\n", 1000);
    assert_string_equal(written(&capture, 1), "\rstep 1\rstep 2\n");
    close_capture(&capture);
}

static void one_process_is_not_looked_into(void **state)
{
    (void)state;
    captured capture;
    open_capture(&capture, 1, false);
    feed(&capture, "[1,0]<stderr>:a\n" BORDER "\rb", 7);
    assert_string_equal(written(&capture, 1), "[1,0]<stderr>:a\n" BORDER "\rb");
    finish(&capture);
    assert_string_equal(written(&capture, 1), "[1,0]<stderr>:a\n" BORDER "\rb\n");
    assert_string_equal(ls_output_last_line(capture.output, 0), "b");
    close_capture(&capture);
}

static void capture_of_rank_1(const char *said, const char *wanted)
{
    captured capture;
    open_capture(&capture, 2, true);
    feed(&capture, "[1,1]<stderr>:\x1erank 1 pid 7 host h\n", 1000);
    for (const char *line = said; *line;) {
        char tagged[200];
        int length = (int)strcspn(line, "\n");
        length += line[length] == '\n';
        snprintf(tagged, sizeof tagged, "[1,1]<stderr>:%.*s", length, line);
        feed(&capture, tagged, 1000);
        line += length;
    }
    finish(&capture);
    assert_string_equal(written(&capture, 1), wanted);
    close_capture(&capture);
}

static void other_ranks_get_no_hold_of_the_terminal(void **state)
{
    (void)state;
    capture_of_rank_1("\rstep 1\x1b[K\r\x1b[Kfailed\r\n", "[rank 1] failed\n");
    capture_of_rank_1("a\n\n\x1b[2Jb\xc3\xa9", "[rank 1] a\n[rank 1] \n[rank 1] b\xc3\xa9\n");
}

static void a_rank_that_is_not_there_is_no_tag(void **state)
{
    (void)state;
    captured capture;
    open_capture(&capture, 2, true);
    feed(&capture, "[1,0]<stderr>:see [1,2]<stderr>:x [[1,1]<stderr>:y\n", 3);
    finish(&capture);
    assert_string_equal(written(&capture, 1), "see [1,2]<stderr>:x [[rank 1] y\n");
    close_capture(&capture);
}

/* --- causes ----------------------------------------------------------------------------------- */

static void cause_of(const char *said, int ranks, int wait_status, int exit_status,
                     const char *wanted)
{
    captured capture;
    ls_cause cause;
    ls_text text = {0};
    ls_error error;
    open_capture(&capture, ranks, true);
    feed(&capture,
         "[1,1]<stderr>:\x1erank 1 pid 77 host vm\n[1,1]<stderr>:about to end\n"
         "[1,0]<stderr>:\x1erank 0 pid 76 host vm\n",
         1000);
    feed(&capture, said, 1000);
    finish(&capture);
    ls_cause_find(&cause, capture.output, ranks, false, wait_status);
    assert_ok(ls_cause_print(&cause, capture.output, &text, &error), error);
    assert_string_equal(text.data, wanted);
    assert_int_equal(ls_cause_exit_status(&cause), exit_status);
    assert_int_equal(ls_cause_is_loss(&cause), exit_status == 4);
    ls_text_deinit(&text);
    close_capture(&capture);
}

static void the_first_cause_is_found(void **state)
{
    (void)state;
    cause_of("", 2, 0, 0, "a rank ended well");
    cause_of(BORDER
             "mpirun noticed that process rank 1 with PID 4242 on node alpha exited on signal "
             "9 (Killed).\n" BORDER,
             2, 137 << 8, 4,
             "rank 1 on alpha was ended by SIGKILL (Killed); its last line: about to end");
    cause_of(BORDER "Primary job  terminated normally, but 1 process returned\n" BORDER BORDER
                    "mpirun detected that one or more processes exited with non-zero status, thus "
                    "causing\nthe job to be terminated. The first process to do so was:\n\n"
                    "  Process name: [[6372,1],1]\n  Exit code:    5\n" BORDER,
             2, 5 << 8, 5, "rank 1 on vm ended with exit status 5; its last line: about to end");
    cause_of(BORDER
             "ORTE has lost communication with a remote daemon.\n\n"
             "  HNP daemon   : [[1,0],0] on node alpha\n"
             "  Remote daemon: [[1,0],1] on node beta\n\nThis is usually due to ...\n" BORDER,
             2, 1 << 8, 4, "host beta no longer answers");
    cause_of(
        "===========================================================================\n"
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 77 RUNNING AT gamma\n"
        "=   EXIT CODE: 11\n"
        "===========================================================================\n"
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n",
        2, 11 << 8, 4, "a rank on gamma was ended by SIGSEGV (Segmentation fault)");
    cause_of("", 2, 75 << 8, 75, "a rank ended with exit status 75");
    cause_of("", 2, 4 << 8, 4, "a rank ended with exit status 4");
    cause_of("", 2, (128 + SIGBUS) << 8, 4, "a rank was ended by SIGBUS (Bus error)");
    cause_of("", 2, 255 << 8, 1, "a rank ended with exit status 255");
    cause_of("", 2, SIGKILL, 4, "mpirun was ended by SIGKILL (Killed)");
}

static void an_mpirun_that_starts_nothing_failed_itself(void **state)
{
    (void)state;
    captured capture;
    ls_cause cause;
    open_capture(&capture, 2, true);
    feed(&capture, BORDER "There are not enough slots available in the system\n" BORDER, 1000);
    finish(&capture);
    ls_cause_find(&cause, capture.output, 2, false, 1 << 8);
    assert_int_equal(cause.kind, LS_CAUSE_LAUNCHER);
    assert_int_equal(ls_cause_exit_status(&cause), 1);
    assert_false(ls_cause_is_loss(&cause));
    assert_non_null(strstr(ls_output_launcher_text(capture.output), "not enough slots"));
    ls_cause_find(&cause, capture.output, 2, false, 143 << 8);
    assert_int_equal(ls_cause_exit_status(&cause), 1);
    close_capture(&capture);
}

static void one_process_is_its_own_cause(void **state)
{
    (void)state;
    captured capture;
    ls_cause cause;
    open_capture(&capture, 1, false);
    ls_cause_find(&cause, capture.output, 1, true, SIGKILL);
    assert_int_equal(ls_cause_exit_status(&cause), 4);
    ls_cause_find(&cause, capture.output, 1, true, 5 << 8);
    assert_int_equal(ls_cause_exit_status(&cause), 5);
    assert_false(ls_cause_is_loss(&cause));
    ls_cause_find(&cause, capture.output, 1, true, 0);
    assert_int_equal(ls_cause_exit_status(&cause), 0);
    close_capture(&capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_told_apart_however_the_bytes_come),
        cmocka_unit_test(rank_0_is_passed_on_at_once),
        cmocka_unit_test(one_process_is_not_looked_into),
        cmocka_unit_test(other_ranks_get_no_hold_of_the_terminal),
        cmocka_unit_test(a_rank_that_is_not_there_is_no_tag),
        cmocka_unit_test(the_first_cause_is_found),
        cmocka_unit_test(an_mpirun_that_starts_nothing_failed_itself),
        cmocka_unit_test(one_process_is_its_own_cause),
    };
    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
