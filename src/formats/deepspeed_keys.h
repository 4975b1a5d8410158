/* The keys of a DeepSpeed configuration file (ds_config.json), one row each, as DeepSpeed 0.19 has
 * them: type, default, and what each does here. Checks, listings and docs follow from the rows. */
#ifndef LS_FORMATS_DEEPSPEED_KEYS_H
#define LS_FORMATS_DEEPSPEED_KEYS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum ls_deepspeed_kind {
    LS_DEEPSPEED_SECTION, /* an object whose keys have rows */
    LS_DEEPSPEED_FLAG,
    LS_DEEPSPEED_INTEGER, /* 2e8 is one */
    LS_DEEPSPEED_NUMBER,
    LS_DEEPSPEED_TEXT,
    LS_DEEPSPEED_PAIR, /* two numbers */
    LS_DEEPSPEED_LIST,
    LS_DEEPSPEED_ANYTHING /* an object that is not looked into, or any other value */
} ls_deepspeed_kind;

typedef enum ls_deepspeed_effect {
    LS_DEEPSPEED_PARTS,    /* a section: what its keys do */
    LS_DEEPSPEED_SETS,     /* the setting `target`, perhaps together with other keys */
    LS_DEEPSPEED_IDLE,     /* nothing here */
    LS_DEEPSPEED_REFUSED,  /* any value but the neutral ones: not built */
    LS_DEEPSPEED_OLD_NAME, /* of the key `target` */
} ls_deepspeed_effect;

typedef struct ls_deepspeed_key {
    const char *path; /* "zero_optimization.stage" */
    ls_deepspeed_kind kind;
    bool automatic;      /* "auto" is a value */
    const char *neutral; /* the default as text; further harmless values after '|' */
    ls_deepspeed_effect effect;
    const char *target;
    double least, most; /* of numbers */
    const char *help;   /* what it does here, or why not */
} ls_deepspeed_key;

/* All rows, ended by one with a NULL path. */
const ls_deepspeed_key *ls_deepspeed_keys(void);

/* The row of a path, or NULL. */
const ls_deepspeed_key *ls_deepspeed_key_find(const char *path);

/* The known key that one most likely meant by `path`: of the same name in another section, or else
 * the most similar one of its own section; NULL if the section has none. */
const ls_deepspeed_key *ls_deepspeed_key_nearest(const char *path);

#endif
