/* Where the cores of this machine lie, as hwloc tells it: which hardware threads share a core, and
 * which cores share a cache, a package, a NUMA node. Only speed depends on it. */
#ifndef LS_BASE_TOPOLOGY_H
#define LS_BASE_TOPOLOGY_H

#include "base/status.h"
#include "base/threads.h"

typedef struct ls_topology ls_topology;

/* The machine that this runs on; what a cpuset (a container's, say) does not allow is not in it.
 * `synthetic`, if not NULL, is hwloc's description of another one, "node:2 core:4 pu:2", for
 * tests. Takes a few milliseconds. */
ls_status ls_topology_new(ls_topology **out, const char *synthetic, ls_error *error) LS_MUST_CHECK;
void ls_topology_free(ls_topology *topology); /* NULL is allowed */

/* Physical cores of which at least one hardware thread is in `within`. */
int ls_topology_core_count(const ls_topology *topology, const ls_cores *within);

/* Part `part` of `parts` of the hardware threads in `all`. Neighbours in the machine stay together,
 * and a core is one part's with all its hardware threads as long as there are enough cores; with
 * fewer cores than parts hardware threads are dealt out, and with fewer of those everyone gets
 * all. */
ls_cores ls_topology_part(const ls_topology *topology, const ls_cores *all, int parts, int part);

/* Physical cores that the calling thread may run on, at least 1: a second hardware thread of a core
 * adds nothing to a matrix product. Where hwloc knows no cores, hardware threads. */
ls_status ls_core_count(int *count, ls_error *error) LS_MUST_CHECK;

/* "0-3,8"; "none". Writes and returns `into`; what does not fit ends in "...". */
enum { LS_CORES_BYTES = 128 };
const char *ls_cores_print(char into[LS_CORES_BYTES], const ls_cores *cores);

#endif
