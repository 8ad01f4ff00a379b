// peer_torch.cpp - PyTorch as a contestant: its ATen kernels called from C++, without Python and
// without recording for automatic differentiation. It allocates its outputs anew on every call, as
// it always does; layers.c keeps freed memory with malloc, which favours it.
#include "bench.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <torch/version.h>

#include <cstring>
#include <exception>
#include <tuple>
#include <vector>

extern "C" const bench_contestant bench_torch;

namespace
{

struct State {
    at::Tensor x, dy, gamma, beta, mean, rstd, running_mean, running_var, labels;
    at::Tensor out, first, second; // results of the last call
};

at::Tensor wrap(const float *data, at::IntArrayRef shape)
{
    return at::from_blob(const_cast<float *>(data), shape, at::kFloat);
}

std::vector<int64_t> shape_of(const bench_work *w)
{
    const auto N = static_cast<int64_t>(w->N), C = static_cast<int64_t>(w->C),
               S = static_cast<int64_t>(w->S);
    return w->S == 1 || w->layer == BENCH_LINEAR ? std::vector<int64_t>{N, C}
                                                 : std::vector<int64_t>{N, C, S};
}

int open_state(bench_work *w, void **state)
{
    try {
        const std::vector<int64_t> shape = shape_of(w);
        const auto C = static_cast<int64_t>(w->C), S = static_cast<int64_t>(w->S);
        const auto stats = static_cast<int64_t>(w->stats_count);
        const auto N = static_cast<int64_t>(w->N);
        const bool linear = w->layer == BENCH_LINEAR;
        State *t = new State;
        *state = t;
        at::set_num_threads(1);
        t->x = wrap(w->x, shape);
        if (w->pass == BENCH_BACKWARD)
            t->dy = wrap(w->dy, linear ? std::vector<int64_t>{N, S} : shape);
        // PyTorch's own layout of weights is [out][in]
        t->gamma = linear ? wrap(w->gamma, {C, S}).t().contiguous() : wrap(w->gamma, {C});
        t->beta = wrap(w->beta, {linear ? S : C});
        t->running_mean = wrap(w->running_mean, {C});
        t->running_var = wrap(w->running_var, {C});
        t->mean = wrap(w->mean32, {stats});
        t->rstd = wrap(w->rstd32, {stats});
        if (w->layer == BENCH_CROSS_ENTROPY) {
            t->labels = at::from_blob(const_cast<int *>(w->labels), {N}, at::kInt).to(at::kLong);
            t->first = at::ones({});                         // the gradient of the loss
            t->second = at::full({}, static_cast<float>(N)); // the number of labels
            if (w->pass == BENCH_BACKWARD) t->x = t->x.log();
        }
        if (w->layer == BENCH_LAYER_NORM) {
            t->mean = t->mean.view({stats, 1});
            t->rstd = t->rstd.view({stats, 1});
        }
        return 0;
    } catch (const std::exception &) {
        return -1;
    }
}

void close_state(void *state)
{
    delete static_cast<State *>(state);
}

void copy(float *to, const at::Tensor &from, size_t count)
{
    if (from.defined() && static_cast<size_t>(from.numel()) == count)
        std::memcpy(to, from.contiguous().data_ptr<float>(), count * sizeof(float));
}

void fetch(bench_work *w, void *state)
{
    State *t = static_cast<State *>(state);
    copy(w->out, t->out, w->out_count);
    if (w->layer == BENCH_CROSS_ENTROPY && w->pass == BENCH_FORWARD) {
        copy(w->out, t->out.exp(), w->out_count);
        w->loss = t->first.item<double>();
    } else if (w->pass == BENCH_BACKWARD) {
        copy(w->dgamma, w->layer == BENCH_LINEAR ? t->first.t() : t->first, w->gamma_count);
        copy(w->dbeta, t->second, w->beta_count);
    } else {
        copy(w->mean32, t->first, w->stats_count);
        copy(w->rstd32, t->second, w->stats_count);
    }
}

// Every call goes through here: no autograd, and no exception leaves C++.
template <class Body> int guarded(void *state, Body body)
{
    at::AutoDispatchBelowAutograd below;
    try {
        body(*static_cast<State *>(state));
        return 0;
    } catch (const std::exception &) {
        return -1;
    }
}

int norm_forward(bench_work *w, void *state, bool training)
{
    return guarded(state, [&](State &t) {
        std::tie(t.out, t.first, t.second) =
            at::native_batch_norm(t.x, t.gamma, t.beta, t.running_mean, t.running_var, training,
                                  static_cast<double>(w->new_weight), static_cast<double>(w->eps));
    });
}

int norm_backward(bench_work *w, void *state, bool training)
{
    return guarded(state, [&](State &t) {
        std::tie(t.out, t.first, t.second) = at::native_batch_norm_backward(
            t.dy, t.x, t.gamma, t.running_mean, t.running_var, t.mean, t.rstd, training,
            static_cast<double>(w->eps), {true, true, true});
    });
}

int batch_forward(bench_work *w, void *state)
{
    return norm_forward(w, state, true);
}

int batch_backward(bench_work *w, void *state)
{
    return norm_backward(w, state, true);
}

int fixed_forward(bench_work *w, void *state)
{
    return norm_forward(w, state, false);
}

int fixed_backward(bench_work *w, void *state)
{
    return norm_backward(w, state, false);
}

int layer_forward(bench_work *w, void *state)
{
    const int64_t row[1] = {static_cast<int64_t>(w->C)};
    return guarded(state, [&](State &t) {
        std::tie(t.out, t.first, t.second) =
            at::native_layer_norm(t.x, row, t.gamma, t.beta, static_cast<double>(w->eps));
    });
}

int layer_backward(bench_work *w, void *state)
{
    const int64_t row[1] = {static_cast<int64_t>(w->C)};
    return guarded(state, [&](State &t) {
        std::tie(t.out, t.first, t.second) = at::native_layer_norm_backward(
            t.dy, t.x, row, t.mean, t.rstd, t.gamma, t.beta, {true, true, true});
    });
}

int group_forward(bench_work *w, void *state)
{
    return guarded(state, [&](State &t) {
        std::tie(t.out, t.first, t.second) = at::native_group_norm(
            t.x, t.gamma, t.beta, static_cast<int64_t>(w->N), static_cast<int64_t>(w->C),
            static_cast<int64_t>(w->S), static_cast<int64_t>(w->G), static_cast<double>(w->eps));
    });
}

int group_backward(bench_work *w, void *state)
{
    return guarded(state, [&](State &t) {
        std::tie(t.out, t.first, t.second) = at::native_group_norm_backward(
            t.dy, t.x, t.mean, t.rstd, t.gamma, static_cast<int64_t>(w->N),
            static_cast<int64_t>(w->C), static_cast<int64_t>(w->S), static_cast<int64_t>(w->G),
            {true, true, true});
    });
}

// What its instance_norm does: batch norm of one example with N*C channels.
int instance_forward(bench_work *w, void *state)
{
    const auto N = static_cast<int64_t>(w->N), C = static_cast<int64_t>(w->C),
               S = static_cast<int64_t>(w->S);
    return guarded(state, [&](State &t) {
        std::tie(t.out, t.first, t.second) =
            at::native_batch_norm(t.x.view({1, N * C, S}), t.gamma.repeat(N), t.beta.repeat(N), {},
                                  {}, true, 0, static_cast<double>(w->eps));
    });
}

int instance_backward(bench_work *w, void *state)
{
    const auto N = static_cast<int64_t>(w->N), C = static_cast<int64_t>(w->C),
               S = static_cast<int64_t>(w->S);
    return guarded(state, [&](State &t) {
        std::tie(t.out, t.first, t.second) = at::native_batch_norm_backward(
            t.dy.view({1, N * C, S}), t.x.view({1, N * C, S}), t.gamma.repeat(N), {}, {}, t.mean,
            t.rstd, true, static_cast<double>(w->eps), {true, true, true});
        t.first = t.first.view({N, C}).sum(0);
        t.second = t.second.view({N, C}).sum(0);
    });
}

int activation_forward(bench_work *w, void *state)
{
    return guarded(state, [&](State &t) {
        t.out = w->layer == BENCH_RELU   ? at::relu(t.x)
                : w->layer == BENCH_TANH ? at::tanh(t.x)
                                         : at::sigmoid(t.x);
    });
}

int activation_backward(bench_work *w, void *state)
{
    return guarded(state, [&](State &t) {
        t.out = w->layer == BENCH_RELU   ? at::threshold_backward(t.dy, t.x, 0)
                : w->layer == BENCH_TANH ? at::tanh_backward(t.dy, t.x)
                                         : at::sigmoid_backward(t.dy, t.x);
    });
}

// What its cross_entropy does: the logarithm of the softmax, then the mean of the labels' entries.
int entropy_forward(bench_work *, void *state)
{
    return guarded(state, [&](State &t) {
        t.out = at::_log_softmax(t.x, 1, false);
        t.first = at::nll_loss(t.out, t.labels);
    });
}

int entropy_backward(bench_work *, void *state)
{
    return guarded(state, [&](State &t) {
        const at::Tensor d =
            at::nll_loss_backward(t.first, t.x, t.labels, {}, at::Reduction::Mean, -100, t.second);
        t.out = at::_log_softmax_backward_data(d, t.x, 1, at::kFloat);
    });
}

int linear_forward(bench_work *, void *state)
{
    return guarded(state, [&](State &t) { t.out = at::linear(t.x, t.gamma, t.beta); });
}

int linear_backward(bench_work *, void *state)
{
    return guarded(state, [&](State &t) {
        t.out = at::mm(t.dy, t.gamma);
        t.first = at::mm(t.dy.t(), t.x);
        t.second = t.dy.sum(0);
    });
}

} // namespace

const bench_contestant bench_torch = {
    "pytorch",
    "PyTorch " TORCH_VERSION ", ATen from C++, one thread",
    0,
    1e-4,
    open_state,
    fetch,
    close_state,
    {
        {batch_forward, batch_backward, fixed_forward},
        {fixed_forward, fixed_backward, nullptr},
        {nullptr, nullptr, nullptr},
        {layer_forward, layer_backward, layer_forward},
        {activation_forward, activation_backward, nullptr},
        {activation_forward, activation_backward, nullptr},
        {activation_forward, activation_backward, nullptr},
        {entropy_forward, entropy_backward, nullptr},
        {linear_forward, linear_backward, nullptr},
        {group_forward, group_backward, nullptr},
        {instance_forward, instance_backward, nullptr},
        {nullptr, nullptr, nullptr}, // RMS norm came with 2.4
        {nullptr, nullptr, nullptr},
        {nullptr, nullptr, nullptr},
        {nullptr, nullptr, nullptr}, // its SyncBatchNorm wants a GPU
        {nullptr, nullptr, nullptr},
    },
};
