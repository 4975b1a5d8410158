/* Any bytes as a config.json: what is accepted has sane sizes, and is accepted again when written.
 */
#include <stdbool.h>
#include <string.h>

#include "formats/model_config.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const ls_model_config *config)
{
    bool sane = config->hidden_size > 0 && config->heads > 0 && config->layers > 0 &&
                config->hidden_size % config->heads == 0 && config->hidden_dropout >= 0 &&
                config->hidden_dropout < 1 && config->label_count > 0;
    for (size_t i = 0; i < config->label_count; i++)
        sane = sane && config->labels[i] && strlen(config->labels[i]) > 0;
    if (!sane) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_error error;
    ls_model_config config, again;
    if (ls_model_config_parse(&config, (const char *)data, size, "config.json", &error) != LS_OK)
        return 0;
    check(&config);
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/lockstep-fuzz-%ld.json", (long)getpid());
    if (ls_model_config_write(&config, (const char *const *)config.labels, config.label_count, path,
                              &error) != LS_OK ||
        ls_model_config_load(&again, path, &error) != LS_OK)
        abort();
    check(&again);
    unlink(path);
    ls_model_config_deinit(&again);
    ls_model_config_deinit(&config);
    return 0;
}
