/* Numbers as text, whatever the locale. */
#include "testing.h"

#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/numbers.h"

static void the_shortest_text_reads_back(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},     {5e-5, "5e-05"},   {3, "3"},
                 {-0.25, "-0.25"}, {1e300, "1e+300"}, {0.1 + 0.2, "0.30000000000000004"},
                 {NAN, "nan"},     {-NAN, "nan"},     {-INFINITY, "-inf"}};
    char into[LS_NUMBER_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ls_number_print(into, cases[i].value), cases[i].text);
}

static void only_whole_decimal_numbers_are_read(void **state)
{
    (void)state;
    static const char *const bad[] = {"",      " 1",  "1 ",  "1x",    "0x10", "nan", "inf",
                                      "1e999", "1,5", "--1", "1.2.3", ".",    "e5"};
    double value = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ls_number_parse(bad[i], &value));
    char longest[400];
    memset(longest, '1', sizeof longest);
    longest[399] = '\0';
    assert_false(ls_number_parse(longest, &value));
    assert_true(value == 7);
    assert_true(ls_number_parse("-5e-5", &value) && value == -5e-5);
    assert_true(ls_number_parse("+.5", &value) && value == .5);
}

static void a_decimal_comma_changes_nothing(void **state)
{
    (void)state;
    char into[LS_NUMBER_BYTES];
    double value = 0;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma here\n");
        skip();
    }
    assert_string_equal(ls_number_print(into, 1.5), "1.5");
    assert_true(ls_number_parse("2.5e3", &value) && value == 2500);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_text_reads_back),
        cmocka_unit_test(only_whole_decimal_numbers_are_read),
        cmocka_unit_test(a_decimal_comma_changes_nothing),
    };
    return cmocka_run_group_tests_name("base/numbers", tests, NULL, NULL);
}
