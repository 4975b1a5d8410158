/* An event file as TensorBoard reads it: scalars "train/loss", "validation/accuracy" and so on, by
 * step.
 *
 * The file is a row of records: length (64 bits), its checksum, an Event message, its checksum, all
 * little-endian (tensorflow/core/lib/io/record_writer.h; messages:
 * tensorflow/core/util/event.proto, framework/summary.proto). Checksums are CRC-32C (Castagnoli),
 * rotated and shifted. */
#ifndef LS_MONITOR_TENSORBOARD_H
#define LS_MONITOR_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>

#include "monitor/sink.h"

/* A new event file in `folder`, which is made if it is not there; a run that goes on adds another
 * file, as TensorBoard expects. */
ls_status ls_tensorboard_open(ls_sink **out, const char *folder, ls_error *error) LS_MUST_CHECK;

/* CRC-32C of `bytes`, as it stands in a record. */
uint32_t ls_masked_crc32c(const void *bytes, size_t count);

#endif
