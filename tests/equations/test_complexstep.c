/* test_complexstep.c - the gradients of the recurrent layer, through up to 50 steps, against a
   witness that shares nothing with them; the *.claims files have those of layers and networks.

   Evaluate a function at x + i·h with a tiny h: the imaginary part, divided by h, is its
   derivative, to all digits, for nothing is subtracted. So recurrent.h has the papers' forward pass
   in complex numbers here, and what it says is compared with the header's backward pass. In double
   only. -v prints the largest errors: rows as those of test_derivations -v. */
#ifndef NRM_DOUBLE
#define NRM_DOUBLE
#endif
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"

#define RNN_COMPLEX
#include "layers/recurrent.h"
#include "test.h"

#define BOUND 1e-13 /* of an error, relative to the largest gradient of its array */

/* The largest |grad − derivative| of n numbers of the plain layer, beside the largest gradient. */
static double worst_of(plain_rnn *p, rnn_wide *theta, const nrm_real *grad, size_t n)
{
    double worst = 0, largest = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double h = i % 2 ? 1e-30 : 1e-100; /* no matter which */
        const rnn_wide kept = theta[i];
        double error;
        ((double *)&theta[i])[1] = h; /* a complex number is laid out as its two parts */
        plain_forward(p);
        error = fabs(grad[i] - cimag(plain_loss(p)) / h);
        theta[i] = kept;
        if (!(error < HUGE_VAL)) return HUGE_VAL;
        worst = fmax(worst, error);
        largest = fmax(largest, fabs(grad[i]));
    }
    return worst / (largest > 0 ? largest : 1); /* gamma without a norm */
}

static double rnn_error(rnn_case *k)
{
    static plain_rnn p;
    const size_t H = k->rnn.H, in = k->rnn.in;
    double worst;
    if (rnn_forward(k) != NRM_OK || rnn_backward(k) != NRM_OK) return HUGE_VAL;
    plain_rnn_of(&p, k);
    worst = worst_of(&p, p.h, k->dh, k->rnn.N * H);
    worst = fmax(worst, worst_of(&p, p.x, k->dx, k->inputs));
    worst = fmax(worst, worst_of(&p, p.Wx, k->dWx, in * H));
    worst = fmax(worst, worst_of(&p, p.Wh, k->dWh, H * H));
    worst = fmax(worst, worst_of(&p, p.gamma, k->dgamma, H));
    return fmax(worst, worst_of(&p, p.beta, k->dbeta, H));
}

static double largest[4];
static unsigned long times;

/* Up to 50 steps with weights that do not let the gradient explode: rounding would, along with it.
   A batch norm of two sequences takes nearly all of the gradient away (BN.23), and what its 50
   steps leave is small beside the terms it is made of. */
static void check_recurrent(int norm, int mode, int which)
{
    static const size_t T[] = {1, 2, 7, 50};
    static rnn_case k;
    nrm_rng rng;
    int activation;
    size_t t, N;
    nrm_rng_seed(&rng, 2018, 20 + (uint64_t)which);
    for (activation = NRM_IDENTITY; activation <= NRM_SIGMOID; activation++)
        for (t = 0; t < 4; t++)
            for (N = 1; N <= 4; N++) {
                double error;
                if (norm == NRM_BATCH_NORM && mode == NRM_TRAIN && N < (T[t] > 7 ? 3 : 2)) continue;
                rnn_prepare(&k, norm, mode, activation, T[t], N, 1 + N % 3, 5, 0.7, 0.05, &rng);
                error = rnn_error(&k);
                CHECK_NEAR(error, 0, BOUND);
                largest[which] = fmax(largest[which], error);
                times += norm == NRM_LAYER_NORM;
            }
}

static void test_without_norm(void)
{
    check_recurrent(NRM_NO_NORM, NRM_TRAIN, 0);
}

static void test_layer_norm(void)
{
    check_recurrent(NRM_LAYER_NORM, NRM_TRAIN, 1);
}

static void test_batch_norm(void)
{
    check_recurrent(NRM_BATCH_NORM, NRM_TRAIN, 2);
}

static void test_frozen(void)
{
    check_recurrent(NRM_BATCH_NORM, NRM_FROZEN, 3);
}

int main(int argc, char **argv)
{
    int tag;
    RUN(test_without_norm);
    RUN(test_layer_norm);
    RUN(test_batch_norm);
    RUN(test_frozen);
    for (tag = 4; tag <= 9 && argc > 1 && strcmp(argv[1], "-v") == 0; tag++)
        printf("RNN.%d   C %8lu %11.2e %9.1e%s\n", tag, times, largest[1], BOUND,
               largest[1] <= BOUND ? "" : "  FAILED");
    return test_report("complexstep");
}
