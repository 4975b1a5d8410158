/* One step of a run, from its profile. */
#ifndef LS_COMPARE_TIMELINE_H
#define LS_COMPARE_TIMELINE_H

#include "base/text.h"

/* Append {"name": NAME, "step": N, "events": [{"lane", "name", "from_ms", "to_ms"}, ...]} for one
 * step in the middle of FOLDER/profile/trace.json; nothing where there is no such file or no step
 * in it. A file that is damaged is an error. */
ls_status ls_compare_timeline(ls_text *text, const char *folder, const char *name,
                              ls_error *error) LS_MUST_CHECK;

#endif
