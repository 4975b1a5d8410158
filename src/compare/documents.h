/* A finished comparison as text. docs/file-formats.md describes both. */
#ifndef LS_COMPARE_DOCUMENTS_H
#define LS_COMPARE_DOCUMENTS_H

#include "base/text.h"
#include "compare/compare.h"

/* compare.json: what is not known is null, all numbers have all their digits. */
ls_status ls_compare_json(const ls_comparison *comparison, ls_text *text,
                          ls_error *error) LS_MUST_CHECK;

/* compare.csv: a line a row, strategies and study; RFC 4180 with LF; what is not known is empty. */
ls_status ls_compare_csv(const ls_comparison *comparison, ls_text *text,
                         ls_error *error) LS_MUST_CHECK;

#endif
