#include "base/names.h"

#include <string.h>

enum { LONGEST = 63 };

static char canonical(char c)
{
    return c == '_' ? '-' : c;
}

/* One row of the table of distances at a time. */
size_t ls_name_distance(const char *left, const char *right)
{
    size_t row[LONGEST + 1], columns = strlen(right);
    if (columns > LONGEST) columns = LONGEST;
    for (size_t column = 0; column <= columns; column++)
        row[column] = column;
    for (size_t i = 0; left[i] && i < LONGEST; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            size_t above = row[j + 1];
            size_t least = diagonal + (canonical(left[i]) != canonical(right[j]));
            if (above + 1 < least) least = above + 1;
            if (row[j] + 1 < least) least = row[j] + 1;
            diagonal = above;
            row[j + 1] = least;
        }
    }
    return row[columns];
}
