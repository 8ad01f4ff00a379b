/* torch.c - PyTorch as a contestant of accuracy.c: a process that runs torch_norms.py, which gets
   problems through one pipe and answers through another, so that both sides see the same bits. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "accuracy.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_all(int to, const void *data, size_t n)
{
    const char *at = (const char *)data;
    while (n > 0) {
        const ssize_t done = write(to, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

static int read_all(int from, void *data, size_t n)
{
    char *at = (char *)data;
    while (n > 0) {
        const ssize_t done = read(from, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

/* The first line: PyTorch's version. */
static int read_version(torch_process *t)
{
    size_t n = 0;
    while (n + 1 < sizeof t->version) {
        if (read_all(t->from, t->version + n, 1)) return -1;
        if (t->version[n] == '\n') {
            t->version[n] = 0;
            return 0;
        }
        n++;
    }
    return -1;
}

/* In the new process: its ends of the pipes become stdin and stdout. */
static void become_python(const int to[2], const int from[2], const char *python,
                          const char *script)
{
    if (dup2(to[0], 0) >= 0 && dup2(from[1], 1) >= 0) {
        (void)close(to[0]);
        (void)close(to[1]);
        (void)close(from[0]);
        (void)close(from[1]);
        (void)execlp(python, python, script, (char *)NULL);
    }
    perror(python);
    _exit(127);
}

int torch_start(torch_process *t, const char *python, const char *script)
{
    int to[2], from[2];
    pid_t pid;
    memset(t, 0, sizeof *t);
    if (pipe(to)) return -1;
    if (pipe(from)) {
        (void)close(to[0]);
        (void)close(to[1]);
        return -1;
    }
    (void)signal(SIGPIPE,
                 SIG_IGN); /* a write to a process that has died is an error, not the end */
    pid = fork();
    if (pid == 0) become_python(to, from, python, script);
    (void)close(to[0]);
    (void)close(from[1]);
    t->to = to[1];
    t->from = from[0];
    t->pid = (long)pid;
    t->running = 1;
    if (pid > 0 && read_version(t) == 0) return 0;
    torch_stop(t);
    t->version[0] = 0;
    return -1;
}

void torch_stop(torch_process *t)
{
    if (!t->running) return;
    (void)close(t->to);
    (void)close(t->from);
    if (t->pid > 0) (void)waitpid((pid_t)t->pid, NULL, 0);
    t->running = 0;
}

static int send_problem(const torch_process *t, const problem *p)
{
    const size_t n = quantity_size(p, Y) * sizeof *p->x, c = p->C * sizeof *p->x;
    char line[128];
    const int length =
        snprintf(line, sizeof line, "%s %zu %zu %zu %zu %.9g\n",
                 p->layer == BATCH_NORM   ? "batch"
                 : p->layer == LAYER_NORM ? "layer"
                                          : "group",
                 p->N, p->C, p->S, p->G, (double)p->eps);
    return write_all(t->to, line, (size_t)length) || write_all(t->to, p->x, n) ||
           write_all(t->to, p->dy, n) || write_all(t->to, p->gamma, c) ||
           write_all(t->to, p->beta, c);
}

int torch_run(void *context, const problem *p, answer *a)
{
    torch_process *t = (torch_process *)context;
    float *values;
    int k, failed;
    if (p->layer == RMS_NORM) return -1; /* it is new there */
    values = (float *)malloc(quantity_size(p, Y) * sizeof *values);
    failed = !t->running || values == NULL || send_problem(t, p);
    for (k = 0; k < QUANTITIES && !failed; k++) {
        const size_t n = quantity_size(p, k);
        size_t i;
        failed = read_all(t->from, values, n * sizeof *values);
        for (i = 0; i < n && !failed; i++) a->out[k][i] = (double)values[i];
    }
    free(values);
    if (failed) torch_stop(t); /* out of step: no later problem may get this one's answer */
    return failed ? -1 : 0;
}
