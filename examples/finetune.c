/* Fine-tune a Hugging Face model on a labelled file, then classify two texts with the result.
 *
 *     cc -o finetune finetune.c $(pkg-config --cflags --libs lockstep)
 *     ./finetune all-MiniLM-L6-v2 train.tsv trained
 *
 * train.tsv has a line of column names, text and label, then a line a row. */
#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>

static void show_step(void *context, const ls_step_report *report)
{
    (void)context;
    if (report->step % 10 == 0 || report->step == report->total_steps)
        printf("step %lld of %lld: loss %.4f\n", (long long)report->step,
               (long long)report->total_steps, report->loss);
}

static ls_status classify(const ls_options *options, ls_error *error)
{
    static const char *const texts[] = {"a warm, funny and clever film", "a dull and boring film"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    ls_classifier *classifier = NULL;
    ls_status status = ls_classifier_open(&classifier, options, error);
    if (status != LS_OK) return status;
    int classes = ls_classifier_classes(classifier);
    float *probabilities = calloc((size_t)TEXTS * classes, sizeof(float)); /* [TEXTS][classes] */
    if (probabilities)
        status = ls_classifier_predict(classifier, texts, TEXTS, probabilities, error);
    for (int i = 0; i < TEXTS && probabilities && status == LS_OK; i++) {
        printf("%s:", texts[i]);
        for (int label = 0; label < classes; label++)
            printf(" %s %.3f", ls_classifier_label(classifier, label),
                   (double)probabilities[i * classes + label]);
        printf("\n");
    }
    free(probabilities);
    ls_classifier_free(classifier);
    return status;
}

int main(int count, char **words)
{
    if (count != 4) {
        fprintf(stderr, "usage: finetune MODEL_FOLDER TRAIN_FILE OUTPUT_FOLDER\n");
        return 2;
    }
    ls_options options;
    ls_error error;
    ls_callbacks callbacks = {.step = show_step};
    ls_options_default(&options); /* those of the Hugging Face Trainer */
    options.model = words[1];
    options.train = words[2];
    options.output = words[3];
    ls_status status = ls_train(&options, &callbacks, NULL, NULL, &error);
    options.model = options.output;
    if (status == LS_OK) status = classify(&options, &error);
    if (status != LS_OK) fprintf(stderr, "finetune: %s\n", error.text);
    return status == LS_OK ? 0 : 1;
}
