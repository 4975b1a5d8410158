/* run.json: every setting of a run with its value and where it came from, and what the run found.
 *
 *   {"settings": {"learning_rate": {"value": 5e-05, "source": "default"}, ...},
 *    "version": "0.1.0", ...}
 *
 * A setting that the run itself resolved ("auto", 0 for "all cores") has its value in use, and
 * under "given" what it was resolved from. */
#ifndef LS_API_RUN_RECORD_H
#define LS_API_RUN_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "lockstep.h"

typedef enum ls_run_fact_kind {
    LS_RUN_TEXT,
    LS_RUN_INTEGER,
    LS_RUN_NUMBER,
    LS_RUN_TEXTS,
    LS_RUN_OBJECT
} ls_run_fact_kind;

/* One more key of the document: what the run found. Borrowed during the call; a NULL text and a
 * number that is not finite are null. */
typedef struct ls_run_fact {
    const char *key;
    ls_run_fact_kind kind;
    const char *text;
    int64_t integer;
    double number;
    const char *const *texts;        /* [count], UTF-8 */
    const struct ls_run_fact *facts; /* [count], of an object */
    size_t count;
} ls_run_fact;

/* Write `folder`/run.json, atomically. `given` are the caller's options, `used` the resolved ones
 * (the same pointer if nothing was); settings of `lockstep train` are written. `sources` may be
 * NULL. Texts that are not UTF-8, as a path may be, are written with '?' for each such byte. */
ls_status ls_run_record_write(const char *folder, const ls_options *given, const ls_options *used,
                              const ls_sources *sources, const ls_run_fact *facts, size_t count,
                              ls_error *error) LS_MUST_CHECK;

/* A setting's value as JSON: a number, true, false, text or null. */
ls_status ls_setting_json(ls_text *json, const ls_setting *setting, const ls_options *options,
                          ls_error *error) LS_MUST_CHECK;

#endif
