/* Names that people mistype. */
#ifndef LS_BASE_NAMES_H
#define LS_BASE_NAMES_H

#include <stddef.h>

/* How many letters must be added, dropped or changed to make one the other (Levenshtein 1966); '_'
 * and '-' are the same. Of longer names 63 letters count. */
size_t ls_name_distance(const char *left, const char *right);

#endif
