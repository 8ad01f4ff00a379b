/* peer_onednn.c - oneDNN 2.x as a contestant, through its C interface: batch and layer norm. Dense
   batch norm is given as nhwc images of one pixel, images as nchw, which is how they lie in memory
   anyway; its blocked layouts would want a copy. It keeps variances where we keep 1/sqrt(v + eps),
   and has no running statistics in training: that work it is spared. */
#include "bench.h"

#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <stdlib.h>
#include <string.h>

extern const bench_contestant bench_onednn;

#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)
#define VERSION TEXT(DNNL_VERSION_MAJOR) "." TEXT(DNNL_VERSION_MINOR) "." TEXT(DNNL_VERSION_PATCH)

enum { ARGUMENTS_MAX = 10 };

typedef struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t argument[ARGUMENTS_MAX]; /* each holds a memory */
    int arguments;
    float *variance; /* [stats_count] */
} onednn;

/* ---- what the primitive is told about its arrays ---- */

static int describe_data(dnnl_memory_desc_t *d, const bench_work *w)
{
    dnnl_dims_t dims;
    dims[0] = (dnnl_dim_t)w->N;
    dims[1] = (dnnl_dim_t)w->C;
    dims[2] = (dnnl_dim_t)w->S;
    dims[3] = 1;
    if (w->layer == BENCH_LAYER_NORM)
        return dnnl_memory_desc_init_by_tag(d, 2, dims, dnnl_f32, dnnl_ab) != dnnl_success;
    return dnnl_memory_desc_init_by_tag(d, 4, dims, dnnl_f32, w->S == 1 ? dnnl_nhwc : dnnl_nchw) !=
           dnnl_success;
}

static int describe_vector(dnnl_memory_desc_t *d, size_t n)
{
    dnnl_dims_t dims;
    dims[0] = (dnnl_dim_t)n;
    return dnnl_memory_desc_init_by_tag(d, 1, dims, dnnl_f32, dnnl_a) != dnnl_success;
}

/* ---- descriptors of the three passes ---- */

static unsigned flags_of(const bench_work *w)
{
    const unsigned affine = (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift;
    const int given = w->layer == BENCH_FROZEN_NORM ||
                      (w->layer == BENCH_BATCH_NORM && w->pass == BENCH_INFERENCE);
    return affine | (given ? (unsigned)dnnl_use_global_stats : 0u);
}

static int describe_forward(dnnl_primitive_desc_t *pd, const bench_work *w, dnnl_engine_t engine)
{
    const dnnl_prop_kind_t kind =
        w->pass == BENCH_INFERENCE ? dnnl_forward_inference : dnnl_forward_training;
    dnnl_memory_desc_t data, stats;
    dnnl_batch_normalization_desc_t batch;
    dnnl_layer_normalization_desc_t layer;
    const void *op = &batch;
    if (describe_data(&data, w) || describe_vector(&stats, w->stats_count)) return -1;
    if (w->layer == BENCH_LAYER_NORM) {
        op = &layer;
        if (dnnl_layer_normalization_forward_desc_init(&layer, kind, &data, &stats, w->eps,
                                                       flags_of(w)))
            return -1;
    } else if (dnnl_batch_normalization_forward_desc_init(&batch, kind, &data, w->eps,
                                                          flags_of(w))) {
        return -1;
    }
    return dnnl_primitive_desc_create(pd, op, NULL, engine, NULL) != dnnl_success;
}

/* A backward primitive is chosen to fit the forward one. */
static int describe_backward(dnnl_primitive_desc_t *pd, const bench_work *w, dnnl_engine_t engine)
{
    dnnl_memory_desc_t data, stats;
    dnnl_batch_normalization_desc_t batch;
    dnnl_layer_normalization_desc_t layer;
    const void *op = &batch;
    dnnl_primitive_desc_t forward = NULL;
    int failed;
    if (describe_data(&data, w) || describe_vector(&stats, w->stats_count)) return -1;
    if (w->layer == BENCH_LAYER_NORM) {
        op = &layer;
        if (dnnl_layer_normalization_backward_desc_init(&layer, dnnl_backward, &data, &data, &stats,
                                                        w->eps, flags_of(w)))
            return -1;
    } else if (dnnl_batch_normalization_backward_desc_init(&batch, dnnl_backward, &data, &data,
                                                           w->eps, flags_of(w))) {
        return -1;
    }
    if (describe_forward(&forward, w, engine)) return -1;
    failed = dnnl_primitive_desc_create(pd, op, NULL, engine, forward) != dnnl_success;
    dnnl_primitive_desc_destroy(forward);
    return failed;
}

/* ---- arguments ---- */

static int bind(onednn *o, int id, const dnnl_memory_desc_t *d, const float *data)
{
    dnnl_memory_t memory;
    union {
        const float *in;
        void *out;
    } handle; /* oneDNN's handles are not const, also where it only reads */
    handle.in = data;
    if (o->arguments == ARGUMENTS_MAX ||
        dnnl_memory_create(&memory, d, o->engine, handle.out) != dnnl_success)
        return -1;
    o->argument[o->arguments].arg = id;
    o->argument[o->arguments++].memory = memory;
    return 0;
}

static int bind_all(onednn *o, const bench_work *w)
{
    const int back = w->pass == BENCH_BACKWARD, given = w->layer == BENCH_FROZEN_NORM;
    const int running = given || (w->layer == BENCH_BATCH_NORM && w->pass == BENCH_INFERENCE);
    const int stats_wanted = running || w->pass != BENCH_INFERENCE;
    dnnl_memory_desc_t data, vector, stats;
    size_t i;
    if (describe_data(&data, w) || describe_vector(&vector, w->C) ||
        describe_vector(&stats, w->stats_count))
        return -1;
    for (i = 0; i < w->stats_count; i++)
        o->variance[i] =
            running ? w->running_var[i] : (float)(1 / (w->rstd[i] * w->rstd[i]) - (double)w->eps);
    if (bind(o, DNNL_ARG_SRC, &data, w->x) || bind(o, DNNL_ARG_SCALE, &vector, w->gamma)) return -1;
    if (stats_wanted && (bind(o, DNNL_ARG_MEAN, &stats, running ? w->running_mean : w->mean32) ||
                         bind(o, DNNL_ARG_VARIANCE, &stats, o->variance)))
        return -1;
    if (bind(o, DNNL_ARG_SHIFT, &vector, w->beta)) return -1; /* backward insists on it, too */
    if (!back) return bind(o, DNNL_ARG_DST, &data, w->out);
    return bind(o, DNNL_ARG_DIFF_DST, &data, w->dy) || bind(o, DNNL_ARG_DIFF_SRC, &data, w->out) ||
           bind(o, DNNL_ARG_DIFF_SCALE, &vector, w->dgamma) ||
           bind(o, DNNL_ARG_DIFF_SHIFT, &vector, w->dbeta);
}

/* ---- the contestant ---- */

static void close_primitive(void *state)
{
    onednn *o = (onednn *)state;
    while (o->arguments > 0) dnnl_memory_destroy(o->argument[--o->arguments].memory);
    if (o->primitive) dnnl_primitive_destroy(o->primitive);
    if (o->stream) dnnl_stream_destroy(o->stream);
    if (o->engine) dnnl_engine_destroy(o->engine);
    free(o->variance);
    free(o);
}

static int open_primitive(bench_work *w, void **state)
{
    onednn *o = (onednn *)calloc(1, sizeof *o);
    dnnl_primitive_desc_t pd = NULL;
    int failed;
    if (!o) return -1;
    *state = o;
    o->variance = (float *)calloc(w->stats_count, sizeof(float));
    if (!o->variance || dnnl_engine_create(&o->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags) != dnnl_success)
        return -1;
    failed = w->pass == BENCH_BACKWARD ? describe_backward(&pd, w, o->engine)
                                       : describe_forward(&pd, w, o->engine);
    if (failed) return -1;
    failed = dnnl_primitive_create(&o->primitive, pd) != dnnl_success;
    dnnl_primitive_desc_destroy(pd);
    return failed || bind_all(o, w) ? -1 : 0;
}

static int run(bench_work *w, void *state)
{
    onednn *o = (onednn *)state;
    (void)w;
    return dnnl_primitive_execute(o->primitive, o->stream, o->arguments, o->argument) !=
               dnnl_success ||
           dnnl_stream_wait(o->stream) != dnnl_success;
}

static void fetch(bench_work *w, void *state)
{
    const onednn *o = (const onednn *)state;
    size_t i;
    for (i = 0; i < w->stats_count && w->pass == BENCH_FORWARD; i++)
        w->rstd32[i] = (float)(1 / sqrt((double)o->variance[i] + (double)w->eps));
}

const bench_contestant bench_onednn = {
    "onednn",
    "oneDNN " VERSION ", one thread",
    BENCH_NO_RUNNING,
    1e-4,
    open_primitive,
    fetch,
    close_primitive,
    {
        [BENCH_BATCH_NORM] = {run, run, run},
        [BENCH_FROZEN_NORM] = {run, run},
        [BENCH_LAYER_NORM] = {run, run, run},
    },
};
