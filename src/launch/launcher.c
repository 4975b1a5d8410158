#include "launch/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/capture.h"
#include "launch/output.h"

extern char **environ;

static const double version_seconds = 20;

/* The version number that follows, up to what ends a word. */
static void copy_version(ls_launcher *launcher, const char *text)
{
    text += strcspn(text, "0123456789\n");
    snprintf(launcher->version, sizeof launcher->version, "%.*s", (int)strcspn(text, " \t\r\n"),
             text);
}

ls_status ls_launcher_recognise(ls_launcher *launcher, const char *text, ls_error *error)
{
    const char *found;
    if ((found = strstr(text, "(Open MPI)")) != NULL)
        launcher->kind = LS_LAUNCHER_OPENMPI;
    else if (strstr(text, "HYDRA") && (found = strstr(text, "Version:")) != NULL)
        launcher->kind = LS_LAUNCHER_MPICH;
    else
        return ls_fail(error, LS_UNSUPPORTED,
                       "%s says '%.*s' to --version: only Open MPI's and MPICH's are known "
                       "(packages openmpi-bin and mpich)",
                       launcher->program, (int)strcspn(text, "\r\n"), text);
    copy_version(launcher, found);
    return LS_OK;
}

ls_status ls_launcher_find(ls_launcher *launcher, ls_error *error)
{
    static const char *const names[] = {"mpirun", "mpiexec", "mpiexec.hydra"};
    char text[2048];
    int wait_status = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *words[] = {(char *)names[i], "--version", NULL};
        if (ls_capture(words, version_seconds, text, sizeof text, &wait_status, NULL) != LS_OK)
            continue;
        snprintf(launcher->program, sizeof launcher->program, "%s", names[i]);
        return ls_launcher_recognise(launcher, text, error);
    }
    return ls_fail(error, LS_UNSUPPORTED,
                   "several processes are started by mpirun, and there is no mpirun or mpiexec "
                   "along PATH: install the package openmpi-bin (or mpich), or use --devices N in "
                   "one process");
}

const char *ls_launcher_name(const ls_launcher *launcher)
{
    switch (launcher->kind) {
    case LS_LAUNCHER_OPENMPI:
        return "Open MPI";
    case LS_LAUNCHER_MPICH:
        return "MPICH";
    case LS_LAUNCHER_DIRECT:
        break;
    }
    return "itself";
}

const char *ls_launcher_agent(void)
{
    const char *agent = getenv("OMPI_MCA_plm_rsh_agent");
    return agent && *agent ? agent : "ssh";
}

/* A setting of Open MPI, unless the user's environment has an opinion of it. */
static ls_status add_setting(ls_words *words, const char *name, const char *value, ls_error *error)
{
    char variable[128];
    snprintf(variable, sizeof variable, "OMPI_MCA_%s", name);
    if (getenv(variable)) return LS_OK;
    LS_TRY(ls_words_add(words, error, "--mca"));
    LS_TRY(ls_words_add(words, error, "%s", name));
    return ls_words_add(words, error, "%s", value);
}

static ls_status add_openmpi(ls_words *words, ls_words *environment, const ls_launcher_job *job,
                             const char *hosts, ls_error *error)
{
    static const char *const options[] = {"--map-by", "slot", "--bind-to",   "none",
                                          "--stdin",  "none", "--tag-output"};
    static const char *const settings[][2] = {
        /* Reading another process's memory needs a right that containers take away. */
        {"btl_vader_single_copy_mechanism", "none"},
        /* A rank that waits must not take the core of one that computes. */
        {"mpi_yield_when_idle", "1"},
        /* A host that falls silent is noticed within half a minute, not after five. */
        {"oob_tcp_keepalive_time", "10"},
        {"oob_tcp_keepalive_intvl", "5"},
        {"oob_tcp_keepalive_probes", "3"},
        /* The hosts are those of the layout, whatever a batch system has allotted. */
        {"ras", "^slurm,tm,lsf,gridengine"},
        {"plm", "^slurm,tm,lsf"},
    };
    LS_TRY(ls_words_add(words, error, "--host"));
    LS_TRY(ls_words_add(words, error, "%s", hosts));
    LS_TRY(ls_words_add(words, error, "-np"));
    LS_TRY(ls_words_add(words, error, "%d", job->layout->processes));
    LS_TRY(
        ls_words_add_all(words, (char *const *)options, sizeof options / sizeof *options, error));
    if (job->oversubscribed) LS_TRY(ls_words_add(words, error, "--oversubscribe"));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        LS_TRY(add_setting(words, settings[i][0], settings[i][1], error));
    /* Other hosts get none of our environment but this. */
    for (char **variable = environ; *variable; variable++) {
        if (strncmp(*variable, "LOCKSTEP_", 9) != 0) continue;
        LS_TRY(ls_words_add(words, error, "-x"));
        LS_TRY(ls_words_add(words, error, "%.*s", (int)strcspn(*variable, "="), *variable));
    }
    if (geteuid() != 0) return LS_OK;
    LS_TRY(ls_words_add(environment, error, "OMPI_ALLOW_RUN_AS_ROOT=1"));
    return ls_words_add(environment, error, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
}

static ls_status add_mpich(ls_words *words, const ls_launcher_job *job, const char *hosts,
                           ls_error *error)
{
    static const char *const options[] = {"-bind-to", "none", "-rmk", "user", "-launcher", "ssh",
                                          /* Open MPI's form, which output.c reads */
                                          "-prepend-pattern", "[1,%r]<rank>:"};
    const char *agent = ls_launcher_agent();
    LS_TRY(ls_words_add(words, error, "-hosts"));
    LS_TRY(ls_words_add(words, error, "%s", hosts));
    LS_TRY(ls_words_add(words, error, "-n"));
    LS_TRY(ls_words_add(words, error, "%d", job->layout->processes));
    LS_TRY(
        ls_words_add_all(words, (char *const *)options, sizeof options / sizeof *options, error));
    if (strcmp(agent, "ssh") == 0) return LS_OK;
    LS_TRY(ls_words_add(words, error, "-launcher-exec"));
    return ls_words_add(words, error, "%s", agent);
}

ls_status ls_launcher_compose(const ls_launcher *launcher, const ls_launcher_job *job,
                              ls_words *words, ls_words *environment, ls_error *error)
{
    ls_text hosts = {0};
    ls_status status = LS_OK;
    if (launcher->kind == LS_LAUNCHER_DIRECT)
        return ls_words_add_all(words, job->command->list, job->command->count, error);
    LS_TRY_GOTO(status, ls_words_add(words, error, "%s", launcher->program), end);
    LS_TRY_GOTO(status, ls_layout_host_list(job->layout, &hosts, error), end);
    if (launcher->kind == LS_LAUNCHER_OPENMPI)
        status = add_openmpi(words, environment, job, hosts.data, error);
    else
        status = add_mpich(words, job, hosts.data, error);
    if (status != LS_OK) goto end;
    LS_TRY_GOTO(status, ls_words_add(words, error, "%s", job->self), end);
    LS_TRY_GOTO(status, ls_words_add(words, error, "launch-rank"), end);
    status = ls_words_add_all(words, job->command->list, job->command->count, error);
end:
    ls_text_deinit(&hosts);
    return status;
}
