/* exhaustive.c - are exp, log, tanh and sigmoid correctly rounded? Every float is tried: the result
   of the header, rounded to float, must be the float nearest to the exact value.

   The witness is the C library's long double function, with 64 bits. Where it is closer to the
   middle between two floats than 2^-50 of itself, 2^13 of its own units, it does not decide: such a
   close call is computed by MPFR with 200 bits. Where a function has one value (exp below -104 and
   above 89, tanh beyond 10, sigmoid below -104 and above 18) that value is known.

     exhaustive [STEP [PART PARTS]]   every STEP-th float (1: all), of these a part in PARTS

   The last line is "N passed, N failed". */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXP, LOG, TANH, SIGMOID, FUNCTIONS };
static const char *const names[FUNCTIONS] = {"exp", "log", "tanh", "sigmoid"};

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The correctly rounded value by MPFR; every float of the result, subnormal ones too. */
static float by_mpfr(int function, float x)
{
    mpfr_t a;
    float y;
    mpfr_init2(a, 200);
    mpfr_set_flt(a, x, MPFR_RNDN);
    if (function == EXP) mpfr_exp(a, a, MPFR_RNDN);
    if (function == LOG) mpfr_log(a, a, MPFR_RNDN);
    if (function == TANH) mpfr_tanh(a, a, MPFR_RNDN);
    if (function == SIGMOID) {
        mpfr_neg(a, a, MPFR_RNDN);
        mpfr_exp(a, a, MPFR_RNDN);
        mpfr_add_ui(a, a, 1, MPFR_RNDN);
        mpfr_ui_div(a, 1, a, MPFR_RNDN);
    }
    y = mpfr_get_flt(a, MPFR_RNDN);
    mpfr_clear(a);
    return y;
}

static float right_result(int function, float x, long *close)
{
    long double exact, slack;
    if (function == EXP && (x > 89 || x < -104)) return x > 0 ? INFINITY : 0;
    if (function == TANH && fabsf(x) > 10) return x > 0 ? 1 : -1;
    if (function == SIGMOID && (x > 18 || x < -104)) return x > 0 ? 1 : 0;
    if (function == EXP) exact = expl((long double)x);
    else if (function == LOG) exact = logl((long double)x);
    else if (function == TANH) exact = tanhl((long double)x);
    else exact = 1 / (1 + expl(-(long double)x));
    slack = ldexpl(exact, -50);
    if ((float)(exact - slack) == (float)(exact + slack)) return (float)exact;
    ++*close;
    return by_mpfr(function, x);
}

static void results(nrm_real *y, const nrm_real *x, int function)
{
    static const int curve[FUNCTIONS] = {NRMI_EXP, 0, NRM_TANH, NRM_SIGMOID};
    nrm_acc v[NRM_SOME];
    size_t i;
    if (function != LOG) {
        nrmi_curve(y, x, curve[function], NRM_SOME);
        return;
    }
    for (i = 0; i < NRM_SOME; i++) v[i] = (nrm_acc)x[i];
    nrmi_log(v, NRM_SOME);
    for (i = 0; i < NRM_SOME; i++) y[i] = (nrm_real)v[i];
}

/* The logarithm has positive finite arguments; others: a NaN must stay one. */
static int defined_for(int function, float x)
{
    return function != LOG || (x > 0 && x <= FLT_MAX);
}

int main(int argc, char **argv)
{
    const uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t part = argc > 3 ? strtoull(argv[2], NULL, 10) : 0;
    const uint64_t parts = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    const uint64_t end = (part + 1) * 4294967296u / parts;
    int f, failed = 0;
    if (step < 1 || part >= parts) return 2;
    for (f = 0; f < FUNCTIONS; f++) {
        long arguments = 0, wrong = 0, close = 0;
        uint64_t u = part * 4294967296u / parts;
        while (u < end) {
            nrm_real x[NRM_SOME], y[NRM_SOME];
            int i, n = 0;
            for (; u < end && n < NRM_SOME; u += step)
                if (defined_for(f, float_of((uint32_t)u))) x[n++] = (nrm_real)float_of((uint32_t)u);
            for (i = n; i < NRM_SOME; i++) x[i] = 1;
            results(y, x, f);
            for (i = 0; i < n; i++) {
                const int nan = x[i] != x[i];
                arguments++;
                const nrm_real right =
                    nan ? x[i] : (nrm_real)right_result(f, (float)x[i], &close);
                if (nan ? y[i] != y[i] : y[i] == right) continue;
                if (wrong++ < 5)
                    printf("    %s(%.9g) is %.9g\n", names[f], (double)x[i], (double)y[i]);
            }
        }
        printf("%-8s %11ld arguments %6ld close calls %6ld wrong\n", names[f], arguments, close,
               wrong);
        fflush(stdout);
        failed += wrong > 0;
    }
    mpfr_free_cache();
    printf("exhaustive: %d passed, %d failed\n", FUNCTIONS - failed, failed);
    return failed > 0;
}
