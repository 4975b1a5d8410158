/* What a process can ever have, out of files as the kernel writes them. */
#include "testing.h"

#include <string.h>

#include "base/files.h"
#include "base/memory_limit.h"

static char *root;

static int setup(void **state)
{
    static const char *const folders[] = {"/proc/self", "/sys/fs/cgroup/a/b",
                                          "/sys/fs/cgroup/memory/c"};
    ls_error error;
    (void)state;
    root = test_folder();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_ok(ls_folder_make(test_path(root, folders[i]), &error), error);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_folder_remove(root);
    return 0;
}

static void says(const char *path, const char *text)
{
    test_write_file(test_path(root, path), text, strlen(text));
}

static void without_files_nothing_is_limited(void **state)
{
    (void)state;
    assert_true(ls_memory_limit_read(root).bytes == INT64_MAX);
}

static void a_machine_has_memory_and_swap(void **state)
{
    (void)state;
    says("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 3 kB\nSwapTotal:       24 kB\n");
    ls_memory_limit limit = ls_memory_limit_read(root);
    assert_int_equal(limit.bytes, 1024 * 1024);
    assert_string_equal(limit.who, "this machine has");
}

static void the_lowest_group_counts(void **state)
{
    (void)state;
    says("proc/meminfo", "MemTotal:       1000 kB\nSwapTotal:       0 kB\n");
    says("proc/self/cgroup", "0::/a/b\n");
    says("sys/fs/cgroup/a/b/memory.max", "max\n");
    says("sys/fs/cgroup/a/memory.max", "70000\n");
    says("sys/fs/cgroup/memory.max", "80000\n");
    ls_memory_limit limit = ls_memory_limit_read(root);
    assert_int_equal(limit.bytes, 70000);
    assert_string_equal(limit.who, "the control group of /sys/fs/cgroup/a/memory.max allows");
    says("sys/fs/cgroup/a/b/memory.max", "6000\n");
    assert_int_equal(ls_memory_limit_read(root).bytes, 6000);
}

static void swap_counts_as_far_as_there_is_some(void **state)
{
    (void)state;
    says("proc/meminfo", "MemTotal:       1000 kB\nSwapTotal:       1 kB\n");
    says("proc/self/cgroup", "0::/a\n");
    says("sys/fs/cgroup/a/memory.max", "70000\n");
    assert_int_equal(ls_memory_limit_read(root).bytes, 71024);
    says("sys/fs/cgroup/a/memory.swap.max", "max\n");
    assert_int_equal(ls_memory_limit_read(root).bytes, 71024);
    says("sys/fs/cgroup/a/memory.swap.max", "24\n");
    assert_int_equal(ls_memory_limit_read(root).bytes, 70024);
}

static void groups_of_the_first_version_count(void **state)
{
    (void)state;
    says("proc/meminfo", "MemTotal:       1000 kB\nSwapTotal:       0 kB\n");
    says("proc/self/cgroup", "9:name=systemd:/c\n8:cpu,memory:/c\n0::/\n");
    says("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "5000\n");
    says("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    ls_memory_limit limit = ls_memory_limit_read(root);
    assert_int_equal(limit.bytes, 5000);
    assert_string_equal(limit.who, "the control group of "
                                   "/sys/fs/cgroup/memory/c/memory.limit_in_bytes allows");
    /* The folder of a container's own group is often the top one there. */
    says("proc/self/cgroup", "8:memory:/somewhere/outside\n");
    says("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n");
    assert_int_equal(ls_memory_limit_read(root).bytes, 4000);
}

static void strange_files_do_no_harm(void **state)
{
    (void)state;
    char line[3000];
    memset(line, 'x', sizeof line);
    memcpy(line, "0::/", 4);
    line[sizeof line - 1] = '\0';
    says("proc/meminfo", "MemTotal:");
    says("proc/self/cgroup", line);
    assert_true(ls_memory_limit_read(root).bytes == INT64_MAX);
    says("proc/self/cgroup", "\n\n:::\n0::\nmemory");
    assert_true(ls_memory_limit_read(root).bytes == INT64_MAX);
}

#define WITH_A_ROOT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_A_ROOT(without_files_nothing_is_limited),
        WITH_A_ROOT(a_machine_has_memory_and_swap),
        WITH_A_ROOT(the_lowest_group_counts),
        WITH_A_ROOT(swap_counts_as_far_as_there_is_some),
        WITH_A_ROOT(groups_of_the_first_version_count),
        WITH_A_ROOT(strange_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
