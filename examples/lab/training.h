/* training.h - what every training in the examples needs: a data set as numbers, an order in which
   its mini-batches are dealt, and a network in a block of its own.

   The order comes from a random stream of its own, so that two networks trained with the same seed
   see the same batches whatever else they draw: comparisons are paired.

   An example:

       training_set set;
       training_order order;
       void *block;
       nrm_mlp *net = training_net(&spec, &block);
       if (!net || training_set_make(&set, pixels, labels, n, 784, DATASET_RAW01) ||
           training_order_start(&order, n, 64, 784, seed))
           return 1;
       for (epoch = 0; epoch < 5; epoch++)
           while (training_next(&order, &set))
               nrm_mlp_train_step(net, &loss, order.x, order.labels, order.count);
*/
#ifndef TRAINING_H
#define TRAINING_H

#include "dataset.h"
#include "normlayers.h"

#ifdef NRM_DOUBLE /* as in normlayers.h: both precisions in one program, in different files */
#define training_set_make training_set_make_f64
#define training_set_free training_set_free_f64
#define training_order_start training_order_start_f64
#define training_order_free training_order_free_f64
#define training_next training_next_f64
#define training_steps training_steps_f64
#define training_net training_net_f64
#define training_load training_load_f64
#define training_go_on training_go_on_f64
#define training_draw training_draw_f64
#define training_plain training_plain_f64
#define training_notebook training_notebook_f64
#define training_squares training_squares_f64
#define training_dot training_dot_f64
#define training_rms training_rms_f64
#define training_farthest training_farthest_f64
#define training_distance training_distance_f64
#define training_log_length training_log_length_f64
#define training_same_bits training_same_bits_f64
#define training_forward training_forward_f64
#define training_gradient training_gradient_f64
#define training_cosine training_cosine_f64
#define training_reestimate training_reestimate_f64
#endif

typedef struct training_set { /* a data set as the network takes it */
    nrm_real *x;              /* [n][features] */
    int *labels;              /* [n]           */
    size_t n, features;
} training_set;

typedef struct training_order { /* deals mini-batches, in a new order each epoch */
    size_t *index;              /* [n] the order of this epoch                          */
    size_t n, at, batch, features;
    nrm_rng rng;
    nrm_real *x; /* [count][features] the present batch; count < batch for the last one */
    int *labels; /* [count]                                                             */
    size_t count;
} training_order;

/* The streams of random numbers that the examples draw for themselves; the network uses small
   stream numbers for its own. */
enum { TRAINING_STREAM_ORDER = 1000000, TRAINING_STREAM_DATA = 1000001 };

/* Copies n examples of `features` bytes each. Returns 0, or -1 if memory is out. */
int training_set_make(training_set *set, const unsigned char *pixels, const unsigned char *labels,
                      size_t n, size_t features, dataset_encoding encoding);
void training_set_free(training_set *set);

/* Both parts of a data set of 28x28 pixels, the first train_n and test_n examples (0: all); `test`
   may be null. Returns 0, or -1 after a line on stderr. */
int training_load(training_set *train, training_set *test, const dataset *data, size_t train_n,
                  size_t test_n, dataset_encoding encoding);

/* Begins the order for batches of `batch` out of n examples. Returns 0, or -1 if memory is out. */
int training_order_start(training_order *order, size_t n, size_t batch, size_t features,
                         uint64_t seed);
void training_order_free(training_order *order);

/* Gathers the next batch. Returns its size; 0 at the end of an epoch, and the next call begins
   another one. */
size_t training_next(training_order *order, const training_set *set);

/* The same without end: after the last batch of an epoch comes the first of another. Batches
   shorter than `least` are passed over (1: none is). */
void training_go_on(training_order *order, const training_set *set, size_t least);

/* A batch that is drawn with replacement, each example from all of them. */
void training_draw(training_order *order, const training_set *set);

/* Of weights, gradients, outputs: the sums of products and of squares, the root mean square, the
   length of a - b, in double and in the order of the numbers; the largest |a - b|, or |a| if b is
   null, nan if one is. */
double training_dot(const nrm_real *a, const nrm_real *b, size_t n);
double training_squares(const nrm_real *a, size_t n);
double training_rms(const nrm_real *a, size_t n);
double training_distance(const nrm_real *a, const nrm_real *b, size_t n);
double training_farthest(const nrm_real *a, const nrm_real *b, size_t n);

/* log10 of the length of a vector, also where its square is too small or too large for a double;
   of zeros, and where one is not finite, not finite either. */
double training_log_length(const nrm_real *a, size_t n);

/* Of two matrices [rows][cols], such as weights and their gradient: the largest |cosine| between a
   column of a and that of b. Columns of zeros in b do not count. */
double training_cosine(const nrm_real *a, const nrm_real *b, size_t rows, size_t cols);

/* Have two networks of one shape the same parameters and running statistics, to the bit? Two
   trainings of which only one was looked at must end so. */
int training_same_bits(const nrm_mlp *a, const nrm_mlp *b);

/* Computes the running statistics of batch norm anew (header, ST.7) from n >= 2 examples, taken
   forward in train mode, max_batch at a time (3 or more if n is odd). With `sync` each worker
   brings its own examples, or none. Returns a status of the header. If it is negative, running
   statistics have moved, and workers that have others must be stopped. */
int training_reestimate(nrm_mlp *net, const nrm_real *x, size_t n);

/* Mini-batches of an epoch, the shorter last one included. */
size_t training_steps(size_t n, size_t batch);

/* A plain network for the examples' data: `hidden` layers of the same width, activation and norm,
   without bias where there is a norm, and a layer of ten logits. Fills layer[hidden + 1]; returns
   the defaults with inputs, layers and Xavier's weights. max_batch, seed, lr are the caller's. */
nrm_mlp_spec training_plain(nrm_mlp_layer *layer, size_t hidden, size_t width, int activation,
                            int norm);

/* The network of the MNIST comparison, after a tutorial's notebook: 784-64-128-10, ReLU, a bias in
   every layer, weights and biases uniform in ±1/sqrt(inputs). Fills layer[3]; max_batch, seed, lr
   are the caller's. */
nrm_mlp_spec training_notebook(nrm_mlp_layer *layer, int norm);

/* What hidden layers have between linear part and activation that nrm_mlp has not: forward leads
   from linear_out to norm_out of layer l (without a norm they are the same), backward turns the
   gradient d [N][width] of the one into that of the other, in place. Both return a status. */
typedef struct training_between {
    void *context;
    int (*forward)(void *context, nrm_mlp *net, size_t l, size_t N);
    int (*backward)(void *context, nrm_mlp *net, size_t l, nrm_real *d, size_t N);
} training_between;

/* Logits, and loss and gradients, of a network with that: in its arrays, by the layers' own
   functions. A status of the header. */
int training_forward(nrm_mlp *net, const nrm_real *x, size_t N, const training_between *with);
int training_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N,
                      const training_between *with);

/* Allocates a block and makes a network in it. NULL, after a line on stderr, if that fails. */
nrm_mlp *training_net(const nrm_mlp_spec *spec, void **block);

#endif /* TRAINING_H */
