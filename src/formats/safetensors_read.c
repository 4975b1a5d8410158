/* Elements of a tensor, as fp32 or as they are. */
#include <inttypes.h>
#include <string.h>

#include "formats/safetensors.h"
#include "formats/safetensors_internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "safetensors data are little-endian and are read as they stand");

enum { CHUNK_BYTES = 16 * 1024 };

/* The conversions work on bits: a worker thread flushes denormals, and they are to be kept. */
static uint32_t float_from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
             fraction = half & 0x3ff;
    if (exponent == 31) return sign | 0x7f800000 | fraction << 13;
    if (exponent == 0) {
        if (fraction == 0) return sign;
        exponent = 1;
        while (!(fraction & 0x400)) {
            fraction <<= 1;
            exponent--; /* wraps below 0; the sum below wraps back */
        }
        fraction &= 0x3ff;
    }
    return sign | (exponent + 112) << 23 | fraction << 13;
}

/* Round to nearest, ties to even. */
static uint32_t float_from_double(uint64_t bits)
{
    uint32_t sign = (uint32_t)(bits >> 32) & 0x80000000;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff) {
        uint32_t quiet = fraction ? 0x400000 : 0;
        return sign | 0x7f800000 | quiet | (uint32_t)(fraction >> 29);
    }
    exponent -= 1023 - 127;
    int dropped = 29;
    if (exponent <= 0) { /* a denormal float, or nothing */
        if (exponent < -24) return sign;
        fraction |= UINT64_C(1) << 52;
        dropped += 1 - exponent;
        exponent = 0;
    }
    uint64_t kept = fraction >> dropped, half = UINT64_C(1) << (dropped - 1),
             rest = fraction & (2 * half - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    /* A carry out of the fraction steps the exponent, up to infinity. */
    uint64_t magnitude = ((uint64_t)exponent << 23) + kept;
    return sign | (uint32_t)(magnitude < 0x7f800000 && exponent < 255 ? magnitude : 0x7f800000);
}

static void convert(ls_safetensors_dtype dtype, const void *from, size_t count, float *into)
{
    const unsigned char *bytes = from;
    size_t width = ls_safetensors_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t element = 0;
        uint32_t bits;
        memcpy(&element, bytes + i * width, width);
        if (dtype == LS_SAFETENSORS_F16)
            bits = float_from_half((uint16_t)element);
        else if (dtype == LS_SAFETENSORS_BF16)
            bits = (uint32_t)element << 16;
        else
            bits = float_from_double(element);
        memcpy(&into[i], &bits, sizeof bits);
    }
}

static ls_status check_range(const ls_safetensors *file, const ls_safetensors_tensor *tensor,
                             int64_t first, int64_t count, ls_error *error)
{
    if (first >= 0 && count >= 0 && count <= tensor->elements && first <= tensor->elements - count)
        return LS_OK;
    return ls_fail(error, LS_INTERNAL,
                   "%s: tensor '%.200s': %" PRId64 " elements from %" PRId64
                   " were asked for, it has %" PRId64,
                   file->file.path, tensor->name, count, first, tensor->elements);
}

ls_status ls_safetensors_read_raw(const ls_safetensors *file, const ls_safetensors_tensor *tensor,
                                  int64_t first, int64_t count, void *into, ls_error *error)
{
    LS_TRY(check_range(file, tensor, first, count, error));
    size_t width = ls_safetensors_dtype_bytes(tensor->dtype);
    ls_status status = ls_file_read_at(&file->file, into, (size_t)count * width,
                                       tensor->offset + (uint64_t)first * width, error);
    if (status != LS_OK) return ls_fail_context(error, status, "tensor '%.200s'", tensor->name);
    return LS_OK;
}

ls_status ls_safetensors_read_float(const ls_safetensors *file, const ls_safetensors_tensor *tensor,
                                    int64_t first, int64_t count, float *into, ls_error *error)
{
    unsigned char chunk[CHUNK_BYTES];
    ls_safetensors_dtype dtype = tensor->dtype;
    if (dtype == LS_SAFETENSORS_F32)
        return ls_safetensors_read_raw(file, tensor, first, count, into, error);
    if (dtype != LS_SAFETENSORS_F16 && dtype != LS_SAFETENSORS_BF16 && dtype != LS_SAFETENSORS_F64)
        return ls_fail(error, LS_UNSUPPORTED,
                       "%s: tensor '%.200s' is %s; F32, F16, BF16 or F64 is needed",
                       file->file.path, tensor->name, ls_safetensors_dtype_name(dtype));
    LS_TRY(check_range(file, tensor, first, count, error));
    int64_t step = (int64_t)(sizeof chunk / ls_safetensors_dtype_bytes(dtype));
    for (int64_t done = 0; done < count;) {
        int64_t now = count - done < step ? count - done : step;
        LS_TRY(ls_safetensors_read_raw(file, tensor, first + done, now, chunk, error));
        convert(dtype, chunk, (size_t)now, into + done);
        done += now;
    }
    return LS_OK;
}
