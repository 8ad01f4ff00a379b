/* jobs.c - see jobs.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

int jobs_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 8 ? 8 : (int)n;
}

/* What a job tells its parent; one of these for each job, with the job as its only writer, so that
   no two processes ever add to the same counter. */
typedef struct jobsi_report {
    volatile size_t done;
    volatile int status;   /* what the job returned                  */
    volatile int finished; /* it has returned, and did not call exit */
} jobsi_report;

/* A running child. Its end of the pipe closes when it ends, however it does. */
typedef struct jobsi_child {
    pid_t pid;
    size_t index;
    int pipe;
} jobsi_child;

typedef struct jobsi_run {
    const jobs_plan *plan;
    jobsi_report *reports;
    jobsi_child children[JOBS_PROCESSES_MAX];
    int running;
    size_t next; /* the first job not yet started */
    char *err;
} jobsi_run;

static void jobsi_print_name(const jobs_plan *plan, size_t index, char *name, size_t size)
{
    if (plan->name)
        plan->name(plan->context, index, name, size);
    else
        (void)snprintf(name, size, "job %zu", index);
}

/* Puts "job 3 HOW" into err and returns -1. */
static int jobsi_fail(const jobsi_run *run, size_t index, const char *how)
{
    char name[128];
    if (!run->err) return -1;
    jobsi_print_name(run->plan, index, name, sizeof name);
    (void)snprintf(run->err, JOBS_ERR_MAX, "%.127s %.120s", name, how);
    return -1;
}

/* ---- signals that ask the program to end ---- */

enum { JOBSI_SIGNALS = 3 };

static const int jobsi_signals[JOBSI_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction jobsi_old[JOBSI_SIGNALS];
static volatile sig_atomic_t jobsi_caught; /* the signal, or 0 */

static void jobsi_note_signal(int number)
{
    jobsi_caught = number;
}

/* Notes those signals that would have ended the program at once. */
static void jobsi_catch_signals(void)
{
    struct sigaction note;
    int i;
    memset(&note, 0, sizeof note);
    note.sa_handler = jobsi_note_signal;
    (void)sigemptyset(&note.sa_mask);
    jobsi_caught = 0;
    for (i = 0; i < JOBSI_SIGNALS; i++) {
        (void)sigaction(jobsi_signals[i], NULL, &jobsi_old[i]);
        if (jobsi_old[i].sa_handler == SIG_DFL) (void)sigaction(jobsi_signals[i], &note, NULL);
    }
}

static void jobsi_release_signals(void)
{
    int i;
    for (i = 0; i < JOBSI_SIGNALS; i++) (void)sigaction(jobsi_signals[i], &jobsi_old[i], NULL);
}

/* The life of a child. It must not run what the parent has registered for its own exit. */
static void jobsi_live(const jobsi_run *run, size_t index, pid_t parent)
{
    jobsi_report *report = &run->reports[index];
    jobsi_release_signals();
    if (jobsi_caught) _exit(1);
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0ul, 0ul, 0ul);
#endif
    if (getppid() != parent) _exit(1); /* it ended before it could be watched */
    report->status = run->plan->job(run->plan->context, index, &report->done);
    (void)fflush(NULL);
    report->finished = 1;
    _exit(report->status == 0 ? 0 : 1);
}

/* Starts the next job. Returns 0; 1 if there is no process to be had just now; -1 on failure. */
static int jobsi_start(jobsi_run *run)
{
    jobsi_child *child = &run->children[run->running];
    const pid_t parent = getpid();
    int ends[2], reason;
    if (pipe(ends) != 0) return run->running ? 1 : jobsi_fail(run, run->next, strerror(errno));
    (void)fflush(NULL); /* or the child would print again what still waits in buffers */
    child->pid = fork();
    reason = errno;
    if (child->pid == 0) jobsi_live(run, run->next, parent);
    (void)close(ends[1]);
    if (child->pid < 0) {
        (void)close(ends[0]);
        return run->running ? 1 : jobsi_fail(run, run->next, strerror(reason));
    }
    child->index = run->next++;
    child->pipe = ends[0];
    run->running++;
    return 0;
}

/* Waits for the end of a child and takes it off the list. Returns its wait status. */
static int jobsi_reap(jobsi_run *run, int which)
{
    jobsi_child child = run->children[which];
    int status = 0;
    pid_t got;
    do {
        got = waitpid(child.pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    (void)close(child.pipe);
    run->children[which] = run->children[--run->running];
    return got < 0 ? -1 : status;
}

/* What became of the child: 0, or -1 with the message. What it reported itself comes first: where
   SIGCHLD is ignored there is no wait status. */
static int jobsi_judge(const jobsi_run *run, size_t index, int status)
{
    const jobsi_report *report = &run->reports[index];
    char how[128];
    if (report->finished && report->status == 0) return 0;
    if (report->finished)
        (void)snprintf(how, sizeof how, "failed with code %d", report->status);
    else if (status != -1 && WIFSIGNALED(status))
        (void)snprintf(how, sizeof how, "was ended by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(how, sizeof how, "ended before it was finished");
    return jobsi_fail(run, index, how);
}

static void jobsi_report_progress(const jobsi_run *run)
{
    size_t i, sum = 0;
    if (!run->plan->tick) return;
    for (i = 0; i < run->next; i++) sum += run->reports[i].done;
    run->plan->tick(run->plan->tick_context, sum);
}

/* Waits until a child ends or it is time to report. Returns 0, or -1 if a job failed. */
static int jobsi_wait(jobsi_run *run)
{
    struct pollfd watched[JOBS_PROCESSES_MAX];
    int i, ready, status = 0;
    for (i = 0; i < run->running; i++) {
        watched[i].fd = run->children[i].pipe;
        watched[i].events = POLLIN;
        watched[i].revents = 0;
    }
    ready = poll(watched, (nfds_t)run->running, 100);
    /* Downwards, since reaping moves the last child into the gap. */
    for (i = run->running; i-- > 0 && ready > 0;) {
        size_t index = run->children[i].index;
        if (!watched[i].revents) continue;
        if (jobsi_judge(run, index, jobsi_reap(run, i)) != 0) {
            status = -1;
            break;
        }
    }
    jobsi_report_progress(run);
    return status;
}

static void jobsi_end_children(jobsi_run *run)
{
    int i;
    for (i = 0; i < run->running; i++) (void)kill(run->children[i].pid, SIGKILL);
    while (run->running) (void)jobsi_reap(run, 0);
}

int jobs_run(const jobs_plan *plan, char *err)
{
    int limit = plan->processes > 0 ? plan->processes : jobs_processors(), status = 0;
    jobsi_run run;
    memset(&run, 0, sizeof run);
    run.plan = plan;
    run.err = err;
    if (err) *err = 0;
    if (!plan->count) return 0;
    if (limit > JOBS_PROCESSES_MAX) limit = JOBS_PROCESSES_MAX;
    if (plan->count <= (size_t)-1 / sizeof *run.reports)
        run.reports = (jobsi_report *)jobs_alloc(plan->count * sizeof *run.reports);
    if (!run.reports) return jobsi_fail(&run, 0, "got no shared memory");
    jobsi_catch_signals();
    while (status == 0 && (run.next < plan->count || run.running) && !jobsi_caught) {
        int started = 0;
        while (started == 0 && run.next < plan->count && run.running < limit)
            started = jobsi_start(&run);
        status = started < 0 ? -1 : jobsi_wait(&run);
    }
    jobsi_end_children(&run);
    jobs_free(run.reports, plan->count * sizeof *run.reports);
    jobsi_release_signals();
    if (!jobsi_caught) return status;
    (void)raise(jobsi_caught); /* this time it ends the program */
    return -1;
}
