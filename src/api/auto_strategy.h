/* --strategy auto: the fastest layout that fits, by what this machine reaches. */
#ifndef LS_API_AUTO_STRATEGY_H
#define LS_API_AUTO_STRATEGY_H

#include "api/planner.h"
#include "api/run_record.h"

typedef struct ls_auto_choice {
    ls_candidate chosen;
    ls_machine_rates rates;
    ls_plan_row *rows; /* [count - 1], in the order in which they were looked at */
    char **lines;      /* [count] why: one of each row, and what was chosen */
    int count;
} ls_auto_choice;

/* Measure the machine (a second or two; the folder of --offload-path too), look at what the
 * settings leave open on the run's number of devices, and choose: the least seconds a step of those
 * that fit; within one percent the simpler one, which stands first. Where nothing fits the smallest
 * is chosen, so that the run is refused with its figures.
 *
 * Several processes measure at once and make the same choice: the rates are those of the slowest,
 * times their number, and of each row the worst that any of them has. A collective call. */
ls_status ls_auto_choose(ls_auto_choice *choice, const ls_session *session,
                         const ls_run_memory_options *base, double row_tokens,
                         ls_error *error) LS_MUST_CHECK;
/* For run.json: what was chosen, the machine's rates, and of each candidate its figures. Of a
 * choice that was not made: null. */
enum { LS_AUTO_CANDIDATE_FACTS = 7, LS_AUTO_FACTS = 5 };
typedef struct ls_auto_facts {
    ls_run_fact facts[LS_AUTO_FACTS], candidates[LS_MOST_CANDIDATES];
    ls_run_fact figures[LS_MOST_CANDIDATES][LS_AUTO_CANDIDATE_FACTS];
} ls_auto_facts;
ls_run_fact ls_auto_choice_fact(const ls_auto_choice *choice, ls_auto_facts *memory);
void ls_auto_choice_deinit(ls_auto_choice *choice); /* safe on an all-zero one */

#endif
