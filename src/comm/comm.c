#include "comm/comm.h"

void ls_comm_free(ls_comm *comm)
{
    if (comm) comm->operations->free(comm);
}
