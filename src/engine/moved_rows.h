/* Which rows of an embedding table have moments that are not zeros: AdamW leaves the others' alone.
 */
#ifndef LS_ENGINE_MOVED_ROWS_H
#define LS_ENGINE_MOVED_ROWS_H

#include "engine/executor.h"

/* Set moved[row] to 1 where the rank's part of a moment of the table has any bit set; `touched` is
 * the table's list of touched rows. Of offloaded moments all rows count: they are not read. */
ls_status ls_moved_rows_find(ls_executor *executor, const ls_program *program, ls_value_id touched,
                             uint8_t *moved, ls_error *error) LS_MUST_CHECK;

#endif
