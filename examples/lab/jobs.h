/* jobs.h - independent jobs, several at once, each in a process of its own.

   An experiment is the same training with several seeds and arms. None of them needs to know of
   the others, so each becomes a child process that writes its results into memory shared with the
   parent. Nothing else is shared: a job cannot disturb another one, the results are those of
   running the jobs one after the other, and a job that crashes is reported by name.

   An example:

       static int square(void *context, size_t index, volatile size_t *done)
       {
           ((double *)context)[index] = (double)(index * index);
           *done = 1;
           return 0;
       }

       double *results = (double *)jobs_alloc(10 * sizeof *results);
       const jobs_plan plan = {10, 0, square, results, name, tick};
       char err[JOBS_ERR_MAX];
       if (!results || jobs_run(&plan, err)) fprintf(stderr, "%s\n", err);
       jobs_free(results, 10 * sizeof *results);

   Needs POSIX.1-2008. The program must have one thread only at the time of jobs_run (a job may
   start threads of its own). On Linux the children end with their parent, however it ends.
*/
#ifndef JOBS_H
#define JOBS_H

#include <stddef.h>

#define JOBS_ERR_MAX 256 /* size of the `err` buffer: one line of text */

/* A job: does the part `index` of the work and puts the results where `context` says, which must
   be memory from jobs_alloc: whatever else it changes is lost. It may set `*done` to the units of
   work it has finished so far, for the progress of the whole. Returns 0, or another code if it
   failed; the reason is the job's own to print. It ends by returning, not by exit. */
typedef int jobs_function(void *context, size_t index, volatile size_t *done);

/* Writes the name of the job `index` into `name` of `size` bytes. */
typedef void jobs_name(void *context, size_t index, char *name, size_t size);

/* Is called in the parent, many times a second, with the sum of all `*done`. */
typedef void jobs_tick(void *context, size_t done);

typedef struct jobs_plan {
    size_t count;     /* jobs 0 ... count-1, started in this order                   */
    size_t processes; /* at once; 0: jobs_processors(). 1 is one after the other     */
    jobs_function *job;
    void *context; /* for all three */
    jobs_name *name;
    jobs_tick *tick;
} jobs_plan;

/* `size` zero bytes shared with the processes that jobs_run starts, or null. */
void *jobs_alloc(size_t size);

/* Gives them back; null is fine. */
void jobs_free(void *memory, size_t size);

/* The number of processors online, from 1 to 8. */
size_t jobs_processors(void);

/* Runs the jobs of the plan and waits for all of them. Returns 0, or -1 with the name and fate of
   the first that was found to have failed in `err` (JOBS_ERR_MAX bytes); the others that were still
   running are ended then. In both cases no child is left. */
int jobs_run(const jobs_plan *plan, char *err);

#endif /* JOBS_H */
