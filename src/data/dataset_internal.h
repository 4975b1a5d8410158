/* What dataset.c (reading) and dataset_open.c (making) share. */
#ifndef LS_DATA_DATASET_INTERNAL_H
#define LS_DATA_DATASET_INTERNAL_H

#include "data/dataset.h"
#include "data/token_cache.h"

/* A row in the cache: one value that says how many of its tokens are of type 0 (they come first),
 * then its ids. Positions of rows follow from the lengths; every ROWS_A_MARK-th is kept. */
enum { ROWS_A_MARK = 64 };

struct ls_dataset {
    ls_token_cache cache;
    char *path, *text_column, *text_pair_column, *label_column;
    size_t count;
    uint64_t skipped, tokens;
    int32_t longest;
    int32_t vocabulary; /* ids are below this */
    uint16_t *lengths;  /* [count] tokens */
    int16_t *classes;   /* [count] -1: none */
    uint64_t *marks;    /* [count / ROWS_A_MARK, up] position in the cache */
    size_t length_capacity, class_capacity, mark_capacity;
    uint64_t digest[2]; /* high, low */
};

#endif
