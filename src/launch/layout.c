#include "launch/layout.h"

#include <string.h>

#include "base/alloc.h"

ls_status ls_layout_make(ls_layout *layout, const ls_hosts *hosts, int processes, ls_error *error)
{
    static const ls_host this_machine = {.name = "localhost", .slots = LS_MOST_SLOTS};
    const ls_hosts alone = {.list = (ls_host *)&this_machine, .count = 1};
    *layout = (ls_layout){.processes = processes};
    if (!hosts) hosts = &alone;
    int slots = ls_hosts_slots(hosts), first = 0;
    if (processes > slots)
        return ls_fail(error, LS_USAGE,
                       "--processes %d is more than the %d slot%s of %zu host%s in the host file: "
                       "use --processes %d or add slots",
                       processes, slots, slots == 1 ? "" : "s", hosts->count,
                       hosts->count == 1 ? "" : "s", slots);
    LS_TRY(LS_NEW(layout->list, hosts->count, "layout of ranks", error));
    for (size_t i = 0; i < hosts->count && first < processes; i++) {
        const ls_host *host = &hosts->list[i];
        int left = processes - first, count = host->slots < left ? host->slots : left;
        layout->list[layout->host_count++] = (ls_layout_host){.name = host->name,
                                                              .first = first,
                                                              .count = count,
                                                              .here = ls_host_is_here(host->name)};
        first += count;
    }
    return LS_OK;
}

void ls_layout_deinit(ls_layout *layout)
{
    ls_free(layout->list);
    *layout = (ls_layout){0};
}

static ls_status print_rank(const ls_layout_host *host, int index, int width,
                            const ls_topology *topology, const ls_cores *within, ls_text *text,
                            ls_error *error)
{
    char cores[LS_CORES_BYTES];
    LS_TRY(ls_text_print(text, error, "  %4d  %-*s  ", host->first + index, width, host->name));
    if (host->here) {
        ls_cores part = ls_topology_part(topology, within, host->count, index);
        return ls_text_print(text, error, "%s\n", ls_cores_print(cores, &part));
    }
    if (host->count == 1) return ls_text_print(text, error, "all of its cores\n");
    return ls_text_print(text, error, "part %d of %d of its cores\n", index + 1, host->count);
}

ls_status ls_layout_print(const ls_layout *layout, const ls_topology *topology,
                          const ls_cores *within, ls_text *text, ls_error *error)
{
    int width = (int)strlen("host");
    for (size_t i = 0; i < layout->host_count; i++) {
        int length = (int)strlen(layout->list[i].name);
        if (length > width) width = length;
    }
    LS_TRY(ls_text_print(text, error, "  rank  %-*s  cores\n", width, "host"));
    for (size_t i = 0; i < layout->host_count; i++)
        for (int index = 0; index < layout->list[i].count; index++)
            LS_TRY(print_rank(&layout->list[i], index, width, topology, within, text, error));
    return LS_OK;
}

ls_status ls_layout_host_list(const ls_layout *layout, ls_text *text, ls_error *error)
{
    for (size_t i = 0; i < layout->host_count; i++)
        LS_TRY(ls_text_print(text, error, "%s%s:%d", i ? "," : "", layout->list[i].name,
                             layout->list[i].count));
    return LS_OK;
}
