/* 34_tuned_mnist: the MNIST comparison once more, each network at its own best rate. (README.md)

   The network of 10_mnist_norms is trained at RATES rates without a norm and with batch, layer,
   group (8 groups), RMS and noisy batch norm; the first four also with batches of 4 to 4096. The
   rate is chosen on images that are held out of the training set.

   A training whose loss is not finite, or above 10^6, ends there and counts as chance, 10 %. Steps
   to a loss are those until the mean of the last WINDOW batches is below 0.5. Seconds are steps
   times the time of a step, which "34_tuned_mnist --time" measures apart, into a table of its own:
   a clock in the runs would leave another table of runs each time. */
#include "lab/experiment.h"
#include <time.h>

enum { EPOCHS = 6, HELD_OUT = 5000, WINDOW = 5, QUICK_STEPS = 20 };
enum { RATES = 8, NOTEBOOK = 1, EARLY = 5, POINTS = 16 /* of a curve, at most */ };

#define SETTINGS "784-64-128-10, ReLU, γ = 1, SGD, batches of 512, 6 epochs of 55,000 images"
#define NOISE_FACTOR 1.125 /* header, NB.6: the mean of the noise's factor, left out in inference */

static const double rate[RATES] = {0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10}; /* [1]: the notebook's */
static const size_t early[EARLY] = {4, 8, 16, 32, 64}; /* steps with a test, beside the epochs */

/* The comparison itself, with all rates, and the sizes of a batch, with those from 0.01 to 3. */
enum { MAIN = 0, SMALLEST, SIZE_256 = SMALLEST + 3, SWEEPS = SMALLEST + 6 };
static const struct sweep {
    size_t batch, epochs, first, last; /* rates */
} sweeps[SWEEPS] = {{512, EPOCHS, 0, RATES - 1},
                    {4, 1, 1, 6},
                    {16, 1, 1, 6},
                    {64, 1, 1, 6},
                    {256, 1, 1, 6},
                    {1024, 1, 1, 6},
                    {4096, 1, 1, 6}};

enum { NONE = 0, BATCH_NORM, LAYER, GROUP, SIZE_ARMS, RMS = SIZE_ARMS, NOISY, ARMS };
enum { FACTOR = ARMS, NETS }; /* the noisy network with its factor is a network of its own */

static const lab_arm arms[ARMS] = {
    {"none", "no norm", 17, 20},     {"batch", "batch norm", 17, 20},
    {"layer", "layer norm", 17, 20}, {"group", "group norm", 18, 20},
    {"rms", "RMS norm", 7, 20},      {"noisy", "noisy batch norm", 28, 20}};
static const int norm[ARMS] = {NRM_NO_NORM,    NRM_BATCH_NORM, NRM_LAYER_NORM,
                               NRM_GROUP_NORM, NRM_RMS_NORM,   NRM_NOISY_BATCH_NORM};

/* ---- a run ----------------------------------------------------------------------------------- */

static training_set train, held_out, test;

static int prepare(const dataset *d, int quick)
{
    (void)quick;
    if (training_load(&train, &test, d, 0, 0, DATASET_RAW01)) return -1;
    held_out = train;
    held_out.n = train.n * HELD_OUT / 60000;
    train.n -= held_out.n;
    held_out.x += train.n * train.features;
    held_out.labels += train.n;
    return 0;
}

typedef struct setting { /* of one training */
    size_t sweep;
    double rate, last[WINDOW];
    char name[64]; /* what its series begin with */
    int reached, diverged;
} setting;

static setting *setting_of(const trainer *t)
{
    return (setting *)t->plan->context;
}

static nrm_mlp_spec network(trainer *t)
{
    const int kind = norm[t->run->arm];
    nrm_mlp_spec spec = training_notebook(t->layer, kind);
    t->layer[0].groups = t->layer[1].groups = kind == NRM_GROUP_NORM ? 8 : 0;
    spec.max_batch = 1000; /* of a test */
    spec.lr = (nrm_real)setting_of(t)->rate;
    return spec;
}

/* Accuracy in percent, to the digits that 10,000 images give. */
static double percent(trainer *t, const training_set *set, double *loss)
{
    return setting_of(t)->diverged ? 10 : lab_round(100 * trainer_accuracy(t, set, loss), 4);
}

/* On the test images, at the end on those held out too. */
static int score(trainer *t, const char *reading)
{
    const setting *s = setting_of(t);
    const size_t at = s->diverged ? t->plan->steps : t->step;
    double loss, held = 0;
    const double accuracy = percent(t, &test, &loss);
    lab_record_as(t->run, (double)at, accuracy, "%s/%saccuracy", s->name, reading);
    if (s->sweep == MAIN && !s->diverged)
        lab_record_as(t->run, (double)at, lab_round(loss, 4), "%s/%sloss", s->name, reading);
    if (at == t->plan->steps) {
        held = percent(t, &held_out, NULL);
        lab_record_as(t->run, (double)at, held, "%s/%sheld_out_accuracy", s->name, reading);
    }
    return isnan(accuracy + held) ? -1 : 0;
}

/* The norms' outputs times the mean of the noise's factor. */
static void stretch(nrm_mlp *net)
{
    nrm_mlp_state *s;
    size_t i;
    for (s = net->state; s < net->state + net->spec.layers; s++)
        for (i = 0; i < s->shape.width && s->gamma; i++) {
            s->gamma[i] *= (nrm_real)NOISE_FACTOR;
            s->beta[i] *= (nrm_real)NOISE_FACTOR;
        }
}

/* Noisy batch norm with its factor too. */
static int evaluate(trainer *t)
{
    const size_t bytes = t->net->n_params * sizeof *t->net->params;
    nrm_real *kept;
    int failed = score(t, "");
    if (failed || norm[t->run->arm] != NRM_NOISY_BATCH_NORM) return failed;
    kept = (nrm_real *)malloc(bytes);
    if (!kept) return -1;
    memcpy(kept, t->net->params, bytes);
    stretch(t->net);
    failed = score(t, "factor_");
    memcpy(t->net->params, kept, bytes);
    free(kept);
    return failed;
}

/* On the way: early, and after each epoch. */
static int is_test(const trainer *t)
{
    size_t i;
    if (setting_of(t)->sweep != MAIN || t->step == t->plan->steps) return 0;
    for (i = 0; i < EARLY; i++)
        if (early[i] == t->step) return 1;
    return t->step % (train.n / t->plan->batch) == 0;
}

static int after(trainer *t)
{
    setting *s = setting_of(t);
    s->diverged = !(fabs(t->loss) < 1e6);
    t->status = NRM_OK; /* a gradient that is not finite is passed over */
    if (s->diverged) return 1;
    s->last[t->step % WINDOW] = t->loss;
    if (!s->reached && t->step >= WINDOW && stats_mean(s->last, WINDOW) < 0.5) {
        s->reached = 1;
        if (s->sweep == MAIN)
            lab_record_as(t->run, 0, (double)t->step, "%s/steps_to_half", s->name);
    }
    return is_test(t) ? evaluate(t) : 0;
}

static int train_at(lab_run *r, size_t k, double lr)
{
    const size_t batch = sweeps[k].batch, steps = sweeps[k].epochs * (train.n / batch);
    setting s = {k, lr};
    /* no short batches, which go too far: see the page */
    const trainer_plan plan =
        trainer_plan_of(.network = network, .after = after, .end = evaluate, .set = &train,
                        .batch = batch, .least = batch,
                        .steps = r->quick && steps > QUICK_STEPS ? QUICK_STEPS : steps,
                        .context = &s);
    (void)snprintf(s.name, sizeof s.name, "batch_%u/rate_%g", (unsigned)batch, lr);
    return trainer_run(r, &plan);
}

static int run(lab_run *r)
{
    size_t i, k;
    for (k = 0; k < (r->arm < SIZE_ARMS ? SWEEPS : SMALLEST); k++)
        for (i = sweeps[k].first; i <= sweeps[k].last; i++)
            if (train_at(r, k, rate[i])) return -1;
    return 0;
}

/* ---- seconds of a step ----------------------------------------------------------------------- */

#define SECONDS "examples/experiments/34_tuned_mnist/34_tuned_mnist_seconds.csv"
enum { ROUNDS = 21 };

static const char *const seconds_columns[2] = {"network", "seconds_per_step"};
static double seconds[NETS]; /* CPU seconds of a step on a batch of 512, its gathering included */

/* Each round takes an epoch of every network, in turn; the median of the rounds counts. */
static int time_steps(const dataset *d)
{
    static double taken[ARMS][ROUNDS];
    static trainer t[ARMS];
    static lab_run r[ARMS];
    const size_t batch = sweeps[MAIN].batch;
    setting s = {MAIN, 0.1};
    const trainer_plan plan = {
        .network = network, .set = &train, .batch = batch, .least = batch, .context = &s};
    size_t n, k, steps;
    int failed = prepare(d, 0);
    for (n = 0; n < ARMS && !failed; n++) {
        r[n].arm = n;
        r[n].seed = 1;
        failed = trainer_open(&t[n], &r[n], &plan);
    }
    steps = train.n / batch;
    for (k = 0; k < ROUNDS; k++)
        for (n = 0; n < ARMS && !failed; n++) {
            const clock_t start = clock();
            failed = trainer_steps(&t[n], steps) || t[n].status;
            taken[n][k] = (double)(clock() - start) / CLOCKS_PER_SEC / (double)steps;
        }
    for (n = 0; n < ARMS; n++) {
        seconds[n] = stats_median(taken[n], ROUNDS);
        trainer_close(&t[n]);
    }
    return failed;
}

/* As Linux tells it. */
static void note_processor(csv_table *t)
{
    char line[256], *name = NULL;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !name && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0) name = strchr(line, ':');
    if (f) fclose(f);
    if (name) name[strcspn(name, "\n")] = 0;
    csv_note(t, "processor", name ? name + 2 : "unknown");
}

static int measure(void)
{
    char err[DATASET_ERR_MAX];
    const char *why = err;
    csv_origin origin = {.program = "34_tuned_mnist --time", .version = NRM_VERSION};
    dataset d;
    csv_table t;
    size_t n;
    if (dataset_load(&d, NULL, 1, 0, 0, err) == 0)
        why = d.synthetic      ? "no MNIST here (`make mnist` fetches it)"
              : time_steps(&d) ? "a step failed"
                               : NULL;
    if (why) {
        fprintf(stderr, "34_tuned_mnist: %s\n", why);
        return 1;
    }
    origin.data = d.name;
    origin.data_hash = d.hash;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    note_processor(&t);
    csv_note_real(&t, "rounds", ROUNDS);
    csv_columns(&t, seconds_columns, 2);
    for (n = 0; n < ARMS; n++) {
        csv_text(&t, arms[n].id);
        csv_real(&t, lab_round(seconds[n], 4));
        csv_end_row(&t);
    }
    dataset_free(&d);
    return csv_finish(&t, SECONDS) ? 1 : 0;
}

/* One time above 0 for each network, in their order. */
static int read_seconds(void)
{
    char err[CSV_ERR_MAX];
    csv_data d;
    char *const *id = csv_load(SECONDS, &d, err) ? NULL : csv_texts(&d, seconds_columns[0], err);
    const double *value = id ? csv_numbers(&d, seconds_columns[1], err) : NULL;
    size_t n;
    if (value) (void)snprintf(err, sizeof err, "not one time above 0 for each network");
    for (n = 0; value && d.rows == ARMS && n < ARMS; n++) {
        if (strcmp(id[n], arms[n].id) != 0 || !(value[n] > 0)) break;
        seconds[n] = value[n];
    }
    csv_release(&d);
    seconds[FACTOR] = seconds[NOISY];
    if (n == ARMS) return 0;
    fprintf(stderr, "34_tuned_mnist: the seconds of a step, %s: %s; --time measures them\n",
            SECONDS, err);
    return -1;
}

/* ---- each network's own rate ----------------------------------------------------------------- */

static const struct {
    size_t arm;
    const char *prefix, *name, *look;
} net[NETS] = {{NONE, "", "no norm", "none"},
               {BATCH_NORM, "", "batch norm", "batch"},
               {LAYER, "", "layer norm", "layer"},
               {GROUP, "", "group norm", "group"},
               {RMS, "", "RMS norm", "rms"},
               {NOISY, "", "noisy batch norm", "noisy"},
               {NOISY, "factor_", "noisy, × 1.125", "noisy"}};

static size_t own[SWEEPS][NETS], fastest[NETS]; /* indices of rates */

static const char *series(lab_report *r, size_t k, size_t n, size_t i, const char *what)
{
    return lab_format(r, "batch_%u/rate_%g/%s%s", (unsigned)sweeps[k].batch, rate[i], net[n].prefix,
                      what);
}

static lab_numbers ends(lab_report *r, size_t k, size_t n, size_t i, const char *what)
{
    return lab_all(r, net[n].arm, series(r, k, n, i, what), LAB_LAST);
}

/* Test accuracies at the own rate. */
static lab_numbers accuracy(lab_report *r, size_t k, size_t n)
{
    return ends(r, k, n, own[k][n], "accuracy");
}

/* Steps to a loss of 0.5; the two readings of a noisy network share them. */
static lab_numbers steps_at(lab_report *r, size_t n, size_t i)
{
    return ends(r, MAIN, n == FACTOR ? NOISY : n, i, "steps_to_half");
}

static lab_numbers steps(lab_report *r, size_t n)
{
    return steps_at(r, n, own[MAIN][n]);
}

/* The rate of the sweep with the largest value; one of nan only if all are. */
static size_t best(const double value[RATES], const struct sweep *s)
{
    size_t i, found = s->first;
    for (i = s->first; i <= s->last; i++)
        if (value[i] > value[found] || isnan(value[found])) found = i;
    return found;
}

static int choose(lab_report *r)
{
    double held_out_accuracy[RATES], speed[RATES];
    size_t k, n, i;
    if (read_seconds()) return -1;
    for (k = 0; k < SWEEPS; k++)
        for (n = 0; n < (k == MAIN ? (size_t)NETS : (size_t)SIZE_ARMS); n++) {
            for (i = sweeps[k].first; i <= sweeps[k].last; i++) {
                held_out_accuracy[i] = lab_average(ends(r, k, n, i, "held_out_accuracy"));
                speed[i] = -lab_average(steps_at(r, n, i));
            }
            own[k][n] = best(held_out_accuracy, &sweeps[k]);
            if (k == MAIN) fastest[n] = best(speed, &sweeps[k]);
        }
    return 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Is a above (+1) or below (-1) b, and by the factor that the claim asks for? */
static stats_finding judge(lab_numbers a, int sign, double factor, lab_numbers b)
{
    const lab_numbers limit = lab_times(b, factor);
    const int met = stats_reproduced(sign > 0 ? lab_more(a, limit, 1) : lab_less(a, limit, 1));
    return sign > 0 ? lab_more(a, b, met) : lab_less(a, b, met);
}

/* c->limit: the share of the steps that the claim allows; c->at: 0 own rates, 1 the fastest. */
static void judge_steps(lab_report *r, const lab_claim *c)
{
    const size_t *at = c->at > 0 ? fastest : own[MAIN];
    const lab_numbers a = steps_at(r, c->a, at[c->a]), b = steps_at(r, c->b, at[c->b]);
    lab_verdict(r, c, judge(a, -1, c->limit, b), "",
                "%s steps at rate %g, %s at %g: %.1f times as fast", lab_pm(r, a, 0),
                rate[at[c->a]], lab_pm(r, b, 0), rate[at[c->b]], lab_average(b) / lab_average(a));
}

static void judge_accuracy(lab_report *r, const lab_claim *c)
{
    const lab_numbers a = accuracy(r, MAIN, c->a), b = accuracy(r, MAIN, c->b);
    lab_verdict(r, c, lab_more(a, b, 1), "", "%s %% at rate %g, %s %% at %g", lab_pm(r, a, 2),
                rate[own[MAIN][c->a]], lab_pm(r, b, 2), rate[own[MAIN][c->b]]);
}

/* The largest rate within a point of the seed's best. */
static lab_numbers largest(lab_report *r, size_t n)
{
    lab_numbers at[RATES], most = {0};
    size_t i, s;
    for (i = 0; i < RATES; i++) at[i] = ends(r, MAIN, n, i, "held_out_accuracy");
    for (s = 0; s < at[0].n; s++) {
        double best = 0;
        for (i = 0; i < RATES; i++) best = stats_larger(best, at[i].of[s]);
        for (i = 0; i < RATES; i++)
            if (at[i].of[s] >= best - 1) most.of[s] = rate[i];
    }
    most.n = at[0].n;
    return most;
}

static void judge_larger(lab_report *r, const lab_claim *c)
{
    const lab_numbers with = largest(r, BATCH_NORM), without = largest(r, NONE);
    lab_verdict(r, c, judge(with, +1, 2, without), "", "up to %g at least, against %g at most",
                lab_describe(with).min, lab_describe(without).max);
}

static void judge_seconds(lab_report *r, const lab_claim *c)
{
    const lab_numbers with = lab_times(steps(r, BATCH_NORM), seconds[BATCH_NORM]);
    const lab_numbers without = lab_times(steps(r, NONE), seconds[NONE]);
    lab_verdict(r, c, lab_less(with, without, 1), "",
                "%.0f ms against %.0f; a step takes %.2f times as long", 1000 * lab_average(with),
                1000 * lab_average(without), seconds[BATCH_NORM] / seconds[NONE]);
}

static void judge_small(lab_report *r, const lab_claim *c)
{
    const lab_numbers a = accuracy(r, SMALLEST, LAYER), b = accuracy(r, SMALLEST, BATCH_NORM);
    const lab_numbers later =
        lab_calc(accuracy(r, SIZE_256, LAYER), '-', accuracy(r, SIZE_256, BATCH_NORM));
    const stats_finding part[2] = {lab_more(a, b, 1), lab_more(lab_calc(a, '-', b), later, 1)};
    lab_verdict(r, c, stats_together(part, 2), "", "at 4: %s against %s %%; at 256: %+.2f points",
                lab_pm(r, a, 2), lab_pm(r, b, 2), lab_average(later));
}

static void judge_group(lab_report *r, const lab_claim *c)
{
    const lab_numbers a = accuracy(r, SMALLEST, GROUP), b = accuracy(r, SMALLEST, BATCH_NORM);
    lab_verdict(r, c, lab_more(a, b, 1), "", "%s against %s %%", lab_pm(r, a, 2), lab_pm(r, b, 2));
}

static void judge_rms(lab_report *r, const lab_claim *c)
{
    const lab_numbers rms = accuracy(r, MAIN, RMS), layer = accuracy(r, MAIN, LAYER);
    lab_verdict(r, c, lab_within(lab_calc(rms, '-', layer), 0, 0.2), "", "%s and %s %%",
                lab_pm(r, rms, 2), lab_pm(r, layer, 2));
}

static void judge_cheap(lab_report *r, const lab_claim *c)
{
    const double less = 1 - seconds[RMS] / seconds[LAYER];
    lab_verdict(r, c, stats_holds(less >= 0.07), "", "%.2f and %.2f ms a step: %.1f %% less",
                1000 * seconds[RMS], 1000 * seconds[LAYER], 100 * less);
}

static void judge_noise(lab_report *r, const lab_claim *c)
{
    const lab_numbers noisy = accuracy(r, MAIN, FACTOR), none = accuracy(r, MAIN, NONE);
    const lab_numbers few = steps(r, FACTOR), more = steps(r, NONE);
    const stats_finding part[2] = {lab_more(noisy, none, 1), lab_less(few, more, 1)};
    lab_verdict(r, c, stats_together(part, 2), "", "%s against %s %%; %s against %s steps",
                lab_pm(r, noisy, 2), lab_pm(r, none, 2), lab_pm(r, few, 0), lab_pm(r, more, 0));
}

static void judge_factor(lab_report *r, const lab_claim *c)
{
    const size_t at = own[MAIN][FACTOR];
    const lab_numbers with = ends(r, MAIN, FACTOR, at, "loss");
    const lab_numbers without = ends(r, MAIN, NOISY, at, "loss");
    lab_verdict(r, c, lab_less(with, without, 1), "", "%s against %s; accuracy %s against %s %%",
                lab_pm(r, with, 4), lab_pm(r, without, 4),
                lab_pm(r, ends(r, MAIN, FACTOR, at, "accuracy"), 2),
                lab_pm(r, ends(r, MAIN, NOISY, at, "accuracy"), 2));
}

/* Test accuracy with batch norm minus that without, at the own rates and at the notebook's. */
static void judge_gap(lab_report *r, const lab_claim *c)
{
    const lab_numbers tuned = lab_calc(accuracy(r, MAIN, BATCH_NORM), '-', accuracy(r, MAIN, NONE));
    const lab_numbers notebook = lab_calc(ends(r, MAIN, BATCH_NORM, NOTEBOOK, "accuracy"), '-',
                                          ends(r, MAIN, NONE, NOTEBOOK, "accuracy"));
    lab_verdict(r, c, judge(tuned, -1, 0.5, notebook), "", "%s points against %s",
                lab_pm(r, tuned, 2), lab_pm(r, notebook, 2));
}

#define PILOT "one trial run (seed 1, one epoch, on the training images only): "

/* clang-format off */
static const lab_claim claims[] = {
    {"34a", "Each at its own best rate, batch norm needs far fewer steps",
     "Ioffe & Szegedy 2015, abstract",
     "the same accuracy with 14 times fewer steps (ImageNet, with rates only batch norm allows)",
     "at the rates of highest held-out accuracy: a training loss of 0.5 in at most half the steps, "
     "seed by seed", PILOT "30 steps at 0.1 against 62 at 0.5", .judge = judge_steps,
     .a = BATCH_NORM, .b = NONE, .limit = 0.5},
    {"34b", "Each at its fastest rate, batch norm needs far fewer steps",
     "Ioffe & Szegedy 2015, abstract",
     "the same accuracy with 14 times fewer steps (ImageNet, with rates only batch norm allows)",
     "at the rates of fewest steps to a training loss of 0.5: at most half the steps, seed by seed",
     PILOT "11 steps at 0.5 and 1 against 62 at 0.5", .judge = judge_steps, .a = BATCH_NORM,
     .b = NONE, .limit = 0.5, .at = 1},
    {"34c", "Each at its own best rate, batch norm ends more accurate",
     "Ioffe & Szegedy 2015, Figure 3", "74.8 against 72.2 % (ImageNet)",
     "higher test accuracy after the last epoch, seed by seed",
     PILOT "94.8 against 92.3 % of held-out images", .judge = judge_accuracy, .a = BATCH_NORM,
     .b = NONE},
    {"34d", "Batch norm works at larger learning rates", "Ioffe & Szegedy 2015; Bjorck et al. 2018",
     "5 to 30 times the rate (ImageNet)", "the largest rate whose held-out accuracy is within a "
     "point of the seed's best is more than twice that without a norm, seed by seed",
     PILOT "best at 0.1 against 0.5; but batch norm at 5 is within a point of its best",
     .judge = judge_larger},
    {"34e", "It also pays in time", "ours: seconds in place of steps", "not discussed",
     "each at its own best rate: fewer seconds to a training loss of 0.5, seed by seed",
     PILOT "an epoch takes up to a third longer", .judge = judge_seconds},
    {"34f", "Layer norm trains faster than batch norm",
     "Ba, Kiros & Hinton 2016, section 6.6 (MNIST)",
     "faster convergence, at batches of 128 and of 4; curves only", "each at its own best rate, "
     "batches of 512: fewer steps to a training loss of 0.5, seed by seed",
     PILOT "48 steps at 0.2 against 30 at 0.1", .judge = judge_steps, .a = LAYER, .b = BATCH_NORM,
     .limit = 1},
    {"34g", "Batch norm suffers in small batches, layer norm does not",
     "Ba, Kiros & Hinton 2016, Figure 6",
     "with batches of 4 layer norm's test error stays near that with 128, batch norm's does not",
     "each at its own best rate for the size: at 4 layer norm's test accuracy is higher than batch "
     "norm's, and by more than at 256, seed by seed",
     PILOT "at 4: 96.6 against 95.1 % of held-out images", .judge = judge_small},
    {"34h", "Group norm is better than batch norm in small batches", "Wu & He 2018, abstract",
     "10.6 points lower error at a batch size of 2 (ImageNet)",
     "each at its own best rate for a batch of 4: higher test accuracy, seed by seed", "none",
     .judge = judge_group},
    {"34i", "RMS norm is as good as layer norm", "Zhang & Sennrich 2019, abstract",
     "comparable performance",
     "each at its own best rate: test accuracies less than 0.2 points apart, seed by seed",
     PILOT "94.6 and 94.4 % of held-out images", .judge = judge_rms},
    {"34j", "RMS norm takes 7 to 64 % less time than layer norm", "Zhang & Sennrich 2019, abstract",
     "7 to 64 %, by model", "the CPU time of an epoch of this network is at least 7 % lower",
     PILOT "0.13 s each", LAB_ARITHMETIC, LAB_SETTING, judge_cheap},
    {"34k", "With noise behind it, batch norm still beats no norm",
     "Santurkar et al. 2018, Figure 2", "noisy batch norm above no norm throughout; curves only",
     "each at its own best rate, noisy batch norm tested with its factor: higher test accuracy, "
     "and fewer steps to a training loss of 0.5, seed by seed",
     PILOT "95.5 against 92.3 % of held-out images, without the factor", .judge = judge_noise},
    {"34l", "The factor 1.125 belongs to the noisy network at inference", "ours: the header's NB.6",
     "not discussed", "at the best rate with it: test loss lower than without, seed by seed",
     "none here; 13s to 13u", .judge = judge_factor},
    {"34m", "Most of the gap at the notebook's rate belongs to the rate", "ours", "not discussed",
     "test accuracy with batch norm minus that without: at the own best rates at most half of that "
     "at 0.01, seed by seed", "another program's runs (20 epochs, three seeds): 6.6 points at "
     "0.01, 1.0 at the better of 0.3 and 1", .judge = judge_gap},
    {"34n", "Each at its own best rate, batch norm ends more accurate than layer norm", "ours",
     "not discussed", "batches of 512: higher test accuracy after the last epoch, seed by seed",
     "another program's runs (20 epochs, three seeds): 97.7 and 97.2 % at the better of 0.3 and 1",
     .judge = judge_accuracy, .a = BATCH_NORM, .b = LAYER}};
/* clang-format on */

/* ---- figures --------------------------------------------------------------------------------- */

/* Curves on the way of a training. panel->value: 1: at the notebook's rate, 0: each at its own;
   panel->arm: over 0 epochs, 1 seconds; panel->other: 1: with noisy batch norm as it is, too. */
static void draw_way(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    double x[POINTS];
    lab_numbers y[POINTS];
    size_t n, i;
    for (n = 0; n < NETS; n++) {
        const size_t at = panel->value > 0 ? NOTEBOOK : own[MAIN][n];
        const char *name = series(r, MAIN, n, at, panel->series);
        const lab_series first = lab_get(r, net[n].arm, 0, name);
        if (n == NOISY && !panel->other) continue;
        for (i = 0; i < first.n && i < POINTS; i++) {
            x[i] = first.x[i] * (panel->arm ? seconds[n] : 512.0 / 55000);
            y[i] = lab_all(r, net[n].arm, name, first.x[i]);
        }
        lab_draw_numbers(p, net[n].name, x, y, i, lab_style(net[n].look));
    }
}

/* Of a series no rate at which a seed ends below panel->value; without one, steps to a loss. */
static void draw_rates(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    lab_numbers y[RATES];
    size_t n, i;
    for (n = 0; n < NETS; n++) {
        if (n == NOISY) continue;
        for (i = 0; i < RATES; i++) {
            y[i] = panel->series ? ends(r, MAIN, n, i, panel->series) : steps_at(r, n, i);
            if (panel->series && lab_describe(y[i]).min < panel->value) y[i].of[0] = (double)NAN;
        }
        lab_draw_numbers(p, net[n].name, rate, y, RATES, lab_style(net[n].look));
    }
}

/* panel->arm: 0 accuracies, 1 rates. */
static void draw_sizes(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    double x[SWEEPS];
    lab_numbers y[SWEEPS];
    size_t n, k;
    for (n = 0; n < SIZE_ARMS; n++) {
        for (k = SMALLEST; k < SWEEPS; k++) {
            x[k] = (double)sweeps[k].batch;
            y[k] = panel->arm ? (lab_numbers){1, {rate[own[k][n]]}} : accuracy(r, k, n);
        }
        lab_draw_numbers(p, net[n].name, x + SMALLEST, y + SMALLEST, SWEEPS - SMALLEST,
                         lab_style(net[n].look));
    }
}

static const double rate_tick[4] = {0.01, 0.1, 1, 10}, loss_tick[4] = {0.1, 0.2, 0.5, 1};
static const char *const rate_name[4] = {"0.01", "0.1", "1", "10"};
static const char *const loss_name[4] = {"0.1", "0.2", "0.5", "1"};

/* clang-format off */
#define EPOCH_AXIS .x = "epoch", .x_range = {0, EPOCHS}
#define RATE_AXIS .x = "learning rate", .x_scale = PLOT_LOG10, .x_range = {0.003, 10},             \
    .x_ticks = rate_tick, .x_names = rate_name, .x_count = 4
#define SIZE_AXIS .x = "examples in a batch", .x_scale = PLOT_LOG2, .x_range = {4, 4096}
#define ACCURACY_AXIS .y = "test accuracy (%)", .y_range = {60, 100}
#define DIRECT .legend = PLOT_LEGEND_DIRECT

static const lab_panel by_rate[] = {
    {.axes = {.heading = "one rate for all, the notebook's 0.01", EPOCH_AXIS, ACCURACY_AXIS,
              DIRECT},
     .draw = draw_way, .series = "accuracy", .value = 1},
    {.axes = {.col = 1, .heading = "each at its own best rate", EPOCH_AXIS, ACCURACY_AXIS, DIRECT},
     .draw = draw_way, .series = "accuracy"},
    {.axes = {.row = 1, .heading = "after six epochs, where no seed fails", RATE_AXIS,
              .y = "test accuracy (%)", .y_range = {90, 98}, DIRECT},
     .draw = draw_rates, .series = "accuracy", .value = 90},
    {.axes = {.row = 1, .col = 1, .heading = "how soon, at every rate", RATE_AXIS,
              .y = "steps to a training loss of 0.5", .y_scale = PLOT_LOG10, DIRECT},
     .draw = draw_rates}};

static const lab_panel by_time[] = {
    {.axes = {.heading = "test accuracy", .x = "seconds of one core", .x_scale = PLOT_LOG10,
              ACCURACY_AXIS, DIRECT},
     .draw = draw_way, .series = "accuracy", .arm = 1},
    {.axes = {.col = 1, .heading = "test loss", EPOCH_AXIS, .y = "test loss (nats)",
              .y_scale = PLOT_LOG10, .y_range = {0.06, 1}, .y_ticks = loss_tick,
              .y_names = loss_name, .y_count = 4, DIRECT},
     .draw = draw_way, .series = "loss", .other = 1}};

static const lab_panel by_size[] = {
    {.axes = {.heading = "after one epoch", SIZE_AXIS, ACCURACY_AXIS, DIRECT}, .draw = draw_sizes},
    {.axes = {.col = 1, .heading = "the rate that is best", SIZE_AXIS, .y = "learning rate",
              .y_scale = PLOT_LOG10, DIRECT},
     .draw = draw_sizes, .arm = 1}};

static const lab_page pages[] = {
    {"Batch norm leads by 20.9 points at one small rate for all, by 1.8 at the best of each",
     .height = 1310, LAB_PANELS(by_rate)},
    {"To a training loss of 0.5 in 12 ms with batch norm, in 76 without", "time", 720,
     .settings = "Each network at its own best rate, batches of 512", LAB_PANELS(by_time)},
    {"Batch norm is ahead from 16 examples on, and behind with 4", "batches", 720,
     .settings = "One epoch of 55,000 images, each network at the best of six rates for each "
                 "size", LAB_PANELS(by_size)}};
/* clang-format on */

/* The rows of the page's table. */
static void print_results(lab_report *r)
{
    size_t n;
    for (n = 0; n < NETS; n++)
        printf("| %s | %g | %s | %s | %s | %.3f |\n", net[n].name, rate[own[MAIN][n]],
               lab_pm(r, accuracy(r, MAIN, n), 2),
               lab_pm(r, ends(r, MAIN, n, own[MAIN][n], "loss"), 3), lab_pm(r, steps(r, n), 0),
               seconds[n] * lab_average(steps(r, n)));
}

/* clang-format off */
static const lab_program program = {
    "34_tuned_mnist", NRM_VERSION, "The norms on MNIST, each at its own best learning rate",
    SETTINGS, 2, LAB_USES_DATA, arms, ARMS, prepare, run, choose, claims, LAB_COUNT(claims),
    print_results, pages, LAB_COUNT(pages)};
/* clang-format on */

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--time") == 0) return measure();
    return lab_main(&program, argc, argv);
}
