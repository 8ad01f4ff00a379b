/* fuzz_mlp.c - hostile networks. The input is a specification of a perceptron and a list of calls
   with settings that change between them, as the header allows, or as it does not.

   What holds after every call: a refused one has left the whole block as it was, and loss and
   accuracy too; one that only looks has left parameters, running statistics, optimizer and
   generator; nothing beyond the block was written; the status is one of those that are listed. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "fuzz.h"
#include "../contracts/block.h"

enum { LAYERS = 4, MARGIN = 64, EXAMPLES = 24, NUMBERS = 8 * EXAMPLES };

static nrm_real x[NUMBERS];
static int labels[EXAMPLES];

typedef struct others { /* the other workers, as a script */
    int fails, odd;
    nrm_acc examples;
} others;

static int add(void *context, nrm_acc *sums, size_t n)
{
    const others *o = (const others *)context;
    if (n == 2) sums[1] += o->examples;
    return o->fails & 1;
}
static int merge(void *context, nrm_stats *stats, size_t n)
{
    const others *o = (const others *)context;
    const nrm_stats some[4] = {{4, 1, 6}, {0, 0, 0}, {1, 0, 0}, {2, 1, -9}};
    size_t i;
    for (i = 0; i < n; i++) (void)nrm_stats_merge(&stats[i], &some[o->odd], 1);
    return o->fails & 2;
}
static void probe(void *context, const nrm_mlp_event *event)
{
    nrm_real sum = 0;
    size_t i;
    (void)context;
    for (i = 0; i < event->rows * event->cols; i++) sum += event->data[i];
    HOLDS(event->place >= NRM_AT_LINEAR && event->place <= NRM_AT_ACTIVATION, "a probe");
    if (sum > 0) x[0] += 0; /* it was read */
}

static nrm_mlp_spec choose_spec(choices *c, nrm_mlp_layer *layer, others *o)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    const unsigned odd = choose_byte(c); /* most settings are those of nrm_mlp_defaults */
    size_t l;
    spec.inputs = odd & 1 ? choose_size(c) : 1 + choose(c, 7);
    spec.layers = choose(c, LAYERS + 1);
    spec.max_batch = odd & 2 ? choose_size(c) : 1 + choose(c, 7);
    spec.layer = choose(c, 50) == 49 ? NULL : layer;
    memset(layer, 0, LAYERS * sizeof *layer);
    for (l = 0; l < LAYERS; l++) {
        const unsigned bits = choose_byte(c);
        layer[l].width = odd & 4 ? choose_size(c) : 1 + choose(c, 7);
        layer[l].norm = odd & 8 ? choose_code(c) : (int)choose(c, 8);
        layer[l].activation = bits & 1 ? choose_code(c) : (int)(bits >> 1 & 3);
        layer[l].norm_after = bits >> 3 & 1;
        layer[l].bias = bits >> 4 & 1;
        layer[l].groups = bits & 32 ? choose_size(c) : 1;
        layer[l].p = bits & 64 ? choose_code(c) : NRM_L1;
    }
    spec.seed = choose_byte(c);
    if (odd & 16) spec.init = choose_code(c), spec.gamma_init = choose_code(c);
    if (odd & 16) spec.init_std = (nrm_real)choose_number(c);
    if (odd & 32) {
        spec.eps = (nrm_real)choose_number(c);
        spec.new_weight = (nrm_real)choose_number(c);
        spec.cumulative = choose_byte(c) & 1;
        spec.biased = choose_byte(c) & 1;
        spec.noise.mean_range = (nrm_real)choose_number(c);
        spec.noise.scale_jitter = (nrm_real)choose_number(c);
        spec.r_max = (nrm_real)choose_number(c);
        spec.d_max = (nrm_real)choose_number(c);
    }
    if (odd & 64) {
        spec.optimizer = choose_code(c);
        spec.lr = (nrm_real)choose_number(c);
        spec.heavy_ball = (nrm_real)choose_number(c);
        spec.beta1 = (nrm_real)choose_number(c);
        spec.beta2 = (nrm_real)choose_number(c);
        spec.adam_eps = (nrm_real)choose_number(c);
    }
    if (odd & 128) {
        const size_t workers = choose(c, 4);
        if (workers & 1) spec.sync.add = add;
        if (workers & 2) spec.sync.merge = merge;
        spec.sync.context = o;
    }
    return spec;
}

/* What a caller may change between two calls, and what he should not. */
static void change(choices *c, nrm_mlp *net, others *o)
{
    nrm_mlp_state *s = &net->state[choose(c, net->spec.layers)];
    const size_t what = choose(c, 12), i = choose(c, s->shape.width);
    const nrm_real v = (nrm_real)choose_number(c);
    if (what == 0) net->spec.lr = v;
    if (what == 1) net->spec.r_max = v;
    if (what == 2) net->spec.d_max = v;
    if (what == 3) net->params[choose(c, net->n_params)] = v;
    if (what == 4 && s->running.mean != NULL) s->running.mean[i] = v;
    if (what == 5 && s->running.var != NULL) s->running.var[i] = v;
    if (what == 6) s->running.new_weight = v;
    if (what == 7) s->running.cumulative = choose_byte(c) & 1;
    if (what == 8) x[choose(c, NUMBERS)] = v;
    if (what == 9) labels[choose(c, EXAMPLES)] = choose_code(c);
    if (what == 10) net->probe = choose_byte(c) & 1 ? probe : NULL;
    if (what == 11) o->fails = (int)choose(c, 4), o->odd = (int)choose(c, 4);
    if (what == 11) o->examples = (nrm_acc)choose(c, 3);
}

/* Somewhere in the block, which no argument may be. */
static nrm_real *inside(choices *c, nrm_mlp *net)
{
    nrm_mlp_state *s = &net->state[choose(c, net->spec.layers)];
    nrm_real *const at[] = {s->linear_out, s->norm_out, s->act_out,   net->params,
                            net->grads,    net->prob,   net->work[0], net->work[1]};
    return at[choose(c, 8)];
}

static void call(choices *c, nrm_mlp *net, size_t room)
{
    const size_t kind = choose(c, 6), odd = choose_byte(c);
    const size_t fit = room < net->spec.max_batch ? room : net->spec.max_batch;
    const int mode = odd & 1 ? choose_code(c) : (int)choose(c, 3);
    const size_t N = kind == 4 ? choose(c, room + 1) : choose(c, fit + 1);
    const size_t most = net->spec.max_batch, many = odd & 2 && N > 0 && room > most ? most + 1 : N;
    nrm_acc loss = 7, accuracy = 7;
    const nrm_real *in = odd & 4 ? NULL : x;
    const int *of = odd & 8 ? NULL : labels;
    nrm_acc *to = odd & 16 ? NULL : &loss;
    const char *name = "";
    int rc = 0, looks = 1;
    if (odd >= 224 && many * net->spec.inputs * sizeof(nrm_real) < 512) in = inside(c, net);
    if (odd >= 192 && odd < 200) of = (const int *)(const void *)net->prob;
    if (odd >= 200 && odd < 208) to = (nrm_acc *)(void *)net->work[0];
    before = block;
    if (kind == 0) {
        name = "nrm_mlp_forward";
        rc = nrm_mlp_forward(net, in, many, mode);
        looks = mode != NRM_TRAIN;
    } else if (kind == 1 || kind == 5) {
        name = "nrm_mlp_gradient";
        rc = nrm_mlp_gradient(net, to, in, of, many, mode);
    } else if (kind == 2) {
        name = "nrm_mlp_train_step";
        rc = nrm_mlp_train_step(net, to, in, of, many);
        looks = 0;
    } else if (kind == 3) {
        name = "nrm_mlp_step";
        rc = nrm_mlp_step(net);
        looks = 0;
    } else {
        name = "nrm_mlp_eval";
        rc = nrm_mlp_eval(net, to, odd & 32 ? to : &accuracy, in, of, N);
    }
    HOLDS(rc <= NRM_NONFINITE && rc >= NRM_ESYNC && rc != NRM_EGRADIENT, name);
    if (rc < 0 && rc != NRM_ESYNC) {
        HOLDS(memcmp(&block, &before, sizeof block) == 0, name);
        HOLDS(loss == 7 && accuracy == 7, name);
    }
    if (rc >= 0 && looks) HOLDS(only_looked(net), name);
    if (rc == NRM_NONFINITE && kind == 2) HOLDS(same(&net->steps, sizeof net->steps), name);
    if (rc == NRM_OK && to == &loss && kind != 0 && kind != 3) HOLDS(isfinite((double)loss), name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    choices c = {data, size};
    nrm_mlp_layer layer[LAYERS];
    others o = {0, 0, 0};
    nrm_mlp *net = NULL;
    const nrm_mlp_spec spec = choose_spec(&c, layer, &o);
    const size_t bytes = nrm_mlp_bytes(&spec), shift = choose(&c, MARGIN);
    const size_t given = choose(&c, 20) == 19 ? bytes - 1 : bytes;
    size_t i, room;
    int rc;
    if (bytes > ROOM - 2 * MARGIN) return 0;
    memset(&block, 0xA5, sizeof block);
    before = block;
    rc = nrm_mlp_init(&net, block.at + shift, bytes == 0 ? ROOM - MARGIN : given, &spec);
    HOLDS((rc == NRM_OK) == (bytes > 0 && given == bytes), "nrm_mlp_init");
    HOLDS(rc == NRM_OK || memcmp(&block, &before, sizeof block) == 0, "nrm_mlp_init");
    HOLDS((rc == NRM_OK) == (net != NULL), "nrm_mlp_init");
    if (rc != NRM_OK) return 0;
    for (i = 0; i < NUMBERS; i++) x[i] = (nrm_real)(i * 7 % 11) - 5;
    for (i = 0; i < EXAMPLES; i++) labels[i] = (int)(i % layer[spec.layers - 1].width);
    room = NUMBERS / spec.inputs;
    if (room > EXAMPLES) room = EXAMPLES;
    for (i = 0; i < 40 && c.left > 0; i++)
        if (choose_byte(&c) % 3 == 0)
            change(&c, net, &o);
        else
            call(&c, net, room);
    for (i = 0; i < ROOM; i++)
        HOLDS((i >= shift && i < shift + bytes) || block.at[i] == 0xA5, "the calls");
    return 0;
}
