/* The half of the offload rewrite that has to do with the pass; the other one is the update. */
#ifndef LS_STRATEGIES_OFFLOAD_H
#define LS_STRATEGIES_OFFLOAD_H

#include "program/program.h"

/* Gathers of parameters that lie in the run `home`: what a rank owns of a unit is fetched before it
 * is gathered, two units ahead of its use, and gone from the device when all ranks have it. */
ls_status ls_offload_gathers(ls_program *program, ls_value_id home, ls_error *error) LS_MUST_CHECK;

#endif
