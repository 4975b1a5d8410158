/* Matrix products against oneDNN and OpenBLAS at the shapes of training.
 *
 *     gemm_bench [--isa avx512|avx2|ref] [--threads N] [--rounds N] [--only NAME] [TEXT...]
 *
 * prints GFLOP/s, medians over rounds in which the three take turns, and the ratios ours / theirs;
 * with TEXT only the cases whose line contains one of the texts. Both libraries are held to the
 * instruction set that ours runs. They are looked up at run time: one that is missing is left out.
 *
 * On several threads each contender wants a process of its own, with --only ours, oneDNN or
 * OpenBLAS: threads of a library spin for a while after its call, on cores that the next one wants.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "devices/device.h"
#include "kernels/kernels.h"

enum { LEAF_TOKENS = 108, MOST_ROUNDS = 101, CONTENDERS = 3 };

typedef enum product {
    FORWARD,         /* Y[T][N] = X[T][K] W[N][K]^T + bias */
    INPUT_GRADIENT,  /* dX[T][K] = dY[T][N] W[N][K] */
    WEIGHT_GRADIENT, /* dW[N][K] = dY[T][N]^T X[T][K], leaf by leaf in ours */
} product;

static const char *const contenders[CONTENDERS] = {"ours", "oneDNN", "OpenBLAS"};
static const char *const product_names[] = {"forward", "input gradient", "weight gradient"};

typedef struct bench_case {
    product product;
    int64_t tokens, outputs, inputs; /* T, N, K of the layer */
    float *x, *w, *y, *bias;
    ls_device *device;
    ls_value values[4]; /* of the operands */
    ls_op op;
    ls_op_call call;
    int32_t offsets[4096];
    uint8_t merges[4096];
    ls_leaf_schedule schedule;
} bench_case;

/* As the two libraries declare them. */
typedef int dnnl_sgemm_function(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                                float alpha, const float *a, int64_t lda, const float *b,
                                int64_t ldb, float beta, float *c, int64_t ldc);
typedef void cblas_sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k,
                                  float alpha, const float *a, int lda, const float *b, int ldb,
                                  float beta, float *c, int ldc);

typedef struct peers {
    dnnl_sgemm_function *dnnl;
    cblas_sgemm_function *cblas;
} peers;

/* With one thread its processor time: what other programs take does not count. */
static double now(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *symbol(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = handle ? dlsym(handle, name) : NULL;
    if (!found) fprintf(stderr, "%s is not here: left out\n", library);
    return found;
}

static peers load_peers(const char *isa, int threads)
{
    char count[16];
    snprintf(count, sizeof count, "%d", threads);
    setenv("OMP_NUM_THREADS", count, 1);
    setenv("OPENBLAS_NUM_THREADS", count, 1);
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("DNNL_MAX_CPU_ISA");
    if (strcmp(isa, "avx2") == 0) {
        setenv("OPENBLAS_CORETYPE", "Haswell", 1);
        setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
    }
    peers found;
    *(void **)&found.dnnl = symbol("libdnnl.so.2", "dnnl_sgemm");
    *(void **)&found.cblas = symbol("libopenblas.so.0", "cblas_sgemm");
    return found;
}

static ls_operand operand(ls_value *value, int64_t rows, int64_t columns, void *data)
{
    *value = (ls_value){.rank = 2, .shape = {ls_fixed(rows), ls_fixed(columns)}};
    return (ls_operand){.value = value, .data = data};
}

/* The op as the executor would call it: cut among the device's threads. */
static void make_call(bench_case *c)
{
    static const ls_op_kind kinds[] = {LS_OP_LINEAR, LS_OP_LINEAR_INPUT_GRADIENT,
                                       LS_OP_WEIGHT_GRADIENT};
    ls_operand x = operand(&c->values[0], c->tokens, c->inputs, c->x);
    ls_operand w = operand(&c->values[1], c->outputs, c->inputs, c->w);
    ls_operand y = operand(&c->values[2], c->tokens, c->outputs, c->y);
    ls_operand bias = operand(&c->values[3], c->outputs, 1, c->bias);
    ls_operand schedule = {.data = &c->schedule};
    c->op = ls_op_of(kinds[c->product], LS_SEGMENT_PASS, "product");
    c->call = (ls_op_call){.op = &c->op, .extents = &ls_fixed_extents};
    switch (c->product) {
    case FORWARD:
        c->call.inputs[0] = x, c->call.inputs[1] = w, c->call.inputs[2] = bias;
        c->call.outputs[0] = y;
        break;
    case INPUT_GRADIENT:
        c->call.inputs[0] = y, c->call.inputs[1] = w;
        c->call.outputs[0] = x;
        break;
    case WEIGHT_GRADIENT:
        c->call.inputs[0] = y, c->call.inputs[1] = x, c->call.inputs[2] = schedule;
        c->call.outputs[0] = w;
        break;
    }
}

static void run_ours(bench_case *c)
{
    c->device->operations->function(c->device, c->op.kind)(c->device, &c->call);
}

static void run_peer(bench_case *c, const peers *peer, bool dnnl)
{
    int64_t t = c->tokens, n = c->outputs, k = c->inputs;
    struct {
        bool trans_a, trans_b;
        int64_t m, n, k;
        const float *a, *b;
        int64_t lda, ldb;
        float *c;
        int64_t ldc;
    } all[] =
        {
            {false, true, t, n, k, c->x, c->w, k, k, c->y, n},
            {false, false, t, k, n, c->y, c->w, n, k, c->x, k},
            {true, false, n, k, t, c->y, c->x, n, k, c->w, k},
        },
      *p = &all[c->product];
    if (dnnl)
        peer->dnnl(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', p->m, p->n, p->k, 1.0f, p->a,
                   p->lda, p->b, p->ldb, 0.0f, p->c, p->ldc);
    else
        peer->cblas(101, p->trans_a ? 112 : 111, p->trans_b ? 112 : 111, (int)p->m, (int)p->n,
                    (int)p->k, 1.0f, p->a, (int)p->lda, p->b, (int)p->ldb, 0.0f, p->c, (int)p->ldc);
}

static void run(bench_case *c, const peers *peer, int contender)
{
    if (contender == 0)
        run_ours(c);
    else
        run_peer(c, peer, contender == 1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float *new_matrix(int64_t rows, int64_t columns)
{
    float *matrix = aligned_alloc(64, (size_t)(rows * columns) * sizeof(float));
    if (!matrix) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (int64_t i = 0; i < rows * columns; i++)
        matrix[i] = (float)(i * 7919 % 1000) * 0.002f - 1.0f;
    return matrix;
}

/* Whole leaves of LEAF_TOKENS tokens and a tree over them. */
static void make_schedule(bench_case *c)
{
    int32_t pieces = 0, open = 0;
    for (int64_t first = 0; first < c->tokens; first += LEAF_TOKENS, pieces++) {
        c->offsets[pieces] = (int32_t)first;
        c->merges[pieces] = 0;
        for (int32_t bit = pieces; bit & 1; bit >>= 1)
            c->merges[pieces]++;
        open += 1 - c->merges[pieces];
    }
    c->offsets[pieces] = (int32_t)c->tokens;
    c->merges[pieces - 1] = (uint8_t)(c->merges[pieces - 1] + open - 1);
    c->schedule = (ls_leaf_schedule){pieces, c->offsets, c->merges, 0, false, false};
}

static double seconds_of(bench_case *c, const peers *peer, int contender, int repeats)
{
    int threads = ls_cpu_device_threads(c->device);
    double begin = now(threads);
    for (int i = 0; i < repeats; i++)
        run(c, peer, contender);
    return now(threads) - begin;
}

static void measure(bench_case *c, const peers *peer, const char *only, int rounds,
                    const char *line)
{
    c->x = new_matrix(c->tokens, c->inputs);
    c->w = new_matrix(c->outputs, c->inputs);
    c->y = new_matrix(c->tokens, c->outputs);
    c->bias = new_matrix(c->outputs, 1);
    ls_device_limits limits = {.largest_depth = c->inputs + c->outputs, .tokens = c->tokens};
    ls_error error;
    if (c->device->operations->reserve_scratch(c->device, &limits, &error) != LS_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    make_schedule(c);
    make_call(c);
    int threads = ls_cpu_device_threads(c->device);
    double flops = 2.0 * (double)c->tokens * (double)c->outputs * (double)c->inputs;
    /* Threads that wake up need some time to find a core each. */
    int repeats = (int)((threads == 1 ? 2e8 : 4e9) / flops) + 1;
    double rates[CONTENDERS][MOST_ROUNDS] = {{0}};
    bool here[CONTENDERS] = {true, peer->dnnl != NULL, peer->cblas != NULL};
    for (int contender = 0; only && contender < CONTENDERS; contender++)
        here[contender] &= strcmp(contenders[contender], only) == 0;
    for (int contender = 0; contender < CONTENDERS; contender++)
        if (here[contender]) (void)seconds_of(c, peer, contender, threads == 1 ? 1 : 5 * repeats);
    for (int round = 0; round < rounds; round++)
        for (int contender = 0; contender < CONTENDERS; contender++) {
            if (!here[contender]) continue;
            double seconds = seconds_of(c, peer, contender, repeats);
            rates[contender][round] = flops * repeats / seconds * 1e-9;
        }
    double middle[CONTENDERS];
    for (int contender = 0; contender < CONTENDERS; contender++) {
        qsort(rates[contender], (size_t)rounds, sizeof(double), by_value);
        middle[contender] = rates[contender][rounds / 2];
    }
    printf("%s %8.1f %8.1f %8.1f %8.2f %8.2f\n", line, middle[0], middle[1], middle[2],
           here[1] ? middle[0] / middle[1] : 0.0, here[2] ? middle[0] / middle[2] : 0.0);
    fflush(stdout);
    free(c->x);
    free(c->w);
    free(c->y);
    free(c->bias);
}

int main(int count, char **arguments)
{
    const char *isa = NULL;
    const char *only = NULL;
    int rounds = 7, threads = 1, first = 1;
    for (; first + 1 < count && strncmp(arguments[first], "--", 2) == 0; first += 2) {
        if (strcmp(arguments[first], "--isa") == 0)
            isa = arguments[first + 1];
        else if (strcmp(arguments[first], "--threads") == 0)
            threads = atoi(arguments[first + 1]);
        else if (strcmp(arguments[first], "--rounds") == 0)
            rounds = atoi(arguments[first + 1]);
        else if (strcmp(arguments[first], "--only") == 0)
            only = arguments[first + 1];
    }
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    if (isa) setenv("LOCKSTEP_ISA", isa, 1);
    const ls_kernels *kernels = NULL;
    ls_error error;
    if (ls_kernels_choose(&kernels, &error) != LS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    const peers peer = load_peers(kernels->name, threads);
    static const int64_t layers[][2] = {{384, 384}, {1536, 384}, {384, 1536}, /* outputs, inputs */
                                        {768, 768}, {3072, 768}, {768, 3072}};
    static const int64_t tokens[] = {32, 108, 864, 4096};
    static bench_case c;
    if (ls_cpu_device_new(&c.device, threads, 0, &error) != LS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%s, threads: %d, GFLOP/s\n%-16s %5s %5s %5s %8s %8s %8s %8s %8s\n", kernels->name,
           ls_cpu_device_threads(c.device), "product", "T", "N", "K", "ours", "oneDNN", "OpenBLAS",
           "/oneDNN", "/OpenBL");
    for (size_t layer = 0; layer < sizeof layers / sizeof layers[0]; layer++)
        for (size_t t = 0; t < sizeof tokens / sizeof tokens[0]; t++)
            for (int kind = FORWARD; kind <= WEIGHT_GRADIENT; kind++) {
                c.product = (product)kind;
                c.tokens = tokens[t];
                c.outputs = layers[layer][0];
                c.inputs = layers[layer][1];
                char line[128];
                snprintf(line, sizeof line, "%-16s %5d %5d %5d", product_names[kind], (int)c.tokens,
                         (int)c.outputs, (int)c.inputs);
                bool wanted = first >= count;
                for (int i = first; i < count; i++)
                    wanted = wanted || strstr(line, arguments[i]);
                if (wanted) measure(&c, &peer, only, rounds, line);
            }
    ls_device_free(c.device);
    return 0;
}
