#include "base/topology.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct ls_topology {
    hwloc_topology_t hwloc;
};

ls_status ls_topology_new(ls_topology **out, const char *synthetic, ls_error *error)
{
    ls_topology *topology = NULL;
    LS_TRY(LS_NEW(topology, 1, "topology", error));
    if (hwloc_topology_init(&topology->hwloc) != 0) {
        ls_free(topology);
        return ls_fail(error, LS_NO_MEMORY, "out of memory for the topology of this machine");
    }
    /* The x86 component moves the calling thread from core to core; the system's files tell the
     * same. */
    (void)hwloc_topology_set_components(topology->hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                        "x86");
    if (synthetic && hwloc_topology_set_synthetic(topology->hwloc, synthetic) != 0) {
        ls_topology_free(topology);
        return ls_fail(error, LS_INVALID, "'%s' describes no machine", synthetic);
    }
    if (hwloc_topology_load(topology->hwloc) != 0) {
        ls_topology_free(topology);
        return ls_fail(error, LS_IO, "hwloc cannot tell which cores this machine has (lstopo)");
    }
    *out = topology;
    return LS_OK;
}

void ls_topology_free(ls_topology *topology)
{
    if (!topology) return;
    hwloc_topology_destroy(topology->hwloc);
    ls_free(topology);
}

static bool has(const ls_cores *cores, unsigned index)
{
    return index < LS_MOST_CORES && (cores->bits[index / 64] >> index % 64 & 1);
}

static int count_of(const ls_cores *cores)
{
    int count = 0;
    for (unsigned word = 0; word < LS_MOST_CORES / 64; word++)
        count += __builtin_popcountll(cores->bits[word]);
    return count;
}

/* The hardware threads of an object that are in `all`. */
static ls_cores inside(hwloc_obj_t object, const ls_cores *all)
{
    ls_cores some = {{0}};
    int index;
    for (index = hwloc_bitmap_first(object->cpuset); index >= 0 && index < LS_MOST_CORES;
         index = hwloc_bitmap_next(object->cpuset, index))
        if (has(all, (unsigned)index)) some.bits[index / 64] |= (uint64_t)1 << index % 64;
    return some;
}

static int count_objects(const ls_topology *topology, hwloc_obj_type_t type, const ls_cores *all)
{
    int count = 0;
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(topology->hwloc, type, object)) != NULL) {
        ls_cores some = inside(object, all);
        count += count_of(&some) > 0;
    }
    return count;
}

int ls_topology_core_count(const ls_topology *topology, const ls_cores *within)
{
    return count_objects(topology, HWLOC_OBJ_CORE, within);
}

/* hwloc numbers objects along the tree of packages, nodes and caches: neighbours are near. */
static ls_cores part_of(const ls_topology *topology, hwloc_obj_type_t type, const ls_cores *all,
                        int count, int parts, int part)
{
    ls_cores some = {{0}};
    int index = 0;
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(topology->hwloc, type, object)) != NULL) {
        ls_cores own = inside(object, all);
        if (count_of(&own) == 0) continue;
        if (index >= (int64_t)count * part / parts && index < (int64_t)count * (part + 1) / parts)
            for (int word = 0; word < LS_MOST_CORES / 64; word++)
                some.bits[word] |= own.bits[word];
        index++;
    }
    return some;
}

ls_cores ls_topology_part(const ls_topology *topology, const ls_cores *all, int parts, int part)
{
    int cores = count_objects(topology, HWLOC_OBJ_CORE, all);
    if (cores >= parts) return part_of(topology, HWLOC_OBJ_CORE, all, cores, parts, part);
    int threads = count_objects(topology, HWLOC_OBJ_PU, all);
    if (threads >= parts) return part_of(topology, HWLOC_OBJ_PU, all, threads, parts, part);
    return *all;
}

ls_status ls_core_count(int *count, ls_error *error)
{
    ls_topology *topology = NULL;
    ls_cores own = ls_cores_own();
    LS_TRY(ls_topology_new(&topology, NULL, error));
    *count = ls_topology_core_count(topology, &own);
    ls_topology_free(topology);
    if (*count == 0) *count = count_of(&own);
    if (*count == 0) *count = 1;
    return LS_OK;
}

const char *ls_cores_print(char into[LS_CORES_BYTES], const ls_cores *cores)
{
    size_t used = 0;
    snprintf(into, LS_CORES_BYTES, "none");
    for (unsigned first = 0; first < LS_MOST_CORES; first++) {
        if (!has(cores, first)) continue;
        unsigned last = first;
        char range[32];
        while (has(cores, last + 1))
            last++;
        if (last > first)
            snprintf(range, sizeof range, "%s%u-%u", used ? "," : "", first, last);
        else
            snprintf(range, sizeof range, "%s%u", used ? "," : "", first);
        if (used + strlen(range) + sizeof ",..." > LS_CORES_BYTES) {
            memcpy(into + used, ",...", sizeof ",...");
            break;
        }
        memcpy(into + used, range, strlen(range) + 1);
        used += strlen(range);
        first = last;
    }
    return into;
}
