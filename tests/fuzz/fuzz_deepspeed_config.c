/* Any bytes as a DeepSpeed configuration: what is accepted has known keys with values of their
 * types, and every error has a text. */
#include <stdlib.h>
#include <string.h>

#include "formats/deepspeed_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const ls_deepspeed_config *config)
{
    char shown[LS_DEEPSPEED_VALUE_BYTES];
    for (size_t i = 0; i < config->entry_count; i++) {
        const ls_deepspeed_entry *entry = &config->entries[i];
        if (ls_deepspeed_key_find(entry->key->path) != entry->key) abort();
        if (!*ls_deepspeed_print(shown, entry->value) && !json_is_string(entry->value)) abort();
        (void)ls_deepspeed_integer(entry, 0);
        (void)ls_deepspeed_flag(entry, false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_error error = {0};
    ls_deepspeed_config config;
    if (ls_deepspeed_config_parse(&config, (const char *)data, size, "ds.json", &error) != LS_OK) {
        if (!*error.text) abort();
        return 0;
    }
    check(&config);
    ls_deepspeed_config_deinit(&config);
    return 0;
}
