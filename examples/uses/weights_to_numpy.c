/* weights_to_numpy.c FOLDER - trains a network without a norm and one with layer norm; writes the
   losses as a CSV, for plot_csv.py, and the second one's weights, for weights_from_c.py. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#define NPZ_IMPLEMENTATION
#include "../npz.h"

enum { N = 64, IN = 2, WIDTH = 16, OUT = 2, STEPS = 200, F32 = NPZ_F32 };
static nrm_real x[N][IN];
static nrm_acc loss[2][STEPS];

static nrm_mlp *train(int norm, nrm_acc *losses)
{
    static unsigned char block[1 << 17];
    nrm_mlp_layer layer[3] = {{WIDTH, NRM_RELU, 0, 0, 0, 0, 0}, {WIDTH, NRM_RELU, 0, 0, 0, 0, 0},
                              {OUT, NRM_IDENTITY, 0, 0, 1, 0, 0}};
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net;
    int labels[N], i, rc;
    for (i = 0; i < N; i++) labels[i] = x[i][0] * x[i][1] > 0; /* two opposite quadrants */
    layer[0].norm = layer[1].norm = norm;
    layer[0].bias = layer[1].bias = norm == NRM_NO_NORM; /* else beta is the bias */
    spec.inputs = IN, spec.layers = 3, spec.layer = layer, spec.max_batch = N, spec.seed = 7;
    rc = nrm_mlp_init(&net, block, sizeof block, &spec);
    for (i = 0; i < STEPS && rc == NRM_OK; i++)
        rc = nrm_mlp_train_step(net, &losses[i], x[0], labels, N);
    if (rc == NRM_OK) rc = nrm_mlp_forward(net, x[0], N, NRM_INFER);
    return rc == NRM_OK ? net : NULL;
}

static int save(const char *path, nrm_mlp *net) /* W is [in][out] */
{
    nrm_mlp_state *s = net->state;
    npz_array a[10];
    a[0] = npz_make("x", F32, x, 2, N, IN), a[1] = npz_make("logits", F32, net->logits, 2, N, OUT);
    a[2] = npz_make("0.W", F32, s[0].W, 2, IN, WIDTH);
    a[3] = npz_make("0.gamma", F32, s[0].gamma, 1, WIDTH, 0);
    a[4] = npz_make("0.beta", F32, s[0].beta, 1, WIDTH, 0);
    a[5] = npz_make("1.W", F32, s[1].W, 2, WIDTH, WIDTH);
    a[6] = npz_make("1.gamma", F32, s[1].gamma, 1, WIDTH, 0);
    a[7] = npz_make("1.beta", F32, s[1].beta, 1, WIDTH, 0);
    a[8] = npz_make("2.W", F32, s[2].W, 2, WIDTH, OUT);
    a[9] = npz_make("2.b", F32, s[2].b, 1, OUT, 0);
    return npz_save(path, a, 10, NULL);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    nrm_mlp *net;
    char path[2][1024];
    FILE *csv;
    int i;
    for (i = 0; i < N * IN; i++) x[i / IN][i % IN] = (nrm_real)(i * i * 37 % 101 - 50) / 50;
    if (train(NRM_NO_NORM, loss[0]) == NULL) return 1;
    if ((net = train(NRM_LAYER_NORM, loss[1])) == NULL) return 1;
    for (i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", folder, i ? "weights.npz" : "losses.csv");
    if ((csv = fopen(path[0], "w")) == NULL) return perror(path[0]), 1;
    fprintf(csv, "step,no norm,layer norm\n");
    for (i = 0; i < STEPS; i++) fprintf(csv, "%d,%.6f,%.6f\n", i + 1, loss[0][i], loss[1][i]);
    printf("last losses %.4f, with layer norm %.4f\n", loss[0][STEPS - 1], loss[1][STEPS - 1]);
    return fclose(csv) || save(path[1], net);
}
