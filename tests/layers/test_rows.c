/* test_rows.c - nrm_rows_forward and nrm_rows_backward: rows that lie apart in a larger array, and
   a residual that is added before the norm. They must give what layer and RMS norm give for a dense
   copy of the sums, bit for bit (gradients of gamma and beta to rounding), touch nothing between
   the rows, and have the gradients of RES.2. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "test.h"

enum { MOST = 1 << 15, WIDEST = 2100, FREE = 77 }; /* FREE: a number that stands between the rows */

typedef struct subject {
    nrm_rows rows;
    int with_residual;
    nrm_real x[MOST], residual[MOST], dy[MOST], dsum[MOST], gamma[WIDEST], beta[WIDEST];
    nrm_real y[MOST], sum[MOST], dx[MOST], dgamma[WIDEST], dbeta[WIDEST];
    nrm_acc mean[MOST], rstd[MOST];
} subject;
static subject s, dense;

static size_t place(const nrm_rows *r, size_t n, size_t i)
{
    return n / r->R * r->pitch + n % r->R * r->D + i;
}

static void fill(size_t N, size_t R, size_t D, size_t gap, int rms, int with_residual)
{
    const nrm_rows rows = {N, R, D, R * D + gap, rms};
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 10 * N + R, D + gap);
    s.rows = rows;
    s.with_residual = with_residual;
    for (i = 0; i < N * rows.pitch; i++) {
        s.x[i] = 3 + 2 * draw_normal(&rng);
        s.residual[i] = draw_normal(&rng);
        s.dy[i] = draw_normal(&rng);
        s.dsum[i] = draw_normal(&rng);
        s.y[i] = s.sum[i] = s.dx[i] = FREE;
    }
    for (i = 0; i < D; i++) {
        s.gamma[i] = 1 + draw_normal(&rng) / 2;
        s.beta[i] = draw_normal(&rng);
        s.dgamma[i] = s.dbeta[i] = (nrm_real)0.5;
    }
}

static int forward(void)
{
    return nrm_rows_forward(s.y, s.sum, s.mean, s.rstd, s.x, s.with_residual ? s.residual : NULL,
        s.gamma, s.beta, NRM_EPS, &s.rows);
}

static int backward(void)
{
    return nrm_rows_backward(s.dx, s.dgamma, s.dbeta, s.dy, s.with_residual ? s.dsum : NULL,
        s.with_residual ? s.sum : s.x, s.mean, s.rstd, s.gamma, &s.rows);
}

/* The same by layer or RMS norm, in `dense`: RMS norm with beta as layer norm has it. */
static void compute_dense(void)
{
    const size_t rows = s.rows.N * s.rows.R, D = s.rows.D;
    size_t n, i;
    for (n = 0; n < rows; n++)
        for (i = 0; i < D; i++) {
            const size_t at = place(&s.rows, n, i);
            dense.x[n * D + i] = s.with_residual ? s.x[at] + s.residual[at] : s.x[at];
            dense.dy[n * D + i] = s.dy[at];
        }
    for (i = 0; i < D; i++) dense.dgamma[i] = dense.dbeta[i] = (nrm_real)0.5;
    if (s.rows.rms) {
        CHECK_INT(nrm_rmsnorm_forward(dense.y, dense.rstd, dense.x, s.gamma, NRM_EPS, rows, D), 0);
        CHECK_INT(nrm_rmsnorm_backward(dense.dx, dense.dgamma, dense.dy, dense.x, dense.rstd,
                      s.gamma, rows, D), 0);
    } else {
        CHECK_INT(nrm_layernorm_forward(dense.y, dense.mean, dense.rstd, dense.x, s.gamma, s.beta,
                      NRM_EPS, rows, D), 0);
        CHECK_INT(nrm_layernorm_backward(dense.dx, dense.dgamma, dense.dbeta, dense.dy, dense.x,
                      dense.mean, dense.rstd, s.gamma, rows, D), 0);
    }
}

/* Row n has the results of the dense copy; FREE replaces what has been compared. */
static int same_row(size_t n)
{
    const size_t D = s.rows.D;
    int same = s.rstd[n] == dense.rstd[n] && (s.rows.rms || s.mean[n] == dense.mean[n]);
    size_t i;
    for (i = 0; i < D; i++) {
        const size_t at = place(&s.rows, n, i);
        const nrm_real dx = dense.dx[n * D + i];
        same &= s.rows.rms || s.y[at] == dense.y[n * D + i]; /* RMS norm has no beta */
        same &= !s.with_residual || s.sum[at] == dense.x[n * D + i];
        same &= s.dx[at] == (s.with_residual ? dx + s.dsum[at] : dx);
        s.y[at] = s.sum[at] = s.dx[at] = FREE;
    }
    return same;
}

static int as_the_dense_copy(void)
{
    const size_t rows = s.rows.N * s.rows.R;
    const double unit = sizeof(nrm_real) == sizeof(float) ? 6e-8 : 1.2e-16;
    int same = 1;
    size_t n, i;
    compute_dense();
    for (n = 0; n < rows; n++) same &= same_row(n);
    for (i = 0; i < s.rows.N * s.rows.pitch; i++)
        same &= s.y[i] == FREE && s.sum[i] == FREE && s.dx[i] == FREE;
    for (i = 0; i < s.rows.D; i++) {
        const double most = 40 * unit * sqrt((double)rows) + 4 * unit;
        same &= fabs((double)(s.dgamma[i] - dense.dgamma[i])) <= most;
        same &= s.rows.rms || fabs((double)(s.dbeta[i] - dense.dbeta[i])) <= most;
    }
    return same;
}

static void test_as_dense(void)
{
    static const size_t shape[][4] = {{1, 1, 1, 0}, {3, 2, 4, 0}, {3, 2, 4, 3}, {7, 1, 5, 4},
        {5, 3, 64, 384}, {2, 4, 1500, 11}, {1, 100, 16, 0}, {9, 1, 700, 1400}, {2, 1, WIDEST, 1},
        {2, 33, 128, 256}, {31, 8, 17, 34}, {64, 1, 32, 0}};
    size_t k;
    int kind;
    for (k = 0; k < sizeof shape / sizeof *shape; k++)
        for (kind = 0; kind < 4; kind++) {
            fill(shape[k][0], shape[k][1], shape[k][2], shape[k][3], kind & 1, kind >> 1);
            OK(forward());
            OK(backward());
            CHECK(as_the_dense_copy());
        }
}

/* Bands of rows end where those of the dense copy do: sums of columns have the same bits. */
static void test_bands(void)
{
    int rms;
    for (rms = 0; rms < 2; rms++) {
        fill(300, 1, 32, 5, rms, 0);
        OK(forward());
        OK(backward());
        compute_dense();
        CHECK_INT(memcmp(s.dgamma, dense.dgamma, 32 * sizeof *s.dgamma), 0);
        CHECK(rms || memcmp(s.dbeta, dense.dbeta, 32 * sizeof *s.dbeta) == 0);
    }
}

/* RMS norm with beta is not in the dense function: y = x·r·γ + β. */
static void test_rms_beta(void)
{
    nrm_real without[3];
    size_t i;
    fill(1, 1, 3, 0, 1, 0);
    OK(forward());
    OK(nrm_rmsnorm_forward(without, NULL, s.x, s.gamma, NRM_EPS, 1, 3));
    for (i = 0; i < 3; i++) CHECK_NEAR(s.y[i], without[i] + s.beta[i], 1e-6);
}

/* L = sum of dy·y + sum of dsum·sum, with fixed random dy and dsum. */
static nrm_acc loss_of(void *context)
{
    long double loss = 0;
    size_t n, i;
    (void)context;
    OK(forward());
    for (n = 0; n < s.rows.N * s.rows.R; n++)
        for (i = 0; i < s.rows.D; i++) {
            const size_t at = place(&s.rows, n, i);
            loss += (long double)s.dy[at] * (long double)s.y[at];
            if (s.with_residual) loss += (long double)s.dsum[at] * (long double)s.sum[at];
        }
    return (nrm_acc)loss;
}

static void test_gradients(void)
{
    static const size_t Ns[] = {1, 2, 3, 4, 7, 32};
    static const double scales[] = {1e-2, 1, 1e2};
    size_t n, k, i;
    int kind;
    for (n = 0; n < sizeof Ns / sizeof *Ns; n++)
        for (k = 0; k < 3; k++)
            for (kind = 0; kind < 4; kind++) {
                nrm_gradcheck_group group[4] = {{"x", s.x, s.dx, 0}, {"residual", s.residual,
                    s.dx, 0}, {"gamma", s.gamma, s.dgamma, 4}, {"beta", s.beta, s.dbeta, 4}};
                nrm_gradcheck_report report[4];
                if (sizeof(nrm_real) == sizeof(float) && k != 1) continue; /* too few digits */
                fill(Ns[n], 1 + n % 3, 4, 0, kind & 1, kind >> 1);
                for (i = 0; i < Ns[n] * s.rows.pitch; i++) s.x[i] *= (nrm_real)scales[k];
                for (i = 0; i < 4; i++) s.dgamma[i] = s.dbeta[i] = 0;
                group[0].n = group[1].n = Ns[n] * s.rows.pitch;
                (void)loss_of(NULL);
                OK(backward());
                if (!s.with_residual) group[1] = group[2];
                OK(nrm_gradcheck(report, group, 4, loss_of, NULL, NULL));
            }
}

/* What is not wanted may be missing; the rest is the same. */
static void test_some_outputs(void)
{
    static const size_t D[] = {6, WIDEST};
    size_t k, i;
    for (k = 0; k < 2; k++) {
        nrm_real *const no = NULL;
        fill(3, 2, D[k], 1, 1, 0);
        OK(nrm_rows_forward(s.y, no, NULL, s.rstd, s.x, no, s.gamma, s.beta, NRM_EPS, &s.rows));
        OK(nrm_rows_backward(s.dx, s.dgamma, s.dbeta, s.dy, no, s.x, NULL, s.rstd, s.gamma,
                             &s.rows));
        memcpy(&dense, &s, sizeof s);
        for (i = 0; i < D[k]; i++) s.dgamma[i] = s.dbeta[i] = (nrm_real)0.5;
        OK(nrm_rows_backward(no, s.dgamma, no, s.dy, no, s.x, NULL, s.rstd, s.gamma, &s.rows));
        OK(nrm_rows_backward(no, no, s.dbeta, s.dy, no, s.x, NULL, s.rstd, s.gamma, &s.rows));
        for (i = 0; i < D[k]; i++) {
            CHECK_NEAR(s.dgamma[i], dense.dgamma[i], 1e-5);
            CHECK_NEAR(s.dbeta[i], dense.dbeta[i], 1e-5);
        }
        OK(nrm_rows_backward(s.dx, no, no, s.dy, no, s.x, NULL, s.rstd, s.gamma, &s.rows));
        CHECK_INT(memcmp(s.dx, dense.dx, sizeof s.dx), 0);
    }
}

/* y in the place of x; the sum in the place of x, or of the residual; dx in that of dy. */
static void test_in_place(void)
{
    int kind;
    for (kind = 0; kind < 4; kind++) {
        nrm_real *sum;
        fill(3, 2, 40, 9, kind & 1, kind >> 1);
        OK(forward());
        sum = kind & 1 ? s.x : s.residual;
        if (s.with_residual)
            OK(nrm_rows_forward(dense.y, sum, dense.mean, dense.rstd, s.x, s.residual, s.gamma,
                                s.beta, NRM_EPS, &s.rows));
        else {
            memcpy(dense.y, s.x, sizeof s.x);
            OK(nrm_rows_forward(dense.y, NULL, NULL, NULL, dense.y, NULL, s.gamma, s.beta, NRM_EPS,
                                &s.rows));
        }
        CHECK_INT(memcmp(s.y, dense.y, 40 * sizeof *s.y), 0);
        CHECK(!s.with_residual || memcmp(s.sum, sum, 40 * sizeof *sum) == 0);
        OK(backward());
        OK(nrm_rows_backward(s.dy, NULL, NULL, s.dy, s.with_residual ? s.dsum : NULL,
                             s.with_residual ? s.sum : s.x, s.mean, s.rstd, s.gamma, &s.rows));
        CHECK(!s.with_residual || memcmp(s.dx, s.dy, 40 * sizeof *s.dx) == 0);
    }
}

/* What is refused leaves everything as it was. */
static subject before;
static int refused(int rc, int expected)
{
    return rc == expected && memcmp(&s, &before, sizeof s) == 0;
}
#define FORWARD(y, sum, mean, rstd, x, residual, eps, rows)                                        \
    nrm_rows_forward(y, sum, mean, rstd, x, residual, s.gamma, s.beta, eps, rows)
#define BACKWARD(dx, dy, dsum, x, mean, rstd)                                                      \
    nrm_rows_backward(dx, s.dgamma, s.dbeta, dy, dsum, x, mean, rstd, s.gamma, &s.rows)

static void test_shapes_refused(void)
{
    static const struct {
        nrm_rows rows;
        int rc;
    } wrong[] = {{{3, 2, 5, 9, 0}, NRM_ESIZE}, {{3, 0, 5, 10, 0}, NRM_ESIZE},
        {{3, 2, 0, 10, 0}, NRM_ESIZE}, {{3, 2, 5, 0, 0}, NRM_ESIZE},
        {{3, SIZE_MAX / 2, 5, 10, 0}, NRM_EOVERFLOW}, {{SIZE_MAX / 4, 2, 5, 10, 0}, NRM_EOVERFLOW},
        {{0, 2, 5, 9, 0}, NRM_ESIZE}};
    nrm_rows none = {0, 2, 5, 10, 0};
    size_t k;
    fill(3, 2, 5, 1, 0, 1);
    OK(forward());
    memcpy(&before, &s, sizeof s);
    for (k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        CHECK(refused(FORWARD(s.y, s.sum, s.mean, s.rstd, s.x, s.residual, NRM_EPS, &wrong[k].rows),
            wrong[k].rc));
        CHECK(refused(nrm_rows_backward(s.dx, s.dgamma, s.dbeta, s.dy, s.dsum, s.sum, s.mean,
                          s.rstd, s.gamma, &wrong[k].rows), wrong[k].rc));
    }
    CHECK(refused(FORWARD(s.y, s.sum, s.mean, s.rstd, s.x, s.residual, NRM_EPS, NULL), NRM_ENULL));
    CHECK(refused(FORWARD(NULL, NULL, NULL, NULL, NULL, NULL, NRM_EPS, &none), NRM_OK));
    CHECK(refused(nrm_rows_backward(s.dx, s.dgamma, s.dbeta, NULL, NULL, NULL, NULL, NULL, NULL,
                      &none), NRM_OK));
}

static void test_arguments_refused(void)
{
    fill(3, 2, 5, 1, 0, 1);
    OK(forward());
    memcpy(&before, &s, sizeof s);
#define TRIED(y, sum, mean, rstd, x, residual, eps, rc)                                            \
    CHECK(refused(FORWARD(y, sum, mean, rstd, x, residual, eps, &s.rows), rc))
    TRIED(NULL, s.sum, s.mean, s.rstd, s.x, s.residual, NRM_EPS, NRM_ENULL);
    TRIED(s.y, s.sum, s.mean, s.rstd, NULL, s.residual, NRM_EPS, NRM_ENULL);
    TRIED(s.y, NULL, s.mean, s.rstd, s.x, s.residual, NRM_EPS, NRM_ENULL);
    TRIED(s.y, s.sum, NULL, s.rstd, s.x, s.residual, NRM_EPS, NRM_ENULL);
    TRIED(s.y, s.sum, s.mean, NULL, s.x, s.residual, NRM_EPS, NRM_ENULL);
    TRIED(s.y, s.sum, s.mean, s.rstd, s.x, s.residual, -1, NRM_EEPS);
    TRIED(s.y, s.y, s.mean, s.rstd, s.x, s.residual, NRM_EPS, NRM_EALIAS);
    TRIED(s.x, s.sum, NULL, NULL, s.x, s.residual, NRM_EPS, NRM_EALIAS);
    TRIED(s.residual, s.sum, s.mean, s.rstd, s.x, s.residual, NRM_EPS, NRM_EALIAS);
    TRIED(s.x, NULL, s.mean, s.rstd, s.x, NULL, NRM_EPS, NRM_EALIAS);
    TRIED(s.y, s.x + 1, s.mean, s.rstd, s.x, s.residual, NRM_EPS, NRM_EALIAS);
    TRIED(s.y, s.sum, s.mean, s.rstd, s.y + 2 * s.rows.pitch, s.residual, NRM_EPS, NRM_EALIAS);
    /* the last example ends with its rows: what lies behind them is free */
    OK(FORWARD(s.x + 3 * s.rows.pitch - 1, NULL, NULL, NULL, s.x, NULL, NRM_EPS, &s.rows));
    memcpy(&s, &before, sizeof s);
    TRIED(s.gamma, s.sum, s.mean, s.rstd, s.x, s.residual, NRM_EPS, NRM_EALIAS);
    CHECK(refused(BACKWARD(s.dx, NULL, s.dsum, s.sum, s.mean, s.rstd), NRM_ENULL));
    CHECK(refused(BACKWARD(s.dx, s.dy, s.dsum, NULL, s.mean, s.rstd), NRM_ENULL));
    CHECK(refused(BACKWARD(s.dx, s.dy, s.dsum, s.sum, NULL, s.rstd), NRM_ENULL));
    CHECK(refused(BACKWARD(s.dx, s.dy, s.dsum, s.sum, s.mean, NULL), NRM_ENULL));
    CHECK(refused(BACKWARD(s.dsum, s.dy, s.dsum, s.sum, s.mean, s.rstd), NRM_EALIAS));
    CHECK(refused(BACKWARD(s.sum, s.dy, s.dsum, s.sum, s.mean, s.rstd), NRM_EALIAS));
    CHECK(refused(BACKWARD(s.dy + 1, s.dy, s.dsum, s.sum, s.mean, s.rstd), NRM_EALIAS));
}

/* A NaN in x or in the residual spoils its row, and the status says so. */
static void test_status(void)
{
    int kind;
    for (kind = 0; kind < 4; kind++) {
        nrm_real *const where = kind & 1 ? s.residual : s.x;
        size_t n;
        fill(4, 3, 6, 2, kind >> 1, 1);
        where[place(&s.rows, 7, 2)] = (nrm_real)NAN;
        CHECK_INT(forward(), NRM_NONFINITE);
        for (n = 0; n < 12; n++) {
            const nrm_real y = s.y[place(&s.rows, n, 0)];
            CHECK((y == y) == (n != 7));
        }
    }
}

int main(void)
{
    RUN(test_as_dense);
    RUN(test_bands);
    RUN(test_rms_beta);
    RUN(test_gradients);
    RUN(test_some_outputs);
    RUN(test_in_place);
    RUN(test_shapes_refused);
    RUN(test_arguments_refused);
    RUN(test_status);
    return test_report("rows");
}
