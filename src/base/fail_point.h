/* Places where a test makes something go wrong. Compiled into the fault tests' build only
 * (-DLS_FAIL_POINTS, see the Makefile); elsewhere a fail point is nothing at all.
 *
 * LOCKSTEP_FAIL=SITE:COUNT:ACTION[,...]: at the COUNTth time (from 1) that a fail point whose name
 * is SITE, or begins with "SITE.", is passed. An empty SITE is every fail point. COUNT "N+" is the
 * Nth time and all after it. Actions: the name of an error such as EIO, ENOSPC, EROFS; "short" (a
 * write takes a part only), "kill" (SIGKILL), "stop" (SIGSTOP), "slow" (a nap of a millisecond);
 * and what becomes of a number: "flip" (one bit is another), "nan", "inf". */
#ifndef LS_BASE_FAIL_POINT_H
#define LS_BASE_FAIL_POINT_H

enum { LS_FAIL_SHORT = -1, LS_FAIL_FLIP = -2, LS_FAIL_NAN = -3, LS_FAIL_INFINITY = -4 };

#ifdef LS_FAIL_POINTS
/* 0: go on; an errno, or one of the above: fail in this way. */
int ls_fail_point(const char *site);
#else
static inline int ls_fail_point(const char *site)
{
    (void)site;
    return 0;
}
#endif

#endif
