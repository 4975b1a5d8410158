/* The folder of a trained model: checked before the run, written after it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "engine/checkpoint/folder.h"
#include "engine/model_folder.h"
#include "engine/output_guests.h"
#include "engine/shared_folder.h"
#include "formats/json.h"

/* Everything that a run writes; the tokenizer's files are copied as they are. */
static const char *const tokenizer_files[] = {"tokenizer.json", "vocab.txt",
                                              "special_tokens_map.json", "added_tokens.json"};
static const char *const own_files[] = {"model.safetensors", "config.json",
                                        "tokenizer_config.json"};
static const char *const record_files[] = {"metrics.jsonl", "run.json"};
/* A folder of a run's own, which holds nothing but these. */
static const char profile_folder[] = "profile";
static const char *const profile_files[] = {"trace.json", "summary.json", "summary.txt"};
enum {
    PROFILE_FILES = sizeof profile_files / sizeof *profile_files,
    TOKENIZER_FILES = sizeof tokenizer_files / sizeof *tokenizer_files,
    OWN_FILES = sizeof own_files / sizeof *own_files,
    RECORD_FILES = sizeof record_files / sizeof *record_files
};

/* Half-written files count: a run that was killed leaves one. */
static bool is_one_of(const char *const *names, int count, const char *name)
{
    size_t length = ls_final_length(name);
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(name, names[i], length) == 0) return true;
    return false;
}

static bool is_of_a_model(const char *name)
{
    return is_one_of(own_files, OWN_FILES, name) ||
           is_one_of(tokenizer_files, TOKENIZER_FILES, name);
}

/* rank-12.log */
static bool is_log_of_a_rank(const char *name)
{
    static const char before[] = "rank-", after[] = ".log";
    size_t start = sizeof before - 1, length = ls_final_length(name);
    size_t digits = strspn(name + (strlen(name) < start ? strlen(name) : start), "0123456789");
    return strncmp(name, before, start) == 0 && digits > 0 &&
           length == start + digits + sizeof after - 1 &&
           memcmp(name + start + digits, after, sizeof after - 1) == 0;
}

/* A file that loses its name once it is open (token_cache.c, block_file.c): a run was killed
 * between the two. */
static bool is_working_file(const char *name)
{
    static const char *const beginnings[] = {"lockstep-tokens-", "lockstep-offload-"};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(beginnings[i]);
        if (strncmp(name, beginnings[i], length) == 0 && strlen(name) == length + 6) return true;
    }
    return false;
}

static bool is_written_by_a_run(const char *name)
{
    return is_of_a_model(name) || is_log_of_a_rank(name) || ls_shared_folder_is_token(name) ||
           is_working_file(name) || is_one_of(record_files, RECORD_FILES, name);
}

/* What nothing but a run leaves, however early it was killed. */
static bool is_sign_of_a_run(const char *name)
{
    static const char *const record = "run.json";
    return is_one_of(&record, 1, name) || ls_checkpoint_is_one(name) || is_working_file(name) ||
           ls_shared_folder_is_token(name);
}

static bool is_of_a_profile(const char *name)
{
    return is_one_of(profile_files, PROFILE_FILES, name);
}

static bool is_self_or_parent(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool has_profile(DIR *folder)
{
    struct stat status;
    return fstatat(dirfd(folder), profile_folder, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
}

/* The first entry that no run writes into `foreign` [256], and whether there is a run.json. */
static ls_status look_through(const char *path, const ls_guest_names *guests, char *foreign,
                              bool *empty, bool *former, ls_error *error)
{
    DIR *folder = opendir(path);
    if (!folder)
        return ls_fail(error, LS_IO, "%s: cannot read the output folder: %s", path,
                       strerror(errno));
    *foreign = '\0';
    *empty = true;
    *former = false;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        if (is_self_or_parent(name) || ls_folder_lock_is_name(name) ||
            ls_guest_names_have(guests, name))
            continue;
        *empty = false;
        *former |= is_sign_of_a_run(name);
        bool own = ls_checkpoint_is_one(name) ||
                   (strcmp(name, profile_folder) == 0 && has_profile(folder));
        if (!own && !is_written_by_a_run(name)) snprintf(foreign, 256, "%s", name);
    }
    closedir(folder);
    return LS_OK;
}

/* The same of a former run's profile. */
static ls_status look_through_profile(const char *path, char *foreign, ls_error *error)
{
    char *inside = NULL;
    LS_TRY(ls_path_join(&inside, path, profile_folder, error));
    DIR *folder = ls_path_is_folder(inside) ? opendir(inside) : NULL;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (!is_self_or_parent(entry->d_name) && !is_of_a_profile(entry->d_name))
            snprintf(foreign, 256, "%s/%.200s", profile_folder, entry->d_name);
    if (folder) closedir(folder);
    ls_free(inside);
    return LS_OK;
}

/* Remove the files that `which` is true of, but for the one named `kept`. */
static ls_status remove_files(const char *path, bool (*which)(const char *name), const char *kept,
                              ls_error *error)
{
    ls_status status = LS_OK;
    DIR *folder = opendir(path);
    if (!folder)
        return ls_fail(error, LS_IO, "%s: cannot read the output folder: %s", path,
                       strerror(errno));
    for (const struct dirent *entry; status == LS_OK && (entry = readdir(folder));)
        if (which(entry->d_name) && !(kept && strcmp(entry->d_name, kept) == 0) &&
            unlinkat(dirfd(folder), entry->d_name, 0) != 0 && errno != ENOENT)
            status = ls_fail(error, LS_IO, "%s/%s: cannot remove the file: %s", path, entry->d_name,
                             strerror(errno));
    closedir(folder);
    return status;
}

/* A former run's profile; what else lies in its folder stays, and is refused. */
static ls_status remove_profile(const char *path, ls_error *error)
{
    char *folder = NULL;
    LS_TRY(ls_path_join(&folder, path, profile_folder, error));
    ls_status status = LS_OK;
    if (ls_path_is_folder(folder)) {
        status = remove_files(folder, is_of_a_profile, NULL, error);
        if (status == LS_OK && rmdir(folder) != 0)
            status = ls_fail(error, LS_IO, "%s: cannot remove the former run's folder: %s", folder,
                             strerror(errno));
    }
    ls_free(folder);
    return status;
}

ls_status ls_output_clear(const char *path, const char *kept, ls_error *error)
{
    LS_TRY(remove_profile(path, error));
    return remove_files(path, is_written_by_a_run, kept, error);
}

static void cut_last_name(char *path)
{
    char *end = path + strlen(path);
    while (end > path && end[-1] == '/')
        end--;
    while (end > path && end[-1] != '/')
        end--;
    *end = '\0';
}

/* Make the folder and those above it that are missing; *made as ls_output_check tells it. */
static ls_status make_folders(const char *path, size_t *made, ls_error *error)
{
    char *there = NULL;
    LS_TRY(ls_copy_string(&there, path, error));
    while (*there && !ls_path_exists(there))
        cut_last_name(there);
    *made = strlen(path) - strlen(there);
    ls_free(there);
    return ls_folder_make(path, error);
}

void ls_output_unmake(const char *path, size_t made)
{
    char *folder = NULL;
    size_t kept = strlen(path) - made;
    if (made == 0 || ls_copy_string(&folder, path, NULL) != LS_OK) return;
    while (strlen(folder) > kept && rmdir(folder) == 0)
        cut_last_name(folder);
    ls_free(folder);
}

/* One of the output folder's checkpoints, which a run may remove. */
static bool is_inside(const char *path, const char *folder)
{
    char *above = NULL;
    if (ls_path_join(&above, path, "..", NULL) != LS_OK) return false;
    bool inside = ls_is_same_folder(above, folder);
    ls_free(above);
    return inside;
}

ls_status ls_output_check(const char *path, const char *model, const ls_output_guests *guests,
                          size_t *made, ls_error *error)
{
    char foreign[256];
    bool empty = true, former = false;
    ls_guest_names names;
    LS_TRY(make_folders(path, made, error));
    if (ls_is_same_folder(path, model))
        return ls_fail(error, LS_USAGE,
                       "%s: --output is the --model folder, whose files a run replaces: give "
                       "--output another folder",
                       path);
    LS_TRY(ls_guest_names_find(&names, path, guests, error));
    ls_status status = look_through(path, &names, foreign, &empty, &former, error);
    ls_guest_names_deinit(&names);
    LS_TRY(status);
    if (former && is_inside(model, path))
        return ls_fail(error, LS_USAGE,
                       "%s: lies in the --output folder, whose checkpoints a run removes: give "
                       "--output another folder",
                       model);
    if (!*foreign) LS_TRY(look_through_profile(path, foreign, error));
    if (!empty && (!former || *foreign))
        return ls_fail(error, LS_INVALID,
                       "%s: the output folder holds something else (%s): give --output a new or "
                       "empty folder, or one that a former run wrote",
                       path, *foreign ? foreign : "files, but no run.json");
    if (access(path, W_OK | X_OK) == 0) return LS_OK;
    return ls_fail(error, LS_IO, "%s: cannot write to the output folder: %s", path,
                   strerror(errno));
}

static ls_status copy_if_there(const char *to_folder, const char *from_folder, const char *name,
                               ls_error *error)
{
    char *from = NULL, *to = NULL;
    ls_status status = ls_path_join(&from, from_folder, name, error);
    if (status == LS_OK) status = ls_path_join(&to, to_folder, name, error);
    if (status == LS_OK && ls_path_exists(from)) status = ls_file_copy(from, to, error);
    ls_free(from);
    ls_free(to);
    return status;
}

/* The source's tokenizer_config.json with model_max_length set: evaluate, predict and Transformers
 * read the limit from there. */
static ls_status write_tokenizer_config(const char *to_folder, const ls_model_folder *from,
                                        int64_t max_length, ls_error *error)
{
    char *source = NULL, *target = NULL;
    json_t *document = NULL;
    ls_status status;
    LS_TRY_GOTO(status, ls_path_join(&source, from->path, "tokenizer_config.json", error), done);
    LS_TRY_GOTO(status, ls_path_join(&target, to_folder, "tokenizer_config.json", error), done);
    if (ls_path_exists(source))
        LS_TRY_GOTO(status, ls_json_load(&document, source, 1 << 24, error), done);
    else
        LS_TRY_GOTO(status, ls_json_new_object(&document, error), done);
    bool distilbert = from->config.family == LS_MODEL_DISTILBERT;
    if (json_object_set_new(document, "model_max_length", json_integer(max_length)) != 0 ||
        (!json_object_get(document, "tokenizer_class") &&
         json_object_set_new(document, "tokenizer_class",
                             json_string(distilbert ? "DistilBertTokenizer" : "BertTokenizer")) !=
             0)) {
        status = ls_fail(error, LS_NO_MEMORY, "out of memory: tokenizer_config.json");
        goto done;
    }
    status = ls_json_write(document, target, error);
done:
    ls_json_free(document);
    ls_free(source);
    ls_free(target);
    return status;
}

static ls_status write_config(const char *path, const ls_model_folder *from,
                              const ls_labels *labels, ls_error *error)
{
    char *target = NULL;
    const char **names = NULL;
    ls_status status;
    size_t count = (size_t)ls_labels_count(labels);
    LS_TRY_GOTO(status, ls_path_join(&target, path, "config.json", error), done);
    LS_TRY_GOTO(status, LS_NEW(names, count, "label names", error), done);
    for (size_t i = 0; i < count; i++)
        names[i] = ls_labels_name(labels, (int)i);
    status = ls_model_config_write(&from->config, names, count, target, error);
done:
    ls_free(names);
    ls_free(target);
    return status;
}

static ls_status write_weights(const char *path, const ls_tensor_reader *reader,
                               const ls_assembly *assembly, ls_error *error)
{
    char *weights = NULL;
    LS_TRY(ls_path_join(&weights, path, "model.safetensors", error));
    ls_status status = ls_parameters_save(reader, assembly, weights, error);
    ls_free(weights);
    return status;
}

ls_status ls_output_write_files(const char *path, const ls_model_folder *from,
                                const ls_labels *labels, int64_t max_length, ls_error *error)
{
    LS_TRY(write_config(path, from, labels, error));
    for (int i = 0; i < TOKENIZER_FILES; i++)
        LS_TRY(copy_if_there(path, from->path, tokenizer_files[i], error));
    return write_tokenizer_config(path, from, max_length, error);
}

ls_status ls_output_write_model(const char *path, const ls_model_folder *from,
                                const ls_labels *labels, int64_t max_length,
                                const ls_tensor_reader *reader, const ls_assembly *assembly,
                                ls_error *error)
{
    ls_status status;
    LS_TRY_GOTO(status, ls_output_write_files(path, from, labels, max_length, error), fail);
    LS_TRY_GOTO(status, write_weights(path, reader, assembly, error), fail);
    return LS_OK;
fail:
    /* Weights without their configuration, or the reverse, are no model. */
    (void)remove_files(path, is_of_a_model, NULL, NULL);
    return status;
}
