// cpp_tensor.cpp - layer norm on a tensor type that is not ours, in C++11: the library wants its
// pointer and its shape, and a status becomes an exception.
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <cstdio>
#include <stdexcept>
#include <vector>

// Somebody else's: dense, row-major, the last axis is that of the features.
struct Tensor {
    std::vector<std::size_t> shape;
    std::vector<float> values;
    explicit Tensor(const std::vector<std::size_t> &s, float fill = 0) : shape(s), values()
    {
        std::size_t count = 1;
        for (std::size_t extent : s) count *= extent;
        values.assign(count, fill);
    }
    std::size_t features() const { return shape.back(); }
    std::size_t rows() const { return values.size() / features(); }
};

static void require(int status)
{
    if (status != NRM_OK) throw std::runtime_error(nrm_strerror(status));
}

// Over the last axis, as torch.nn.LayerNorm(x.shape[-1]) does.
static Tensor layer_norm(const Tensor &x, const Tensor &gamma, const Tensor &beta,
                         float eps = NRM_EPS)
{
    if (gamma.values.size() != x.features() || beta.values.size() != x.features())
        throw std::invalid_argument("gamma and beta have another length than the last axis");
    Tensor y(x.shape);
    require(nrm_layernorm_forward(y.values.data(), nullptr, nullptr, x.values.data(),
                                  gamma.values.data(), beta.values.data(), eps, x.rows(),
                                  x.features()));
    return y;
}

int main()
{
    Tensor x({2, 2, 3}); // two sequences of two tokens with three features
    for (std::size_t i = 0; i < x.values.size(); i++)
        x.values[i] = static_cast<float>(i * i % 7);
    const Tensor gamma({3}, 2), beta({3}, 1), y = layer_norm(x, gamma, beta);
    for (std::size_t i = 0; i < y.values.size(); i++)
        std::printf("%8.4f%s", static_cast<double>(y.values[i]), i % 3 == 2 ? "\n" : "");
    try {
        layer_norm(x, gamma, beta, -1);
    } catch (const std::runtime_error &e) {
        std::printf("refused: %s\n", e.what());
    }
}
