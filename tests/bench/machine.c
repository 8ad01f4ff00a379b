/* machine.c - what a benchmark wants of the machine: a clock, one processor, priority. */
#ifdef __linux__
#define _GNU_SOURCE /* sched_setaffinity */
#include <sched.h>
#else
#define _XOPEN_SOURCE 700
#endif
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int bench_pin(int cpu)
{
#ifdef __linux__
    cpu_set_t allowed, one;
    int i, last = -1;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return -1;
    for (i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &allowed)) last = i;
    if (cpu < 0) cpu = last;
    if (cpu < 0 || cpu >= CPU_SETSIZE) return -1;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) ? -1 : cpu;
#else
    (void)cpu;
    return -1;
#endif
}

int bench_hurry(void)
{
    int nice;
    for (nice = -20; nice < 0; nice++)
        if (setpriority(PRIO_PROCESS, 0, nice) == 0) return nice;
    return 0;
}

void bench_keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_MAX, 0); /* also the largest blocks: M_MMAP_THRESHOLD ends at 32 MiB */
    mallopt(M_TRIM_THRESHOLD, 0x7fffffff);
    mallopt(M_TOP_PAD, 64 << 20);
#endif
}

void bench_processor(char *name, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(name, size, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value) continue;
        snprintf(name, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (f) fclose(f);
}
