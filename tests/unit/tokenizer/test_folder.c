/* tokenizer/: what a model folder may hold, and what is said of one that is damaged. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "tokenizer/tokenizer.h"

static ls_error error;
static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

static void write(const char *name, const char *text)
{
    test_write_file(test_path(folder, name), text, strlen(text));
}

/* The uncased tokenizer.json, with its first `find` replaced. */
static void write_changed(const char *find, const char *replacement)
{
    char *bytes = NULL;
    size_t count = 0;
    const char *path = LS_TEST_SOURCE "/tests/data/tokenizer/uncased/tokenizer.json";
    assert_ok(ls_file_read(&bytes, &count, path, 1 << 20, &error), error);
    char *at = strstr(bytes, find);
    if (!at) fail_msg("tokenizer.json has no %s", find);
    char *changed = malloc(count + strlen(replacement) + 1);
    assert_non_null(changed);
    size_t before = (size_t)(at - bytes);
    memcpy(changed, bytes, before);
    strcpy(changed + before, replacement);
    strcat(changed, at + strlen(find));
    write("tokenizer.json", changed);
    free(changed);
    ls_free(bytes);
}

static void expect_refused(ls_status status, const char *needle)
{
    ls_tokenizer *tokenizer = NULL;
    memset(&error, 0, sizeof error);
    int got = ls_tokenizer_open(&tokenizer, folder, &error);
    if (got != (int)status || !strstr(error.text, needle))
        fail_msg("expected %d and \"%s\", got %d: %s", status, needle, got, error.text);
    assert_null(tokenizer);
}

static ls_tokenizer *open_folder(void)
{
    ls_tokenizer *tokenizer = NULL;
    assert_ok(ls_tokenizer_open(&tokenizer, folder, &error), error);
    return tokenizer;
}

/* Tokens of a text, between spaces. */
static const char *tokens(const ls_tokenizer *tokenizer, const char *text)
{
    static char joined[1000];
    ls_tokenizer_scratch *scratch = NULL;
    ls_encoding encoding;
    joined[0] = '\0';
    assert_ok(ls_tokenizer_scratch_new(&scratch, &error), error);
    assert_ok(
        ls_tokenizer_encode(tokenizer, scratch, text, strlen(text), NULL, 0, 0, &encoding, &error),
        error);
    for (int i = 1; i + 1 < encoding.length; i++) {
        strcat(joined, i > 1 ? " " : "");
        strcat(joined, ls_tokenizer_token(tokenizer, encoding.ids[i]));
    }
    ls_tokenizer_scratch_free(scratch);
    return joined;
}

static void other_kinds_of_tokenizer_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *find, *replacement, *needle;
    } cases[] = {
        {"\"WordPiece\",\"unk", "\"BPE\",\"unk", "BPE"},
        {"\"BertNormalizer\"", "\"NFKC\"", "NFKC"},
        {"{\"type\":\"BertPreTokenizer\"}", "{\"type\":\"ByteLevel\"}", "ByteLevel"},
        {"{\"type\":\"BertPreTokenizer\"}", "null", "pre_tokenizer"},
        {"\"TemplateProcessing\"", "\"RobertaProcessing\"", "RobertaProcessing"},
        {"\"version\":\"1.0\"", "\"version\":\"2.0\"", "2.0"},
        {"\"id\":\"A\"", "\"id\":\"B\"", "single"},
        {"{\"id\":\"B\",\"type_id\":1}", "{\"id\":\"B\",\"type_id\":0}", "pair"},
        {"\"single_word\":false", "\"single_word\":true", "[PAD]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_changed(cases[i].find, cases[i].replacement);
        expect_refused(LS_UNSUPPORTED, cases[i].needle);
    }
}

static void damaged_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *find, *replacement, *needle;
    } cases[] = {
        {"\"the\":5", "\"the\":6", "model.vocab.a"},
        {"\"the\":5", "\"the\":-5", "model.vocab.the"},
        {"\"the\":5", "\"the\":4294967301", "model.vocab.the"},
        {"\"the\":5", "\"the\":5.5", "model.vocab.the"},
        {"\"the\":5", "\"quick\":5", "duplicate"},
        {"\"[SEP]\":3", "\"SEP\":3", "[SEP]"},
        {"\"[PAD]\":0", "\"PAD\":0", "[PAD]"},
        {"\"unk_token\":\"[UNK]\"", "\"unk_token\":\"<unk>\"", "<unk>"},
        {"\"unk_token\":\"[UNK]\",", "", "unk_token"},
        {"\"max_input_chars_per_word\":100", "\"max_input_chars_per_word\":-1", "per_word"},
        {"\"lowercase\":true", "\"lowercase\":1", "normalizer.lowercase"},
        {"\"id\":0,\"content\"", "\"id\":9,\"content\"", "[PAD]"},
        {"\"content\":\"[PAD]\"", "\"content\":\"\"", "added token"},
        {"\"ids\":[2]", "\"ids\":[3]", "[CLS]"},
        {"{\"version\"", "{{\"version\"", "byte 2"},
        {"\"the\":5", "\"the\":5,\"\\ud800\":900", "byte "},
        {"\"the\":5", "\"the\":5,\"\xff\":900", "byte "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_changed(cases[i].find, cases[i].replacement);
        expect_refused(LS_INVALID, cases[i].needle);
        assert_non_null(strstr(error.text, "tokenizer.json"));
    }
    char deep[200] = {0};
    memset(deep, '[', sizeof deep - 1);
    write("tokenizer.json", deep);
    expect_refused(LS_INVALID, "deeper");
    write("tokenizer.json", "[]");
    expect_refused(LS_INVALID, "object");
}

static void truncation_and_padding_in_tokenizer_json_are_ignored(void **state)
{
    (void)state;
    write_changed("\"truncation\":null,\"padding\":null",
                  "\"truncation\":{\"direction\":\"Right\",\"max_length\":3,\"strategy\":"
                  "\"LongestFirst\",\"stride\":0},\"padding\":{\"strategy\":{\"Fixed\":64}}");
    ls_tokenizer *tokenizer = open_folder();
    assert_string_equal(tokens(tokenizer, "The quick fox"), "the quick fox");
    ls_tokenizer_free(tokenizer);
}

static void bert_processing_is_the_same_template(void **state)
{
    (void)state;
    write_changed("\"type\":\"TemplateProcessing\"",
                  "\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]");
    ls_tokenizer *tokenizer = open_folder();
    assert_int_equal(ls_tokenizer_class_id(tokenizer), 2);
    assert_int_equal(ls_tokenizer_separator_id(tokenizer), 3);
    ls_tokenizer_free(tokenizer);
    write_changed("\"type\":\"TemplateProcessing\"",
                  "\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",4],\"cls\":[\"[CLS]\",2]");
    expect_refused(LS_INVALID, "[SEP]");
}

static void tokenizer_config_wins_for_the_bert_classes(void **state)
{
    (void)state;
    write_changed("\"version\"", "\"version\"");
    write("tokenizer_config.json",
          "{\"tokenizer_class\":\"BertTokenizer\",\"do_lower_case\":false,\"strip_accents\":null}");
    ls_tokenizer *tokenizer = open_folder();
    assert_string_equal(tokens(tokenizer, "Hello world"), "Hello world");
    ls_tokenizer_free(tokenizer);
    write("tokenizer_config.json",
          "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"do_lower_case\":false}");
    tokenizer = open_folder();
    assert_string_equal(tokens(tokenizer, "Hello world"), "hello world");
    ls_tokenizer_free(tokenizer);
    write("tokenizer_config.json", "{\"do_lower_case\":\"no\"}");
    expect_refused(LS_INVALID, "do_lower_case");
}

static void vocab_txt_is_read_line_by_line(void **state)
{
    (void)state;
    /* White space behind a token is no part of it, CR included; an empty line takes an id; a
     * repeated token has its last id; the last line need not end. */
    write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\r\n[SEP] \n\na\nb\t\na\n##c\n\xc3\xa9\xc2\xa0\n[MASK]");
    ls_tokenizer *tokenizer = open_folder();
    assert_int_equal(ls_tokenizer_vocabulary_size(tokenizer), 11);
    assert_int_equal(ls_tokenizer_pad_id(tokenizer), 0);
    assert_int_equal(ls_tokenizer_unknown_id(tokenizer), 1);
    assert_string_equal(ls_tokenizer_token(tokenizer, 7), "a");
    assert_null(ls_tokenizer_token(tokenizer, 5));
    assert_null(ls_tokenizer_token(tokenizer, 11));
    assert_null(ls_tokenizer_token(tokenizer, -1));
    assert_string_equal(tokens(tokenizer, "Ac bcc x [MASK]"), "a ##c b ##c ##c [UNK] [MASK]");
    ls_tokenizer_free(tokenizer);
    write("tokenizer_config.json", "{\"do_lower_case\":false}");
    tokenizer = open_folder();
    assert_string_equal(tokens(tokenizer, "A a \xc3\xa9"), "[UNK] a \xc3\xa9");
    ls_tokenizer_free(tokenizer);
}

static void a_damaged_vocab_txt_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
    for (int missing = 0; missing < 4; missing++) {
        char text[100] = "";
        for (int i = 0; i < 4; i++)
            if (i != missing) strcat(strcat(text, names[i]), "\n");
        write("vocab.txt", text);
        expect_refused(LS_INVALID, names[missing]);
    }
    write("vocab.txt", "");
    expect_refused(LS_INVALID, "vocab.txt");
    write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n\xe9t\xe9\n");
    expect_refused(LS_INVALID, "line 5");
    write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\na\n");
    write("tokenizer_config.json", "{\"additional_special_tokens\":[\"<x>\"]}");
    expect_refused(LS_INVALID, "<x>"); /* its id would be that of the second a */
    write("tokenizer_config.json", "{\"added_tokens_decoder\":{\"9\":{\"content\":\"<x>\"}}}");
    expect_refused(LS_INVALID, "<x>");
    write("tokenizer_config.json", "{\"added_tokens_decoder\":{\"x\":{\"content\":\"<x>\"}}}");
    expect_refused(LS_INVALID, "added_tokens_decoder.x");
}

static void settings_beside_vocab_txt_name_special_and_added_tokens(void **state)
{
    (void)state;
    write("vocab.txt", "<pad>\n<unk>\n<s>\n</s>\na\n##b\n");
    write("special_tokens_map.json",
          "{\"unk_token\":\"<unk>\",\"pad_token\":{\"content\":\"<pad>\",\"lstrip\":false},"
          "\"cls_token\":\"<s>\",\"sep_token\":\"</s>\"}");
    write("added_tokens.json", "{\"<Y>\":7,\"<x>\":6}");
    ls_tokenizer *tokenizer = open_folder();
    assert_int_equal(ls_tokenizer_class_id(tokenizer), 2);
    assert_int_equal(ls_tokenizer_vocabulary_size(tokenizer), 8);
    assert_string_equal(tokens(tokenizer, "ab<X><y></s>"), "a ##b <x> <Y> </s>");
    ls_tokenizer_free(tokenizer);
    write("tokenizer_config.json",
          "{\"unk_token\":\"<unk>\",\"pad_token\":\"<pad>\",\"cls_token\":\"<s>\",\"sep_token\":"
          "\"</s>\",\"added_tokens_decoder\":{\"6\":{\"content\":\"<z>\",\"normalized\":false}}}");
    tokenizer = open_folder();
    assert_string_equal(tokens(tokenizer, "ab<z><Z>"), "a ##b <z> <unk> <unk> <unk>");
    ls_tokenizer_free(tokenizer);
}

static void a_folder_without_a_tokenizer_is_refused(void **state)
{
    (void)state;
    expect_refused(LS_INVALID, "vocab.txt");
    ls_tokenizer *tokenizer = NULL;
    assert_int_equal(ls_tokenizer_open(&tokenizer, test_path(folder, "none"), &error), LS_IO);
    assert_non_null(strstr(error.text, "none"));
}

typedef struct failing {
    int countdown;
} failing;

static int fail_at(void *context, size_t bytes)
{
    (void)bytes;
    return ((failing *)context)->countdown-- == 0;
}

static ls_status open_and_encode(const char *path)
{
    ls_tokenizer *tokenizer = NULL;
    ls_tokenizer_scratch *scratch = NULL;
    ls_encoding encoding;
    static const char text[] = "plain caf\xc3\xa9 a\xe3\x80\xae\xf0\x9d\x85\xad [MASK]";
    ls_status status = ls_tokenizer_open(&tokenizer, path, &error);
    if (status == LS_OK) status = ls_tokenizer_scratch_new(&scratch, &error);
    if (status == LS_OK)
        status = ls_tokenizer_encode(tokenizer, scratch, text, sizeof text - 1, text, 5, 0,
                                     &encoding, &error);
    ls_tokenizer_scratch_free(scratch);
    ls_tokenizer_free(tokenizer);
    return status;
}

static void every_allocation_that_fails_is_an_error(void **state)
{
    (void)state;
    static const char *const names[] = {"uncased", "cased", "added"};
    for (size_t i = 0; i < 3; i++) {
        const char *path = test_path(LS_TEST_SOURCE "/tests/data/tokenizer", names[i]);
        size_t before = ls_allocated_bytes();
        int allocations = 0;
        for (ls_status status = LS_NO_MEMORY; status != LS_OK; allocations++) {
            failing plan = {allocations};
            assert_true(allocations < 20000);
            ls_set_allocation_hook(fail_at, &plan);
            status = open_and_encode(path);
            ls_set_allocation_hook(NULL, NULL);
            assert_true(status == LS_OK || status == LS_NO_MEMORY);
            assert_int_equal(ls_allocated_bytes(), before);
        }
        assert_true(allocations > 10);
    }
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(other_kinds_of_tokenizer_are_refused_by_name),
        IN_FOLDER(damaged_json_is_refused_with_its_place),
        IN_FOLDER(truncation_and_padding_in_tokenizer_json_are_ignored),
        IN_FOLDER(bert_processing_is_the_same_template),
        IN_FOLDER(tokenizer_config_wins_for_the_bert_classes),
        IN_FOLDER(vocab_txt_is_read_line_by_line),
        IN_FOLDER(a_damaged_vocab_txt_is_refused),
        IN_FOLDER(settings_beside_vocab_txt_name_special_and_added_tokens),
        IN_FOLDER(a_folder_without_a_tokenizer_is_refused),
        cmocka_unit_test(every_allocation_that_fails_is_an_error),
    };
    return cmocka_run_group_tests_name("tokenizer folder", tests, NULL, NULL);
}
