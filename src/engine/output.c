/* The folder of a trained model: checked before the run, written after it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "engine/model_folder.h"
#include "formats/json.h"

/* Everything that a run writes; the tokenizer's files are copied as they are. */
static const char *const tokenizer_files[] = {"tokenizer.json", "vocab.txt",
                                              "special_tokens_map.json", "added_tokens.json"};
static const char *const own_files[] = {"model.safetensors", "config.json", "tokenizer_config.json",
                                        "metrics.jsonl", "run.json"};
enum {
    TOKENIZER_FILES = sizeof tokenizer_files / sizeof *tokenizer_files,
    OWN_FILES = sizeof own_files / sizeof *own_files
};

static bool is_written_by_a_run(const char *name)
{
    for (int i = 0; i < TOKENIZER_FILES; i++)
        if (strcmp(name, tokenizer_files[i]) == 0) return true;
    for (int i = 0; i < OWN_FILES; i++)
        if (strcmp(name, own_files[i]) == 0) return true;
    return false;
}

/* The first entry that no run writes into `foreign` [256], and whether there is a run.json. */
static ls_status look_through(const char *path, char *foreign, bool *empty, bool *former,
                              ls_error *error)
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
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        *empty = false;
        *former |= strcmp(name, "run.json") == 0;
        if (!is_written_by_a_run(name)) snprintf(foreign, 256, "%s", name);
    }
    closedir(folder);
    return LS_OK;
}

ls_status ls_output_clear(const char *path, ls_error *error)
{
    ls_status status = LS_OK;
    for (int i = 0; status == LS_OK && i < OWN_FILES + TOKENIZER_FILES; i++) {
        char *file = NULL;
        const char *name = i < OWN_FILES ? own_files[i] : tokenizer_files[i - OWN_FILES];
        LS_TRY(ls_path_join(&file, path, name, error));
        if (unlink(file) != 0 && errno != ENOENT)
            status = ls_fail(error, LS_IO, "%s: cannot remove the former run's file: %s", file,
                             strerror(errno));
        ls_free(file);
    }
    return status;
}

ls_status ls_output_check(const char *path, bool *made, ls_error *error)
{
    char foreign[256];
    bool empty = true, former = false;
    *made = !ls_path_exists(path);
    LS_TRY(ls_folder_make(path, error));
    LS_TRY(look_through(path, foreign, &empty, &former, error));
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

ls_status ls_output_write_model(const char *path, const ls_model_folder *from,
                                const ls_labels *labels, int64_t max_length, ls_executor *executor,
                                const ls_assembly *assembly, ls_error *error)
{
    LS_TRY(write_config(path, from, labels, error));
    for (int i = 0; i < TOKENIZER_FILES; i++)
        LS_TRY(copy_if_there(path, from->path, tokenizer_files[i], error));
    LS_TRY(write_tokenizer_config(path, from, max_length, error));
    char *weights = NULL;
    LS_TRY(ls_path_join(&weights, path, "model.safetensors", error));
    ls_status status = ls_parameters_save(executor, assembly, weights, error);
    ls_free(weights);
    return status;
}
