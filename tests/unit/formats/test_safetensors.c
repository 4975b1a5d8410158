/* formats/safetensors and formats/weights: every check of the format, conversions, writing. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "formats/weights.h"

/* A file with this header and `data_bytes` bytes 0, 1, 2, ... after it. */
static void write_model(const char *path, const char *header, size_t data_bytes)
{
    size_t length = strlen(header), count = 8 + length + data_bytes;
    unsigned char *bytes = malloc(count);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        bytes[8 + length + i] = (unsigned char)i;
    test_write_file(path, bytes, count);
    free(bytes);
}

static void expect_refused(const char *path, ls_status status, const char *why)
{
    ls_error error = {0};
    ls_safetensors *file = NULL;
    ls_status got = ls_safetensors_open(&file, path, &error);
    if (got != status || !strstr(error.text, why) || !strstr(error.text, path))
        fail_msg("wanted '%s', got %d '%s'", why, got, error.text);
    assert_null(file);
}

static void broken_files_are_refused_by_tensor_or_offset(void **state)
{
    (void)state;
#define A(dtype, shape, begin, end)                                                                \
    "\"a\": {\"dtype\": " dtype ", \"shape\": " shape ", \"data_offsets\": [" #begin ", " #end "]" \
    "}"
#define B(begin, end)                                                                              \
    "\"b\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [" #begin ", " #end "]}"
    static const struct {
        const char *header;
        size_t data_bytes;
        ls_status status;
        const char *why;
    } cases[] = {
        {"", 0, LS_INVALID, "does not start with '{'"},
        {"[1, 2]  ", 0, LS_INVALID, "does not start with '{'"},
        {"{\"a\": ", 0, LS_INVALID, "not valid JSON"},
        {"{\"\xff\": 1}", 0, LS_INVALID, "bad UTF-8"},
        {"{\"a\": 3}", 0, LS_INVALID, "key 'a': is an integer"},
        {"{\"a\": {}}", 0, LS_INVALID, "key 'a.dtype': is missing"},
        {"{\"a\": {\"dtype\": \"F32\", \"data_offsets\": [0, 4]}}", 4, LS_INVALID,
         "key 'a.shape': is missing"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1]}}", 4, LS_INVALID,
         "key 'a.data_offsets': is missing"},
        {"{" A("\"F31\"", "[1]", 0, 4) "}", 4, LS_UNSUPPORTED, "key 'a.dtype': 'F31'"},
        {"{" A("\"F4\"", "[2]", 0, 1) "}", 1, LS_UNSUPPORTED, "'F4'"},
        {"{" A("7", "[1]", 0, 4) "}", 4, LS_INVALID, "key 'a.dtype': is an integer"},
        {"{" A("\"F32\"", "[-1]", 0, 4) "}", 4, LS_INVALID, "key 'a.shape': number 0 is negative"},
        {"{" A("\"F32\"", "[1.0]", 0, 4) "}", 4, LS_INVALID, "key 'a.shape': number 0 is a number"},
        {"{" A("\"F32\"", "1", 0, 4) "}", 4, LS_INVALID, "key 'a.shape': is an integer"},
        {"{" A("\"F32\"", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, LS_UNSUPPORTED, "has 9 numbers"},
        {"{" A("\"F32\"", "[4294967296, 4294967296]", 0, 4) "}", 4, LS_INVALID, "can be counted"},
        {"{" A("\"F32\"", "[4611686018427387904]", 0, 4) "}", 4, LS_INVALID, "can be counted"},
        {"{" A("\"F32\"", "[2]", 0, 4) "}", 4, LS_INVALID, "F32 of shape [2] takes 8"},
        {"{" A("\"F32\"", "[1]", 4, 0) "}", 4, LS_INVALID, "[4, 0)"},
        {"{" A("\"F32\"", "[1]", -4, 0) "}", 4, LS_INVALID, "number 0 is negative"},
        {"{" A("\"F32\"", "[2]", 0, 8) "}", 4, LS_INVALID, "file's 4 data bytes"},
        {"{" A("\"F32\"", "[1]", 4, 8) "}", 8, LS_INVALID, "a hole of 4 bytes at byte 0"},
        {"{" A("\"F32\"", "[2]", 0, 8) ", " B(4, 8) "}", 8, LS_INVALID, "'b' overlaps 'a'"},
        {"{" A("\"F32\"", "[1]", 0, 4) ", " B(8, 12) "}", 12, LS_INVALID,
         "a hole of 4 bytes at byte 4"},
        {"{" A("\"F32\"", "[1]", 0, 4) "}", 6, LS_INVALID, "2 bytes after 'a'"},
        {"{}", 3, LS_INVALID, "3 bytes after"},
        {"{" A("\"F32\"", "[1]", 0, 4) ", " A("\"F32\"", "[1]", 4, 8) "}", 8, LS_INVALID,
         "duplicate key 'a'"},
        {"{\"__metadata__\": {\"format\": 3}}", 0, LS_INVALID, "key '__metadata__.format'"},
        {"{\"__metadata__\": \"pt\"}", 0, LS_INVALID, "key '__metadata__': is text"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4, 8]}}", 4,
         LS_UNSUPPORTED, "has 3 numbers"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0]}}", 4, LS_INVALID,
         "has 1 numbers"},
    };
    char *folder = test_folder();
    const char *path = test_path(folder, "model.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_model(path, cases[i].header, cases[i].data_bytes);
        expect_refused(path, cases[i].status, cases[i].why);
    }
    test_write_file(path, "\x02\0\0\0\0\0\0", 7);
    expect_refused(path, LS_INVALID, "7 bytes; a safetensors file has at least 8");
    test_write_file(path, "\x10\0\0\0\0\0\0\0{}", 10);
    expect_refused(path, LS_INVALID, "a header of 16 bytes is announced, the file has 10");
    test_write_file(path, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    expect_refused(path, LS_INVALID, "the limit is 100000000");
    test_write_file(path, "\x01\xe1\xf5\x05\0\0\0\0{}", 10); /* 100 000 001 */
    expect_refused(path, LS_INVALID, "the limit is 100000000");
    expect_refused(test_path(folder, "missing"), LS_IO, "cannot open");
    expect_refused(folder, LS_IO, "is a folder");
    test_folder_remove(folder);
}

static void tensors_are_found_and_read_in_parts(void **state)
{
    (void)state;
    ls_error error;
    ls_safetensors *file = NULL;
    char *folder = test_folder(), shape[64];
    const char *path = test_path(folder, "model.safetensors");
    write_model(path,
                "{\"__metadata__\": {\"format\": \"pt\"}, "
                "\"z\": {\"dtype\": \"U8\", \"shape\": [2, 3], \"data_offsets\": [0, 6]}, "
                "\"e\": {\"dtype\": \"F32\", \"shape\": [0, 5], \"data_offsets\": [6, 6]}, "
                "\"s\": {\"dtype\": \"I16\", \"shape\": [], \"data_offsets\": [6, 8]}}   ",
                8);
    assert_ok(ls_safetensors_open(&file, path, &error), error);
    assert_int_equal(ls_safetensors_count(file), 3);
    assert_string_equal(ls_safetensors_at(file, 0)->name, "e");
    assert_string_equal(ls_safetensors_at(file, 2)->name, "z");
    assert_string_equal(ls_safetensors_metadata(file, "format"), "pt");
    assert_null(ls_safetensors_metadata(file, "x"));
    assert_null(ls_safetensors_find(file, "y"));
    const ls_safetensors_tensor *z = ls_safetensors_find(file, "z");
    assert_non_null(z);
    assert_string_equal(ls_safetensors_shape_text(z, shape, sizeof shape), "[2, 3]");
    unsigned char bytes[8];
    assert_ok(ls_safetensors_read_raw(file, z, 2, 3, bytes, &error), error);
    assert_memory_equal(bytes, "\x02\x03\x04", 3);
    const ls_safetensors_tensor *scalar = ls_safetensors_find(file, "s");
    assert_int_equal(scalar->elements, 1);
    assert_string_equal(ls_safetensors_shape_text(scalar, shape, sizeof shape), "[]");
    assert_ok(ls_safetensors_read_raw(file, scalar, 0, 1, bytes, &error), error);
    assert_memory_equal(bytes, "\x06\x07", 2);
    float number;
    assert_ok(
        ls_safetensors_read_float(file, ls_safetensors_find(file, "e"), 0, 0, &number, &error),
        error);
    assert_int_equal(ls_safetensors_read_raw(file, z, 4, 3, bytes, &error), LS_INTERNAL);
    assert_int_equal(ls_safetensors_read_raw(file, z, INT64_MAX, 2, bytes, &error), LS_INTERNAL);
    assert_int_equal(ls_safetensors_read_float(file, z, 0, 1, &number, &error), LS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "tensor 'z' is U8"));

    /* A file that shrinks while it is open. */
    write_model(path, "{}", 0);
    assert_int_equal(ls_safetensors_read_raw(file, z, 0, 6, bytes, &error), LS_IO);
    assert_non_null(strstr(error.text, "'z'"));
    ls_safetensors_free(file);
    ls_safetensors_free(NULL);
    test_folder_remove(folder);
}

/* Write one tensor, read it as floats. */
static void convert(ls_safetensors_dtype dtype, const void *from, int64_t count, float *into)
{
    ls_error error;
    ls_safetensors *file = NULL;
    ls_safetensors_writer *writer = NULL;
    char *folder = test_folder();
    const char *path = test_path(folder, "model.safetensors");
    ls_safetensors_entry entry = {.name = "x", .dtype = dtype, .rank = 1, .shape = {count}};
    assert_ok(ls_safetensors_writer_new(&writer, path, &entry, 1, &error), error);
    assert_ok(ls_safetensors_writer_write(
                  writer, 0, from, (size_t)count * ls_safetensors_dtype_bytes(dtype), &error),
              error);
    assert_ok(ls_safetensors_writer_finish(writer, &error), error);
    ls_safetensors_writer_free(writer);
    assert_ok(ls_safetensors_open(&file, path, &error), error);
    assert_ok(ls_safetensors_read_float(file, ls_safetensors_at(file, 0), 0, count, into, &error),
              error);
    ls_safetensors_free(file);
    test_folder_remove(folder);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void every_half_and_bfloat_is_exact(void **state)
{
    (void)state;
    enum { COUNT = 65536 };
    uint16_t *halves = malloc(COUNT * sizeof *halves);
    float *floats = malloc(COUNT * sizeof *floats);
    assert_non_null(halves);
    assert_non_null(floats);
    for (uint32_t i = 0; i < COUNT; i++)
        halves[i] = (uint16_t)i;
    convert(LS_SAFETENSORS_BF16, halves, COUNT, floats);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(bits_of(floats[i]), i << 16);
    convert(LS_SAFETENSORS_F16, halves, COUNT, floats);
    for (int i = 0; i < COUNT; i++) {
        int exponent = i >> 10 & 31, fraction = i & 1023;
        double sign = i & 0x8000 ? -1 : 1;
        assert_int_equal(bits_of(floats[i]) >> 31, (uint32_t)i >> 15);
        if (exponent == 31 && fraction)
            assert_true(isnan(floats[i]));
        else if (exponent == 31)
            assert_true((double)floats[i] == sign * INFINITY);
        else if (exponent == 0)
            assert_true((double)floats[i] == sign * ldexp(fraction, -24));
        else
            assert_true((double)floats[i] == sign * ldexp(1024 + fraction, exponent - 25));
    }
    free(halves);
    free(floats);
}

static void doubles_round_to_nearest(void **state)
{
    (void)state;
    enum { RANDOM = 20000 };
    static double doubles[RANDOM + 32];
    static float floats[RANDOM + 32];
    static const double special[] = {0.0,
                                     -0.0,
                                     1.0,
                                     INFINITY,
                                     -INFINITY,
                                     0x1.fffffep127,
                                     0x1.fffffefffffffp127,
                                     0x1.ffffffp127,
                                     -0x1p128,
                                     1e300,
                                     0x1p-126,
                                     0x1.fffffffp-127,
                                     0x1p-149,
                                     0x1p-150,
                                     0x1.0000000000001p-150,
                                     0x1.8p-149,
                                     0x1p-151,
                                     0x1p-1022,
                                     5e-324,
                                     1.0 + 0x1p-24,
                                     1.0 + 0x1.8p-23,
                                     -1.0 - 0x1.000001p-24};
    int count = sizeof special / sizeof *special;
    memcpy(doubles, special, sizeof special);
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < RANDOM; i++) { /* xorshift; exponents near those of floats */
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double fraction = 1.0 + (double)(bits >> 12) * 0x1p-52;
        doubles[count++] = ldexp(bits & 1 ? fraction : -fraction, (int)(bits >> 1 & 511) - 300);
    }
    convert(LS_SAFETENSORS_F64, doubles, count, floats);
    for (int i = 0; i < count; i++)
        assert_int_equal(bits_of(floats[i]), bits_of((float)doubles[i]));
    double nan_value = NAN;
    convert(LS_SAFETENSORS_F64, &nan_value, 1, floats);
    assert_true(isnan(floats[0]));
}

static void the_writer_lays_out_as_the_official_serializer(void **state)
{
    (void)state;
    ls_error error;
    ls_safetensors_writer *writer = NULL;
    char *folder = test_folder(), *bytes = NULL;
    const char *path = test_path(folder, "model.safetensors");
    static const ls_safetensors_entry entries[] = {
        {"a.half", LS_SAFETENSORS_F16, 1, {2}}, {"b", LS_SAFETENSORS_F32, 2, {1, 2}},
        {"empty", LS_SAFETENSORS_F32, 1, {0}},  {"a", LS_SAFETENSORS_F32, 0, {0}},
        {"ids", LS_SAFETENSORS_I64, 1, {1}},
    };
    size_t order[8], count = 0, entry = 0;
    assert_ok(ls_safetensors_writer_new(&writer, path, entries, 5, &error), error);
    assert_false(ls_path_exists(path));
    assert_true(ls_safetensors_writer_next(writer, &entry));
    assert_int_equal(entry, 4);
    assert_int_equal(ls_safetensors_writer_write(writer, 0, "xxxx", 4, &error), LS_INTERNAL);
    assert_int_equal(ls_safetensors_writer_write(writer, 4, "xxxxxxxxx", 9, &error), LS_INTERNAL);
    assert_int_equal(ls_safetensors_writer_finish(writer, &error), LS_INTERNAL);
    assert_non_null(strstr(error.text, "'ids'"));
    uint64_t expected = ls_safetensors_writer_bytes(writer);
    while (ls_safetensors_writer_next(writer, &entry)) {
        size_t elements = entry == 4 || entry == 3 ? 1 : 2;
        size_t left = elements * ls_safetensors_dtype_bytes(entries[entry].dtype);
        order[count++] = entry;
        for (; left > 0; left -= 2)
            assert_ok(ls_safetensors_writer_write(writer, entry, "xy", 2, &error), error);
    }
    assert_int_equal(count, 4);
    assert_int_equal(order[1], 3);
    assert_int_equal(order[2], 1);
    assert_int_equal(order[3], 0);
    assert_ok(ls_safetensors_writer_finish(writer, &error), error);
    ls_safetensors_writer_free(writer);

    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[12,20]},"
        "\"empty\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[20,20]},"
        "\"a.half\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[20,24]}}";
    size_t size = 0;
    assert_ok(ls_file_read(&bytes, &size, path, 10000, &error), error);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    size_t header_bytes = (unsigned char)bytes[0] | (size_t)(unsigned char)bytes[1] << 8;
    assert_int_equal(header_bytes % 8, 0);
    assert_true(header_bytes >= sizeof header - 1 && header_bytes < sizeof header + 7);
    for (size_t i = sizeof header - 1; i < header_bytes; i++)
        assert_int_equal(bytes[8 + i], ' ');
    assert_int_equal(size, 8 + header_bytes + 24);
    assert_int_equal(size, expected);
    ls_free(bytes);
    test_folder_remove(folder);
}

static void an_abandoned_or_wrong_writer_leaves_no_file(void **state)
{
    (void)state;
    ls_error error;
    ls_safetensors_writer *writer = NULL;
    char *folder = test_folder();
    const char *path = test_path(folder, "model.safetensors");
    ls_safetensors_entry entries[2] = {{"a", LS_SAFETENSORS_F32, 1, {2}},
                                       {"a", LS_SAFETENSORS_F16, 1, {2}}};
    assert_int_equal(ls_safetensors_writer_new(&writer, path, entries, 2, &error), LS_INTERNAL);
    assert_non_null(strstr(error.text, "'a' is declared twice"));
    entries[0].shape[0] = -1;
    assert_int_equal(ls_safetensors_writer_new(&writer, path, entries, 1, &error), LS_INTERNAL);
    entries[0].shape[0] = 2;
    assert_ok(ls_safetensors_writer_new(&writer, path, entries, 1, &error), error);
    assert_ok(ls_safetensors_writer_write(writer, 0, "abcd", 4, &error), error);
    ls_safetensors_writer_free(writer);
    assert_false(ls_path_exists(path));
    test_folder_remove(folder); /* fails if a temporary file is left: rmdir of its parent */
}

static void write_text(const char *folder, const char *name, const char *text)
{
    test_write_file(test_path(folder, name), text, strlen(text));
}

static void a_sharded_model_is_one_list(void **state)
{
    (void)state;
    ls_error error;
    ls_weights *weights = NULL;
    char *folder = test_folder();
    write_model(test_path(folder, "model-00001-of-00002.safetensors"),
                "{\"c\": {\"dtype\": \"U8\", \"shape\": [2], \"data_offsets\": [0, 2]}, \"a\": "
                "{\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [2, 3]}}",
                3);
    write_model(test_path(folder, "model-00002-of-00002.safetensors"),
                "{\"b\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}", 4);
    write_text(folder, "model.safetensors.index.json",
               "{\"metadata\": {\"total_size\": 7}, \"weight_map\": {"
               "\"a\": \"model-00001-of-00002.safetensors\", "
               "\"b\": \"model-00002-of-00002.safetensors\", "
               "\"c\": \"model-00001-of-00002.safetensors\"}}");
    assert_ok(ls_weights_open(&weights, folder, &error), error);
    assert_int_equal(ls_weights_count(weights), 3);
    assert_string_equal(ls_weights_at(weights, 0)->name, "a");
    assert_string_equal(ls_weights_at(weights, 1)->name, "b");
    const ls_safetensors_tensor *b = ls_weights_find(weights, "b");
    assert_non_null(strstr(ls_weights_file(weights, b), "model-00002-of-00002"));
    float value = 0;
    assert_ok(ls_weights_read_float(weights, b, 0, 1, &value, &error), error);
    assert_int_equal(bits_of(value), 0x03020100);
    unsigned char byte = 9;
    assert_ok(ls_weights_read_raw(weights, ls_weights_find(weights, "a"), 0, 1, &byte, &error),
              error);
    assert_int_equal(byte, 2);
    assert_null(ls_weights_find(weights, "d"));
    ls_safetensors_tensor stranger = *b;
    assert_int_equal(ls_weights_read_float(weights, &stranger, 0, 1, &value, &error), LS_INTERNAL);
    ls_weights_free(weights);

    /* One tensor in two shards. */
    write_model(test_path(folder, "model-00002-of-00002.safetensors"),
                "{\"b\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}, \"a\": "
                "{\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [1, 2]}}",
                2);
    assert_int_equal(ls_weights_open(&weights, folder, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "tensor 'a' is in "));
    test_folder_remove(folder);
}

static void bad_indexes_and_folders_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *index;
        ls_status status;
        const char *why;
    } cases[] = {
        {"{}", LS_INVALID, "'weight_map': is missing"},
        {"{\"weight_map\": {}}", LS_INVALID, "names no tensor"},
        {"{\"weight_map\": {\"a\": 1}}", LS_INVALID, "'weight_map.a': is an integer"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", LS_INVALID, "no plain file name"},
        {"{\"weight_map\": {\"a\": \"../x.safetensors\"}}", LS_INVALID, "no plain file name"},
        {"{\"weight_map\": {\"a\": \"..\"}}", LS_INVALID, "no plain file name"},
        {"{\"weight_map\": {\"a\": \"sub/x.safetensors\"}}", LS_INVALID, "no plain file name"},
        {"{\"weight_map\": {\"a\": \"\"}}", LS_INVALID, "no plain file name"},
        {"{\"weight_map\": {\"a\": \"missing.safetensors\"}}", LS_IO, "missing.safetensors"},
        {"{\"weight_map\": {\"b\": \"x.safetensors\"}}", LS_INVALID,
         "'weight_map.b': 'x.safetensors' has no such tensor"},
    };
    char *folder = test_folder();
    ls_error error;
    ls_weights *weights = NULL;
    assert_int_equal(ls_weights_open(&weights, folder, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "neither model.safetensors nor"));
    write_text(folder, "pytorch_model.bin", "x");
    assert_int_equal(ls_weights_open(&weights, folder, &error), LS_INVALID);
    assert_non_null(strstr(error.text, "convert the model to model.safetensors"));
    write_model(test_path(folder, "x.safetensors"),
                "{\"a\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}}", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(folder, "model.safetensors.index.json", cases[i].index);
        ls_status status = ls_weights_open(&weights, folder, &error);
        if (status != cases[i].status || !strstr(error.text, cases[i].why) ||
            !strstr(error.text, "index.json"))
            fail_msg("case %zu: %d '%s'", i, status, error.text);
        assert_null(weights);
    }
    assert_ok(ls_weights_open(&weights, test_path(folder, "x.safetensors"), &error), error);
    assert_int_equal(ls_weights_count(weights), 1);
    ls_weights_free(weights);
    assert_int_equal(ls_weights_open(&weights, "/no/such/model", &error), LS_IO);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_files_are_refused_by_tensor_or_offset),
        cmocka_unit_test(tensors_are_found_and_read_in_parts),
        cmocka_unit_test(every_half_and_bfloat_is_exact),
        cmocka_unit_test(doubles_round_to_nearest),
        cmocka_unit_test(the_writer_lays_out_as_the_official_serializer),
        cmocka_unit_test(an_abandoned_or_wrong_writer_leaves_no_file),
        cmocka_unit_test(a_sharded_model_is_one_list),
        cmocka_unit_test(bad_indexes_and_folders_are_refused),
    };
    return cmocka_run_group_tests_name("formats/safetensors", tests, NULL, NULL);
}
