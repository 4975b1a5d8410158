/* formats/: every allocation that a call makes fails in turn; each time the error is clean, nothing
 * is left behind, and at last the call succeeds. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "formats/json.h"
#include "formats/model_config.h"
#include "formats/table.h"
#include "formats/weights.h"

typedef struct countdown {
    long before_failure;
    bool all_after; /* not this one only, but every later one as well */
} countdown;

static int fail_in_turn(void *context, size_t bytes)
{
    (void)bytes;
    countdown *count = context;
    if (count->before_failure > 0) {
        count->before_failure--;
        return 0;
    }
    if (!count->all_after) count->before_failure = 1L << 60;
    return 1;
}

static char *folder;

static int make_files(void **state)
{
    (void)state;
    static const char config[] =
        "{\"model_type\": \"bert\", \"vocab_size\": 100, \"hidden_size\": 32, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 64, "
        "\"max_position_embeddings\": 48, \"architectures\": [\"BertForSequenceClassification\"], "
        "\"id2label\": {\"0\": \"a rather long label that needs more than the first buffer\", "
        "\"1\": \"b\"}, \"label2id\": {\"b\": 1}, \"x\": [1.5, {\"y\": null}]}";
    char shard[200];
    static const char header[] =
        "{\"a\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}, "
        "\"__metadata__\": {\"f\": \"pt\"}}";
    size_t shard_bytes = 8 + sizeof header;
    memset(shard, 0, sizeof shard);
    shard[0] = (char)(sizeof header - 1);
    memcpy(shard + 8, header, sizeof header - 1);
    shard[shard_bytes - 1] = 'x';
    static const char index[] = "{\"weight_map\": {\"a\": \"s.safetensors\"}}";
    static const char csv[] = "id,text,label\n1,\"a \"\"b\"\"\",x\n2,c,y\n";
    static const char jsonl[] =
        "{\"text\": \"some text of more than sixteen bytes\", \"label\": 1}\n"
        "{\"label\": \"x\", \"text\": \"\\u00e9\\ud83d\\ude00\"}\n";
    folder = test_folder();
    test_write_file(test_path(folder, "config.json"), config, sizeof config - 1);
    test_write_file(test_path(folder, "s.safetensors"), shard, shard_bytes);
    test_write_file(test_path(folder, "model.safetensors.index.json"), index, sizeof index - 1);
    test_write_file(test_path(folder, "a.csv"), csv, sizeof csv - 1);
    test_write_file(test_path(folder, "a.jsonl"), jsonl, sizeof jsonl - 1);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

/* Run `call` with the n-th allocation failing, n = 0, 1, 2, ..., until it succeeds. */
static void fail_each(ls_status (*call)(ls_error *error))
{
    for (int all_after = 0; all_after < 2; all_after++) {
        ls_status status = LS_NO_MEMORY;
        long n = 0;
        for (; status != LS_OK; n++) {
            countdown count = {.before_failure = n, .all_after = all_after};
            ls_error error = {0};
            size_t before = ls_allocated_bytes();
            ls_set_allocation_hook(fail_in_turn, &count);
            status = call(&error);
            ls_set_allocation_hook(NULL, NULL);
            assert_int_equal(ls_allocated_bytes(), before);
            if (status != LS_OK && (status != LS_NO_MEMORY || !strstr(error.text, "out of memory")))
                fail_msg("allocation %ld: %d '%s'", n, status, error.text);
            assert_true(n < 5000);
        }
        assert_true(n > 3);
    }
}

static ls_status load_config(ls_error *error)
{
    ls_model_config config;
    LS_TRY(ls_model_config_load(&config, folder, error));
    static const char *const labels[] = {"one", "two"};
    ls_status status =
        ls_model_config_write(&config, labels, 2, test_path(folder, "written.json"), error);
    ls_model_config_deinit(&config);
    return status;
}

static ls_status open_weights(ls_error *error)
{
    ls_weights *weights = NULL;
    unsigned char byte = 0;
    LS_TRY(ls_weights_open(&weights, folder, error));
    ls_status status = ls_weights_read_raw(weights, ls_weights_at(weights, 0), 0, 1, &byte, error);
    ls_weights_free(weights);
    if (status == LS_OK) assert_int_equal(byte, 'x');
    return status;
}

static ls_status write_weights(ls_error *error)
{
    ls_safetensors_writer *writer = NULL;
    static const ls_safetensors_entry entries[] = {{"b", LS_SAFETENSORS_F32, 1, {1}},
                                                   {"a", LS_SAFETENSORS_F32, 1, {0}}};
    const char *path = test_path(folder, "written.safetensors");
    LS_TRY(ls_safetensors_writer_new(&writer, path, entries, 2, error));
    ls_status status = ls_safetensors_writer_write(writer, 0, "1234", 4, error);
    if (status == LS_OK) status = ls_safetensors_writer_finish(writer, error);
    ls_safetensors_writer_free(writer);
    return status;
}

static ls_status read_table(const char *name, ls_error *error)
{
    ls_table *table = NULL;
    ls_table_options options = {.need_label = true};
    LS_TRY(ls_table_open(&table, test_path(folder, name), &options, error));
    ls_row row;
    bool more = true;
    int rows = 0;
    ls_status status = LS_OK;
    while (status == LS_OK && more) {
        status = ls_table_next(table, &row, &more, error);
        rows += status == LS_OK && more;
    }
    if (status == LS_OK) assert_int_equal(rows, 2);
    ls_table_free(table);
    return status;
}

static ls_status read_csv(ls_error *error)
{
    return read_table("a.csv", error);
}

static ls_status read_jsonl(ls_error *error)
{
    return read_table("a.jsonl", error);
}

/* Tokens of every length around the sizes at which jansson's buffer grows. */
static ls_status parse_tokens(ls_error *error)
{
    char text[600];
    ls_status status = LS_OK;
    for (size_t length = 10; length < 70 && status == LS_OK; length++) {
        json_t *root = NULL;
        int count =
            snprintf(text, sizeof text, "{\"%.*s\": [\"%.*s\", %.*s, 1.%.*s, true]}", (int)length,
                     "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", (int)length,
                     "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                     "xxxxxxxxxxxxxxxxxxxxxxx",
                     (int)(length % 18) + 1, "1111111111111111111", (int)length,
                     "2222222222222222222222222222222222222222222222222222222222222222222");
        status = ls_json_parse(&root, text, (size_t)count, "a.json", error);
        ls_json_free(root);
    }
    return status;
}

static void config_survives(void **state)
{
    (void)state;
    fail_each(load_config);
}

static void weights_survive(void **state)
{
    (void)state;
    fail_each(open_weights);
    fail_each(write_weights);
}

static void tables_survive(void **state)
{
    (void)state;
    fail_each(read_csv);
    fail_each(read_jsonl);
}

static void json_survives(void **state)
{
    (void)state;
    fail_each(parse_tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_survives),
        cmocka_unit_test(weights_survive),
        cmocka_unit_test(tables_survive),
        cmocka_unit_test(json_survives),
    };
    return cmocka_run_group_tests_name("formats/allocation_failures", tests, make_files,
                                       remove_files);
}
