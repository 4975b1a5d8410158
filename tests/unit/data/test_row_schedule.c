/* data/row_schedule.h: whatever the passes and the range, each embedding row's sum is the tree that
 * the rule of same bits defines. Sums are stood in for by hashes that know order and grouping. */
#include "testing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "data/row_schedule.h"

enum { MAX_TOKENS = 4000, TABLE_ROWS = 300, SLOTS = LS_MAX_SLOTS };

typedef struct step {
    ls_tree_range range;
    int tokens, samples, leaf_size;
    int32_t row[MAX_TOKENS], leaf[MAX_TOKENS];
    int sample_end[MAX_TOKENS]; /* token after the sample */
} step;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    h ^= h >> 29;
    h = (h + b) * 0x94d049bb133111ebu;
    return h ^ h >> 32;
}

static uint32_t draw(uint32_t *counter, uint32_t bound)
{
    ls_philox_block block = ls_philox((ls_philox_key){{7, 7}}, (ls_philox_block){{++*counter}});
    return block.word[0] % bound;
}

/* A step's rank: leaves [begin, end) of a batch of `samples` samples of 1 to `longest` tokens. */
static void make_step(step *made, uint32_t *counter, int64_t begin, int64_t end, int samples,
                      int leaf_size, int longest, int rows)
{
    memset(made, 0, sizeof *made);
    int leaves = (samples + leaf_size - 1) / leaf_size;
    made->range = (ls_tree_range){begin, end, leaves};
    made->leaf_size = leaf_size;
    for (int sample = (int)begin * leaf_size; sample < samples && sample < end * leaf_size;
         sample++) {
        int length = 1 + (int)draw(counter, (uint32_t)longest);
        for (int at = 0; at < length; at++) {
            made->row[made->tokens] = (int32_t)draw(counter, (uint32_t)rows) * (TABLE_ROWS / rows);
            made->leaf[made->tokens++] = sample / leaf_size;
        }
        made->sample_end[made->samples++] = made->tokens;
    }
}

/* By definition: a node's sum is its children's, an absent one skipped; a node that is not wholly
 * held hands its children's roots on. Returns the roots below the node, in order. */
static int roots_of(const step *made, int32_t row, int level, int64_t first, uint64_t *roots)
{
    ls_tree_range range = made->range;
    if (first >= range.end || first + ((int64_t)1 << level) <= range.begin) return 0;
    if (level == 0) {
        uint64_t chain = 0;
        bool any = false;
        for (int token = 0; token < made->tokens; token++) {
            if (made->row[token] != row || made->leaf[token] != first) continue;
            chain = any ? mix(chain, (uint64_t)token) : mix(1, (uint64_t)token);
            any = true;
        }
        roots[0] = chain;
        return any;
    }
    int count = roots_of(made, row, level - 1, first, roots);
    count += roots_of(made, row, level - 1, first + ((int64_t)1 << (level - 1)), roots + count);
    int64_t last = first + ((int64_t)1 << level);
    if (last > range.total) last = range.total;
    if (count == 2 && first >= range.begin && last <= range.end) {
        roots[0] = mix(roots[0] + 5, roots[1]);
        count = 1;
    }
    return count;
}

typedef struct row_state {
    uint64_t slots[SLOTS + 1];
    int used; /* slots, an open chain included */
} row_state;

/* What a kernel does with a pass, for one row of the schedule. */
static void run_row(const ls_row_schedule *pass, int32_t entry, int first_token, row_state *state)
{
    uint64_t stack[SLOTS + 1], chain = 0;
    int depth = pass->depth[entry];
    assert_int_equal(state->used, depth + pass->resume[entry]);
    memcpy(stack, state->slots, sizeof stack);
    for (int32_t piece = pass->piece_begin[entry]; piece < pass->piece_begin[entry + 1]; piece++) {
        bool resumes = piece == pass->piece_begin[entry] && pass->resume[entry];
        assert_true(pass->token_begin[piece] < pass->token_begin[piece + 1]);
        if (resumes) chain = state->slots[depth];
        for (int32_t at = pass->token_begin[piece]; at < pass->token_begin[piece + 1]; at++) {
            uint64_t token = (uint64_t)(first_token + pass->tokens[at]);
            bool start = at == pass->token_begin[piece] && !resumes;
            chain = mix(start ? 1 : chain, token);
        }
        stack[depth] = chain;
        if (piece + 1 == pass->piece_begin[entry + 1] && pass->leave_open[entry]) {
            state->used = depth + 1;
            memcpy(state->slots, stack, sizeof stack);
            return;
        }
        depth++;
        for (int merge = 0; merge < pass->merges[piece]; merge++, depth--)
            stack[depth - 2] = mix(stack[depth - 2] + 5, stack[depth - 1]);
    }
    state->used = depth;
    memcpy(state->slots, stack, sizeof stack);
}

static void check_step(ls_row_scheduler *scheduler, const step *made, int samples_per_pass,
                       int total_samples)
{
    static row_state states[TABLE_ROWS];
    memset(states, 0, sizeof states);
    int slots = ls_tree_slots(made->range, total_samples, made->leaf_size, samples_per_pass);
    const int32_t *touched = NULL;
    ls_row_scheduler_start(scheduler, made->tokens, made->row, made->leaf);
    ls_row_scheduler_own(scheduler, made->range, 0, made->tokens);
    int32_t rows = ls_row_scheduler_touched(scheduler, &touched);
    for (int32_t row = 1; row < rows; row++)
        assert_true(touched[row - 1] < touched[row]);

    int seen = 0;
    for (int sample = 0, first_token = 0; sample < made->samples; sample += samples_per_pass) {
        int last = sample + samples_per_pass;
        int token_end = made->sample_end[(last < made->samples ? last : made->samples) - 1];
        ls_row_schedule pass = ls_row_scheduler_pass(scheduler, token_end);
        for (int32_t entry = 0; entry < pass.rows; entry++) {
            int32_t row = pass.gradient_row[entry];
            assert_in_range(row, 0, rows - 1);
            for (int32_t at = pass.token_begin[pass.piece_begin[entry]];
                 at < pass.token_begin[pass.piece_begin[entry + 1]]; at++, seen++) {
                int token = first_token + pass.tokens[at];
                assert_in_range(token, first_token, token_end - 1);
                assert_int_equal(made->row[token], touched[row]);
            }
            run_row(&pass, entry, first_token, &states[row]);
            assert_true(states[row].used <= slots);
        }
        first_token = token_end;
    }
    assert_int_equal(seen, made->tokens);

    for (int32_t row = 0; row < rows; row++) {
        uint64_t roots[64];
        int count = roots_of(made, touched[row], 10, 0, roots);
        assert_int_equal(states[row].used, count);
        assert_memory_equal(states[row].slots, roots, (size_t)count * sizeof *roots);
    }
}

static void sums_follow_the_tree_whatever_the_passes(void **state)
{
    (void)state;
    static step made;
    ls_error error;
    ls_row_scheduler *scheduler = NULL;
    uint32_t counter = 0;
    assert_ok(ls_row_scheduler_new(&scheduler, TABLE_ROWS, MAX_TOKENS, &error), error);
    uint64_t allocations = ls_allocation_count();
    for (int round = 0; round < 150; round++) {
        int leaf_size = 1 + (int)draw(&counter, 5), samples = 1 + (int)draw(&counter, 90);
        int leaves = (samples + leaf_size - 1) / leaf_size;
        int64_t begin = draw(&counter, (uint32_t)leaves);
        int64_t end = begin + 1 + draw(&counter, (uint32_t)(leaves - begin));
        if (round % 3 == 0) begin = 0, end = leaves;
        /* Few rows: long chains; many: most leaves lack most rows. */
        static const int row_counts[] = {1, 2, 10, 300};
        int rows = row_counts[draw(&counter, 4)];
        make_step(&made, &counter, begin, end, samples, leaf_size, 12, rows);
        for (int samples_per_pass = 1; samples_per_pass <= made.samples; samples_per_pass++)
            if (samples_per_pass < 8 || samples_per_pass == made.samples)
                check_step(scheduler, &made, samples_per_pass, samples);
    }
    assert_int_equal(ls_allocation_count(), allocations);
    ls_row_scheduler_free(scheduler);
}

/* --- several ranks of one batch --------------------------------------------------------------- */

enum { MOST_RANKS = 8, MOST_ROOTS = 64 };

/* The rank's tokens of the whole batch, in passes; states[i] is what gradient row i then holds. */
static void run_rank(ls_row_scheduler *scheduler, const step *made, int ranks, int rank,
                     int samples_per_pass, row_state *states)
{
    ls_tree_range range = ls_tree_rank_range(made->range.total, ranks, rank);
    int sample = (int)range.begin * made->leaf_size, end = (int)range.end * made->leaf_size;
    if (end > made->samples) end = made->samples;
    int begin_token = sample ? made->sample_end[sample - 1] : 0, first_token = begin_token;
    int end_token = end ? made->sample_end[end - 1] : 0;
    ls_row_scheduler_start(scheduler, made->tokens, made->row, made->leaf);
    ls_row_scheduler_own(scheduler, range, begin_token, end_token);
    for (; sample < end; sample += samples_per_pass) {
        int last = sample + samples_per_pass < end ? sample + samples_per_pass : end;
        int token_end = made->sample_end[last - 1];
        ls_row_schedule pass = ls_row_scheduler_pass(scheduler, token_end);
        for (int32_t entry = 0; entry < pass.rows; entry++)
            run_row(&pass, entry, first_token, &states[pass.gradient_row[entry]]);
        first_token = token_end;
    }
}

/* Of one gradient row: the present roots' sums, from the ranks' first slots, added along the tree.
 */
static uint64_t sum_over_ranks(const step *made, const ls_tree_root *roots, int count,
                               const uint8_t *present, row_state states[][TABLE_ROWS], int row)
{
    ls_tree_range whole = made->range;
    ls_tree_stack stack = {0};
    uint64_t open[SLOTS];
    int top = 0, taken[MOST_RANKS] = {0};
    for (int i = 0; i < count; i++) {
        if (!present[i]) continue;
        int next = i + 1;
        while (next < count && !present[next])
            next++;
        open[top++] = states[roots[i].rank][row].slots[taken[roots[i].rank]++];
        int merges =
            ls_tree_push(&stack, whole, roots[i].last, next < count ? roots[next].first : -1);
        for (; merges > 0; merges--, top--)
            open[top - 2] = mix(open[top - 2] + 5, open[top - 1]);
    }
    assert_int_equal(top, 1);
    /* Nothing but present roots lies in the slots. */
    for (int rank = 0; rank < MOST_RANKS; rank++)
        assert_int_equal(states[rank][row].used, taken[rank]);
    return open[0];
}

static void check_ranks(ls_row_scheduler *scheduler, const step *made, int ranks,
                        int samples_per_pass)
{
    static row_state states[MOST_RANKS][TABLE_ROWS];
    static uint8_t present[TABLE_ROWS * MOST_ROOTS], again[TABLE_ROWS * MOST_ROOTS];
    ls_tree_root roots[MOST_ROOTS];
    int32_t root_of_leaf[MAX_TOKENS];
    const int32_t *touched = NULL;
    int32_t rows = 0;
    int count = ls_tree_roots(made->range, ranks, roots, MOST_ROOTS);
    assert_in_range(count, 1, MOST_ROOTS);
    for (int i = 0; i < count; i++)
        for (int64_t leaf = roots[i].first; leaf <= roots[i].last; leaf++)
            root_of_leaf[leaf] = i;
    memset(states, 0, sizeof states);
    for (int rank = 0; rank < ranks; rank++) {
        run_rank(scheduler, made, ranks, rank, samples_per_pass, states[rank]);
        /* The same rows and the same presence on all ranks. */
        int32_t own_rows = ls_row_scheduler_touched(scheduler, &touched);
        assert_true(rank == 0 || own_rows == rows);
        rows = own_rows;
        ls_row_scheduler_presence(scheduler, root_of_leaf, count, rank ? again : present);
        if (rank) assert_memory_equal(again, present, (size_t)(rows * count));
    }
    for (int32_t row = 0; row < rows; row++) {
        uint64_t wanted[64];
        assert_int_equal(roots_of(made, touched[row], 10, 0, wanted), 1);
        assert_true(sum_over_ranks(made, roots, count, present + row * count, states, (int)row) ==
                    wanted[0]);
    }
}

static void ranks_of_a_batch_make_one_tree(void **state)
{
    (void)state;
    static step made;
    ls_error error;
    ls_row_scheduler *scheduler = NULL;
    uint32_t counter = 100000;
    assert_ok(ls_row_scheduler_new(&scheduler, TABLE_ROWS, MAX_TOKENS, &error), error);
    for (int round = 0; round < 60; round++) {
        static const int row_counts[] = {1, 2, 10, 300};
        int leaf_size = 1 + (int)draw(&counter, 5), samples = 1 + (int)draw(&counter, 70);
        int leaves = (samples + leaf_size - 1) / leaf_size, rows = row_counts[draw(&counter, 4)];
        make_step(&made, &counter, 0, leaves, samples, leaf_size, 10, rows);
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
            check_ranks(scheduler, &made, ranks, 1 + (int)draw(&counter, 9));
    }
    ls_row_scheduler_free(scheduler);
}

static void a_step_without_tokens_touches_nothing(void **state)
{
    (void)state;
    ls_error error;
    ls_row_scheduler *scheduler = NULL;
    const int32_t *touched = NULL;
    assert_ok(ls_row_scheduler_new(&scheduler, 30522, 1, &error), error);
    ls_row_scheduler_start(scheduler, 0, NULL, NULL);
    ls_row_scheduler_own(scheduler, (ls_tree_range){2, 2, 2}, 0, 0);
    assert_int_equal(ls_row_scheduler_touched(scheduler, &touched), 0);
    assert_int_equal(ls_row_scheduler_pass(scheduler, 0).rows, 0);
    int32_t row = 30521, leaf = 1;
    ls_row_scheduler_start(scheduler, 1, &row, &leaf);
    ls_row_scheduler_own(scheduler, (ls_tree_range){1, 2, 2}, 0, 1);
    assert_int_equal(ls_row_scheduler_touched(scheduler, &touched), 1);
    assert_int_equal(touched[0], 30521);
    ls_row_scheduler_free(scheduler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_follow_the_tree_whatever_the_passes),
        cmocka_unit_test(ranks_of_a_batch_make_one_tree),
        cmocka_unit_test(a_step_without_tokens_touches_nothing),
    };
    return cmocka_run_group_tests_name("row schedule", tests, NULL, NULL);
}
