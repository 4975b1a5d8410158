/* A training step as data: a list of ops in execution order over values.
 *
 * Models build the forward part, the gradient pass and the optimizer add to it, a strategy rewrites
 * it, the planner gives every value a place, the engine runs it. Nothing here computes. */
#ifndef LS_PROGRAM_PROGRAM_H
#define LS_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/activation.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

/* --- sizes --------------------------------------------------------------------------------------
 * Two sizes change from pass to pass; everything else is constant. Memory is planned for their
 * capacities, a pass runs with the actual ones. */
typedef enum ls_symbol {
    LS_SYMBOL_NONE,
    LS_SYMBOL_TOKENS,    /* T: tokens of a pass */
    LS_SYMBOL_SEQUENCES, /* S: samples of a pass */
    LS_SYMBOL_COUNT
} ls_symbol;

typedef struct ls_extents {
    int64_t size[LS_SYMBOL_COUNT]; /* size[LS_SYMBOL_NONE] is 1 */
} ls_extents;
/* For values without symbolic sizes: parameters, and what is made of them. */
extern const ls_extents ls_fixed_extents;

/* factor * symbol + constant elements. */
typedef struct ls_dimension {
    ls_symbol symbol;
    int64_t factor, constant;
} ls_dimension;

static inline ls_dimension ls_fixed(int64_t size)
{
    return (ls_dimension){LS_SYMBOL_NONE, 0, size};
}
static inline ls_dimension ls_per(ls_symbol symbol)
{
    return (ls_dimension){symbol, 1, 0};
}
static inline int64_t ls_dimension_size(ls_dimension dimension, const ls_extents *extents)
{
    return dimension.factor * extents->size[dimension.symbol] + dimension.constant;
}

/* --- values ---------------------------------------------------------------------------------- */
typedef enum ls_dtype { LS_F32, LS_F64, LS_I32, LS_U8, LS_DTYPE_COUNT } ls_dtype;

typedef enum ls_role {
    LS_ROLE_PARAMETER,       /* lives as long as the run */
    LS_ROLE_GRADIENT,        /* of a parameter: lives through all passes of a step */
    LS_ROLE_OPTIMIZER_STATE, /* lives as long as the run */
    LS_ROLE_ACTIVATION,      /* from the op that writes it to the last that reads it */
    LS_ROLE_COMMUNICATION,   /* on its way between ranks: from the op that begins to write it to the
                                last that uses it */
    LS_ROLE_INPUT,           /* written by the host before a pass or a step */
    LS_ROLE_SCALAR,          /* small results of a step, read by the host after it */
    LS_ROLE_OFFLOAD, /* runs of values that lie elsewhere, and blocks of them on the device */
    LS_ROLE_COUNT
} ls_role;

/* Where a value's bytes lie. */
typedef enum ls_space {
    LS_SPACE_DEVICE,
    LS_SPACE_HOST,        /* read while an op is enqueued: schedules */
    LS_SPACE_HOST_MEMORY, /* of the host, copied to the device and back in blocks */
    LS_SPACE_FILE,        /* the same on a disk */
    LS_SPACE_COUNT
} ls_space;

/* What of a value each rank holds. Ownership is that of layout.h. */
typedef enum ls_layout {
    LS_LAYOUT_WHOLE, /* everything */
    LS_LAYOUT_RUN,   /* the elements that it owns, behind those of the run's earlier values */
    LS_LAYOUT_ROWS,  /* of a row-sparse gradient: the touched rows of which it owns a part */
    LS_LAYOUT_COUNT
} ls_layout;

typedef int32_t ls_value_id;
enum { LS_NO_VALUE = -1, LS_MAX_RANK = 4 };

typedef struct ls_value {
    const char *name;
    ls_dtype dtype;
    ls_role role;
    ls_space space;
    int rank; /* 0: one element */
    ls_dimension shape[LS_MAX_RANK];
    ls_value_id storage; /* the value whose bytes this one overwrites, or itself */

    ls_layout layout;    /* its shape is that of the whole all the same, but for the rows of ROWS */
    ls_value_id run;     /* LS_LAYOUT_RUN: the first value of its run, LS_NO_VALUE else */
    int64_t unit_offset; /* parameters of a divided program: first element in the unit's flat run */

    ls_value_id parameter; /* gradients and optimizer state: whose, LS_NO_VALUE else */

    ls_value_id home; /* what is offloaded: the run of all units that it is a part of */

    /* Parameters only. */
    int unit;            /* embeddings 0, layer i is 1 + i, the head is the last one */
    bool decay;          /* weight decay applies (not to biases and layer norms) */
    bool row_sparse;     /* an embedding table: its gradient holds touched rows only */
    ls_value_id touched; /* row_sparse: the input that lists the touched rows, LS_NO_VALUE else */
} ls_value;

/* --- ops ------------------------------------------------------------------------------------- */
/* Every op: its name in prints. One file each in ops/, one function each in a device's table. */
#define LS_DEVICE_OP_LIST(X)                                                                       \
    X(EMBEDDING, "embedding")                                                                      \
    X(EMBEDDING_GRADIENT, "embedding_gradient")                                                    \
    X(LAYER_NORM, "layer_norm")                                                                    \
    X(LAYER_NORM_BACKWARD, "layer_norm_backward")                                                  \
    X(LAYER_NORM_SUMS, "layer_norm_sums")                                                          \
    X(LINEAR, "linear")                                                                            \
    X(LINEAR_INPUT_GRADIENT, "linear_input_gradient")                                              \
    X(WEIGHT_GRADIENT, "weight_gradient")                                                          \
    X(COLUMN_SUMS, "column_sums")                                                                  \
    X(ACTIVATION_BACKWARD, "activation_backward")                                                  \
    X(ATTENTION, "attention")                                                                      \
    X(ATTENTION_BACKWARD, "attention_backward")                                                    \
    X(DROPOUT, "dropout")                                                                          \
    X(SELECT_FIRST, "select_first")                                                                \
    X(SELECT_FIRST_BACKWARD, "select_first_backward")                                              \
    X(CLASSIFIER_LOSS, "classifier_loss")                                                          \
    X(SQUARED_NORM, "squared_norm")                                                                \
    X(GRADIENT_NORM, "gradient_norm")                                                              \
    X(ADAMW, "adamw")

/* Those that need other ranks: the engine runs them, on the communication queue. */
#define LS_COLLECTIVE_OP_LIST(X)                                                                   \
    X(EXCHANGE_GRADIENTS, "exchange_gradients")                                                    \
    X(GATHER, "gather")                                                                            \
    X(WAIT, "wait")

/* Those that copy between the device and host memory or files: the engine runs them, all but the
 * wait on the copy queue. */
#define LS_COPY_OP_LIST(X)                                                                         \
    X(FETCH, "fetch")                                                                              \
    X(AWAIT, "await")                                                                              \
    X(STORE, "store")

#define LS_OP_LIST(X)                                                                              \
    LS_DEVICE_OP_LIST(X)                                                                           \
    LS_COLLECTIVE_OP_LIST(X)                                                                       \
    LS_COPY_OP_LIST(X)

typedef enum ls_op_kind {
#define LS_OP_ENUM(name, text) LS_OP_##name,
    LS_OP_LIST(LS_OP_ENUM)
#undef LS_OP_ENUM
        LS_OP_COUNT
} ls_op_kind;

/* The pass is run once for each group of consecutive samples; the exchange's ops stand among those
 * of the pass, where what they send is complete, and run in a step's last pass only (collectives of
 * every pass are ops of the pass); the update runs once a step. */
typedef enum ls_segment {
    LS_SEGMENT_PASS,
    LS_SEGMENT_EXCHANGE,
    LS_SEGMENT_UPDATE,
    LS_SEGMENT_COUNT
} ls_segment;

/* What an op needs beside its operands; ops/<op>.c says which fields it reads. */
typedef struct ls_attributes {
    uint32_t site; /* names the op for random numbers: kept by every rewrite */
    float dropout; /* probability */
    float epsilon; /* layer norm, optimizer */
    ls_activation activation;
    bool accumulate; /* the chain goes on from what the output holds */
    bool owned;      /* it reads and writes only what the rank owns of its operands */
    int64_t heads, head_size, max_positions;
    int32_t bucket;      /* collectives: index into the program's buckets */
    int64_t first_block; /* squared_norm: where its blocks begin in the list of all */
    /* fetch, store: this part of a run. adamw: what of the parameter has its moments there;
     * elements 0: all of it. */
    int64_t first_element, elements;
    float beta1, beta2, weight_decay, max_norm;
    bool l2; /* adamw: the decay is part of the gradient */
} ls_attributes;

enum { LS_MAX_INPUTS = 12, LS_MAX_OUTPUTS = 4 };

/* Whether a value is a part of a run that lies elsewhere. */
static inline bool ls_value_is_offloaded(const ls_value *value)
{
    return value->role != LS_ROLE_OFFLOAD &&
           (value->space == LS_SPACE_HOST_MEMORY || value->space == LS_SPACE_FILE);
}

enum { LS_NO_UNIT = -1 };

typedef struct ls_op {
    ls_op_kind kind;
    ls_segment segment;
    int unit;         /* of the model, as its parameters have it (ls_value.unit), or LS_NO_UNIT */
    bool backward;    /* of the gradient pass; a pass's first one ends the forward */
    const char *name; /* "layer.3.attention.query": where in the model it stands */
    ls_value_id inputs[LS_MAX_INPUTS]; /* LS_NO_VALUE: an optional operand is left out */
    ls_value_id outputs[LS_MAX_OUTPUTS];
    ls_attributes attributes;
} ls_op;

typedef struct ls_cost {
    double flops; /* a multiply and an add are two */
    double bytes; /* read and written, each operand once */
} ls_cost;

struct ls_gradient_pass;
typedef struct ls_program ls_program;

/* The rules of one kind of op. */
typedef struct ls_op_definition {
    ls_op_kind kind;
    int inputs, outputs;      /* operands it has, optional ones included */
    uint32_t optional_inputs; /* bit i: input i may be LS_NO_VALUE */
    /* Shapes and dtypes of the operands fit together; LS_INTERNAL if not. */
    ls_status (*check)(const ls_program *program, const ls_op *op, ls_error *error);
    /* Append the ops that carry the outputs' gradients to the inputs; NULL: it has none. */
    ls_status (*gradient)(struct ls_gradient_pass *pass, const ls_op *op, ls_error *error);
    ls_cost (*cost)(const ls_program *program, const ls_op *op, const ls_extents *extents);
} ls_op_definition;

/* Values that one collective moves together. */
typedef struct ls_bucket {
    const ls_value_id *values;
    const ls_value_id *results; /* what becomes of each; NULL: they are changed in place */
    int32_t count;
    int64_t bytes;
} ls_bucket;

static inline ls_value_id ls_bucket_result(const ls_bucket *bucket, int32_t index)
{
    return bucket->results ? bucket->results[index] : bucket->values[index];
}

struct ls_program {
    ls_arena arena; /* names */
    ls_value *values;
    ls_op *ops;
    int32_t value_count, op_count;
    size_t value_capacity, op_capacity;
    const ls_op_definition *const *definitions; /* [LS_OP_COUNT], see ops/registry.h */
    const ls_bucket *buckets;                   /* in the arena; see strategies/ */
    int32_t bucket_count;
    int32_t gradient_slots; /* partial sums that each gradient holds between passes */
    int32_t forward_count; /* ops of the forward pass, which stand first; 0: no backward pass yet */
    int unit;              /* of the ops that are appended from now on */
    int ranks;             /* that own parts of its parameters (layout.h); 0: it is not divided */
    /* Of a divided program, in the arena: [units], and the parameters in their order. */
    const int64_t *unit_elements;
    const ls_value_id *parameters;
    int32_t parameter_count;
    bool training;
};

ls_status ls_program_new(ls_program **out, const ls_op_definition *const *definitions,
                         ls_error *error) LS_MUST_CHECK;
void ls_program_free(ls_program *program);

/* Append a value; the name is printf-style. `template` gives everything but name and storage. */
ls_status ls_program_value(ls_program *program, ls_value_id *out, ls_value template,
                           ls_error *error, const char *name, ...) LS_PRINTF(5, 6) LS_MUST_CHECK;
/* Append an op of the program's present unit; `name` is copied. */
ls_status ls_program_op(ls_program *program, const ls_op *op, ls_error *error) LS_MUST_CHECK;
/* Take `*ops` as the program's list, with its `count` of `capacity`; `*ops` becomes the former one.
 */
void ls_program_swap_ops(ls_program *program, ls_op **ops, int32_t count, size_t capacity);
/* An op with every operand left out. */
ls_op ls_op_of(ls_op_kind kind, ls_segment segment, const char *name);

static inline const ls_value *ls_value_of(const ls_program *program, ls_value_id id)
{
    return &program->values[id];
}
int64_t ls_value_elements(const ls_value *value, const ls_extents *extents);
int64_t ls_value_bytes(const ls_value *value, const ls_extents *extents);
ls_value_id ls_program_find(const ls_program *program, const char *name); /* or LS_NO_VALUE */

int ls_dtype_bytes(ls_dtype dtype);
const char *ls_dtype_name(ls_dtype dtype);
const char *ls_role_name(ls_role role);
const char *ls_op_name(ls_op_kind kind);
const char *ls_layout_name(ls_layout layout);
bool ls_op_is_collective(ls_op_kind kind);
bool ls_op_is_copy(ls_op_kind kind);

/* Every op's operands exist, are written whole before they are read, overwrite only what is not
 * read later, and pass the op's own check; what is on its way to other ranks is waited for before
 * it is used; what a rank has a part of is not read as a whole. LS_INTERNAL names the op: a rewrite
 * is wrong. */
ls_status ls_program_verify(const ls_program *program, ls_error *error) LS_MUST_CHECK;

/* One line a value, one line an op. */
ls_status ls_program_print(const ls_program *program, ls_text *text, ls_error *error) LS_MUST_CHECK;

#endif
