/* test.h - the test harness: sixty lines, no dependencies.

   A test program defines functions `static void test_xxx(void)`, puts CHECK(...) in them and lists
   them in main:

       #include "test.h"
       static void test_sum(void) { CHECK(1 + 1 == 2); CHECK_NEAR(0.1 + 0.2, 0.3, 1e-15); }
       int main(void) { RUN(test_sum); return test_report("sums"); }

   Every function counts as one test: it passes when none of its checks failed. test_report prints
   "sums: N passed, N failed" as the last line and returns the exit code. A failed check prints
   file, line, the expression and (for the NEAR forms) both values, and the function goes on. With
   TEST_FIRST_FAILURE the program ends after the first function that failed. */
#ifndef TEST_H
#define TEST_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int test_passed, test_failed; /* functions so far                        */
static int test_bad;                 /* failed checks in the function now running */

#define CHECK(cond) test_check((cond) ? 1 : 0, #cond, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, tol)                                                                      \
    test_near((double)(a), (double)(b), (double)(tol), #a, __FILE__, __LINE__)
#define CHECK_INT(a, b) test_int((long long)(a), (long long)(b), #a, __FILE__, __LINE__)
#define OK(call) test_int((call), NRM_OK, #call, __FILE__, __LINE__) /* of normlayers.h */
#define CHECK_STR(a, b) test_str((a), (b), #a, __FILE__, __LINE__)
#define RUN(function) test_run(#function, function)

static inline int test_check(int ok, const char *what, const char *file, int line)
{
    if (ok) return 1;
    if (++test_bad <= 20) printf("%s:%d: failed: %s\n", file, line, what);
    return 0;
}

/* |a - b| <= tol, where NaN is never near anything. */
static inline int test_near(double a, double b, double tol, const char *what, const char *file,
                            int line)
{
    if (fabs(a - b) <= tol || (a == b)) return 1;
    if (++test_bad <= 20)
        printf("%s:%d: failed: %s is %.17g, expected %.17g within %g\n", file, line, what, a, b,
               tol);
    return 0;
}

static inline int test_int(long long a, long long b, const char *what, const char *file, int line)
{
    if (a == b) return 1;
    if (++test_bad <= 20)
        printf("%s:%d: failed: %s is %lld, expected %lld\n", file, line, what, a, b);
    return 0;
}

static inline int test_str(const char *a, const char *b, const char *what, const char *file,
                           int line)
{
    if (a != NULL && b != NULL && strcmp(a, b) == 0) return 1;
    if (++test_bad <= 20)
        printf("%s:%d: failed: %s is \"%s\", expected \"%s\"\n", file, line, what, a ? a : "(null)",
               b ? b : "(null)");
    return 0;
}

static inline void test_run(const char *name, void (*function)(void))
{
    test_bad = 0;
    function();
    if (test_bad == 0) {
        test_passed++;
        return;
    }
    test_failed++;
    printf("FAILED %s (%d checks)\n", name, test_bad);
#ifdef TEST_FIRST_FAILURE
    exit(1);
#endif
}

static inline int test_report(const char *program)
{
    printf("%s: %d passed, %d failed\n", program, test_passed, test_failed);
    return test_failed ? 1 : 0;
}
#endif
