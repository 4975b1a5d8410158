#include "base/numbers.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *decimal_point(void)
{
    const struct lconv *conventions = localeconv();
    return conventions->decimal_point[0] ? conventions->decimal_point : ".";
}

const char *ls_number_print(char into[LS_NUMBER_BYTES], double value)
{
    if (value != value) value = __builtin_nan(""); /* its sign says nothing */
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(into, LS_NUMBER_BYTES, "%.*g", precision, value);
        if (strtod(into, NULL) == value) break;
    }
    const char *point = decimal_point();
    char *found = strcmp(point, ".") == 0 ? NULL : strstr(into, point);
    if (found) {
        *found = '.';
        memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
    }
    return into;
}

bool ls_number_parse(const char *text, double *out)
{
    char copy[128];
    size_t used = 0;
    const char *point = decimal_point();
    if (text[0] == '\0') return false;
    for (const char *at = text; *at; at++) {
        if (!strchr("0123456789+-.eE", *at) || used + 16 > sizeof copy) return false;
        if (*at != '.') {
            copy[used++] = *at;
        } else {
            for (const char *from = point; *from && used + 1 < sizeof copy; from++)
                copy[used++] = *from;
        }
    }
    copy[used] = '\0';
    char *end;
    double value = strtod(copy, &end);
    if (*end || end == copy || value - value != 0) return false;
    *out = value;
    return true;
}
