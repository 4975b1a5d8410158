#include "launch/compare_timeline.h"

ls_status ls_compare_timeline(ls_text *text, const char *folder, const char *name, ls_error *error)
{
    (void)text;
    (void)folder;
    (void)name;
    (void)error;
    return LS_OK;
}
