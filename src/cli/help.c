#include "cli/help.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/columns.h"

enum { COLUMNS = 80, HELP_COLUMN = 28, LINE_BYTES = 512 };

/* Titles, each standing before the first setting of its group. */
static const struct group {
    const char *first, *title;
} groups[] = {
    {"model", "Files"},
    {"text-column", "Rows"},
    {"epochs", "Length and sizes"},
    {"optimizer", "Optimizer"},
    {"on-nan", "Safety"},
    {"strategy", "Devices"},
    {"tensorboard", "Monitoring"},
    {"print", "Plan"},
    {"strategies", "Comparison"},
};

/* Words of `text`, from column `column` on, in lines that start at `indent`; ends the line. */
static void print_wrapped(FILE *stream, const char *text, int column, int indent)
{
    while (*text) {
        char word[LINE_BYTES];
        size_t length = strcspn(text, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        int columns = ls_columns_of(word);
        if (column > indent && column + 1 + columns > COLUMNS) {
            fputc('\n', stream);
            column = 0;
        } else if (column > indent) {
            fputc(' ', stream);
            column++;
        }
        if (column < indent) fprintf(stream, "%*s", indent - column, "");
        if (column < indent) column = indent;
        fputs(word, stream);
        column += columns;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', stream);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* What stands for the value after a flag. */
static const char *placeholder(const ls_setting *setting)
{
    switch (setting->kind) {
    case LS_SETTING_FLAG:
        return "";
    case LS_SETTING_INTEGER:
    case LS_SETTING_DEVICES:
        return " N";
    case LS_SETTING_NUMBER:
        return " NUMBER";
    case LS_SETTING_BYTES:
        return " SIZE";
    case LS_SETTING_SAMPLES:
        return " N";
    case LS_SETTING_TEXT:
        break;
    }
    if (strcmp(setting->name, "profile-steps") == 0) return " FIRST:LAST";
    if (strcmp(setting->name, "strategies") == 0 || strcmp(setting->name, "seeds") == 0 ||
        strcmp(setting->name, "batch-sizes") == 0)
        return " LIST";
    if (*setting->fallback) return " NAME";
    if (ends_with(setting->name, "column")) return " COLUMN";
    if (strcmp(setting->name, "keep-best") == 0) return " METRIC";
    static const char *const folders[] = {"model", "output", "tensorboard",
                                          "csv",   "other",  "resume"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strcmp(setting->name, folders[i]) == 0) return " FOLDER";
    return " FILE";
}

static void print_flag(FILE *stream, const char *flag, const char *help)
{
    int column = fprintf(stream, "  %s", flag);
    if (column >= HELP_COLUMN) {
        fputc('\n', stream);
        column = 0;
    }
    print_wrapped(stream, help, column, HELP_COLUMN);
}

static bool is_needed(const ls_command *command, const char *name)
{
    for (const char *const *needed = command->needed; *needed; needed++)
        if (strcmp(*needed, name) == 0) return true;
    return false;
}

static void print_setting(FILE *stream, const ls_command *command, const ls_setting *setting)
{
    char flag[LINE_BYTES], help[LINE_BYTES];
    snprintf(flag, sizeof flag, "--%s%s", setting->name, placeholder(setting));
    snprintf(help, sizeof help, "%s", setting->help);
    size_t used = strlen(help);
    if (is_needed(command, setting->name))
        snprintf(help + used, sizeof help - used, " (needed)");
    else if (*setting->fallback && setting->kind != LS_SETTING_FLAG)
        snprintf(help + used, sizeof help - used, " (default: %s)", setting->fallback);
    print_flag(stream, flag, help);
}

static void print_settings(FILE *stream, const ls_command *command)
{
    const char *title = NULL;
    for (const ls_setting *setting = ls_settings(); setting->name; setting++) {
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
            if (strcmp(groups[i].first, setting->name) == 0) title = groups[i].title;
        if (!ls_command_takes(command, setting)) continue;
        if (title) fprintf(stream, "\n%s:\n", title);
        title = NULL;
        print_setting(stream, command, setting);
    }
}

static void print_paragraphs(FILE *stream, const char *text)
{
    while (*text) {
        char paragraph[2048];
        size_t length = strcspn(text, "\n");
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)length, text);
        print_wrapped(stream, paragraph, 0, 0);
        text += length + (text[length] == '\n');
    }
}

void ls_help_print_command(FILE *stream, const ls_command *command)
{
    char heading[LINE_BYTES];
    snprintf(heading, sizeof heading, "lockstep %s: %s", command->name, command->summary);
    print_wrapped(stream, heading, 0, 0);
    fprintf(stream, "\nUsage: lockstep %s %s\n\n", command->name, command->usage);
    print_paragraphs(stream, command->details);
    print_settings(stream, command);
    if (command->own_flags) fputs("\nFlags:\n", stream);
    for (const ls_own_flag *flag = command->own_flags; flag && flag->name; flag++)
        print_flag(stream, flag->name, flag->help);
    fputs("\nAlso:\n", stream);
    if (command->takes_deepspeed)
        print_flag(stream, "--deepspeed FILE",
                   "ds_config.json: the settings that it names, where no flag says them "
                   "(lockstep config FILE shows what comes of it)");
    if (command->is_config || command->has_json)
        print_flag(stream, "--json", "the same as a JSON object");
    if (command->can_be_quiet)
        print_flag(stream, "--quiet", "no progress; results and errors only");
    print_flag(stream, "--help", "this text");
    fprintf(stream, "\nFor example:\n  %s\n", command->example);
}

void ls_help_print_all(FILE *stream, const ls_command *const *commands, size_t count)
{
    print_wrapped(stream,
                  "lockstep: fine-tune Hugging Face text classifiers, with the same bits on any "
                  "number of threads, passes and instruction sets",
                  0, 0);
    fputs("\nUsage: lockstep COMMAND [flags]\n\nCommands:\n", stream);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n  lockstep COMMAND --help   the flags of a command\n"
          "  lockstep --version        the version\n\n",
          stream);
    print_wrapped(
        stream,
        "Exit status: 0 done; 1 bad input or a failed run; 2 a wrong command line or "
        "something that is not supported; 3 some rows of a comparison failed; 4 a process or host "
        "was lost; 5 stopped at a loss, gradient or weight that is not finite; 6 verify, an "
        "audit or a comparison found a difference; 75 stopped by a signal, with the model and a "
        "checkpoint "
        "written.",
        0, 0);
}
