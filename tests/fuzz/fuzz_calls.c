/* fuzz_calls.c - hostile calls of all functions that take arrays. The input chooses a function, its
   sizes, and for each array where it lies: in a place of its own, nowhere, or over another one.

   What holds: a refused call has changed nothing at all; one that was accepted has changed outputs
   only, none of its outputs overlaps another array unless the header allows it, nothing needed was
   NULL, no setting was one that the header refuses; with NRM_OK all statistics are finite. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "fuzz.h"
#include "../contracts/sites.h"

enum { MOST = ROOM - 2 * MARGIN };

/* a·b·c, or SIZE_MAX if that is more. */
static size_t product(size_t a, size_t b, size_t c)
{
    if (a == 0 || b == 0 || c == 0) return 0;
    return a > SIZE_MAX / b || a * b > SIZE_MAX / c ? SIZE_MAX : a * b * c;
}

/* How many numbers an array has. */
static size_t count_of(const site *s, int i, const args *a)
{
    switch (s->buffers[4 * i + 2]) {
    case 'x': return product(a->N, a->C, a->S);
    case 'y': return product(a->N, a->C, 1);
    case 'z': return product(a->N, a->S, 1);
    case 'w': return product(a->C, a->S, 1);
    case 'n': return a->N;
    case 'g': return product(a->N, GROUPS, 1);
    case 'c': return a->C;
    case 's': return a->S;
    default: return 1;
    }
}

/* Numbers of one kind all over the arena: of the type of each array, a few of them odd. */
static void fill(choices *c, const site *s)
{
    const double odd = choose_number(c);
    const size_t every = 1 + choose(c, 40);
    int i;
    size_t k;
    memset(&arena, 0, sizeof arena);
    for (i = 0; i < SLOTS; i++) {
        const char of = i < buffers_of(s) ? type(s, i) : 'r';
        for (k = 0; k < ROOM / sizeof(nrm_acc) && strchr("atu", of) != NULL; k++)
            ((nrm_acc *)(void *)arena.slot[i])[k] = (nrm_acc)(k % every ? (double)(k % 7) : odd);
        for (k = 0; k < ROOM / sizeof(nrm_real) && of == 'r'; k++)
            ((nrm_real *)(void *)arena.slot[i])[k] =
                (nrm_real)(k % every ? (double)(k * 5 % 11) / 4 + (double)i : odd);
        for (k = 0; k < ROOM / sizeof(int) && of == 'l'; k++)
            ((int *)(void *)arena.slot[i])[k] = (int)(k % 3);
        for (k = 0; k < ROOM && of == 'm'; k++) arena.slot[i][k] = k % every != 0;
    }
}

static void place(choices *c, const site *s, args *a)
{
    int i;
    for (i = 0; i < buffers_of(s); i++) a->p[i] = arena.slot[i] + MARGIN;
    for (i = 0; i < buffers_of(s); i++) {
        const size_t how = choose_byte(c), unit = type(s, i) == 'm' ? 1 : 8;
        if (how < 200) continue;
        a->p[i] = NULL;
        if (how < 220) continue;
        a->p[i] = arena.slot[choose(c, (size_t)buffers_of(s))] + MARGIN;
        if (how >= 240)
            a->p[i] = (unsigned char *)a->p[i] + unit * choose(c, 128 / unit) - 64 / unit * unit;
    }
}

static args choose_args(choices *c, const site *s)
{
    args a;
    size_t k;
    const unsigned odd = choose_byte(c);
    memset(&a, 0, sizeof a);
    a.N = 2, a.C = 4, a.S = 2;
    for (k = 0; k < strlen(s->sizes); k++) {
        size_t *size = size_of(&a, s->sizes[k]);
        *size = odd & 1 ? choose_size(c) : 1 + choose(c, 4);
    }
    a.eps = odd & 2 ? (nrm_real)choose_number(c) : NRM_EPS;
    a.kind = s->kind;
    if (odd & 4) a.kind = s->flags & ACTIVATION ? choose_code(c) : (int)choose(c, 250) - 125;
    if (odd & 4 && !(s->flags & ACTIVATION) && a.kind >= 0 && a.kind < 3) a.kind = s->kind;
    a.running.new_weight = odd & 8 ? (nrm_real)choose_number(c) : (nrm_real)0.25;
    a.running.cumulative = choose_byte(c) & 1;
    a.running.biased = choose_byte(c) & 1;
    a.noise = nrm_noise_paper();
    if (odd & 16) a.noise.mean_range = (nrm_real)choose_number(c);
    if (odd & 16) a.noise.scale_jitter = (nrm_real)choose_number(c);
    a.null_running = odd & 32 && choose(c, 4) == 0;
    a.null_noise = odd & 64 && choose(c, 4) == 0;
    a.null_rng = odd & 64 && choose(c, 4) == 0;
    nrm_rng_seed(&a.rng, 7, 8);
    return a;
}

static int same_state(const args *a, const args *b)
{
    return memcmp(&a->running, &b->running, sizeof a->running) == 0 &&
           memcmp(&a->noise, &b->noise, sizeof a->noise) == 0 && a->rng.state == b->rng.state &&
           a->rng.increment == b->rng.increment && a->rng.has_spare == b->rng.has_spare;
}

/* Is there a buffer at all, where running statistics may be absent as a whole? */
static int is_there(const site *s, const args *a, int i)
{
    const int at = running_at(s);
    if (s->flags & RUNNING && (i == at || i == at + 1) && a->null_running) return 0;
    return a->p[i] != NULL && bytes_of(s, i, a) > 0;
}

static int may_share(const site *s, const args *a, int i, int j)
{
    const int pair = (i == s->in_place_out && j == s->in_place_in) ||
                     (j == s->in_place_out && i == s->in_place_in) ||
                     (s->function == CALL_FOLD && i + j == 4 && i * j == 3);
    const int forward = s->in_place_out < 0 && i + j > 0 && i * j == 0; /* y and x of a norm */
    int k, saved = 0;
    for (k = 1; k < buffers_of(s); k++) saved |= is_output(s, k) && a->p[k] != NULL;
    return a->p[i] == a->p[j] && (pair || (forward && !saved && s->function != CALL_LINEAR));
}

static void accepted(const site *s, const args *a, int rc)
{
    const int idle = a->N == 0 && s->sizes[0] == 'N';
    int i, j;
    size_t k;
    HOLDS(!(s->flags & EPS) || (a->eps >= 0 && isfinite((double)a->eps)), s->name);
    for (k = 0; k < strlen(s->sizes); k++)
        if (s->sizes[k] == 'C') HOLDS(a->C > 0, s->name);
    for (i = 0; i < SLOTS; i++) /* nothing but outputs has changed */
        for (k = 0; k < ROOM; k++) {
            const unsigned char *at = &arena.slot[i][k];
            int ours = *at == before.slot[i][k];
            for (j = 0; j < buffers_of(s) && !ours; j++) {
                const unsigned char *p = (const unsigned char *)a->p[j];
                ours = is_output(s, j) && p != NULL && at >= p && at < p + bytes_of(s, j, a);
            }
            HOLDS(ours, s->name);
        }
    for (i = 0; i < buffers_of(s) && !idle; i++) {
        const unsigned char *p = (const unsigned char *)a->p[i], *q;
        const int both = s->in_place_out < 0 && strchr("ng", s->buffers[4 * i + 2]) != NULL;
        const int saved = both && is_output(s, i) && a->p[1] == a->p[2]; /* neither: NULL */
        const int needed = (role(s, i) == 'o' || role(s, i) == 'i') && !saved;
        HOLDS(p != NULL || !needed || s->function == CALL_LINEAR_BACK || a->null_running, s->name);
        for (j = 0; j < buffers_of(s) && is_output(s, i); j++) {
            q = (const unsigned char *)a->p[j];
            if (i == j || !is_there(s, a, i) || !is_there(s, a, j) || may_share(s, a, i, j))
                continue;
            HOLDS(p >= q + bytes_of(s, j, a) || q >= p + bytes_of(s, i, a), s->name);
        }
        if (rc == NRM_OK && is_output(s, i) && type(s, i) == 'a' && p != NULL && a->N > 0 &&
            s->function != CALL_SYNC)
            for (k = 0; k < count_of(s, i, a); k++)
                HOLDS(isfinite((double)acc_at(a, i)[k]), s->name);
    }
}

static void one_site(choices *c)
{
    const site *s = &sites[choose(c, (size_t)SITES)];
    args a = choose_args(c, s), kept;
    int i, rc, overflows = 0, fits = 1;
    fill(c, s);
    place(c, s, &a);
    for (i = 0; i < buffers_of(s); i++) {
        const size_t count = count_of(s, i, &a);
        overflows |= count > SIZE_MAX / 16;
        fits &= count <= MOST / sizeof(nrm_stats);
    }
    if (!fits && !overflows) return;
    before = arena;
    kept = a;
    rc = site_call(s, &a);
    HOLDS(rc <= NRM_NONFINITE && rc >= NRM_ERATE, s->name);
    HOLDS(rc < 0 || !overflows, s->name);
    if (rc < 0) {
        HOLDS(memcmp(&arena, &before, sizeof arena) == 0, s->name);
        kept.running.mean = a.running.mean; /* which the table's function sets */
        kept.running.var = a.running.var;
        HOLDS(same_state(&a, &kept), s->name);
    } else {
        accepted(s, &a, rc);
    }
}

/* ---- the recurrent layer: both passes, of a few steps -------------------------------------- */

enum { ARRAYS = 18, SPACE = 512, STEPS = 3 };
static nrm_acc space[ARRAYS][SPACE], space_before[ARRAYS][SPACE];

static void *array(choices *c, size_t i)
{
    const size_t how = choose_byte(c);
    if (how < 230) return &space[i][64];
    return how < 245 ? NULL : &space[choose(c, ARRAYS)][64 + choose(c, 64)];
}

static void recurrent(choices *c)
{
    nrm_rnn rnn;
    nrm_running running[STEPS + 1];
    nrm_rnn_grads grads;
    const unsigned odd = choose_byte(c);
    const int mode = odd & 1 ? choose_code(c) : (int)choose(c, 3), back = odd >> 1 & 1;
    void *p[ARRAYS];
    size_t i, k;
    int rc, big;
    for (i = 0; i < ARRAYS; i++) {
        for (k = 0; k < SPACE; k++) space[i][k] = 0;
        for (k = 0; k < SPACE; k++)
            ((nrm_real *)(void *)space[i])[k] = (nrm_real)((k * 7 + i) % 5) / 4;
        p[i] = array(c, i);
    }
    for (i = 1; i < 4; i += 2) /* means and reciprocals are an nrm_acc each */
        for (k = 0; k < SPACE; k++) space[i + 1][k] = (nrm_acc)(1 + k % 3);
    memset(&rnn, 0, sizeof rnn);
    rnn.T = choose(c, STEPS + 1), rnn.N = choose(c, 4), rnn.in = choose(c, 4), rnn.H = choose(c, 4);
    big = odd & 4 ? 1 : 0;
    if (big) *(choose(c, 2) ? &rnn.T : &rnn.N) = SIZE_MAX - choose(c, 2);
    rnn.norm = odd & 8 ? choose_code(c) : (int)choose(c, 3);
    rnn.activation = odd & 16 ? choose_code(c) : NRM_TANH;
    rnn.eps = odd & 32 ? (nrm_real)choose_number(c) : NRM_EPS;
    rnn.Wx = (const nrm_real *)p[6], rnn.Wh = (const nrm_real *)p[7];
    rnn.gamma = (const nrm_real *)p[8], rnn.beta = (const nrm_real *)p[9];
    for (i = 0; i <= STEPS; i++) {
        const nrm_running r = {p[10] != NULL ? (nrm_real *)p[10] + 4 * i : NULL,
                               p[11] != NULL ? (nrm_real *)p[11] + 4 * i : NULL,
                               odd & 64 ? (nrm_real)choose_number(c) : (nrm_real)0.5,
                               0, 0, choose(c, 2)};
        running[i] = r;
    }
    rnn.running = odd & 128 ? NULL : running;
    grads.dWx = (nrm_real *)p[12], grads.dWh = (nrm_real *)p[13];
    grads.dgamma = (nrm_real *)p[14], grads.dbeta = (nrm_real *)p[15];
    if (big && (rnn.N == 0 || rnn.T == 0)) return;
    memcpy(space_before, space, sizeof space);
    if (back)
        rc = nrm_rnn_backward((nrm_real *)p[16], (nrm_real *)p[17], &grads, (nrm_real *)p[5],
                              (nrm_real *)p[0], (nrm_real *)p[1], (nrm_acc *)p[2], (nrm_acc *)p[4],
                              (nrm_real *)p[3], &rnn, mode);
    else
        rc = nrm_rnn_forward((nrm_real *)p[0], (nrm_real *)p[1], (nrm_acc *)p[2], (nrm_acc *)p[4],
                             (nrm_real *)p[3], &rnn, mode);
    HOLDS(rc <= NRM_NONFINITE && rc >= NRM_ERATE, "a recurrent layer");
    HOLDS(rc < 0 || !big, "a recurrent layer");
    if (rc < 0) HOLDS(memcmp(space_before, space, sizeof space) == 0, "a recurrent layer");
    for (i = 6; i < 10 && rc >= 0; i++) { /* parameters are read only */
        const size_t used = (i == 6 ? rnn.in : i == 7 ? rnn.H : 1) * rnn.H * sizeof(nrm_real);
        HOLDS(p[i] == NULL || p[i] != (void *)&space[i][64] || rnn.N == 0 || rnn.T == 0 ||
                  (i == 8 && rnn.norm == NRM_NO_NORM) || (i == 9 && back) || /* not used */
                  memcmp(&space_before[i][64], &space[i][64], used) == 0,
              "a recurrent layer");
    }
}

/* ---- the gradient checker and the random numbers ------------------------------------------- */

static nrm_real theta[4], slope[4];
static nrm_acc loss(void *context)
{
    const nrm_acc *bend = (const nrm_acc *)context;
    nrm_acc sum = 0;
    int i;
    for (i = 0; i < 4; i++) sum += bend[i] * (nrm_acc)theta[i] * (nrm_acc)theta[i];
    return sum;
}
static uint64_t branches(void *context)
{
    (void)context;
    return theta[0] > 0;
}

static void checker(choices *c)
{
    nrm_gradcheck_report report[2], kept[2];
    nrm_gradcheck_group group[2];
    nrm_gradcheck_options options;
    nrm_acc bend[4];
    nrm_real start[4];
    size_t i, index[8] = {0, 1, 2, 3, 4, 5, 6, 7}, sum = 0;
    nrm_rng rng;
    const unsigned odd = choose_byte(c);
    int rc;
    for (i = 0; i < 4; i++) {
        bend[i] = (nrm_acc)choose_number(c);
        theta[i] = start[i] = (nrm_real)choose_number(c);
        slope[i] = odd & 1 ? (nrm_real)choose_number(c) : (nrm_real)(2 * bend[i]) * theta[i];
    }
    memset(&options, 0, sizeof options);
    if (odd & 2) options.tolerance = (nrm_acc)choose_number(c);
    if (odd & 4) options.step = (nrm_acc)choose_number(c);
    options.at_most = choose_size(c);
    if (odd & 8) options.branches = branches;
    memset(report, 0xA5, sizeof report);
    memcpy(kept, report, sizeof report);
    for (i = 0; i < 2; i++) {
        group[i].name = "some";
        group[i].theta = odd & 16 && choose(c, 2) ? NULL : theta + 2 * i;
        group[i].grad = odd & 32 && choose(c, 2) ? NULL : slope + 2 * i;
        group[i].n = choose(c, 3);
    }
    rc = nrm_gradcheck(odd & 64 ? NULL : report, group, choose(c, 3), odd & 128 ? NULL : loss, bend,
                       choose(c, 4) ? &options : NULL);
    HOLDS(memcmp(theta, start, sizeof theta) == 0, "nrm_gradcheck");
    if (rc < 0 && rc != NRM_EGRADIENT && rc != NRM_EUNSETTLED)
        HOLDS(memcmp(report, kept, sizeof report) == 0, "nrm_gradcheck");
    nrm_rng_seed(&rng, choose_byte(c), choose_byte(c));
    HOLDS(nrm_rng_shuffle(odd & 1 ? NULL : &rng, odd & 2 ? NULL : index, choose(c, 9)) <= 0,
          "nrm_rng_shuffle");
    for (i = 0; i < 8; i++) sum |= (size_t)1 << index[i];
    HOLDS(sum == 255, "nrm_rng_shuffle");
    HOLDS(nrm_strerror((int)choose(c, 64) - 40) != NULL, "nrm_strerror");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    choices c = {data, size};
    const size_t what = choose(&c, 16);
    if (what == 0)
        checker(&c);
    else if (what < 3)
        recurrent(&c);
    else
        one_site(&c);
    return 0;
}
