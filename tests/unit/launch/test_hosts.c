/* Host files as DeepSpeed and Open MPI have them, and what is wrong with others. */
#include "testing.h"

#include <string.h>

#include "base/alloc.h"
#include "launch/hosts.h"
#include "launch/layout.h"

static ls_status parse(ls_hosts *hosts, const char *text, ls_error *error)
{
    return ls_hosts_parse(hosts, text, strlen(text), "hosts", error);
}

static void a_line_is_a_host_and_its_slots(void **state)
{
    (void)state;
    ls_error error;
    ls_hosts hosts;
    assert_ok(parse(&hosts,
                    "# two machines\r\n\r\n  alpha   slots=2\r\n\tbeta-1.cluster slots=16 # big\r\n"
                    "  \n10.0.0.3 slots=1",
                    &error),
              error);
    assert_int_equal(hosts.count, 3);
    assert_string_equal(hosts.list[0].name, "alpha");
    assert_int_equal(hosts.list[0].slots, 2);
    assert_int_equal(hosts.list[0].line, 3);
    assert_string_equal(hosts.list[1].name, "beta-1.cluster");
    assert_int_equal(hosts.list[1].slots, 16);
    assert_string_equal(hosts.list[2].name, "10.0.0.3");
    assert_int_equal(hosts.list[2].line, 6);
    assert_int_equal(ls_hosts_slots(&hosts), 19);
    ls_hosts_deinit(&hosts);
}

static void a_bad_line_is_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a slots=1\nb slots=2\na slots=3\n", "hosts:3: host 'a' stands in line 1 already"},
        {"a\n", "hosts:1: 'a': how many processes it takes is missing"},
        {"a slots=0\n", "hosts:1: 'a slots=0': slots is a whole number from 1 to 65536"},
        {"a slots=-1\n", "slots is a whole number"},
        {"a slots=\n", "slots is a whole number"},
        {"a slots=2x\n", "slots is a whole number"},
        {"a slots=65537\n", "slots is a whole number"},
        {"a slots=99999999999999999999\n", "slots is a whole number"},
        {"a slots=40000\nb slots=40000\n", "hosts:2: 'b slots=40000': more than 65536 slots"},
        {"\n\na slots = 2\n", "hosts:3: 'a slots = 2': a line is 'HOST slots=N' and nothing else"},
        {"a slots=2 max_slots=4\n", "and nothing else"},
        {"a 2\n", "and nothing else"},
        {"slots=2\n", "a host's name has letters"},
        {"-oProxyCommand=x slots=2\n", "a host's name has letters"},
        {"a;reboot slots=2\n", "a host's name has letters"},
        {"a,b slots=2\n", "a host's name has letters"},
        {"", "hosts: names no host"},
        {"# nothing\n", "hosts: names no host"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_error error;
        ls_hosts hosts;
        assert_int_equal(parse(&hosts, cases[i][0], &error), LS_INVALID);
        if (!strstr(error.text, cases[i][1]))
            fail_msg("'%s' gives: %s, not: %s", cases[i][0], error.text, cases[i][1]);
        ls_hosts_deinit(&hosts);
    }
}

static void odd_bytes_and_long_lines_are_refused(void **state)
{
    (void)state;
    ls_error error;
    ls_hosts hosts;
    char text[2000];
    memset(text, 'a', sizeof text);
    memcpy(text + sizeof text - 9, " slots=1\n", 9);
    assert_int_equal(ls_hosts_parse(&hosts, text, sizeof text, "hosts", &error), LS_INVALID);
    assert_non_null(strstr(error.text, "aaa...': a host's name"));
    ls_hosts_deinit(&hosts);
    assert_int_equal(ls_hosts_parse(&hosts, "a\0b slots=1\n", 12, "hosts", &error), LS_INVALID);
    ls_hosts_deinit(&hosts);
}

static void a_file_is_read_and_a_missing_one_named(void **state)
{
    (void)state;
    ls_error error;
    ls_hosts hosts;
    char *folder = test_folder();
    const char *path = test_path(folder, "hosts");
    test_write_file(path, "a slots=3\n", 10);
    assert_ok(ls_hosts_read(&hosts, path, &error), error);
    assert_int_equal(ls_hosts_slots(&hosts), 3);
    ls_hosts_deinit(&hosts);
    assert_int_not_equal(ls_hosts_read(&hosts, test_path(folder, "none"), &error), LS_OK);
    assert_non_null(strstr(error.text, "none"));
    ls_hosts_deinit(&hosts);
    test_folder_remove(folder);
}

static int fail_at(void *context, size_t bytes)
{
    (void)bytes;
    return --*(int *)context < 0;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char text[] = "a slots=2\nb slots=1\nc slots=2\nd slots=2\ne slots=2\nf slots=2\n";
    size_t before = ls_allocated_bytes();
    ls_status status = LS_NO_MEMORY;
    int failures = 0;
    for (; status != LS_OK && failures < 100; failures++) {
        int left = failures;
        ls_error error;
        ls_hosts hosts;
        ls_layout layout = {0};
        ls_set_allocation_hook(fail_at, &left);
        status = parse(&hosts, text, &error);
        if (status == LS_OK) status = ls_layout_make(&layout, &hosts, 11, &error);
        ls_set_allocation_hook(NULL, NULL);
        if (status != LS_OK) assert_int_equal(status, LS_NO_MEMORY);
        ls_layout_deinit(&layout);
        ls_hosts_deinit(&hosts);
        assert_int_equal(ls_allocated_bytes(), before);
    }
    assert_in_range(failures, 2, 50);
}

/* --- who runs where --------------------------------------------------------------------------- */

static void ranks_fill_hosts_in_order(void **state)
{
    (void)state;
    ls_error error;
    ls_hosts hosts;
    ls_layout layout;
    ls_text text = {0};
    assert_ok(parse(&hosts, "alpha slots=2\nbeta slots=3\ngamma slots=1\n", &error), error);
    assert_ok(ls_layout_make(&layout, &hosts, 4, &error), error);
    assert_int_equal(layout.host_count, 2);
    assert_ok(ls_layout_host_list(&layout, &text, &error), error);
    assert_string_equal(text.data, "alpha:2,beta:2");
    ls_layout_deinit(&layout);
    assert_int_equal(ls_layout_make(&layout, &hosts, 7, &error), LS_USAGE);
    assert_string_equal(error.text, "--processes 7 is more than the 6 slots of 3 hosts in the host "
                                    "file: use --processes 6 or add slots");
    ls_layout_deinit(&layout);
    ls_text_deinit(&text);
    ls_hosts_deinit(&hosts);
}

static void the_table_says_cores_here_and_parts_elsewhere(void **state)
{
    (void)state;
    ls_error error;
    ls_hosts hosts;
    ls_layout layout;
    ls_text text = {0};
    ls_topology *topology;
    const ls_cores within = {{0xff}};
    assert_ok(ls_topology_new(&topology, "node:2 core:2 pu:2", &error), error);
    assert_ok(parse(&hosts, "localhost slots=2\nfar-away slots=3\n", &error), error);
    assert_ok(ls_layout_make(&layout, &hosts, 5, &error), error);
    assert_ok(ls_layout_print(&layout, topology, &within, &text, &error), error);
    assert_string_equal(text.data, "  rank  host       cores\n"
                                   "     0  localhost  0-3\n"
                                   "     1  localhost  4-7\n"
                                   "     2  far-away   part 1 of 3 of its cores\n"
                                   "     3  far-away   part 2 of 3 of its cores\n"
                                   "     4  far-away   part 3 of 3 of its cores\n");
    ls_layout_deinit(&layout);
    ls_text_deinit(&text);
    ls_hosts_deinit(&hosts);
    ls_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_host_and_its_slots),
        cmocka_unit_test(a_bad_line_is_named),
        cmocka_unit_test(odd_bytes_and_long_lines_are_refused),
        cmocka_unit_test(a_file_is_read_and_a_missing_one_named),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(ranks_fill_hosts_in_order),
        cmocka_unit_test(the_table_says_cores_here_and_parts_elsewhere),
    };
    return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
