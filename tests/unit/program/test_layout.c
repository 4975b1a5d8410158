/* Who owns what: every element of a unit one rank, cuts at blocks, slices as even as blocks allow,
 * and shards that lie behind one another. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "ops/registry.h"
#include "program/layout.h"

enum { UNITS = 4, MOST_RANKS = 70 };

static ls_error error;

static uint32_t draw(uint32_t *counter, uint32_t bound)
{
    return ls_philox((ls_philox_key){{3, 1}}, (ls_philox_block){{(*counter)++}}).word[0] % bound;
}

/* Parameters of random sizes, a few a unit, and values between them that are none. */
static ls_program *make_program(uint32_t *counter)
{
    static const int64_t sizes[] = {1, 3, 36, 1023, 1024, 1025, 2048, 5000, 40000};
    ls_program *program;
    assert_ok(ls_program_new(&program, ls_op_definitions, &error), error);
    for (int unit = 0; unit < UNITS; unit++)
        for (uint32_t i = 0, count = 1 + draw(counter, 9); i < count; i++) {
            ls_value value = {.dtype = LS_F32,
                              .role = LS_ROLE_PARAMETER,
                              .rank = 1,
                              .unit = unit,
                              .parameter = LS_NO_VALUE,
                              .touched = LS_NO_VALUE};
            ls_value_id id;
            value.shape[0] = ls_fixed(sizes[draw(counter, 9)]);
            assert_ok(ls_program_value(program, &id, value, &error, "p.%d.%u", unit, i), error);
            value.role = LS_ROLE_ACTIVATION;
            assert_ok(ls_program_value(program, &id, value, &error, "a.%d.%u", unit, i), error);
        }
    return program;
}

static void check_division(const ls_program *program, int ranks)
{
    int64_t slices[UNITS][MOST_RANKS] = {{0}};
    for (ls_value_id id = 0; id < program->value_count; id++) {
        const ls_value *value = ls_value_of(program, id);
        if (value->role != LS_ROLE_PARAMETER) continue;
        int64_t next = 0, elements = value->shape[0].constant;
        for (int rank = 0; rank < ranks; rank++) {
            ls_range owned = ls_layout_owned(program, id, rank);
            assert_true(owned.begin == next && owned.end >= owned.begin);
            assert_true(owned.begin % LS_BLOCK == 0 || owned.begin == elements);
            /* Slices are consecutive: no later rank has anything of an earlier parameter. */
            for (int later = rank + 1; owned.begin < owned.end && later < ranks; later++)
                assert_int_equal(slices[value->unit][later], 0);
            slices[value->unit][rank] += owned.end - owned.begin;
            next = owned.end;
        }
        assert_int_equal(next, elements);
    }
    for (int unit = 0; unit < UNITS; unit++) {
        int64_t sum = 0, even = program->unit_elements[unit] / ranks;
        for (int rank = 0; rank < ranks; rank++) {
            assert_true(slices[unit][rank] <= even + LS_BLOCK);
            sum += slices[unit][rank];
        }
        assert_int_equal(sum, program->unit_elements[unit]);
    }
}

static void every_element_has_one_owner(void **state)
{
    (void)state;
    uint32_t counter = 0;
    for (int round = 0; round < 40; round++) {
        ls_program *program = make_program(&counter);
        for (int ranks = 1; ranks <= MOST_RANKS; ranks += 1 + ranks / 8) {
            assert_ok(ls_layout_divide(program, ranks, &error), error);
            check_division(program, ranks);
        }
        ls_program_free(program);
    }
}

static void what_is_not_divided_is_owned_as_a_whole(void **state)
{
    (void)state;
    uint32_t counter = 7;
    ls_program *program = make_program(&counter);
    for (ls_value_id id = 0; id < program->value_count; id++) {
        if (ls_value_of(program, id)->role != LS_ROLE_PARAMETER) continue;
        ls_range owned = ls_layout_owned(program, id, 0);
        assert_true(owned.begin == 0 && owned.end == ls_value_of(program, id)->shape[0].constant);
    }
    ls_program_free(program);
}

/* The shards of a run follow each other without gaps, and the room for them is the largest slice.
 */
static void shards_lie_behind_one_another(void **state)
{
    (void)state;
    uint32_t counter = 1000;
    for (int ranks = 1; ranks <= 9; ranks++) {
        ls_program *program = make_program(&counter);
        ls_value_id run[UNITS] = {LS_NO_VALUE, LS_NO_VALUE, LS_NO_VALUE, LS_NO_VALUE};
        int64_t largest[UNITS] = {0};
        assert_ok(ls_layout_divide(program, ranks, &error), error);
        for (ls_value_id id = 0; id < program->value_count; id++) {
            ls_value *value = &program->values[id];
            if (value->role != LS_ROLE_PARAMETER) continue;
            if (run[value->unit] == LS_NO_VALUE) run[value->unit] = id;
            value->layout = LS_LAYOUT_RUN;
            value->run = run[value->unit];
        }
        for (int rank = 0; rank < ranks; rank++) {
            int64_t next[UNITS] = {0};
            for (ls_value_id id = 0; id < program->value_count; id++) {
                const ls_value *value = ls_value_of(program, id);
                if (value->role != LS_ROLE_PARAMETER) continue;
                ls_range owned = ls_layout_owned(program, id, rank);
                assert_int_equal(ls_layout_place(program, id, rank), next[value->unit]);
                next[value->unit] += owned.end - owned.begin;
                if (next[value->unit] > largest[value->unit])
                    largest[value->unit] = next[value->unit];
            }
        }
        for (int unit = 0; unit < UNITS; unit++)
            assert_int_equal(ls_layout_run_elements(program, run[unit]), largest[unit]);
        ls_program_free(program);
    }
}

/* Rows that are cut between two ranks count for both. */
static void rows_of_a_table_count_where_a_part_is_owned(void **state)
{
    (void)state;
    ls_program *program;
    ls_value_id id;
    ls_value table = {.dtype = LS_F32,
                      .role = LS_ROLE_PARAMETER,
                      .rank = 2,
                      .shape = {ls_fixed(100), ls_fixed(36)},
                      .parameter = LS_NO_VALUE,
                      .touched = LS_NO_VALUE};
    assert_ok(ls_program_new(&program, ls_op_definitions, &error), error);
    assert_ok(ls_program_value(program, &id, table, &error, "table"), error);
    assert_ok(ls_layout_divide(program, 2, &error), error);
    /* 3,600 elements are cut at 2,048: 56 rows and 32 elements of the next one. */
    assert_int_equal(ls_layout_owned(program, id, 0).end, 2048);
    assert_int_equal(ls_layout_rows(program, id), 57);
    ls_program_free(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_has_one_owner),
        cmocka_unit_test(what_is_not_divided_is_owned_as_a_whole),
        cmocka_unit_test(shards_lie_behind_one_another),
        cmocka_unit_test(rows_of_a_table_count_where_a_part_is_owned),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
