/* The activation functions that models name and kernels compute. */
#ifndef LS_BASE_ACTIVATION_H
#define LS_BASE_ACTIVATION_H

typedef enum ls_activation {
    LS_ACTIVATION_NONE,
    LS_ACTIVATION_GELU,      /* x * Phi(x), by erf (Hendrycks and Gimpel 2016) */
    LS_ACTIVATION_GELU_TANH, /* its tanh approximation ("gelu_new", "gelu_pytorch_tanh") */
    LS_ACTIVATION_RELU,
    LS_ACTIVATION_TANH
} ls_activation;

static inline const char *ls_activation_name(ls_activation activation)
{
    static const char *const names[] = {"none", "gelu", "gelu_tanh", "relu", "tanh"};
    return names[activation];
}

#endif
