/* Learning rates of each step against the Hugging Face Trainer's. */
#include "testing.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "optimizers/schedule.h"

enum { STEPS = 10 };

/* get_scheduler of Transformers 5.24.0 over 10 steps with peak 1, printed. */
static const struct {
    const char *name;
    int64_t warmup;
    double rates[STEPS];
} printed[] = {
    {"linear", 0, {1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1}},
    {"linear",
     3,
     {0.0, 0.3333333333333333, 0.6666666666666666, 1.0, 0.8571428571428571, 0.7142857142857143,
      0.5714285714285714, 0.42857142857142855, 0.2857142857142857, 0.14285714285714285}},
    {"cosine",
     0,
     {1.0, 0.9755282581475768, 0.9045084971874737, 0.7938926261462366, 0.6545084971874737, 0.5,
      0.34549150281252633, 0.2061073738537635, 0.09549150281252633, 0.024471741852423234}},
    {"cosine",
     3,
     {0.0, 0.3333333333333333, 0.6666666666666666, 1.0, 0.9504844339512095, 0.8117449009293668,
      0.6112604669781572, 0.38873953302184283, 0.18825509907063326, 0.04951556604879048}},
    {"constant", 3, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"constant_with_warmup", 0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"constant_with_warmup", 3, {0.0, 0.3333333333333333, 0.6666666666666666, 1, 1, 1, 1, 1, 1, 1}},
};

static ls_schedule schedule_of(const char *name, double peak, int64_t warmup, int64_t total)
{
    ls_error error;
    ls_schedule schedule = {.peak = peak, .warmup_steps = warmup, .total_steps = total};
    assert_ok(ls_schedule_kind_of(&schedule.kind, name, &error), error);
    return schedule;
}

static void rates_are_those_of_the_trainer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        ls_schedule schedule = schedule_of(printed[i].name, 1, printed[i].warmup, STEPS);
        for (int64_t done = 0; done < STEPS; done++)
            if (!(fabs(ls_schedule_rate(&schedule, done) - printed[i].rates[done]) < 1e-15))
                fail_msg("%s, warm-up %lld, step %lld: %.17g", printed[i].name,
                         (long long)printed[i].warmup, (long long)done,
                         ls_schedule_rate(&schedule, done));
    }
}

/* The lambdas of transformers/optimization.py, written down again. */
static double by_formula(const char *name, int64_t done, int64_t warmup, int64_t total)
{
    double length = (double)(total - warmup > 1 ? total - warmup : 1);
    if (strcmp(name, "constant") == 0) return 1;
    if (done < warmup) return (double)done / (double)(warmup > 1 ? warmup : 1);
    if (strcmp(name, "constant_with_warmup") == 0) return 1;
    if (strcmp(name, "linear") == 0) return fmax(0, (double)(total - done) / length);
    double progress = (double)(done - warmup) / length;
    return fmax(0, 0.5 * (1 + cos(3.14159265358979323846 * progress)));
}

static void formulas_hold_for_every_length(void **state)
{
    (void)state;
    static const char *const names[] = {"linear", "cosine", "constant", "constant_with_warmup"};
    for (int n = 0; n < 4; n++)
        for (int64_t total = 1; total < 30; total++)
            for (int64_t warmup = 0; warmup <= total + 2; warmup++) {
                ls_schedule schedule = schedule_of(names[n], 5e-5, warmup, total);
                for (int64_t done = 0; done < total; done++) {
                    double rate = ls_schedule_rate(&schedule, done);
                    double wanted = 5e-5 * by_formula(names[n], done, warmup, total);
                    if (!(fabs(rate - wanted) <= 1e-20))
                        fail_msg("%s, %lld of %lld, warm-up %lld: %.17g, wanted %.17g", names[n],
                                 (long long)done, (long long)total, (long long)warmup, rate,
                                 wanted);
                }
            }
}

/* --- DeepSpeed's -------------------------------------------------------------------------------
 */

/* The rates of a run of 8 steps with peak 1, warm-up 4, starting from 0.1, by the formulas of
 * deepspeed/runtime/lr_schedules.py: the schedule is stepped after each optimizer step, so that
 * step n of the run, from 2, has index n - 2 there. */
static const struct {
    const char *name, *warmup;
    double rates[8];
} deepspeed[] = {
    {"warmup", "log", {0.1, 0.1, 0.55, 0.8132331253245204, 1, 1, 1, 1}},
    {"warmup", "linear", {0.1, 0.1, 0.325, 0.55, 0.775, 1, 1, 1}},
    {"warmup_decay", "log", {0.1, 0.1, 0.55, 0.8132331253245204, 1, 1, 0.775, 0.55}},
    {"warmup_decay", "linear", {0.1, 0.1, 0.325, 0.55, 0.775, 1, 0.775, 0.55}},
    {"warmup_cosine",
     "log",
     {0, 0.1, 0.55, 0.8132331253245204, 1, 0.8681980515339464, 0.55, 0.23180194846605363}},
    {"warmup_cosine",
     "linear",
     {0, 0.1, 0.325, 0.55, 0.775, 0.8681980515339464, 0.55, 0.23180194846605363}},
};

static ls_schedule deepspeed_schedule(const char *name, const char *warmup, double peak)
{
    ls_error error;
    ls_schedule schedule = schedule_of(name, peak, 4, 8);
    assert_ok(ls_warmup_kind_of(&schedule.warmup, warmup, &error), error);
    schedule.warmup_least_rate = 0.1;
    schedule.warmup_least_ratio = 0.1;
    schedule.cosine_least_ratio = 0.1;
    return schedule;
}

static void rates_are_those_of_deepspeed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof deepspeed / sizeof *deepspeed; i++) {
        ls_schedule schedule = deepspeed_schedule(deepspeed[i].name, deepspeed[i].warmup, 1);
        for (int64_t done = 0; done < 8; done++)
            if (!(fabs(ls_schedule_rate(&schedule, done) - deepspeed[i].rates[done]) < 1e-15))
                fail_msg("%s, %s, step %lld: %.17g", deepspeed[i].name, deepspeed[i].warmup,
                         (long long)done, ls_schedule_rate(&schedule, done));
    }
}

/* The classes' methods, written down again. */
static double deepspeed_formula(const ls_schedule *s, int64_t done)
{
    double steps = fmax(2, (double)s->warmup_steps), t = (double)done - 1;
    bool cosine = s->kind == LS_SCHEDULE_WARMUP_COSINE;
    if (t < 0) return cosine ? 0 : s->warmup_least_rate;
    double rise = s->warmup == LS_WARMUP_LOG ? log(t + 1) / log(steps) : t / steps;
    if (cosine && t < steps)
        return s->peak * (s->warmup_least_ratio + rise * (1 - s->warmup_least_ratio));
    if (cosine) {
        double part = fmin(1, (t - steps + 1) / fmax(1, (double)s->total_steps - steps));
        double wave = (1 + cos(3.14159265358979323846 * part)) / 2;
        return s->peak * (s->cosine_least_ratio + (1 - s->cosine_least_ratio) * wave);
    }
    double gamma = 1;
    if (t < steps)
        gamma = rise;
    else if (s->kind == LS_SCHEDULE_WARMUP_DECAY)
        gamma = fmax(0, ((double)s->total_steps - t) / fmax(1, (double)s->total_steps - steps));
    return s->warmup_least_rate + (s->peak - s->warmup_least_rate) * gamma;
}

static void deepspeed_formulas_hold_for_every_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof deepspeed / sizeof *deepspeed; i++)
        for (int64_t total = 1; total < 30; total++)
            for (int64_t warmup = 0; warmup <= total + 2; warmup++) {
                ls_schedule s = deepspeed_schedule(deepspeed[i].name, deepspeed[i].warmup, 5e-5);
                s.warmup_steps = warmup;
                s.total_steps = total;
                s.warmup_least_rate = 1e-6;
                for (int64_t done = 0; done < total + 3; done++) {
                    double rate = ls_schedule_rate(&s, done), wanted = deepspeed_formula(&s, done);
                    if (!(fabs(rate - wanted) <= 5e-20))
                        fail_msg("%s, %lld of %lld, warm-up %lld: %.17g, wanted %.17g",
                                 deepspeed[i].name, (long long)done, (long long)total,
                                 (long long)warmup, rate, wanted);
                }
            }
}

static void an_unknown_name_lists_the_known_ones(void **state)
{
    (void)state;
    ls_error error;
    ls_schedule_kind kind;
    assert_int_equal(ls_schedule_kind_of(&kind, "polynomial", &error), LS_USAGE);
    assert_non_null(strstr(error.text, "polynomial"));
    assert_non_null(strstr(error.text, "constant_with_warmup"));
    ls_warmup_kind warmup;
    assert_int_equal(ls_warmup_kind_of(&warmup, "quadratic", &error), LS_USAGE);
    assert_non_null(strstr(error.text, "quadratic"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_the_trainer),
        cmocka_unit_test(formulas_hold_for_every_length),
        cmocka_unit_test(rates_are_those_of_deepspeed),
        cmocka_unit_test(deepspeed_formulas_hold_for_every_length),
        cmocka_unit_test(an_unknown_name_lists_the_known_ones),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
