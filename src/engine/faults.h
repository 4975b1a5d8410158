/* What the fault tests do to a run's numbers (base/fail_point.h); nothing in other builds. */
#ifndef LS_ENGINE_FAULTS_H
#define LS_ENGINE_FAULTS_H

#include "engine/assembly.h"
#include "engine/executor.h"

#ifdef LS_FAIL_POINTS
/* Fail points "SITE.rankN" and "gradient.rankN": change the rank's first number. */
ls_status ls_fault_weights(ls_executor *executor, const ls_assembly *assembly, const char *site,
                           ls_error *error) LS_MUST_CHECK;
void ls_fault_gradient(ls_executor *executor, const ls_assembly *assembly);
/* The fail point "SITE.rankN". */
int ls_fault_point(const ls_executor *executor, const char *site);
#else
static inline int ls_fault_point(const ls_executor *executor, const char *site)
{
    (void)executor;
    (void)site;
    return 0;
}
static inline ls_status ls_fault_weights(ls_executor *executor, const ls_assembly *assembly,
                                         const char *site, ls_error *error)
{
    (void)executor;
    (void)assembly;
    (void)site;
    (void)error;
    return LS_OK;
}
static inline void ls_fault_gradient(ls_executor *executor, const ls_assembly *assembly)
{
    (void)executor;
    (void)assembly;
}
#endif

#endif
