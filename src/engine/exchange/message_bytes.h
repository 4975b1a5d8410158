/* What collectives between hosts need of each rank's device. */
#ifndef LS_ENGINE_MESSAGE_BYTES_H
#define LS_ENGINE_MESSAGE_BYTES_H

#include <stdint.h>

/* Bytes of the arena LS_PLAN_MESSAGES, for chunks on their way, the same on all ranks: those of
 * host h are host_begin[h] .. host_begin[h + 1] - 1. 0 on one host. */
int64_t ls_collectives_message_bytes(const int *host_begin, int hosts);

#endif
