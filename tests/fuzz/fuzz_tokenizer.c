/* Any bytes as tokenizer.json, as vocab.txt with settings, and as text to encode.
 *
 * The first byte chooses: 'j' tokenizer.json, 'v' vocab.txt, 'c' tokenizer_config.json beside a
 * good vocab.txt, anything else a text for good tokenizers; there the byte also is the maximum
 * length. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];
static ls_tokenizer *good[2];
static ls_tokenizer_scratch *scratch;

static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\n\xc3\xa9\n"
                                 "##\xcc\x81\n\xe4\xb8\xad\n##\xe3\x80\xae\n!\n<x>\n";

static void write_file(const char *name, const void *bytes, size_t count)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) abort();
}

static void remove_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static void remove_all(void)
{
    remove_file("tokenizer.json");
    remove_file("vocab.txt");
    remove_file("tokenizer_config.json");
    rmdir(folder);
    for (int i = 0; i < 2; i++)
        ls_tokenizer_free(good[i]);
    ls_tokenizer_scratch_free(scratch);
}

static void prepare(void)
{
    static const char cased[] = "{\"do_lower_case\":false,\"additional_special_tokens\":[\"<y>\","
                                "{\"content\":\"<Z>\",\"normalized\":true,\"lstrip\":true,"
                                "\"rstrip\":true}]}";
    ls_error error;
    snprintf(folder, sizeof folder, "/tmp/fuzz-tokenizer-%ld", (long)getpid());
    if (mkdtemp(strcat(folder, "-XXXXXX")) == NULL) abort();
    if (ls_tokenizer_scratch_new(&scratch, &error) != LS_OK) abort();
    write_file("vocab.txt", vocabulary, sizeof vocabulary - 1);
    if (ls_tokenizer_open(&good[0], folder, &error) != LS_OK) abort();
    write_file("tokenizer_config.json", cased, sizeof cased - 1);
    if (ls_tokenizer_open(&good[1], folder, &error) != LS_OK) abort();
    atexit(remove_all);
}

static void encode(const ls_tokenizer *tokenizer, const char *text, size_t length, int max_length)
{
    ls_error error;
    ls_encoding encoding;
    for (int pair = 0; pair < 2; pair++) {
        size_t half = pair ? length / 2 : length;
        if (ls_tokenizer_encode(tokenizer, scratch, text, half, pair ? text + half : NULL,
                                length - half, max_length, &encoding, &error) != LS_OK)
            continue;
        if (encoding.length < 2 || (max_length && encoding.length > max_length)) abort();
        for (int i = 0; i < encoding.length; i++)
            if (!ls_tokenizer_token(tokenizer, encoding.ids[i]) || encoding.types[i] > 1) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!scratch) prepare();
    if (size == 0) return 0;
    uint8_t choice = *data++;
    const char *text = (const char *)data;
    size--;
    if (choice != 'j' && choice != 'v' && choice != 'c') {
        for (int i = 0; i < 2; i++)
            encode(good[i], text, size, choice);
        return 0;
    }
    remove_file("tokenizer.json");
    remove_file("tokenizer_config.json");
    write_file("vocab.txt", vocabulary, sizeof vocabulary - 1);
    write_file(choice == 'j'   ? "tokenizer.json"
               : choice == 'v' ? "vocab.txt"
                               : "tokenizer_config.json",
               data, size);
    ls_error error;
    ls_tokenizer *tokenizer = NULL;
    if (ls_tokenizer_open(&tokenizer, folder, &error) == LS_OK) {
        encode(tokenizer, "a \xc3\xa9\xe4\xb8\xad [MASK]!ab <x> B", 24, 0);
        encode(tokenizer, text, size, 16);
    } else if (tokenizer || error.text[0] == '\0') {
        abort();
    }
    ls_tokenizer_free(tokenizer);
    return 0;
}
