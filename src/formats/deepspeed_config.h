/* A DeepSpeed configuration file (ds_config.json): read, every key known and of its type.
 *
 * Comments, commas before a closing bracket and numbers such as 2e8 for integers are accepted, as
 * the hjson reader there does; duplicate and unknown keys, at any depth, are not. What is not built
 * here is refused by name. This reader knows the file's own rules only: what a value means for a
 * run is api/deepspeed.c's business. */
#ifndef LS_FORMATS_DEEPSPEED_CONFIG_H
#define LS_FORMATS_DEEPSPEED_CONFIG_H

#include <stdint.h>

#include "base/arena.h"
#include "formats/deepspeed_keys.h"
#include "formats/json.h"

/* A key of the file that is no section, under its present name. */
typedef struct ls_deepspeed_entry {
    const ls_deepspeed_key *key;
    const char *written; /* its path as the file has it */
    /* Of the key's type, or the text "auto"; NULL stands for the text "cpu" (of cpu_offload), true
     * and false for the stages 1 and 0 (of the first versions). */
    const json_t *value;
} ls_deepspeed_entry;

typedef struct ls_deepspeed_config {
    char *name;  /* the file's path, for texts */
    char *bytes; /* the file without comments */
    size_t count;
    json_t *root;
    ls_arena arena;
    ls_deepspeed_entry *entries; /* in the file's order */
    size_t entry_count, entry_capacity;
    const char **warnings; /* one line each: old names, numbers that can hardly be meant */
    size_t warning_count, warning_capacity;
} ls_deepspeed_config;

enum { LS_DEEPSPEED_LARGEST_FILE = 1 << 20 };

/* LS_INVALID: syntax, an unknown key, a wrong type or range; LS_USAGE: keys that contradict each
 * other, and what is not built, as it is for other settings. Texts name the file, the line, the
 * key, what it is and what is wanted. All-zero after a failure; free with
 * ls_deepspeed_config_deinit. */
ls_status ls_deepspeed_config_load(ls_deepspeed_config *config, const char *path,
                                   ls_error *error) LS_MUST_CHECK;
/* The same of bytes in memory; `name` stands for the path. */
ls_status ls_deepspeed_config_parse(ls_deepspeed_config *config, const char *bytes, size_t count,
                                    const char *name, ls_error *error) LS_MUST_CHECK;
void ls_deepspeed_config_deinit(ls_deepspeed_config *config);

/* By present name; NULL when absent or null. */
const ls_deepspeed_entry *ls_deepspeed_config_find(const ls_deepspeed_config *config,
                                                   const char *path);
/* Whether an object stands at this path, which may be empty. */
bool ls_deepspeed_config_has(const ls_deepspeed_config *config, const char *section);

/* Of an entry; NULL and "auto" give `fallback`. */
bool ls_deepspeed_is_auto(const ls_deepspeed_entry *entry);
int64_t ls_deepspeed_integer(const ls_deepspeed_entry *entry, int64_t fallback);
double ls_deepspeed_number(const ls_deepspeed_entry *entry, double fallback);
bool ls_deepspeed_flag(const ls_deepspeed_entry *entry, bool fallback);
const char *ls_deepspeed_text(const ls_deepspeed_entry *entry, const char *fallback);

/* "true", "5e-05", "cpu", "[0.9, 0.999]", "{...}": cut to fit. */
enum { LS_DEEPSPEED_VALUE_BYTES = 64 };
const char *ls_deepspeed_print(char into[LS_DEEPSPEED_VALUE_BYTES], const json_t *value);

/* Fail with "FILE: line N: key 'a.b': " before the formatted text. */
ls_status ls_deepspeed_fail(const ls_deepspeed_config *config, const char *path, ls_error *error,
                            ls_status code, const char *format, ...) LS_PRINTF(5, 6);
ls_status ls_deepspeed_warn(ls_deepspeed_config *config, ls_error *error, const char *format, ...)
    LS_PRINTF(3, 4) LS_MUST_CHECK;

/* The file's keys together, which parsing calls: types of optimizers and schedulers and what they
 * take, offloads and stages. In deepspeed_check.c. */
ls_status ls_deepspeed_check(ls_deepspeed_config *config, ls_error *error) LS_MUST_CHECK;
/* Types that are not built; called before unknown keys are looked for, as each type has its own. */
ls_status ls_deepspeed_check_types(const ls_deepspeed_config *config,
                                   ls_error *error) LS_MUST_CHECK;

#endif
