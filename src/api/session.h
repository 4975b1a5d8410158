/* What the commands share: a device, an opened model folder, labels, datasets. */
#ifndef LS_API_SESSION_H
#define LS_API_SESSION_H

#include "api/strategy.h"
#include "comm/processes.h"
#include "data/dataset.h"
#include "devices/device.h"
#include "engine/model_folder.h"
#include "lockstep.h"

typedef struct ls_session {
    const ls_options *options;     /* as given */
    const ls_callbacks *callbacks; /* never NULL; silent on all processes but the first */
    ls_callbacks own_callbacks;
    ls_processes *processes; /* NULL: the command runs in one */
    ls_strategy strategy;    /* of commands that train or plan it */
    ls_device **devices;     /* [device_count] */
    int device_count;
    ls_device *device;           /* the first one */
    ls_threads *reading_threads; /* as many as all devices have; NULL: the one device's */
    ls_model_folder folder;
    ls_labels *labels; /* of the model's head, or empty */
    int64_t max_length;
} ls_session;

/* Check the options for `command`, join the other processes of a run, take the cores, open the
 * model. A failure is this process's own: see ls_session_agree. `default_length`: the token
 * limit when options->max_length is 0; 0 stands for the one written with the model. */
ls_status ls_session_open(ls_session *session, const ls_options *options,
                          const ls_callbacks *callbacks, unsigned command, int64_t default_length,
                          ls_error *error) LS_MUST_CHECK;
/* The processes of a run and --devices devices of one thread each, without a model. */
ls_status ls_session_open_ranks(ls_session *session, const ls_options *options,
                                ls_error *error) LS_MUST_CHECK;
/* `count` devices alone, with the threads that the options say. */
ls_status ls_session_open_devices(ls_session *session, int count, ls_error *error) LS_MUST_CHECK;
/* The threads of each of `devices` devices. */
ls_status ls_session_threads(const ls_options *options, int64_t devices, int *threads,
                             ls_error *error) LS_MUST_CHECK;
void ls_session_close(ls_session *session); /* safe on an all-zero one and twice */

/* The processes of a run, one or more; this one's place among them. */
const ls_processes_place *ls_session_place(const ls_session *session);
int ls_session_ranks(const ls_session *session); /* of all processes */
/* Bytes that each rank's device needs for what travels between hosts. */
ls_status ls_session_message_bytes(const ls_session *session, int64_t *bytes,
                                   ls_error *error) LS_MUST_CHECK;
bool ls_session_is_first(const ls_session *session);
/* One result for all processes, see ls_processes_agree; all of them call it, failed or not. */
ls_status ls_session_agree(const ls_session *session, ls_status mine, const char *task,
                           ls_error *error) LS_MUST_CHECK;

/* LS_USAGE unless the model has a classification head to evaluate or predict with. */
ls_status ls_session_need_head(const ls_session *session, ls_error *error) LS_MUST_CHECK;

/* Read and tokenise one file, with progress. `cache_folder` NULL: the system's temporary folder. */
ls_status ls_session_dataset(ls_session *session, ls_dataset **out, const char *path,
                             bool need_labels, const char *cache_folder,
                             ls_error *error) LS_MUST_CHECK;

/* For reading before the first step; those of the only device, or as many as all devices have. */
ls_threads *ls_session_reading_threads(const ls_session *session);

/* callbacks->stage, of something that takes a while and has no parts. */
void ls_session_stage(const ls_session *session, const char *what);
/* The same, with how much of it is done. */
typedef struct ls_session_progress {
    const ls_session *session;
    char what[256];
} ls_session_progress;
void ls_session_show(void *progress, int64_t done, int64_t total);

/* printf to callbacks->message. */
void ls_session_message(const ls_session *session, const char *format, ...) LS_PRINTF(2, 3);

/* Label names in the form of the public reports: fresh memory, free with ls_free. */
ls_status ls_session_label_names(const ls_session *session, const char ***names,
                                 ls_error *error) LS_MUST_CHECK;

#endif
