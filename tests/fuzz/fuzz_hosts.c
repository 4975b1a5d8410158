/* Any bytes as a host file: what is accepted has names that are safe in a command line, no two
 * alike, and slots that count. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launch/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const ls_host *host)
{
    if (host->slots < 1 || host->line < 1 || !*host->name || *host->name == '-') abort();
    for (const char *at = host->name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr(".-_", *at)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_error error;
    ls_hosts hosts;
    ls_status status = ls_hosts_parse(&hosts, (const char *)data, size, "hosts", &error);
    if (status == LS_OK && (hosts.count == 0 || ls_hosts_slots(&hosts) > LS_MOST_SLOTS)) abort();
    for (size_t i = 0; status == LS_OK && i < hosts.count; i++) {
        check(&hosts.list[i]);
        for (size_t other = 0; other < i; other++)
            if (strcmp(hosts.list[i].name, hosts.list[other].name) == 0) abort();
    }
    ls_hosts_deinit(&hosts);
    return 0;
}
