/* Going on from a checkpoint: which one, whether it fits, and reading it. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "api/training_run.h"
#include "base/alloc.h"
#include "base/files.h"
#include "engine/checkpoint/tensor_file.h"
#include "formats/json.h"
#include "formats/manifest.h"

enum { TRAINER_CAP = 1 << 28 };

/* --- which one ------------------------------------------------------------------------------- */

/* The newest whole one; *folder stays NULL if there is none. */
static ls_status choose_newest(ls_training_run *run, const char *output, char **folder,
                               ls_error *error)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    ls_threads *threads = ls_session_reading_threads(&run->session);
    ls_checkpoint_list list;
    ls_error why;
    LS_TRY(ls_checkpoint_list_read(&list, output, error));
    ls_status status = LS_OK;
    for (size_t i = list.count; i-- > 0 && status == LS_OK && !*folder;) {
        ls_checkpoint_list *broken = &checkpoints->broken;
        char *path = NULL;
        status = ls_checkpoint_path(&path, output, list.steps[i], error);
        ls_status whole = LS_OK;
        if (status == LS_OK) whole = ls_checkpoint_check(path, list.steps[i], threads, &why);
        if (status == LS_OK && whole == LS_OK) {
            *folder = path;
            break;
        }
        ls_free(path);
        /* That nobody could look is no reason to pass it over. */
        if (status == LS_OK && whole == LS_NO_MEMORY) {
            if (error) *error = why;
            status = whole;
        }
        if (status == LS_OK)
            status =
                LS_GROW(broken->steps, broken->capacity, broken->count + 1, "checkpoints", error);
        if (status != LS_OK) break;
        broken->steps[broken->count++] = list.steps[i];
        ls_session_message(&run->session, "skipped checkpoint-%" PRId64 ", which is not whole: %s",
                           list.steps[i], why.text);
    }
    if (status == LS_OK && !*folder)
        ls_session_message(&run->session, "no %scheckpoint in %s: the run starts at the beginning",
                           list.count ? "whole " : "", output);
    ls_checkpoint_list_deinit(&list);
    return status;
}

static ls_status refuse_to_lose(const char *output, ls_error *error)
{
    ls_checkpoint_list list;
    LS_TRY(ls_checkpoint_list_read(&list, output, error));
    ls_status status = LS_OK;
    if (list.count)
        status = ls_fail(error, LS_USAGE,
                         "%s: holds checkpoints of a former run, checkpoint-%" PRId64
                         " the newest: --resume auto goes on from it; for a new run give another "
                         "--output or remove them",
                         output, list.steps[list.count - 1]);
    ls_checkpoint_list_deinit(&list);
    return status;
}

static ls_status find_folder(ls_training_run *run, char **folder, ls_error *error)
{
    const ls_options *options = run->session.options;
    bool automatic = strcmp(options->resume, "auto") == 0;
    if (options->resume_weights_only) LS_TRY(refuse_to_lose(options->output, error));
    if (automatic) return choose_newest(run, options->output, folder, error);
    LS_TRY(
        ls_checkpoint_check(options->resume, -1, ls_session_reading_threads(&run->session), error));
    return ls_copy_string(folder, options->resume, error);
}

static ls_status open_parts(ls_checkpoints *checkpoints, const char *folder, ls_error *error)
{
    char *trainer = NULL, *model = NULL, *optimizer = NULL;
    ls_status status;
    LS_TRY_GOTO(status, ls_path_join(&trainer, folder, LS_CHECKPOINT_TRAINER, error), done);
    LS_TRY_GOTO(status, ls_path_join(&model, folder, LS_CHECKPOINT_MODEL, error), done);
    LS_TRY_GOTO(status, ls_path_join(&optimizer, folder, LS_CHECKPOINT_OPTIMIZER, error), done);
    LS_TRY_GOTO(status, ls_json_load(&checkpoints->trainer, trainer, TRAINER_CAP, error), done);
    LS_TRY_GOTO(status, ls_weights_open(&checkpoints->model, model, error), done);
    LS_TRY_GOTO(status, ls_weights_open(&checkpoints->optimizer, optimizer, error), done);
    status = ls_trainer_record_read(checkpoints->trainer, trainer, &checkpoints->position, error);
done:
    ls_free(trainer);
    ls_free(model);
    ls_free(optimizer);
    return status;
}

/* A new run from the checkpoint's model: the folder stands in for --model. */
static ls_status take_model(ls_training_run *run, const char *folder, ls_error *error)
{
    ls_session *session = &run->session;
    ls_model_folder_close(&session->folder);
    ls_labels_free(session->labels);
    session->labels = NULL;
    LS_TRY(ls_model_folder_open(&session->folder, folder, error));
    LS_TRY(ls_labels_new(&session->labels, error));
    LS_TRY(ls_model_folder_labels(&session->folder, session->labels, error));
    ls_session_message(session, "a new run from the model of %s", folder);
    return LS_OK;
}

/* --- the same one for all processes ----------------------------------------------------------- */

/* What the others compare with what they see; all bytes are set. */
typedef struct choice {
    int64_t resumes, automatic, found;
    uint64_t digest[2]; /* of the manifest */
    char name[64];      /* of one in the output folder */
} choice;

enum { MANIFEST_CAP = 1 << 26 };

static ls_status identify(const char *folder, choice *seen, ls_error *error)
{
    char *path = NULL, *text = NULL;
    size_t length;
    LS_TRY(ls_path_join(&path, folder, LS_MANIFEST_NAME, error));
    ls_status status = ls_file_read(&text, &length, path, MANIFEST_CAP, error);
    ls_free(path);
    LS_TRY(status);
    XXH128_hash_t hash = XXH3_128bits(text, length);
    ls_free(text);
    const char *slash = strrchr(folder, '/');
    seen->found = 1;
    seen->digest[0] = hash.low64;
    seen->digest[1] = hash.high64;
    snprintf(seen->name, sizeof seen->name, "%.63s", slash ? slash + 1 : folder);
    return LS_OK;
}

static ls_status choose_first(ls_training_run *run, char **folder, choice *seen, ls_error *error)
{
    const ls_options *options = run->session.options;
    if (!ls_session_is_first(&run->session)) return LS_OK;
    if (!options->resume) return refuse_to_lose(options->output, error);
    LS_TRY(find_folder(run, folder, error));
    return *folder ? identify(*folder, seen, error) : LS_OK;
}

/* The folder that the first process has chosen, by this one's own path. */
static ls_status follow(const ls_training_run *run, const choice *theirs, choice *own,
                        char **folder, ls_error *error)
{
    const ls_options *options = run->session.options;
    const ls_processes *processes = run->session.processes;
    int index = ls_processes_here(processes)->index;
    const char *here = ls_processes_host_name(processes, index);
    const char *there = ls_processes_host_name(processes, 0);
    ls_error why;
    if (own->resumes != theirs->resumes || own->automatic != theirs->automatic)
        return ls_fail(error, LS_INVALID,
                       "process %d on %s and process 0 on %s are not given the same --resume; "
                       "start all processes with the same settings",
                       index, here, there);
    if (!theirs->found) return LS_OK;
    if (theirs->automatic)
        LS_TRY(ls_path_join(folder, options->output, theirs->name, error));
    else
        LS_TRY(ls_copy_string(folder, options->resume, error));
    ls_status status = identify(*folder, own, &why);
    if (status == LS_OK && memcmp(own->digest, theirs->digest, sizeof own->digest) == 0)
        return LS_OK;
    return ls_fail(error, status == LS_OK ? LS_INVALID : status,
                   "%s: process %d on %s does not see the checkpoint that process 0 on %s goes on "
                   "from (%s): all hosts need a folder that they share",
                   *folder, index, here, there,
                   status == LS_OK ? "another " LS_MANIFEST_NAME : why.text);
}

static ls_status choose_together(ls_training_run *run, char **folder, ls_error *error)
{
    const ls_session *session = &run->session;
    const char *resume = session->options->resume;
    choice own = {.resumes = resume != NULL}, *all = NULL;
    own.automatic = resume && strcmp(resume, "auto") == 0;
    ls_status status = LS_NEW(all, ls_session_place(session)->count, "checkpoint", error);
    if (status == LS_OK) status = choose_first(run, folder, &own, error);
    status = ls_session_agree(session, status, "the choice of a checkpoint", error);
    if (status == LS_OK)
        status = ls_processes_gather(session->processes, &own, sizeof own, all,
                                     "the choice of a checkpoint", error);
    if (status == LS_OK && !ls_session_is_first(session))
        status = follow(run, &all[0], &own, folder, error);
    ls_free(all);
    return status;
}

ls_status ls_checkpoints_choose(ls_training_run *run, ls_error *error)
{
    const ls_options *options = run->session.options;
    ls_checkpoints *checkpoints = &run->checkpoints;
    char *folder = NULL;
    checkpoints->best.step = checkpoints->saved = checkpoints->evaluated = -1;
    if (!options->output) return LS_OK;
    ls_status status = choose_together(run, &folder, error);
    if (status == LS_OK && folder && options->resume_weights_only)
        status = take_model(run, folder, error);
    else if (status == LS_OK && folder)
        status = open_parts(checkpoints, folder, error);
    if (status == LS_OK && !options->resume_weights_only) {
        checkpoints->folder = folder;
        folder = NULL;
    }
    ls_free(folder);
    return ls_session_agree(&run->session, status, "the choice of a checkpoint", error);
}

/* --- whether it fits ------------------------------------------------------------------------- */

ls_status ls_checkpoints_match(ls_training_run *run, ls_error *error)
{
    ls_checkpoints *checkpoints = &run->checkpoints;
    const ls_position *position = &checkpoints->position;
    char *path = NULL;
    if (!checkpoints->folder) return LS_OK;
    LS_TRY(ls_path_join(&path, checkpoints->folder, LS_CHECKPOINT_TRAINER, error));
    ls_status status = ls_trainer_record_match(run, checkpoints->trainer, path, error);
    if (status == LS_OK && position->step > run->total_steps)
        status = ls_fail(error, LS_INVALID, "%s: step %" PRId64 " is after the run's end, %" PRId64,
                         path, position->step, run->total_steps);
    ls_free(path);
    if (status != LS_OK) return status;
    run->report.steps = run->report.resumed_step = position->step;
    run->report.skipped_steps = position->skipped_steps;
    run->seconds_before = position->seconds;
    if (position->validation_done) checkpoints->evaluated = position->step;
    const json_t *best = json_object_get(checkpoints->trainer, "best");
    const char *metric = json_string_value(json_object_get(best, "metric"));
    const char *wanted = run->session.options->keep_best;
    /* Another measure, or none before, has no best one yet. */
    if (metric && wanted && strcmp(metric, wanted) == 0) checkpoints->best = position->best;
    ls_session_message(&run->session, "going on from %s, after step %" PRId64 " of %" PRId64,
                       checkpoints->folder, position->step, run->total_steps);
    return LS_OK;
}

/* --- reading it ------------------------------------------------------------------------------ */

/* All moments, one behind the other, are cut into parts that threads read; runs of zeros are found
 * in pages. */
enum { PART = 1 << 20, PAGE = 1024 };

typedef struct moments {
    ls_training_run *run;
    ls_state state;
    float *pieces; /* [threads][LS_STATE_PIECE] */
    int threads;
    _Atomic ls_status status;
    ls_error *error; /* of the part that failed first */
} moments;

static ls_status find_moment(const moments *m, const ls_state_tensor *tensor,
                             const ls_safetensors_tensor **from, ls_error *error)
{
    const ls_weights *file = m->run->checkpoints.optimizer;
    *from = ls_weights_find(file, tensor->name);
    if (*from && (*from)->elements == tensor->elements && (*from)->dtype == LS_SAFETENSORS_F32)
        return LS_OK;
    return ls_fail(error, LS_INVALID, "%s: tensor %s is %s: the checkpoint is of another model",
                   ls_weights_path(file), tensor->name,
                   *from ? "of another size or dtype" : "missing");
}

static bool is_zero(const float *elements, int64_t count)
{
    uint32_t any = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &elements[i], sizeof bits);
        any |= bits;
    }
    return any == 0;
}

/* All but pages of zeros: moments begin as zeros, and memory that nobody writes is none that the
 * run takes. Embeddings of words that never came have such. */
static ls_status write_moment(ls_ranks *ranks, ls_value_id value, int64_t first, int64_t count,
                              const float *piece, ls_error *error)
{
    int64_t begin = 0;
    for (int64_t at = 0, next; at < count; at = next) {
        next = count - at < PAGE ? count : at + PAGE;
        if (!is_zero(piece + at, next - at)) continue;
        if (begin < at)
            LS_TRY(ls_ranks_write(ranks, value, first + begin, at - begin, piece + begin, error));
        begin = next;
    }
    if (begin == count) return LS_OK;
    return ls_ranks_write(ranks, value, first + begin, count - begin, piece + begin, error);
}

static ls_status load_elements(const moments *m, const ls_state_tensor *tensor, int64_t begin,
                               int64_t end, float *piece, ls_error *error)
{
    ls_ranks *ranks = m->run->ranks;
    const ls_safetensors_tensor *from;
    LS_TRY(find_moment(m, tensor, &from, error));
    for (int64_t first = begin; first < end; first += LS_STATE_PIECE) {
        int64_t count = end - first < LS_STATE_PIECE ? end - first : LS_STATE_PIECE;
        if (!ls_ranks_hold(ranks, tensor->value, first, count)) continue;
        LS_TRY(
            ls_weights_read_float(m->run->checkpoints.optimizer, from, first, count, piece, error));
        LS_TRY(write_moment(ranks, tensor->value, first, count, piece, error));
    }
    return LS_OK;
}

static void load_part(void *context, int64_t part, int thread)
{
    moments *m = context;
    float *piece = m->pieces + (int64_t)thread * LS_STATE_PIECE;
    int64_t begin = part * PART, end = begin + PART;
    for (size_t i = m->state.parameters; i < m->state.count && end > 0; i++) {
        const ls_state_tensor *tensor = &m->state.tensors[i];
        int64_t first = begin > 0 ? begin : 0, last = end;
        if (last > tensor->elements) last = tensor->elements;
        ls_error error;
        ls_status none = LS_OK, status = LS_OK;
        if (first < last) status = load_elements(m, tensor, first, last, piece, &error);
        if (status != LS_OK && atomic_compare_exchange_strong(&m->status, &none, status))
            *m->error = error;
        begin -= tensor->elements;
        end -= tensor->elements;
    }
}

static ls_status load_moments(moments *m, ls_threads *threads, ls_error *error)
{
    const ls_safetensors_tensor *from;
    int64_t elements = 0;
    LS_TRY(LS_NEW(m->pieces, m->threads * LS_STATE_PIECE, "moments on their way", error));
    for (size_t i = m->state.parameters; i < m->state.count; i++) {
        LS_TRY(find_moment(m, &m->state.tensors[i], &from, error));
        elements += m->state.tensors[i].elements;
    }
    int64_t parts = (elements + PART - 1) / PART;
    if (threads)
        ls_threads_run(threads, parts, load_part, m);
    else
        for (int64_t part = 0; part < parts; part++)
            load_part(m, part, 0);
    if (m->status != LS_OK && error) *error = *m->error;
    return m->status;
}

ls_status ls_checkpoints_load(ls_training_run *run, ls_error *error)
{
    ls_error failure;
    moments m = {.run = run, .threads = 1, .status = LS_OK, .error = &failure};
    ls_threads *threads = NULL;
    if (!run->checkpoints.optimizer) return LS_OK;
    LS_TRY(ls_state_list(&m.state, &run->programs.training, error));
    /* What is offloaded is written by one thread at a time. */
    if (!ls_executor_offload(ls_ranks_owners(run->ranks).executors[0])) {
        threads = ls_session_reading_threads(&run->session);
        m.threads = ls_threads_count(threads);
    }
    ls_status status = load_moments(&m, threads, error);
    ls_free(m.pieces);
    ls_state_deinit(&m.state);
    return status;
}

ls_status ls_checkpoints_restore(ls_training_run *run, ls_error *error)
{
    const char *output = run->session.options->output;
    char *from = NULL, *to = NULL;
    LS_TRY(ls_checkpoint_clean(output, error));
    if (!run->checkpoints.folder) return LS_OK;
    ls_status status = ls_path_join(&from, run->checkpoints.folder, LS_CHECKPOINT_METRICS, error);
    if (status == LS_OK) status = ls_path_join(&to, output, LS_CHECKPOINT_METRICS, error);
    if (status == LS_OK) status = ls_file_copy(from, to, error);
    ls_free(from);
    ls_free(to);
    return status;
}
