/* stack.c - how much stack the calls take that take most of it: on a stack of their own, which
   was painted before. The arguments are the limits in bytes: of all, and of layer norm's backward
   pass of rows wider than 1024. Prints what is above its limit, and fails. */
#define _POSIX_C_SOURCE 200809L
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20, MOST = 60000, N = 8, C = 3000 };
static nrm_real x[MOST], y[MOST], dgamma[MOST], dbeta[MOST];
static nrm_acc mean[MOST], rstd[MOST];
static nrm_stats stats[C];
static nrm_sums sums[C];
static int which;

static void *call(void *nothing)
{
    const int l1 = NRM_L1 + NRM_CENTRED, train = NRM_TRAIN;
    if (which == 1) nrm_batchnorm_forward(y, mean, rstd, 0, x, 0, 0, train, NRM_EPS, N, C, 1);
    if (which == 2) nrm_batchnorm_backward(y, dgamma, dbeta, x, x, mean, rstd, 0, train, N, C, 1);
    if (which == 3) nrm_layernorm_backward(y, dgamma, dbeta, x, x, mean, rstd, 0, N, 1000);
    if (which == 4)
        nrm_lp_batchnorm_forward(y, mean, rstd, 0, x, 0, 0, l1, train, NRM_EPS, N, C, 1);
    if (which == 5)
        nrm_lp_batchnorm_backward(y, dgamma, dbeta, x, x, mean, rstd, 0, l1, train, NRM_EPS, N, C,
                                  1);
    if (which == 6) nrm_linear_forward(y, x, x + N * 900, 0, N, 900, 30);
    if (which == 7)
        nrm_batchrenorm_backward(y, dgamma, dbeta, x, x, mean, rstd, mean, rstd, 0, train, N, C, 1);
    if (which == 8) nrm_groupnorm_backward(y, dgamma, dbeta, x, x, mean, rstd, 0, 4, 1000, 5, 10);
    if (which == 9) nrm_weightnorm_forward(y, mean, x, 0, N, C);
    if (which == 10) nrm_sync_batchnorm_backward(y, x, x, 0, mean, rstd, 0, stats, sums, N, C, 1);
    if (which == 11) nrm_layernorm_backward(y, dgamma, dbeta, x, x, mean, rstd, 0, N, C);
    return nothing;
}

int main(int argc, char **argv)
{
    size_t i, taken, start = 0;
    int bad = argc != 3;
    for (i = 0; i < MOST; i++) {
        x[i] = (nrm_real)(i % 7);
        mean[i] = 3;
        rstd[i] = 1;
    }
    for (i = 0; i < C; i++) stats[i].count = N;
    for (which = 0; which < 12 && !bad; which++) { /* 0: what a thread takes by itself */
        const size_t limit = (size_t)atol(argv[which == 11 ? 2 : 1]);
        pthread_attr_t how;
        pthread_t thread;
        void *stack = NULL;
        if (posix_memalign(&stack, 4096, ROOM)) return 1;
        memset(stack, 0xA7, ROOM);
        if (pthread_attr_init(&how) || pthread_attr_setstack(&how, stack, ROOM) ||
            pthread_create(&thread, &how, call, NULL) || pthread_join(thread, NULL))
            return 1;
        for (i = 0; i < ROOM && ((unsigned char *)stack)[i] == 0xA7;) i++;
        if (which == 0) start = ROOM - i;
        taken = ROOM - i - start;
        if (which > 0 && taken > limit) bad = printf("call %d takes %d bytes\n", which, (int)taken);
        free(stack);
    }
    return bad != 0;
}
