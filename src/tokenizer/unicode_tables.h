/* Unicode data as sorted runs of code points; the rows are in unicode_tables.c, which is generated.
 *
 * The tables stand here, and no Unicode library, because the answers must be those of Hugging
 * Face's library in every version of Debian: its categories, normal forms and letter case come from
 * three different Unicode versions. */
#ifndef LS_TOKENIZER_UNICODE_TABLES_H
#define LS_TOKENIZER_UNICODE_TABLES_H

#include <stdint.h>

/* `value`: in class_runs the flags of unicode.h; in combining_runs the canonical combining class
 * (only of code points without LS_UNICODE_MARK: those with it are never put in order). */
typedef struct ls_class_run {
    uint32_t first, last, value;
} ls_class_run;

/* first, first + step, ..., last: lower case is `delta` further. */
typedef struct ls_lower_run {
    uint32_t first, last, step;
    int32_t delta;
} ls_lower_run;

/* One step of a canonical decomposition; `second` is 0 where there is one part only. */
typedef struct ls_decomposition {
    uint32_t composed, first, second;
} ls_decomposition;

extern const ls_class_run ls_class_runs[], ls_combining_runs[];
extern const ls_lower_run ls_lower_runs[];
extern const ls_decomposition ls_decompositions[];
extern const int ls_class_runs_count, ls_combining_runs_count, ls_lower_runs_count,
    ls_decompositions_count;

#endif
