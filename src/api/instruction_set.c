#include "kernels/kernels.h"
#include "lockstep.h"

ls_status ls_instruction_set(const char **name, ls_error *error)
{
    const ls_kernels *kernels;
    LS_TRY(ls_kernels_choose(&kernels, error));
    *name = kernels->name;
    return LS_OK;
}
