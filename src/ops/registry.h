/* All op definitions, by kind. */
#ifndef LS_OPS_REGISTRY_H
#define LS_OPS_REGISTRY_H

#include "program/program.h"

extern const ls_op_definition *const ls_op_definitions[LS_OP_COUNT];

#endif
