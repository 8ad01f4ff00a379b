/* torch.c - PyTorch as a contestant of accuracy.c: a process that runs torch_norms.py, which gets
   problems through one pipe and answers through another, so that both sides see the same bits. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "accuracy.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *to, *from;

const char *torch_start(const char *python, const char *script, const char *answers)
{
    static char version[64];
    char command[2048];
    (void)unlink(answers);
    if (mkfifo(answers, 0600)) return NULL;
    (void)signal(SIGPIPE,
                 SIG_IGN); /* a write to a process that has died is an error, not the end */
    (void)snprintf(command, sizeof command, "exec '%s' '%s' >'%s'", python, script, answers);
    to = popen(command, "w");
    from = to != NULL ? fopen(answers, "rb") : NULL;
    (void)unlink(answers);
    if (from != NULL && fgets(version, sizeof version, from)) {
        version[strcspn(version, "\n")] = 0;
        return version;
    }
    (void)torch_stop();
    return NULL;
}

int torch_stop(void)
{
    const int ended = to == NULL;
    if (from != NULL) (void)fclose(from);
    if (to != NULL) (void)pclose(to);
    to = from = NULL;
    return ended ? -1 : 0;
}

static int send_problem(const problem *p)
{
    static const char *const name[LAYERS] = {"batch", "layer", "group", ""};
    const size_t n = quantity_size(p, Y), c = p->C;
    fprintf(to, "%s %zu %zu %zu %zu %.9g\n", name[p->layer], p->N, p->C, p->S, p->G,
            (double)p->eps);
    return fwrite(p->x, sizeof *p->x, n, to) < n || fwrite(p->dy, sizeof *p->dy, n, to) < n ||
           fwrite(p->gamma, sizeof *p->gamma, c, to) < c ||
           fwrite(p->beta, sizeof *p->beta, c, to) < c || fflush(to) != 0;
}

int torch_run(int way, const problem *p, answer *a)
{
    float *values;
    int k, failed;
    (void)way;
    if (p->layer == RMS_NORM) return -1; /* it is new there */
    values = (float *)malloc(quantity_size(p, Y) * sizeof *values);
    failed = to == NULL || values == NULL || send_problem(p);
    for (k = 0; k < QUANTITIES && !failed; k++) {
        const size_t n = quantity_size(p, k);
        size_t i;
        failed = fread(values, sizeof *values, n, from) < n;
        for (i = 0; i < n && !failed; i++) a->out[k][i] = (double)values[i];
    }
    free(values);
    if (failed) (void)torch_stop(); /* out of step: no later problem may get this one's answer */
    return failed ? -1 : 0;
}
