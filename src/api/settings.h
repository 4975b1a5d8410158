/* What the rest of src/api needs of the settings beyond the public header. */
#ifndef LS_API_SETTINGS_H
#define LS_API_SETTINGS_H

#include "base/status.h"
#include "lockstep.h"

/* The index into ls_settings() of a name, in which '_' is the same as '-'; -1 when there is none.
 */
int ls_setting_find(const char *name);

/* Everything that can be said without opening a file, for programs that fill the struct themselves:
 * each range, each choice, what `command` (one LS_COMMAND_ bit) cannot do without, and
 * combinations. LS_USAGE. Every function that takes options calls it first;
 * predicting and tokenizing do not ask for `data`, as their texts may come from the caller. */
ls_status ls_options_check(const ls_options *options, unsigned command,
                           ls_error *error) LS_MUST_CHECK;

/* The part of ls_options_check that looks at settings together, once each one is in its range. */
ls_status ls_options_check_combinations(const ls_options *options, unsigned command,
                                        ls_error *error) LS_MUST_CHECK;

/* "10:15", or one step alone: both counted from 1. */
ls_status ls_profile_steps_parse(const char *text, int64_t *first, int64_t *last,
                                 ls_error *error) LS_MUST_CHECK;

/* Where a value of `options` came from; `sources` may be NULL. */
const char *ls_sources_get(const ls_sources *sources, const ls_options *options, const char *name);

#endif
