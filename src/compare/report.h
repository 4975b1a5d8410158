/* report.html: the page of a comparison, complete in one file. */
#ifndef LS_COMPARE_REPORT_H
#define LS_COMPARE_REPORT_H

#include "base/text.h"
#include "compare/compare.h"
#include "compare/folder.h"

/* Put compare.json (`json`), and one step's timeline where a run left a profile, into the page's
 * template. The page asks for nothing from outside. */
ls_status ls_compare_report(const char *json, const ls_compare_folder *folder,
                            const ls_comparison *comparison, ls_text *text,
                            ls_error *error) LS_MUST_CHECK;

/* Append JSON as it may stand inside a <script> element: "<" is written as an escape. */
ls_status ls_compare_report_json(ls_text *text, const char *json, ls_error *error) LS_MUST_CHECK;

#endif
