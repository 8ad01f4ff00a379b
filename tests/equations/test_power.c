/* test_power.c - what the gradient checker finds and what it lets pass, measured on losses whose
   gradient is known: planted errors from 1e-8 to 1, kinks, noise, entries that cannot be judged.

   The loss is offset + the sum over i of slope[i]·d + shape(d), where d is how far theta[i] is from
   1. With a large offset its rounding is known too: `unit` is what the checker takes it for, the
   rounding part of GC.5 at the largest step, and all sizes here are multiples of it. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "test.h"

enum { N = 8 };
enum shape {
    LINE,
    CURVE,   /* + amount·d²                                      */
    QUINTIC, /* + amount·d⁵: R does not settle before d is small */
    QUARTIC, /* + amount·d⁴: the sides differ by it              */
    KINK,    /* + amount·|d|                                     */
    CUSP,    /* + amount·√|d|: the jump grows as d shrinks       */
    NEAR,    /* + amount where 0 < |d| < 0.3 of the first step: no difference of both sides */
    HOLE     /* a NaN where d > 0.8 of the first step            */
};

typedef struct subject {
    size_t n, calls;
    nrm_real theta[N], grad[N];
    double slope[N], amount[N], offset;
    int shape[N];
    double far;      /* the largest |d| so far   */
    unsigned nudged; /* bits: which entries were */
    nrm_gradcheck_options options;
} subject;

static const int in_float = sizeof(nrm_real) == sizeof(float) || sizeof(nrm_acc) == sizeof(float);

static nrm_acc loss(void *context)
{
    subject *s = (subject *)context;
    const double h = (double)s->options.step;
    double sum = s->offset;
    size_t i;
    s->calls++;
    for (i = 0; i < s->n; i++) {
        const double d = (double)s->theta[i] - 1, c = s->amount[i], size = fabs(d);
        if (size > 0) s->nudged |= 1u << i;
        if (size > s->far) s->far = size;
        sum += s->slope[i] * d;
        if (s->shape[i] == CURVE) sum += c * d * d;
        if (s->shape[i] == QUINTIC) sum += c * d * d * d * d * d;
        if (s->shape[i] == QUARTIC) sum += c * d * d * d * d;
        if (s->shape[i] == KINK) sum += c * size;
        if (s->shape[i] == CUSP) sum += c * sqrt(size);
        if (s->shape[i] == NEAR && size > 0 && size < 0.3 * h) sum += c;
        if (s->shape[i] == HOLE && d > 0.8 * h) sum = (double)NAN;
    }
    return (nrm_acc)sum;
}

/* n entries, whose gradient the caller may spoil; the step is that of the defaults. */
static subject straight(size_t n, double offset)
{
    subject s;
    size_t i;
    memset(&s, 0, sizeof s);
    s.n = n;
    s.offset = offset;
    s.options.step = in_float ? (nrm_acc)4e-2 : (nrm_acc)7e-4;
    for (i = 0; i < n; i++) {
        s.theta[i] = 1;
        s.slope[i] = 1;
    }
    return s;
}

static double unit(const subject *s)
{
    const double precision = in_float ? 1.1920928955078125e-7 : 2.220446049250313e-16;
    return 8 * precision * s->offset / ((double)s->options.step / 4);
}

/* The report, with the gradient as it is but for a factor on entry `at`. */
static nrm_gradcheck_report look(subject *s, size_t at, double factor)
{
    nrm_gradcheck_report r;
    nrm_gradcheck_group group;
    size_t i;
    int rc;
    memset(&group, 0, sizeof group);
    group.theta = s->theta;
    group.grad = s->grad;
    group.n = s->n;
    for (i = 0; i < s->n; i++) s->grad[i] = (nrm_real)(s->slope[i] * (i == at ? factor : 1));
    rc = nrm_gradcheck(&r, &group, 1, loss, s, &s->options);
    CHECK_INT(rc, r.status);
    for (i = 0; i < s->n; i++) CHECK(s->theta[i] == 1);
    return r;
}

/* Errors of one entry, relative to it: found from twice the tolerance on, and never below half of
   it; the report has the entry and the error. An entry below a thousandth of the largest is
   measured by that thousandth. */
static void test_planted_errors(void)
{
    const double tolerance = in_float ? 1e-2 : 1e-7;
    subject s = straight(5, 0);
    size_t i, k;
    int sign;
    s.slope[1] = -2;
    s.slope[2] = 0.25;
    s.slope[3] = in_float ? 0.1 : 2e-3;
    s.slope[4] = in_float ? 0.5 : 1e-4;
    for (i = 0; i < s.n; i++) {
        s.shape[i] = CURVE;
        s.amount[i] = 0.3 * s.slope[i];
        for (k = 0; k <= 32; k++) /* four to a decade */
            for (sign = -1; sign <= 1; sign += 2) {
                const double e = pow(10, -8 + (double)k / 4), size = fabs(s.slope[i]);
                const double gap = e * size, larger = size * (sign > 0 ? 1 + e : 1);
                const double ruler = larger > 2e-3 ? larger : 2e-3;
                const nrm_gradcheck_report r = look(&s, i, 1 + sign * e);
                CHECK_INT(r.checked, s.n);
                CHECK_INT(r.kinks + r.vanishing + r.unsettled, 0);
                if (gap > 2 * tolerance * ruler) {
                    CHECK(r.status == NRM_EGRADIENT && r.wrong == 1 && r.worst == i);
                    CHECK_NEAR((double)r.error / (gap / ruler), 1, in_float ? 0.1 : 0.2);
                } else if (gap < tolerance * ruler / 2) {
                    CHECK(r.status == NRM_OK && r.wrong == 0);
                    CHECK(r.numeric != 0 && r.analytic == (nrm_acc)s.grad[r.worst]);
                }
            }
    }
}

/* The default step and tolerance are the ones that the declarations name. */
static void test_defaults(void)
{
    const double tolerance = in_float ? 1e-2 : 1e-7, step = in_float ? 4e-2 : 7e-4;
    subject s = straight(1, 0);
    const nrm_gradcheck_report named = look(&s, 0, 1 + 1.5 * tolerance);
    s.options.step = 0;
    CHECK(named.status == NRM_EGRADIENT && look(&s, 0, 1 + 1.5 * tolerance).wrong == 1);
    CHECK(look(&s, 0, 1 + 0.7 * tolerance).status == NRM_OK);
    s.far = 0;
    CHECK(look(&s, 0, 1).status == NRM_OK);
    CHECK_NEAR(s.far / step, 1, 1e-3);
    s.options.step = (nrm_acc)step; /* where a NaN stands just beyond the step, and just within */
    s.shape[0] = HOLE;
    CHECK_INT(look(&s, 0, 1).status, NRM_EUNSETTLED);
    s.options.step = (nrm_acc)(step * 0.5);
    CHECK_INT(look(&s, 0, 1).status, NRM_EUNSETTLED);
    s.shape[0] = LINE;
    s.options.tolerance = (nrm_acc)(10 * tolerance);
    CHECK(look(&s, 0, 1 + 8 * tolerance).status == NRM_OK);
    CHECK(look(&s, 0, 1 + 30 * tolerance).status == NRM_EGRADIENT);
}

/* In the noise of a large loss. What differs by less than 4 units is forgiven, more is not; what is
   no larger than 4 units counts as zero, more does not. */
static void test_noise(void)
{
    subject s = straight(2, in_float ? 1e3 : 1e6);
    const double u = unit(&s);
    nrm_gradcheck_report r;
    s.slope[0] = 1e4 * u;
    s.slope[1] = 1e4 * u;
    r = look(&s, 0, 1 + 12 / 1e4 + (in_float ? 1.2e-2 : 0)); /* 12 units, and the tolerance */
    CHECK(r.wrong == 1 && r.worst == 0);
    r = look(&s, 0, 1 + 2 / 1e4);
    CHECK_INT(r.wrong, 0);
    CHECK_INT(r.vanishing, 0);
    s.slope[1] = 8 * u; /* seen, though badly */
    r = look(&s, 1, 1);
    CHECK_INT(r.vanishing, 0);
    s.slope[1] = 200 * u;
    r = look(&s, 1, 2);
    CHECK(r.wrong == 1 && r.worst == 1 && r.vanishing == 0);
    s.slope[1] = 2 * u;
    r = look(&s, 1, 1);
    CHECK_INT(r.vanishing, 1);
    r = look(&s, 1, -1);
    CHECK_INT(r.vanishing, 1);
    s.slope[1] = 0.01 * u;
    CHECK_INT(look(&s, 0, 2).wrong, 1);
}

/* The zeros of a group are told by the rounding at the first step, also where smaller ones, whose
   rounding is larger, were tried. */
static void test_zeros_by_the_first_step(void)
{
    subject s = straight(2, in_float ? 1e3 : 1e6);
    const double u = unit(&s), h = (double)s.options.step;
    nrm_gradcheck_report r;
    s.slope[0] = 1e4 * u;
    s.slope[1] = 14 * u;
    s.shape[1] = QUINTIC;
    s.amount[1] = 100 * u / (h * h * h * h);
    r = look(&s, 1, 1);
    CHECK_INT(r.vanishing, 0);
    CHECK_INT(r.wrong, 0);
    s.slope[1] = 0; /* and one that is zero, measured so, is not taken for something */
    r = look(&s, 0, 1);
    CHECK_INT(r.wrong, 0);
}

/* A kink is skipped, and only a kink; a group of kinks and zeros has not been checked. */
static void test_kinks(void)
{
    subject s = straight(3, in_float ? 1e3 : 1e6);
    const double u = unit(&s);
    nrm_gradcheck_report r;
    size_t i;
    for (i = 0; i < 3; i++) s.slope[i] = 1e3 * u;
    s.shape[0] = KINK;
    s.amount[0] = 10 * u; /* a jump of 20 units: seen at the first step, drowned at the next */
    r = look(&s, 0, 1 + 0.01);
    CHECK_INT(r.kinks, 1);
    CHECK(r.wrong == 0);
    s.amount[0] = 2 * u; /* a jump of 4 units is noise at any step */
    r = look(&s, 2, 1);
    CHECK_INT(r.kinks, 0);
    s.amount[0] = 500 * u;
    s.options.tolerance = (nrm_acc)0.1; /* so that lines settle in the noise */
    r = look(&s, 2, 1);
    CHECK(r.kinks == 1 && r.status == NRM_OK);
    r = look(&s, 2, 1.5);
    CHECK(r.kinks == 1 && r.wrong == 1 && r.worst == 2 && r.status == NRM_EGRADIENT);
    s.slope[1] = s.slope[2] = 0;
    r = look(&s, 2, 1);
    CHECK(r.kinks == 1 && r.vanishing == 2 && r.status == NRM_EUNSETTLED);
    s.shape[0] = LINE;
    r = look(&s, 2, 1);
    CHECK(r.kinks == 0 && r.vanishing == 2 && r.status == NRM_OK);
    s = straight(2, 0); /* nothing but zeros */
    s.slope[0] = s.slope[1] = 0;
    r = look(&s, 0, 1);
    CHECK(r.vanishing == 2 && r.error == 0 && r.status == NRM_OK);
}

/* A jump that grows is no kink. One that U takes for three tolerances shrinks with the step. */
static void test_growing_and_shrinking(void)
{
    subject s = straight(2, 0);
    const double h = (double)s.options.step, tolerance = in_float ? 1e-2 : 1e-7;
    nrm_gradcheck_report r;
    s.shape[0] = CUSP;
    s.amount[0] = 0.1;
    r = look(&s, 1, 1);
    CHECK(r.kinks == 0 && r.unsettled == 1 && r.status == NRM_EUNSETTLED);
    s.shape[0] = QUARTIC;
    s.amount[0] = 4 * tolerance / (h * h * h);
    r = look(&s, 1, 1);
    CHECK(r.unsettled == 0 && r.status == NRM_OK);
    r = look(&s, 0, 1 + 3 * tolerance);
    CHECK(r.wrong == 1 && r.status == NRM_EGRADIENT);
}

/* One entry that cannot be judged, among many that can: the group has not passed. */
static void test_unsettled(void)
{
    subject s = straight(N, 0);
    nrm_gradcheck_report r;
    size_t i;
    for (i = 0; i < N; i += 3) {
        s.shape[i] = NEAR; /* the differences of both sides see nothing of it */
        s.amount[i] = 0.1 * (double)s.options.step;
        r = look(&s, 0, 1);
        CHECK(r.unsettled == 1 && r.wrong == 0 && r.status == NRM_EUNSETTLED);
        s.shape[i] = HOLE;
        r = look(&s, 0, 1);
        CHECK(r.unsettled == 1 && r.wrong == 0 && r.status == NRM_EUNSETTLED);
        r = look(&s, i == 3 ? 4 : 3, 2); /* beside which others are found all the same */
        CHECK(r.wrong == 1 && r.status == NRM_EGRADIENT);
        s.shape[i] = LINE;
    }
}

/* A gradient that is not finite is wrong, and nothing is measured by it. */
static void test_gradients_that_are_none(void)
{
    subject s = straight(4, 0);
    const double none[3] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    size_t i, k;
    for (k = 0; k < 3; k++)
        for (i = 0; i < 4; i++) {
            nrm_gradcheck_report r;
            s.slope[3] = 1.1;
            r = look(&s, i, none[k]);
            CHECK(r.wrong == 1 && r.worst == i && r.status == NRM_EGRADIENT);
        }
    for (k = 1; k < 3; k++) { /* with another wrong one beside it */
        nrm_gradcheck_report r[1];
        nrm_gradcheck_group group;
        memset(&group, 0, sizeof group);
        group.theta = s.theta;
        group.grad = s.grad;
        group.n = 4;
        for (i = 0; i < 4; i++) s.grad[i] = (nrm_real)s.slope[i];
        s.grad[0] = (nrm_real)none[k];
        s.grad[2] = 3;
        CHECK_INT(nrm_gradcheck(r, &group, 1, loss, &s, &s.options), NRM_EGRADIENT);
        CHECK_INT(r->wrong, 2);
        CHECK_INT(r->worst, 0);
    }
}

static nrm_real point[3];
static nrm_acc line(void *context)
{
    return *(const nrm_acc *)context + 2 * (nrm_acc)point[0] - (nrm_acc)point[1] +
           3 * (nrm_acc)point[2];
}
static uint64_t side(void *context)
{
    (void)context;
    return point[1] > 0;
}

/* Parameters that are all 0, a loss that is none, and a change of branches that the loss does not
   show: only the caller can tell, and only the entry that changes them is left out. */
static void test_branches_and_zeros(void)
{
    const nrm_real grad[3] = {2, -1, 3};
    nrm_gradcheck_report r;
    nrm_gradcheck_group group;
    nrm_gradcheck_options options;
    nrm_acc start = 1;
    int i;
    memset(&group, 0, sizeof group);
    memset(&options, 0, sizeof options);
    group.theta = point;
    group.grad = grad;
    group.n = 3;
    memset(point, 0, sizeof point);
    OK(nrm_gradcheck(&r, &group, 1, line, &start, &options));
    CHECK(r.checked == 3 && r.kinks == 0);
    options.branches = side;
    OK(nrm_gradcheck(&r, &group, 1, line, &start, &options));
    CHECK(r.checked == 3 && r.kinks == 1);
    point[1] = 1; /* far from the other branch */
    OK(nrm_gradcheck(&r, &group, 1, line, &start, &options));
    CHECK(r.checked == 3 && r.kinks == 0);
    for (i = 0; i < 2; i++) {
        start = i == 0 ? (nrm_acc)NAN : (nrm_acc)INFINITY;
        CHECK_INT(nrm_gradcheck(&r, &group, 1, line, &start, &options), NRM_EUNSETTLED);
        CHECK(r.unsettled == 3 && r.wrong == 0);
    }
}

/* All entries can be drawn, one from each stretch, and which ones depends on the seed alone. */
static void test_drawn(void)
{
    size_t n, most, seed, i;
    for (n = 2; n <= N; n++)
        for (most = 1; most <= n; most++) {
            unsigned seen = 0;
            for (seed = 0; seed < 60; seed++) {
                subject s = straight(n, 0), t = s;
                size_t count = 0, k, end;
                s.options.at_most = t.options.at_most = most;
                s.options.seed = t.options.seed = seed;
                CHECK_INT(look(&s, 0, 1).checked, most);
                CHECK_INT(look(&t, 0, 1).checked, most);
                CHECK(s.nudged == t.nudged && s.calls == t.calls);
                for (i = 0; i < n; i++) count += s.nudged >> i & 1;
                CHECK_INT(count, most);
                for (i = k = 0; k < most; k++) { /* the first stretches have one more */
                    for (end = i + n / most + (k < n % most), count = 0; i < end; i++)
                        count += s.nudged >> i & 1;
                    CHECK_INT(count, 1);
                }
                seen |= s.nudged;
            }
            CHECK_INT(seen, (1u << n) - 1);
        }
}

/* Of several groups the worst decides, whichever comes first. */
static void test_groups(void)
{
    static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    int k, i;
    for (k = 0; k < 6; k++) {
        subject s = straight(3, 0);
        nrm_gradcheck_report r[3];
        nrm_gradcheck_group group[3];
        memset(group, 0, sizeof group);
        for (i = 0; i < 3; i++) {
            group[i].theta = s.theta + i;
            group[i].grad = s.grad + i;
            group[i].n = 1;
            s.grad[i] = order[k][i] == 2 ? 2 : 1;
            s.shape[i] = order[k][i] == 1 ? HOLE : LINE;
        }
        CHECK_INT(nrm_gradcheck(r, group, 3, loss, &s, &s.options), NRM_EGRADIENT);
        for (i = 0; i < 3; i++)
            CHECK_INT(r[i].status, order[k][i] == 2   ? NRM_EGRADIENT
                                   : order[k][i] == 1 ? NRM_EUNSETTLED
                                                      : NRM_OK);
        for (i = 0; i < 3; i++) s.grad[i] = 1;
        CHECK_INT(nrm_gradcheck(r, group, 3, loss, &s, &s.options), NRM_EUNSETTLED);
        group[k % 3].theta = NULL; /* any of them is looked at before the first is nudged */
        s.calls = 0;
        CHECK_INT(nrm_gradcheck(r, group, 3, loss, &s, &s.options), NRM_ENULL);
        CHECK_INT(s.calls, 0);
    }
}

int main(void)
{
    RUN(test_planted_errors);
    RUN(test_defaults);
    RUN(test_noise);
    RUN(test_zeros_by_the_first_step);
    RUN(test_kinks);
    RUN(test_growing_and_shrinking);
    RUN(test_unsettled);
    RUN(test_gradients_that_are_none);
    RUN(test_branches_and_zeros);
    RUN(test_drawn);
    RUN(test_groups);
    return test_report("power");
}
