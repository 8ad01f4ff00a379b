/* jobs.c - see jobs.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

void *jobs_alloc(size_t size)
{
    void *memory = MAP_FAILED;
    if (!size) return NULL;
#if defined(MAP_ANONYMOUS)
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
#elif defined(MAP_ANON)
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANON, -1, 0);
#else /* a strict POSIX.1-2008 has no name for it; mapping this device is the same memory */
    {
        int fd = open("/dev/zero", O_RDWR);
        if (fd < 0) return NULL;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void)close(fd);
    }
#endif
    return memory == MAP_FAILED ? NULL : memory;
}

void jobs_free(void *memory, size_t size)
{
    if (memory) (void)munmap(memory, size);
}

size_t jobs_processors(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 8 ? 8 : (size_t)n;
}

/* What a job tells its parent; one of these for each job, with the job as its only writer, so that
   no two processes ever add to the same counter. */
typedef struct jobsi_report {
    volatile size_t done;
    volatile int status;   /* what the job returned                  */
    volatile int finished; /* it has returned, and did not call exit */
} jobsi_report;

typedef struct jobsi_run {
    const jobs_plan *plan;
    jobsi_report *reports;
    pid_t *child;         /* [count] of running jobs; else 0 */
    size_t running, next; /* next: the first job not yet started */
} jobsi_run;

/* Puts "NAME HOW" into err and returns -1. */
static int jobsi_fail(const jobs_plan *plan, size_t index, const char *how, char *err)
{
    char name[128];
    plan->name(plan->context, index, name, sizeof name);
    (void)snprintf(err, JOBS_ERR_MAX, "%.127s %.120s", name, how);
    return -1;
}

/* The life of a child. It must not run what the parent has registered for its own exit. */
static void jobsi_live(const jobsi_run *run, size_t index, pid_t parent)
{
    jobsi_report *report = &run->reports[index];
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0ul, 0ul, 0ul);
#endif
    if (getppid() != parent) _exit(1); /* it ended before it could be watched */
    report->status = run->plan->job(run->plan->context, index, &report->done);
    (void)fflush(NULL);
    report->finished = 1;
    _exit(report->status == 0 ? 0 : 1);
}

static int jobsi_start(jobsi_run *run, char *err)
{
    const pid_t parent = getpid();
    pid_t child;
    (void)fflush(NULL); /* or the child would print again what still waits in buffers */
    child = fork();
    if (child < 0) return jobsi_fail(run->plan, run->next, strerror(errno), err);
    if (child == 0) jobsi_live(run, run->next, parent);
    run->child[run->next++] = child;
    run->running++;
    return 0;
}

/* What became of the job: 0, or -1 with the message. */
static int jobsi_judge(const jobsi_run *run, size_t index, int status, char *err)
{
    const jobsi_report *report = &run->reports[index];
    char how[128];
    if (report->finished && report->status == 0) return 0;
    if (report->finished)
        (void)snprintf(how, sizeof how, "failed with code %d", report->status);
    else if (WIFSIGNALED(status))
        (void)snprintf(how, sizeof how, "was ended by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(how, sizeof how, "ended before it was finished");
    return jobsi_fail(run->plan, index, how, err);
}

/* Takes the children that have ended off the list, or sleeps for a moment if none has. */
static int jobsi_wait(jobsi_run *run, char *err)
{
    const struct timespec moment = {0, 10000000};
    size_t i;
    int status, failed = 0, ended = 0;
    for (i = 0; i < run->next && !failed; i++) {
        if (!run->child[i] || waitpid(run->child[i], &status, WNOHANG) == 0) continue;
        run->child[i] = 0;
        run->running--;
        ended = 1;
        failed = jobsi_judge(run, i, status, err);
    }
    if (!ended) (void)nanosleep(&moment, NULL);
    return failed;
}

static void jobsi_tick(const jobsi_run *run)
{
    size_t i, sum = 0;
    for (i = 0; i < run->next; i++) sum += run->reports[i].done;
    run->plan->tick(run->plan->context, sum);
}

int jobs_run(const jobs_plan *plan, char *err)
{
    jobsi_run run = {plan, NULL, NULL, 0, 0};
    const size_t limit = plan->processes > 0 ? plan->processes : jobs_processors();
    size_t i;
    int failed = 0;
    *err = 0;
    if (!plan->count) return 0;
    run.child = (pid_t *)calloc(plan->count, sizeof *run.child);
    run.reports = (jobsi_report *)jobs_alloc(plan->count * sizeof *run.reports);
    if (!run.child || !run.reports) failed = jobsi_fail(plan, 0, "got no memory", err);
    (void)signal(SIGCHLD, SIG_DFL); /* where it is ignored nobody hears how a child ended */
    while (!failed && (run.next < plan->count || run.running)) {
        while (!failed && run.next < plan->count && run.running < limit)
            failed = jobsi_start(&run, err);
        if (!failed) failed = jobsi_wait(&run, err);
        jobsi_tick(&run);
    }
    for (i = 0; i < run.next; i++)
        if (run.child[i]) (void)kill(run.child[i], SIGKILL);
    for (i = 0; i < run.next; i++)
        if (run.child[i]) (void)waitpid(run.child[i], NULL, 0);
    jobs_free(run.reports, plan->count * sizeof *run.reports);
    free(run.child);
    return failed;
}
