/* two_workers.c - data-parallel training without MPI: two processes and a socket, each process with
   a copy of the network and its part of every batch, 11 examples and 5. nrm_sync adds gradients up
   and merges the statistics of batch norm: the steps are those of one process with all 16. */
#define _POSIX_C_SOURCE 200809L
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N = 16, FIRST = 11, STEPS = 50, MOST = 1024 };
typedef struct team {
    int rank, file;
    nrm_acc all[2][MOST]; /* what both workers have, in the order of their ranks */
} team;

static int exchange(team *t, const void *mine, size_t n) /* n values; rank 0 speaks first */
{
    const size_t bytes = n * sizeof(nrm_acc);
    if (n > MOST) return -1;
    memcpy(t->all[t->rank], mine, bytes);
    if (t->rank == 0 && write(t->file, mine, bytes) != (ssize_t)bytes) return -1;
    if (recv(t->file, t->all[!t->rank], bytes, MSG_WAITALL) != (ssize_t)bytes) return -1;
    return t->rank == 1 && write(t->file, mine, bytes) != (ssize_t)bytes;
}
static int add(void *context, nrm_acc *sums, size_t n)
{
    team *t = (team *)context;
    size_t i;
    if (exchange(t, sums, n)) return -1;
    for (i = 0; i < n; i++) sums[i] = t->all[0][i] + t->all[1][i];
    return 0;
}
static int merge(void *context, nrm_stats *stats, size_t n)
{
    team *t = (team *)context;
    if (exchange(t, stats, 3 * n)) return -1; /* a nrm_stats is three nrm_acc */
    memcpy(stats, t->all[0], n * sizeof *stats);
    return nrm_stats_merge(stats, (const nrm_stats *)(const void *)t->all[1], n);
}

static double train(team *t, int from, int to) /* on examples from..to-1: the last loss */
{
    static unsigned char block[1 << 16];
    const nrm_mlp_layer layer[2] = {{12, NRM_TANH, NRM_BATCH_NORM, 0, 0, 0, 0},
                                    {2, NRM_IDENTITY, NRM_NO_NORM, 0, 1, 0, 0}};
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net;
    nrm_real x[N][2];
    nrm_acc loss = 0;
    int labels[N], i, rc;
    for (i = 0; i < N; i++) /* every second one is of the other class */
        labels[i] = i % 2, x[i][0] = (nrm_real)(i * 7 % 5), x[i][1] = (nrm_real)(i * i % 11);
    spec.inputs = 2, spec.layers = 2, spec.layer = layer, spec.max_batch = N;
    if (t != NULL) spec.sync.add = add, spec.sync.merge = merge, spec.sync.context = t;
    rc = nrm_mlp_init(&net, block, sizeof block, &spec);
    for (i = 0; i < STEPS && rc == NRM_OK; i++)
        rc = nrm_mlp_train_step(net, &loss, x[from], labels + from, (size_t)(to - from));
    return rc == NRM_OK ? loss : HUGE_VAL;
}

int main(void)
{
    static team t;
    int ends[2];
    double both, one;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
    t.rank = fork() == 0; /* the child is worker 1 */
    t.file = ends[t.rank];
    both = train(&t, t.rank ? FIRST : 0, t.rank ? N : FIRST);
    if (t.rank == 1) return both == HUGE_VAL;
    one = train(NULL, 0, N);
    printf("loss after %d steps: two workers %.4f, one %.4f\n", STEPS, both, one);
    return !(fabs(both - one) < 1e-4);
}
