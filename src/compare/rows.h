/* From what runs found to the numbers of rows, and the rows to the sentences below the table. */
#ifndef LS_COMPARE_ROWS_H
#define LS_COMPARE_ROWS_H

#include "compare/compare.h"

/* Fill values of all rows, their seeds' same_bits, any_failed and any_different. */
ls_status ls_compare_rows_finish(ls_comparison *comparison, ls_error *error) LS_MUST_CHECK;

/* The row of `single` with this batch size, and the one on all cores; NULL if it is not there or
 * did not end well. */
const ls_compare_row *ls_compare_base(const ls_comparison *comparison, int64_t batch_size);
const ls_compare_row *ls_compare_all_cores(const ls_comparison *comparison);

/* Fill the verdicts from finished rows. */
void ls_compare_judge(ls_comparison *comparison);

#endif
