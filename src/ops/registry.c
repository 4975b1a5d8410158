#include "ops/registry.h"

#include "ops/definitions.h"

const ls_op_definition *const ls_op_definitions[LS_OP_COUNT] = {
#define LS_OP_ENTRY(name, text) [LS_OP_##name] = &ls_op_definition_##name,
    LS_OP_LIST(LS_OP_ENTRY)
#undef LS_OP_ENTRY
};
