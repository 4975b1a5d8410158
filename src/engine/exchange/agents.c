/* Who works for whom between hosts, and the room that a rank needs for it. */
#include "engine/exchange/collectives_internal.h"

static int host_of(const ls_comm *comm, int rank)
{
    int host = 0;
    while (rank >= comm->host_begin[host + 1])
        host++;
    return host;
}

static int agent_of(const int *host_begin, int host, int owner, int owner_host)
{
    int ranks = host_begin[host + 1] - host_begin[host];
    return host_begin[host] + (owner - host_begin[owner_host]) % ranks;
}

int ls_between_hosts_agent(const ls_comm *comm, int host, int owner)
{
    return agent_of(comm->host_begin, host, owner, host_of(comm, owner));
}

static int streams_of(const int *host_begin, int hosts, int host, int rank)
{
    int count = 0;
    for (int other = 0; other < hosts; other++)
        for (int owner = host_begin[other]; owner < host_begin[other + 1] && other != host; owner++)
            count += agent_of(host_begin, host, owner, other) == rank;
    return count;
}

int ls_between_hosts_streams(const ls_comm *comm)
{
    return streams_of(comm->host_begin, comm->hosts, comm->host, comm->rank);
}

/* Sixteen are 8 ms at 1 Gbit/s. */
int ls_between_hosts_depth(int hosts)
{
    enum { TOGETHER = 16, LEAST = 2 };
    int depth = (TOGETHER + hosts - 2) / (hosts - 1);
    return depth < LEAST ? LEAST : depth;
}

int64_t ls_between_hosts_lane_bytes(const int *host_begin, int hosts)
{
    int most = 0;
    for (int host = 0; host < hosts; host++)
        for (int rank = host_begin[host]; rank < host_begin[host + 1]; rank++) {
            int streams = streams_of(host_begin, hosts, host, rank);
            if (streams > most) most = streams;
        }
    return (int64_t)(most + hosts - 1) * ls_between_hosts_depth(hosts) * LS_CHUNK_BYTES;
}

int64_t ls_collectives_message_bytes(const int *host_begin, int hosts)
{
    return hosts == 1 ? 0 : LS_COMM_LANES * ls_between_hosts_lane_bytes(host_begin, hosts);
}
