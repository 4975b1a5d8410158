#include "cli/arguments.h"

#include <stdio.h>
#include <string.h>

#include "cli/exit_status.h"

enum { NAME_BYTES = 64 };

static const char source[] = "command line";

bool ls_command_takes(const ls_command *command, const ls_setting *setting)
{
    for (const char *const *name = command->left_out; name && *name; name++)
        if (strcmp(*name, setting->name) == 0) return false;
    return (setting->commands & command->bit) != 0;
}

static const ls_setting *find(const char *name)
{
    for (const ls_setting *setting = ls_settings(); setting->name; setting++)
        if (strcmp(setting->name, name) == 0) return setting;
    return NULL;
}

/* The name in "--name" or "--name=value", with '-' for '_'; what is longer than any is cut. */
static void read_name(char name[NAME_BYTES], const char *word)
{
    size_t length = strcspn(word + 2, "=");
    if (length > NAME_BYTES - 1) length = NAME_BYTES - 1;
    for (size_t i = 0; i < length; i++)
        name[i] = word[2 + i] == '_' ? '-' : word[2 + i];
    name[length] = '\0';
}

/* Two commands share most settings, so that most of these are a line copied from another one. */
static ls_status fail_foreign(const ls_command *command, const ls_setting *setting, ls_error *error)
{
    static const ls_command *const all[] = {
        &ls_command_train,   &ls_command_evaluate, &ls_command_predict,
        &ls_command_inspect, &ls_command_tokenize, &ls_command_plan,
        &ls_command_verify,  &ls_command_audit,    &ls_command_compare};
    char list[100] = "";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t used = strlen(list);
        if (ls_command_takes(all[i], setting))
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", all[i]->name);
    }
    return ls_complain(error, LS_USAGE, "%s has no --%s, only these have: %s", command->name,
                       setting->name, list);
}

static ls_status set(ls_invocation *invocation, const char *name, const char *value,
                     ls_error *error)
{
    ls_status status = ls_options_set(&invocation->options, name, value, error);
    if (status != LS_OK) return status;
    if (strcmp(name, "strategy") == 0) invocation->has_strategy = true;
    return ls_sources_set(invocation->sources, name, source, error);
}

/* `*next` is the word after this one, NULL at the end; set to NULL when it was taken as value. */
static ls_status read_setting(ls_invocation *invocation, const ls_command *command,
                              const char *name, const char *value, const char **next,
                              ls_error *error)
{
    const ls_setting *setting = find(name);
    if (!setting) {
        ls_status status = ls_options_set(&invocation->options, name, "", error);
        size_t used = strlen(error->text);
        snprintf(error->text + used, sizeof error->text - used, " (lockstep %s --help lists all)",
                 command->name);
        return status;
    }
    if (!ls_command_takes(command, setting)) return fail_foreign(command, setting, error);
    if (!value && setting->kind == LS_SETTING_FLAG) value = "true";
    if (!value && *next && strncmp(*next, "--", 2) != 0) {
        value = *next;
        *next = NULL;
    }
    if (!value) return ls_complain(error, LS_USAGE, "--%s needs a value: %s", name, setting->help);
    return set(invocation, name, value, error);
}

/* The first of the command's paths that has no value yet. */
static const char *next_path(const ls_invocation *invocation, const ls_command *command)
{
    char buffer[64];
    for (size_t i = 0; i < sizeof command->paths / sizeof *command->paths; i++)
        if (command->paths[i] && !ls_options_get(&invocation->options, command->paths[i], buffer))
            return command->paths[i];
    return NULL;
}

/* Checked at once, so that what is wrong with the file is said before what is missing beside it. */
static ls_status open_deepspeed(ls_invocation *invocation, const char *path, ls_error *error)
{
    if (invocation->deepspeed)
        return ls_complain(error, LS_USAGE, "--deepspeed: one file is read, %s is another one",
                           path);
    return ls_deepspeed_open(&invocation->deepspeed, path, error);
}

static ls_status read_deepspeed(ls_invocation *invocation, const char *value, const char **next,
                                ls_error *error)
{
    if (!value && *next && strncmp(*next, "--", 2) != 0) {
        value = *next;
        *next = NULL;
    }
    if (value && *value) return open_deepspeed(invocation, value, error);
    return ls_complain(error, LS_USAGE,
                       "--deepspeed needs a value: a DeepSpeed configuration file");
}

static ls_status read_word(ls_invocation *invocation, const ls_command *command, const char *word,
                           const char **next, ls_error *error)
{
    char name[NAME_BYTES];
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        invocation->help = true;
        return LS_OK;
    }
    if (strcmp(word, "--quiet") == 0 && command->can_be_quiet) {
        invocation->quiet = true;
        return LS_OK;
    }
    if (strcmp(word, "--json") == 0 && (command->is_config || command->has_json)) {
        invocation->json = true;
        return LS_OK;
    }
    if (strncmp(word, "--", 2) != 0) {
        if (word[0] != '-' && command->is_config) return open_deepspeed(invocation, word, error);
        const char *free_path = word[0] != '-' ? next_path(invocation, command) : NULL;
        if (free_path) return set(invocation, free_path, word, error);
        return ls_complain(error, LS_USAGE, "%s: '%s' is not expected; for example: %s",
                           command->name, word, command->example);
    }
    const char *value = strchr(word, '=');
    read_name(name, word);
    if (strcmp(name, "deepspeed") == 0 && command->takes_deepspeed)
        return read_deepspeed(invocation, value ? value + 1 : NULL, next, error);
    return read_setting(invocation, command, name, value ? value + 1 : NULL, next, error);
}

static ls_status check_needed(const ls_invocation *invocation, const ls_command *command,
                              ls_error *error)
{
    char buffer[64];
    for (const char *const *name = command->needed; *name; name++)
        if (!ls_options_get(&invocation->options, *name, buffer))
            return ls_complain(error, LS_USAGE, "%s needs --%s; for example: %s", command->name,
                               *name, command->example);
    return LS_OK;
}

ls_status ls_arguments_parse(ls_invocation *invocation, const ls_command *command, int count,
                             char **words, ls_error *error)
{
    *invocation = (ls_invocation){0};
    ls_options_default(&invocation->options);
    ls_status status = ls_sources_new(&invocation->sources, error);
    for (int i = 0; i < count && status == LS_OK; i++) {
        const char *next = i + 1 < count ? words[i + 1] : NULL;
        bool had_next = next != NULL;
        status = read_word(invocation, command, words[i], &next, error);
        i += had_next && !next;
    }
    if (status == LS_OK && !invocation->help && invocation->deepspeed)
        status = ls_deepspeed_apply(invocation->deepspeed, &invocation->options,
                                    invocation->sources, error);
    if (status == LS_OK && !invocation->help) status = check_needed(invocation, command, error);
    return status;
}
