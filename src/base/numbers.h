/* Numbers as text, in one form whatever the program's locale: a decimal point, never a comma. */
#ifndef LS_BASE_NUMBERS_H
#define LS_BASE_NUMBERS_H

#include <stdbool.h>

enum { LS_NUMBER_BYTES = 32 };

/* The shortest of 15 to 17 digits that reads back as the same double: "0.1", "5e-05", "3". Writes
 * and returns `into`. Numbers that are not finite give "nan", "inf" or "-inf": JSON knows none of
 * them. */
const char *ls_number_print(char into[LS_NUMBER_BYTES], double value);

/* The whole text is a finite decimal number ("3", "-0.5", "5e-5"); false, *out untouched, if not.
 * Hexadecimal, spaces, "nan" and "inf" are refused. */
bool ls_number_parse(const char *text, double *out);

#endif
