/* plain_cases.h - one call of a layer, forward and backward, and all that it writes.

   test_plain.c includes it with the functions of the fast header, plain_build.c with those of the
   plain one. Each result comes with the size of the largest term that is added up in it, to which
   its rounding errors are relative. Include it after normlayers.h. */
#ifndef PLAIN_CASES_H
#define PLAIN_CASES_H

#include "call.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { A_BATCH, A_LAYER, A_RMS, A_GROUP, A_WEIGHT, A_LP, A_RENORM, A_SYNC, A_LINEAR, LAYERS };
enum { MOST_NUMBERS = 131072, MOST_PARAMS = 16384, MOST_RESULTS = 12, MOST_STATUSES = 6 };

typedef struct layer_case { /* [N][C][S]; S = 1 for rows, `in` is N and `out` is C for weights */
    int layer, mode, p, cumulative, biased, without_dx;
    size_t N, C, S, G;
    nrm_real eps;
    const nrm_real *x, *dy, *gamma, *beta;         /* gamma and beta may be NULL */
    const nrm_real *start, *running_mean, *running_var; /* start: of gradients that add up */
    const unsigned char *mask;                     /* or NULL */
} layer_case;

typedef struct layer_result {
    const char *name;
    size_t from, n;
    double size; /* 0: of each number by itself */
} layer_result;

typedef struct layer_outcome {
    int status[MOST_STATUSES];
    layer_result result[MOST_RESULTS];
    size_t statuses, results, used;
    double number[4 * MOST_NUMBERS + 10 * MOST_PARAMS];
} layer_outcome;

/* The arrays that the layers write to. */
static nrm_real out_y[MOST_NUMBERS], out_dx[MOST_NUMBERS], out_dgamma[MOST_PARAMS],
    out_dbeta[MOST_PARAMS], out_running_mean[MOST_PARAMS], out_running_var[MOST_PARAMS];
static nrm_acc out_mean[MOST_NUMBERS], out_rstd[MOST_NUMBERS], out_ratio[2 * MOST_PARAMS],
    out_offset[MOST_PARAMS];
static nrm_stats out_stats[MOST_PARAMS];
static nrm_sums out_sums[MOST_PARAMS];

static double largest_of(const nrm_real *a, size_t n)
{
    double most = 0;
    size_t i;
    for (i = 0; i < n; i++)
        if (fabs((double)a[i]) > most) most = fabs((double)a[i]);
    return most;
}

static void status_of(layer_outcome *o, int status)
{
    o->status[o->statuses++] = status;
}

static void give_reals(layer_outcome *o, const char *name, const nrm_real *a, size_t n, double size)
{
    const layer_result r = {name, o->used, n, size};
    size_t i;
    o->result[o->results++] = r;
    for (i = 0; i < n; i++) o->number[o->used++] = (double)a[i];
}

static void give_accs(layer_outcome *o, const char *name, const nrm_acc *a, size_t n, double size)
{
    const layer_result r = {name, o->used, n, size};
    size_t i;
    o->result[o->results++] = r;
    for (i = 0; i < n; i++) o->number[o->used++] = (double)a[i];
}

typedef struct term_sizes {
    double y, dx, dgamma, dbeta;
} term_sizes;

/* With statistics for each channel (K = 0), or for each K channels of an example. */
static term_sizes sizes_of(const layer_case *k, size_t K, const nrm_acc *mean, const nrm_acc *rstd)
{
    static double sum[MOST_PARAMS], sum_dy[MOST_PARAMS];
    const double gamma = k->gamma != NULL ? largest_of(k->gamma, k->C) : 1;
    const double beta = k->beta != NULL ? largest_of(k->beta, k->C) : 0;
    const double dy = largest_of(k->dy, k->N * k->C * k->S);
    double xhat = 0, r = 0;
    term_sizes z;
    size_t i;
    memset(sum, 0, k->C * sizeof *sum);
    memset(sum_dy, 0, k->C * sizeof *sum_dy);
    for (i = 0; i < k->N * k->C * k->S; i++) {
        const size_t row = i / k->S, c = row % k->C, g = K > 0 ? row / K : c;
        const double m = mean != NULL ? (double)mean[g] : 0;
        const double h = fabs(((double)k->x[i] - m) * (double)rstd[g]);
        if (h > xhat) xhat = h;
        if (fabs((double)rstd[g]) > r) r = fabs((double)rstd[g]);
        sum[c] += fabs((double)k->dy[i]) * (1 + h);
        sum_dy[c] += fabs((double)k->dy[i]);
    }
    z.y = gamma * xhat + beta;
    z.dx = gamma * r * dy * (2 + xhat);
    z.dgamma = z.dbeta = largest_of(k->start, k->C);
    for (i = 0; i < k->C; i++) {
        if (sum[i] > z.dgamma) z.dgamma = sum[i];
        if (sum_dy[i] > z.dbeta) z.dbeta = sum_dy[i];
    }
    return z;
}

static nrm_running running_of(const layer_case *k)
{
    nrm_running running;
    memset(&running, 0, sizeof running);
    memcpy(out_running_mean, k->running_mean, k->C * sizeof *out_running_mean);
    memcpy(out_running_var, k->running_var, k->C * sizeof *out_running_var);
    running.mean = out_running_mean;
    running.var = out_running_var;
    running.new_weight = (nrm_real)0.25;
    running.cumulative = k->cumulative;
    running.biased = k->biased;
    return running;
}

/* The call of a case, on the arrays above. */
static layer_call call_of(const layer_case *k, nrm_running *running)
{
    layer_call c;
    memset(&c, 0, sizeof c);
    c.x = k->x, c.dy = k->dy, c.gamma = k->gamma, c.beta = k->beta, c.mask = k->mask;
    c.y = out_y, c.dx = k->without_dx ? NULL : out_dx, c.dgamma = out_dgamma, c.dbeta = out_dbeta;
    c.mean = out_mean, c.rstd = out_rstd, c.ratio = out_ratio, c.offset = out_offset;
    c.stats = out_stats, c.sums = out_sums, c.running = running;
    c.N = k->N, c.C = k->C, c.S = k->S, c.G = k->G;
    c.mode = k->mode, c.p = k->p, c.eps = k->eps, c.r_max = 3, c.d_max = (nrm_real)0.75;
    return c;
}

static void run_batch(layer_outcome *o, const layer_case *k)
{
    const size_t n = k->N * k->C * k->S, N = k->N, C = k->C;
    const int function = k->layer == A_LP       ? CALL_LP
                         : k->layer == A_RENORM ? CALL_RENORM
                                                : CALL_BATCHNORM;
    const double size = largest_of(k->x, n) + largest_of(k->running_mean, C);
    const double var = size * size + largest_of(k->running_var, C);
    nrm_running running = running_of(k);
    const layer_call call = call_of(k, &running);
    const int rc = call_layer(function, &call);
    term_sizes z;
    status_of(o, rc);
    if (rc < 0 || N == 0) return;
    if (k->mode == NRM_INFER) { /* saves nothing; like mode frozen but for that */
        size_t c;
        for (c = 0; c < C; c++) out_mean[c] = (nrm_acc)k->running_mean[c];
        for (c = 0; c < C; c++)
            out_rstd[c] = (nrm_acc)(k->layer == A_LP ? (double)k->running_var[c]
                                                     : 1 / sqrt((double)k->running_var[c]));
    }
    memcpy(out_ratio + C, out_rstd, C * sizeof *out_ratio);
    if (k->layer == A_LP) {
        size_t c;
        for (c = 0; c < C; c++) out_ratio[C + c] = 1 / (out_rstd[c] + (nrm_acc)k->eps);
    }
    z = sizes_of(k, 0, out_mean, out_ratio + C);
    if (k->layer == A_RENORM) z.y = 3 * z.y + 1;
    if (k->layer == A_RENORM) z.dx *= 3, z.dgamma *= 3;
    give_reals(o, "y", out_y, n, z.y);
    give_reals(o, "running mean", out_running_mean, C, size);
    give_reals(o, "running var", out_running_var, C, k->layer == A_LP ? var : 0);
    if (k->mode == NRM_INFER) return;
    give_accs(o, "mean", out_mean, C, size);
    give_accs(o, "rstd", out_rstd, C, 0);
    status_of(o, call_layer(function + 1, &call));
    give_reals(o, "dx", out_dx, n, z.dx);
    give_reals(o, "dgamma", out_dgamma, C, z.dgamma);
    give_reals(o, "dbeta", out_dbeta, C, z.dbeta);
}

static void run_rows(layer_outcome *o, const layer_case *k)
{
    const size_t n = k->N * k->C * k->S, N = k->N, C = k->C, G = k->G;
    const size_t groups = k->layer == A_GROUP ? N * G : N, K = k->layer == A_GROUP && G ? C / G : C;
    const nrm_acc *mean = k->layer == A_RMS ? NULL : out_mean;
    const int function = k->layer == A_LAYER ? CALL_LAYERNORM
                         : k->layer == A_RMS ? CALL_RMSNORM
                                             : CALL_GROUPNORM;
    const layer_call call = call_of(k, NULL);
    const int rc = call_layer(function, &call);
    term_sizes z;
    status_of(o, rc);
    if (rc < 0 || N == 0) return;
    z = sizes_of(k, K, mean, out_rstd);
    give_reals(o, "y", out_y, n, z.y);
    if (mean != NULL) give_accs(o, "mean", out_mean, groups, largest_of(k->x, n));
    give_accs(o, "rstd", out_rstd, groups, 0);
    status_of(o, call_layer(function + 1, &call));
    give_reals(o, "dx", out_dx, n, z.dx);
    give_reals(o, "dgamma", out_dgamma, C, z.dgamma);
    give_reals(o, "dbeta", out_dbeta, C, z.dbeta);
}

static void run_sync(layer_outcome *o, const layer_case *k)
{
    const size_t n = k->N * k->C * k->S, N = k->N, C = k->C;
    const double size = largest_of(k->x, n) + largest_of(k->running_mean, C);
    nrm_running running = running_of(k);
    layer_call call = call_of(k, &running);
    term_sizes z;
    size_t c;
    int rc;
    memset(out_stats, 0, C * sizeof *out_stats);
    call.dx = out_dx;
    rc = call_layer(CALL_STATS_UPDATE, &call);
    status_of(o, rc);
    if (rc < 0) return;
    rc = call_layer(CALL_SYNC, &call);
    status_of(o, rc);
    if (rc < 0) return;
    z = sizes_of(k, 0, out_mean, out_rstd);
    for (c = 0; c < C; c++) out_ratio[c] = out_stats[c].count;
    give_accs(o, "count", out_ratio, C, 0);
    for (c = 0; c < C; c++) out_ratio[c] = out_stats[c].m2;
    give_accs(o, "m2", out_ratio, C, 0);
    if (N > 0) give_reals(o, "y", out_y, n, z.y);
    give_accs(o, "mean", out_mean, C, size);
    give_accs(o, "rstd", out_rstd, C, 0);
    give_reals(o, "running mean", out_running_mean, C, size);
    give_reals(o, "running var", out_running_var, C, 0);
    rc = call_layer(CALL_SYNC_SUMS, &call);
    status_of(o, rc);
    if (rc < 0) return;
    status_of(o, call_layer(CALL_SYNC_BACK, &call));
    if (N > 0) give_reals(o, "dx", out_dx, n, z.dx);
    give_reals(o, "dgamma", out_dgamma, C, z.dgamma);
    give_reals(o, "dbeta", out_dbeta, C, z.dbeta);
}

/* x is v [N][C], dy is dW, gamma is g. */
static void run_weight(layer_outcome *o, const layer_case *k)
{
    const size_t n = k->N * k->C, in = k->N, out = k->C;
    double longest = 0;
    size_t c;
    int rc = nrm_weightnorm_forward(out_y, out_mean, k->x, k->gamma, in, out);
    status_of(o, rc);
    if (rc < 0) return;
    for (c = 0; c < out; c++)
        if (!(1 / (double)out_mean[c] <= longest)) longest = 1 / (double)out_mean[c];
    give_reals(o, "W", out_y, n, 0);
    give_accs(o, "norm", out_mean, out, 0);
    rc = nrm_weightnorm_backward(out_dx, out_dgamma, k->dy, k->x, out_mean, k->gamma, in, out);
    status_of(o, rc);
    give_reals(o, "dv", out_dx, n,
               largest_of(k->start, n) + 2 * largest_of(k->dy, n) * longest *
                                             (k->gamma != NULL ? largest_of(k->gamma, out) : 1) *
                                             sqrt((double)in));
    give_reals(o, "dg", out_dgamma, out,
               largest_of(k->start, out) + largest_of(k->dy, n) * sqrt((double)in));
}

/* x [N][C], W [C][G] is dy's beginning, dy [N][G] is x's. */
static void run_linear(layer_outcome *o, const layer_case *k)
{
    const size_t N = k->N, in = k->C, out = k->G;
    const double x = largest_of(k->x, N * in), W = largest_of(k->dy, in * out);
    const double dy = largest_of(k->x, N * out), start = largest_of(k->start, in * out);
    const double bias = k->beta != NULL ? largest_of(k->beta, out) : 0;
    int rc = nrm_linear_forward(out_y, k->x, k->dy, k->beta, N, in, out);
    status_of(o, rc);
    if (rc < 0) return;
    give_reals(o, "y", out_y, N * out, bias + (double)in * x * W);
    memcpy(out_running_mean, k->start, out * sizeof *out_running_mean);
    rc = nrm_linear_backward(k->without_dx ? NULL : out_dx, out_y, out_running_mean, k->x, k->x,
                             k->dy, N, in, out);
    status_of(o, rc);
    give_reals(o, "dx", out_dx, N * in, (double)out * dy * W);
    give_reals(o, "dW", out_y, in * out, start + bias + (double)in * x * W + (double)N * x * dy);
    give_reals(o, "db", out_running_mean, out, start + (double)N * dy);
}

static void run_case(layer_outcome *o, const layer_case *k)
{
    o->statuses = o->results = o->used = 0;
    memset(out_y, 0, sizeof out_y);
    memcpy(out_dx, k->start, sizeof out_dx);
    memcpy(out_dgamma, k->start, sizeof out_dgamma);
    memcpy(out_dbeta, k->start, sizeof out_dbeta);
    if (k->layer == A_BATCH || k->layer == A_LP || k->layer == A_RENORM)
        run_batch(o, k);
    else if (k->layer == A_LAYER || k->layer == A_RMS || k->layer == A_GROUP)
        run_rows(o, k);
    else if (k->layer == A_SYNC)
        run_sync(o, k);
    else if (k->layer == A_WEIGHT)
        run_weight(o, k);
    else
        run_linear(o, k);
}

void run_plain(layer_outcome *o, const layer_case *k); /* in plain_build.c */

#endif
