/* One definition an op kind: each file of this folder defines those of its ops. */
#ifndef LS_OPS_DEFINITIONS_H
#define LS_OPS_DEFINITIONS_H

#include "program/program.h"

#define LS_OP_DECLARE(name, text) extern const ls_op_definition ls_op_definition_##name;
LS_OP_LIST(LS_OP_DECLARE)
#undef LS_OP_DECLARE

#endif
