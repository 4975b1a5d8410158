/* Which mpirun there is, and the command line for it. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launch/attempt.h"
#include "launch/launcher.h"
#include "launch/supervisor.h"

static void each_mpirun_is_told_by_its_version(void **state)
{
    (void)state;
    ls_error error;
    ls_launcher launcher = {.program = "mpirun"};
    assert_ok(
        ls_launcher_recognise(&launcher, "mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n", &error),
        error);
    assert_int_equal(launcher.kind, LS_LAUNCHER_OPENMPI);
    assert_string_equal(launcher.version, "4.1.4");
    assert_ok(ls_launcher_recognise(&launcher,
                                    "HYDRA build details:\n    Version:           4.0.2\n"
                                    "    Release Date:      Thu Apr  7 12:34:45 CDT 2022\n",
                                    &error),
              error);
    assert_int_equal(launcher.kind, LS_LAUNCHER_MPICH);
    assert_string_equal(launcher.version, "4.0.2");
    assert_int_equal(ls_launcher_recognise(&launcher, "LAM 7.1.4\nmore\n", &error), LS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "mpirun says 'LAM 7.1.4' to --version"));
    assert_non_null(strstr(error.text, "openmpi-bin"));
}

/* The command line for four processes, two of them on a host of that name. */
static char *compose(const char *version, bool oversubscribed, ls_words *environment)
{
    static const ls_host list[] = {{.name = "alpha", .slots = 2}, {.name = "beta", .slots = 8}};
    const ls_hosts hosts = {.list = (ls_host *)list, .count = 2};
    ls_error error;
    ls_launcher launcher = {.program = "mpirun"};
    ls_layout layout;
    ls_words command = {0}, words = {0};
    ls_text text = {0};
    assert_ok(ls_launcher_recognise(&launcher, version, &error), error);
    assert_ok(ls_layout_make(&layout, &hosts, 4, &error), error);
    assert_ok(ls_words_add(&command, &error, "/bin/lockstep"), error);
    assert_ok(ls_words_add(&command, &error, "it's"), error);
    const ls_launcher_job job = {&layout, "/bin/lockstep", &command, oversubscribed};
    assert_ok(ls_launcher_compose(&launcher, &job, &words, environment, &error), error);
    assert_ok(ls_words_print(&words, &text, &error), error);
    ls_words_deinit(&words);
    ls_words_deinit(&command);
    ls_layout_deinit(&layout);
    return text.data; /* the text's only memory */
}

static void says(const char *line, const char *wanted)
{
    if (!strstr(line, wanted)) fail_msg("'%s' is not in: %s", wanted, line);
}

static void open_mpi_gets_its_settings(void **state)
{
    (void)state;
    ls_words environment = {0};
    setenv("LOCKSTEP_TEST_VARIABLE", "1", 1);
    ls_text line = {.data = compose("mpirun (Open MPI) 4.1.4\n", false, &environment)};
    says(line.data, "mpirun --host alpha:2,beta:2 -np 4 ");
    says(line.data, " --bind-to none --stdin none --tag-output ");
    says(line.data, " --mca btl_vader_single_copy_mechanism none ");
    says(line.data, " --mca mpi_yield_when_idle 1 ");
    says(line.data, " -x LOCKSTEP_TEST_VARIABLE ");
    says(line.data, " /bin/lockstep launch-rank /bin/lockstep 'it'\\''s'");
    assert_null(strstr(line.data, "oversubscribe"));
    ls_text_deinit(&line);
    ls_words_deinit(&environment);

    /* The user's own setting wins. */
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "cma", 1);
    line.data = compose("mpirun (Open MPI) 4.1.4\n", true, &environment);
    says(line.data, " --oversubscribe ");
    assert_null(strstr(line.data, "btl_vader"));
    unsetenv("OMPI_MCA_btl_vader_single_copy_mechanism");
    unsetenv("LOCKSTEP_TEST_VARIABLE");
    ls_text_deinit(&line);
    ls_words_deinit(&environment);
}

static void mpich_gets_its_settings(void **state)
{
    (void)state;
    static const char version[] = "HYDRA build details:\n    Version:  4.0.2\n";
    ls_words environment = {0};
    ls_text line = {.data = compose(version, false, &environment)};
    says(line.data, "mpirun -hosts alpha:2,beta:2 -n 4 -bind-to none ");
    says(line.data, " -prepend-pattern '[1,%r]<rank>:' /bin/lockstep launch-rank /bin/lockstep ");
    assert_null(strstr(line.data, "launcher-exec"));
    assert_int_equal(environment.count, 0);
    ls_text_deinit(&line);
    setenv("OMPI_MCA_plm_rsh_agent", "/bin/agent", 1);
    line.data = compose(version, false, &environment);
    says(line.data, " -launcher-exec /bin/agent ");
    unsetenv("OMPI_MCA_plm_rsh_agent");
    ls_text_deinit(&line);
}

/* --- restarts --------------------------------------------------------------------------------- */

static char *attempt_line(char *const *arguments, size_t count, bool resume)
{
    ls_error error;
    ls_attempt attempt;
    ls_text text = {0};
    const ls_launch_options options = {
        .processes = 1, .arguments = arguments, .argument_count = count};
    const ls_launch_context context = {.options = &options, .self = "/bin/lockstep"};
    assert_ok(ls_attempt_prepare(&attempt, &context, NULL, 1, resume, &error), error);
    assert_ok(ls_words_print(&attempt.words, &text, &error), error);
    ls_attempt_deinit(&attempt);
    return text.data;
}

static void one_process_here_is_started_directly(void **state)
{
    (void)state;
    char *words[] = {"train", "--output", "o"};
    ls_text line = {.data = attempt_line(words, 3, false)};
    assert_string_equal(line.data, "/bin/lockstep train --output o");
    ls_text_deinit(&line);
}

static void a_restart_resumes_and_drops_what_the_user_resumed(void **state)
{
    (void)state;
    char *words[] = {"train",     "--resume", "old", "--output", "o", "--resume_weights-only",
                     "--resume=x"};
    ls_text line = {.data = attempt_line(words, 7, true)};
    assert_string_equal(line.data, "/bin/lockstep train --output o --resume auto");
    ls_text_deinit(&line);
    line.data = attempt_line(words, 3, false);
    assert_string_equal(line.data, "/bin/lockstep train --resume old");
    ls_text_deinit(&line);
}

static void waits_double_up_to_a_minute(void **state)
{
    (void)state;
    static const double wanted[] = {1, 2, 4, 8, 16, 32, 60, 60};
    for (int i = 0; i < 8; i++)
        assert_true(ls_restart_delay(i) == wanted[i]);
    assert_true(ls_restart_delay(1000) == 60);
}

/* An agent that reaches every host but one. */
static void hosts_that_do_not_answer_are_left_out(void **state)
{
    (void)state;
    static const char script[] = "#!/bin/sh\n[ \"$1\" != gone ] && shift && exec \"$@\"\n";
    static const ls_host list[] = {{.name = "there", .slots = 2},
                                   {.name = "gone", .slots = 4},
                                   {.name = "localhost", .slots = 1}};
    const ls_hosts hosts = {.list = (ls_host *)list, .count = 3};
    ls_error error;
    ls_hosts left;
    char *folder = test_folder();
    const char *agent = test_path(folder, "agent");
    test_write_file(agent, script, sizeof script - 1);
    assert_int_equal(chmod(agent, 0755), 0);
    assert_ok(ls_hosts_alive(&hosts, agent, &left, &error), error);
    assert_int_equal(left.count, 2);
    assert_string_equal(left.list[0].name, "there");
    assert_string_equal(left.list[1].name, "localhost");
    assert_int_equal(ls_hosts_slots(&left), 3);
    ls_hosts_deinit(&left);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mpirun_is_told_by_its_version),
        cmocka_unit_test(open_mpi_gets_its_settings),
        cmocka_unit_test(mpich_gets_its_settings),
        cmocka_unit_test(one_process_here_is_started_directly),
        cmocka_unit_test(a_restart_resumes_and_drops_what_the_user_resumed),
        cmocka_unit_test(waits_double_up_to_a_minute),
        cmocka_unit_test(hosts_that_do_not_answer_are_left_out),
    };
    return cmocka_run_group_tests_name("launcher", tests, NULL, NULL);
}
