/* The functions behind the kernel table, declared for every instruction set: ls_gemm__ref,
 * ls_gemm__avx2, ... Their types are those of the table's fields, so kernels.h is the one place
 * that states them. A file of this folder defines its own as `void LS_KERNEL(gemm)(...)`. */
#ifndef LS_KERNELS_FUNCTIONS_H
#define LS_KERNELS_FUNCTIONS_H

#include "kernels/kernels.h"

/* One line a function, in the order of the table. */
#define LS_KERNEL_LIST(X, isa)                                                                     \
    X(scratch_bytes, isa)                                                                          \
    X(gemm, isa)                                                                                   \
    X(weight_gradient, isa)                                                                        \
    X(column_sums, isa)                                                                            \
    X(layer_norm_sums, isa)                                                                        \
    X(attention_forward, isa)                                                                      \
    X(attention_backward, isa)                                                                     \
    X(embedding_sum, isa)                                                                          \
    X(residual_dropout, isa)                                                                       \
    X(dropout, isa)                                                                                \
    X(layer_norm, isa)                                                                             \
    X(layer_norm_backward, isa)                                                                    \
    X(classifier_loss, isa)                                                                        \
    X(gather_rows, isa)                                                                            \
    X(add_rows, isa)                                                                               \
    X(embedding_gradient, isa)                                                                     \
    X(activation, isa)                                                                             \
    X(multiply, isa)                                                                               \
    X(adamw, isa)                                                                                  \
    X(squared_sums, isa)                                                                           \
    X(squared_sums_rows, isa)                                                                      \
    X(ordered_sum, isa)

#define LS_DECLARE_KERNEL(name, isa) __typeof__(*((ls_kernels *)0)->name) ls_##name##__##isa;
LS_KERNEL_LIST(LS_DECLARE_KERNEL, ref)
LS_KERNEL_LIST(LS_DECLARE_KERNEL, avx2)
LS_KERNEL_LIST(LS_DECLARE_KERNEL, avx512)

#endif
