/* From shares of the step's time to a sentence and an option to try. */
#include <stdio.h>

#include "monitor/profile_internal.h"

static const char *const names[LS_BOTTLENECK_COUNT] = {
    [LS_BOTTLENECK_COMPUTE] = "compute",
    [LS_BOTTLENECK_MEMORY_BANDWIDTH] = "memory bandwidth",
    [LS_BOTTLENECK_COMMUNICATION] = "communication",
    [LS_BOTTLENECK_DATA] = "data",
    [LS_BOTTLENECK_IMBALANCE] = "imbalance",
};

const char *ls_bottleneck_name(ls_bottleneck bottleneck)
{
    return names[bottleneck];
}

static void describe(const ls_profile_summary *summary, int percent, char what[300])
{
    double seconds = (double)summary->nanoseconds * 1e-9;
    switch (summary->bottleneck) {
    case LS_BOTTLENECK_COMPUTE:
        snprintf(what, 300,
                 "compute: %d %% of the step is in ops that arithmetic bounds; the whole step runs "
                 "at %.0f %% of this machine's best product",
                 percent, 100 * summary->flops / seconds / summary->peak.flops_per_second);
        return;
    case LS_BOTTLENECK_MEMORY_BANDWIDTH:
        snprintf(what, 300,
                 "memory bandwidth: %d %% of the step is in ops that reading and writing memory "
                 "bounds (a copy reaches %.1f GB/s here)",
                 percent, 1e-9 * summary->peak.bytes_per_second);
        return;
    case LS_BOTTLENECK_COMMUNICATION:
        snprintf(what, 300,
                 "communication: %d %% of the step waits for exchanges that no computing hides",
                 percent);
        return;
    case LS_BOTTLENECK_DATA:
        snprintf(what, 300,
                 "data: %d %% of the step waits for batches and writes them to the device",
                 percent);
        return;
    case LS_BOTTLENECK_IMBALANCE:
        snprintf(what, 300, "imbalance: %d %% of the step, ranks wait for the slowest one",
                 percent);
        return;
    case LS_BOTTLENECK_COUNT:
        break;
    }
    *what = '\0';
}

static const char *advise_compute(const ls_profile *profile, char option[300])
{
    int used = profile->ranks * profile->options.threads, cores = profile->options.cores;
    if (used < cores) {
        snprintf(option, 300, "%s %d: %d of %d cores are used",
                 profile->ranks > 1 ? "--devices or --threads, up to" : "--threads", cores, used,
                 cores);
        return option;
    }
    return "a lower --max-length, if few texts are long, or more cores: all of this machine's are "
           "used";
}

static const char *advise(const ls_profile_summary *summary, const ls_profile *profile,
                          char option[300])
{
    switch (summary->bottleneck) {
    case LS_BOTTLENECK_COMPUTE:
        return advise_compute(profile, option);
    case LS_BOTTLENECK_MEMORY_BANDWIDTH:
        return "a larger --batch-size (weights and moments are read once for more samples), or "
               "--samples-per-pass all";
    case LS_BOTTLENECK_COMMUNICATION:
        return "a smaller --bucket-size, so that sending starts earlier, or a larger --batch-size, "
               "so that there are fewer exchanges";
    case LS_BOTTLENECK_DATA:
        return "an --output folder on a faster disk (the token cache lies there), or a larger "
               "--samples-per-pass";
    case LS_BOTTLENECK_IMBALANCE:
        return "a --batch-size that is a multiple of --devices times --leaf-size, or a smaller "
               "--leaf-size; if one rank is always the slowest, its cores do other work too";
    case LS_BOTTLENECK_COUNT:
        break;
    }
    return "";
}

void ls_bottleneck_lines(const ls_profile_summary *summary, const ls_profile *profile,
                         char what[300], char option[300])
{
    char room[300];
    int percent = (int)(100 * summary->bottlenecks[summary->bottleneck] + 0.5);
    describe(summary, percent, what);
    snprintf(option, 300, "%s", advise(summary, profile, room));
}
