/* What the fault tests do to a run's numbers (base/fail_point.h); nothing in other builds. */
#ifndef LS_ENGINE_FAULTS_H
#define LS_ENGINE_FAULTS_H

#include "engine/assembly.h"
#include "engine/executor.h"

#ifdef LS_FAIL_POINTS
/* Fail points "weights.rankN" and "gradient.rankN": flip a bit of the rank's first one. */
void ls_fault_weights(ls_executor *executor, const ls_assembly *assembly);
void ls_fault_gradient(ls_executor *executor, const ls_assembly *assembly);
#else
static inline void ls_fault_weights(ls_executor *executor, const ls_assembly *assembly)
{
    (void)executor;
    (void)assembly;
}
static inline void ls_fault_gradient(ls_executor *executor, const ls_assembly *assembly)
{
    (void)executor;
    (void)assembly;
}
#endif

#endif
