/* ls_verify: two models or checkpoints, tensor by tensor; or one against its manifest. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "base/numbers.h"
#include "engine/checkpoint/folder.h"
#include "formats/manifest.h"
#include "formats/weights.h"
#include "lockstep.h"

enum { PIECE_BYTES = 1 << 18 };

typedef struct comparison {
    const char *one, *other; /* as given */
    ls_verify_report report;
    unsigned char *left, *right; /* [PIECE_BYTES] */
    char first[700];             /* the first difference, "" so far */
} comparison;

/* --- one element ----------------------------------------------------------------------------- */

/* Floating-point bits, of `bytes` bytes, as integers in the order of the numbers they stand for. */
static int64_t ordered(uint64_t bits, size_t bytes)
{
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static bool is_floating(ls_safetensors_dtype dtype)
{
    return dtype == LS_SAFETENSORS_F16 || dtype == LS_SAFETENSORS_BF16 ||
           dtype == LS_SAFETENSORS_F32 || dtype == LS_SAFETENSORS_F64;
}

static uint64_t bits_at(const unsigned char *data, size_t element, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, data + element * bytes, bytes);
    return bits;
}

/* "[2, 3]" for a flat index. */
static void print_index(char into[120], const ls_safetensors_tensor *tensor, int64_t index)
{
    int64_t place[LS_SAFETENSORS_MAX_RANK];
    int used = 0;
    for (int axis = tensor->rank; axis-- > 0; index /= tensor->shape[axis])
        place[axis] = index % tensor->shape[axis];
    *into = '\0';
    for (int axis = 0; axis < tensor->rank; axis++)
        used += snprintf(into + used, (size_t)(120 - used), "%s%" PRId64, axis ? ", " : "[",
                         place[axis]);
    snprintf(into + used, (size_t)(120 - used), "%s", tensor->rank ? "]" : "[]");
}

/* The number, where it is one that a double shows, and its bits. */
static void print_element(char into[80], ls_safetensors_dtype dtype, uint64_t bits)
{
    char digits[LS_NUMBER_BYTES];
    float single;
    double number;
    uint32_t word = (uint32_t)bits;
    memcpy(&single, &word, sizeof single);
    memcpy(&number, &bits, sizeof number);
    if (dtype == LS_SAFETENSORS_F32) number = (double)single;
    bool shown = dtype == LS_SAFETENSORS_F32 || dtype == LS_SAFETENSORS_F64;
    snprintf(into, 80, "%s%s%0*" PRIx64 "%s", shown ? ls_number_print(digits, number) : "",
             shown ? " (" : "", (int)(2 * ls_safetensors_dtype_bytes(dtype)), bits,
             shown ? ")" : "");
}

/* Signed zeros differ in their bits by no unit: their bits say it. */
static void describe(comparison *c, const ls_safetensors_tensor *tensor, int64_t index,
                     uint64_t left, uint64_t right)
{
    size_t bytes = ls_safetensors_dtype_bytes(tensor->dtype);
    char place[120], distance[100] = "", one[80], other[80];
    print_index(place, tensor, index);
    print_element(one, tensor->dtype, left);
    print_element(other, tensor->dtype, right);
    if (is_floating(tensor->dtype)) {
        uint64_t units = (uint64_t)ordered(left, bytes) - (uint64_t)ordered(right, bytes);
        if (units > (uint64_t)INT64_MAX) units = 0 - units;
        snprintf(distance, sizeof distance, ", %" PRIu64 " unit%s in the last place apart", units,
                 units == 1 ? "" : "s");
    }
    snprintf(c->first, sizeof c->first,
             "tensor %.300s (%s), element %s: %s in one and %s in the other%s", tensor->name,
             ls_safetensors_dtype_name(tensor->dtype), place, one, other, distance);
}

/* --- tensors --------------------------------------------------------------------------------- */

static bool same_shape(const ls_safetensors_tensor *a, const ls_safetensors_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

static ls_status compare_elements(comparison *c, const ls_weights *one,
                                  const ls_safetensors_tensor *a, const ls_weights *other,
                                  const ls_safetensors_tensor *b, bool *same, ls_error *error)
{
    size_t bytes = ls_safetensors_dtype_bytes(a->dtype);
    int64_t most = (int64_t)(PIECE_BYTES / bytes);
    *same = true;
    for (int64_t first = 0; first < a->elements && *same; first += most) {
        int64_t count = a->elements - first < most ? a->elements - first : most;
        LS_TRY(ls_weights_read_raw(one, a, first, count, c->left, error));
        LS_TRY(ls_weights_read_raw(other, b, first, count, c->right, error));
        if (memcmp(c->left, c->right, (size_t)count * bytes) == 0) continue;
        *same = false;
        size_t at = 0;
        while (memcmp(c->left + at * bytes, c->right + at * bytes, bytes) == 0)
            at++;
        if (!*c->first)
            describe(c, a, first + (int64_t)at, bits_at(c->left, at, bytes),
                     bits_at(c->right, at, bytes));
    }
    return LS_OK;
}

static ls_status compare_tensor(comparison *c, const ls_weights *one,
                                const ls_safetensors_tensor *a, const ls_weights *other,
                                ls_error *error)
{
    const ls_safetensors_tensor *b = ls_weights_find(other, a->name);
    char left[200], right[200];
    bool same = false;
    c->report.tensors++;
    c->report.bytes += a->bytes;
    if (b && same_shape(a, b))
        LS_TRY(compare_elements(c, one, a, other, b, &same, error));
    else if (!*c->first && !b)
        snprintf(c->first, sizeof c->first, "tensor %.300s is only in %.300s", a->name, c->one);
    else if (!*c->first)
        snprintf(c->first, sizeof c->first, "tensor %.300s is %s %s in one and %s %s in the other",
                 a->name, ls_safetensors_dtype_name(a->dtype),
                 ls_safetensors_shape_text(a, left, sizeof left),
                 ls_safetensors_dtype_name(b->dtype),
                 ls_safetensors_shape_text(b, right, sizeof right));
    c->report.differing += !same;
    return LS_OK;
}

static ls_status compare_weights(comparison *c, const ls_weights *one, const ls_weights *other,
                                 ls_error *error)
{
    for (size_t i = 0; i < ls_weights_count(one); i++)
        LS_TRY(compare_tensor(c, one, ls_weights_at(one, i), other, error));
    for (size_t i = 0; i < ls_weights_count(other); i++) {
        const ls_safetensors_tensor *tensor = ls_weights_at(other, i);
        if (ls_weights_find(one, tensor->name)) continue;
        c->report.tensors++;
        c->report.differing++;
        if (!*c->first)
            snprintf(c->first, sizeof c->first, "tensor %.300s is only in %.300s", tensor->name,
                     c->other);
    }
    return LS_OK;
}

static ls_status compare_paths(comparison *c, const char *one, const char *other, ls_error *error)
{
    ls_weights *left = NULL, *right = NULL;
    ls_status status = ls_weights_open(&left, one, error);
    if (status == LS_OK) status = ls_weights_open(&right, other, error);
    if (status == LS_OK) status = compare_weights(c, left, right, error);
    ls_weights_free(left);
    ls_weights_free(right);
    return status;
}

/* The moments too, where both have them. */
static ls_status compare_moments(comparison *c, ls_error *error)
{
    char *one = NULL, *other = NULL;
    ls_status status = ls_path_join(&one, c->one, LS_CHECKPOINT_OPTIMIZER, error);
    if (status == LS_OK) status = ls_path_join(&other, c->other, LS_CHECKPOINT_OPTIMIZER, error);
    if (status == LS_OK && ls_path_exists(one) && ls_path_exists(other))
        status = compare_paths(c, one, other, error);
    ls_free(one);
    ls_free(other);
    return status;
}

static ls_status compare(comparison *c, ls_error *error)
{
    LS_TRY(LS_NEW(c->left, PIECE_BYTES, "tensors to compare", error));
    LS_TRY(LS_NEW(c->right, PIECE_BYTES, "tensors to compare", error));
    LS_TRY(compare_paths(c, c->one, c->other, error));
    LS_TRY(compare_moments(c, error));
    if (!c->report.differing) return LS_OK;
    return ls_fail(error, LS_DIFFERENT,
                   "%s; %" PRId64 " of %" PRId64 " tensors differ (%.100s and %.100s)", c->first,
                   c->report.differing, c->report.tensors, c->one, c->other);
}

/* --- a manifest ------------------------------------------------------------------------------ */

static ls_status check_manifest(const char *folder, ls_verify_report *report, ls_error *error)
{
    ls_manifest_report found;
    if (!ls_path_is_folder(folder))
        return ls_fail(
            error, LS_USAGE,
            "%s: is no folder: verify takes two models or checkpoints, or one checkpoint", folder);
    ls_status status = ls_manifest_check(folder, NULL, 0, NULL, &found, error);
    *report = (ls_verify_report){
        .files = (int64_t)found.files, .tensors = (int64_t)found.tensors, .bytes = found.bytes};
    /* What the folder holds is not what was written. */
    if (status == LS_INVALID && error) error->code = LS_DIFFERENT;
    return status == LS_INVALID ? LS_DIFFERENT : status;
}

ls_status ls_verify(const char *one, const char *other, ls_verify_report *report, ls_error *error)
{
    comparison c = {.one = one, .other = other};
    if (!one) return ls_fail(error, LS_USAGE, "verify needs a model or checkpoint folder");
    ls_status status = other ? compare(&c, error) : check_manifest(one, &c.report, error);
    if (report) *report = c.report;
    ls_free(c.left);
    ls_free(c.right);
    return status;
}
