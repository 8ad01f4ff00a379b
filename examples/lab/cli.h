/* cli.h - the command line of the examples, and their progress on the terminal.

   All examples take the same options, each those that mean something to it:

       --seed N     --seeds N   --epochs N   --batch N   --lr X       --data DIR   --out PATH
       --csv PATH   --quick     --quiet      --threads N --plan       --help     --version

   `--opt value` and `--opt=value` are the same; of an option given twice the last counts. Whatever
   is wrong on the command line is said in one line on stderr, and the program ends with code 2,
   before any work. So it does if a result cannot be written where it should go.

   An example of a whole program:

       int main(int argc, char **argv)
       {
           size_t steps = 100, i;
           cli_option own[] = {{"steps", "N", "steps of a run", CLI_COUNT, &steps, 1, 1e6, 0}};
           cli_program program;
           cli_options o;
           cli_progress progress;
           int status;
           cli_program_init(&program, "walk", "A random walk, as an example.", CLI_USES_ALL);
           program.defaults.epochs = 3;
           program.own = own;
           program.own_count = 1;
           status = cli_parse(&o, &program, argc, argv);
           if (status != CLI_RUN) return status;
           cli_progress_start(&progress, "walking", "steps", steps, o.quiet);
           for (i = 0; i < steps; i++) cli_progress_update(&progress, i, "on foot");
           cli_progress_end(&progress);
           printf("%zu steps with seed %llu\n", steps, (unsigned long long)o.seed);
           return 0;
       }
*/
#ifndef CLI_H
#define CLI_H

#include <stddef.h>
#include <stdint.h>

/* What cli_parse returns: run the program, or end it with this very exit code. */
#define CLI_RUN (-1)
#define CLI_EXIT_OK 0    /* --help and --version did what they should */
#define CLI_EXIT_ERROR 1 /* not even their text could be written      */
#define CLI_EXIT_USAGE 2 /* the command line is wrong                 */

/* Which options apply to a program, and which were given. --help and --version always apply. */
#define CLI_USES_SEED 0x001u
#define CLI_USES_SEEDS 0x002u
#define CLI_USES_EPOCHS 0x004u
#define CLI_USES_BATCH 0x008u
#define CLI_USES_LR 0x010u
#define CLI_USES_DATA 0x020u
#define CLI_USES_OUT 0x040u
#define CLI_USES_CSV 0x080u
#define CLI_USES_QUICK 0x100u
#define CLI_USES_QUIET 0x200u
#define CLI_USES_THREADS 0x400u
#define CLI_USES_PLAN 0x800u
#define CLI_USES_ALL 0xfffu

/* The values of the options. Texts belong to the command line, or to whoever set the default. */
typedef struct cli_options {
    uint64_t seed;    /* first seed                                                     */
    size_t seeds;     /* number of seeds: seed, seed+1, ...                             */
    size_t epochs;    /* passes over the data                                           */
    size_t batch;     /* examples of a step                                             */
    double lr;        /* learning rate                                                  */
    const char *data; /* folder of the data, or null: the program's own choice          */
    const char *out;  /* folder or file of the picture, or null                         */
    const char *csv;  /* folder or file of the table, or null: beside the picture       */
    int quick;        /* 1: a small run that shows the program works                    */
    int quiet;        /* 1: no progress on the terminal                                 */
    int threads;      /* processes at once; 0: one for each processor, at most 8        */
    int plan;         /* 1: only say what would run, and how long                       */
    unsigned given;   /* CLI_USES_... of the options on the command line. --quick should
                         change only what the user did not ask for                      */
} cli_options;

/* What an option of the program's own takes, and the type behind its `value`. */
typedef enum cli_kind {
    CLI_FLAG,  /* nothing; int, set to 1                                                        */
    CLI_COUNT, /* a whole number >= 0; size_t                                                   */
    CLI_U64,   /* a whole number >= 0; uint64_t                                                 */
    CLI_INT,   /* a whole number; int                                                           */
    CLI_REAL,  /* a number; double                                                              */
    CLI_TEXT   /* a text, not empty; const char *                                               */
} cli_kind;

/* An option of the program's own. */
typedef struct cli_option {
    const char *name;        /* without the dashes                                 */
    const char *placeholder; /* "N", for --help                                   */
    const char *help;        /* half a line                                        */
    cli_kind kind;
    void *value;     /* holds the default before, the choice after, cli_parse      */
    double min, max; /* of numbers, both allowed; equal: only limits of the type   */
    int given;       /* is set by cli_parse: 1 if it was on the command line       */
} cli_option;

typedef struct cli_program {
    const char *name;    /* of the program, without folder                                  */
    const char *purpose; /* one line                                                        */
    const char *version; /* what --version prints behind the name, or null                  */
    const char *example; /* a command for --help, or null for "NAME" with an option or two  */
    const char *out;     /* what --out names, or null for "folder or file of the picture"   */
    unsigned uses;       /* CLI_USES_...                                                    */
    size_t most_seeds, most_epochs, least_batch, most_batch; /* 0: the usual limits          */
    cli_options defaults;
    cli_option *own; /* options of its own, or null */
    size_t own_count;
} cli_program;

/* Fills `*program` with these three and usual defaults: seed 11, 5 seeds, 1 epoch, batch 128, lr
   0.1, out "build/figures", everything else off. Change them before cli_parse. */
void cli_program_init(cli_program *program, const char *name, const char *purpose, unsigned uses);

/* Reads the command line into `*o`. Returns CLI_RUN, or the exit code with which main must return
   at once: CLI_EXIT_OK after --help and --version (CLI_EXIT_ERROR if stdout is broken), or
   CLI_EXIT_USAGE after one line on stderr. */
int cli_parse(cli_options *o, cli_program *program, int argc, char **argv);

/* The path of a result named `name` ("loss.png") where the user gave `out`: the file `out` itself
   if it ends in the same extension, else the file `name` in the folder `out` (null: the current
   folder). Returns 0, or -1 if `path` of `size` bytes is too small, and is then "". */
int cli_path(char *path, size_t size, const char *out, const char *name);

/* `other` with its extension replaced: "out/loss.png" and ".csv" give "out/loss.csv". Returns as
   above. */
int cli_path_beside(char *path, size_t size, const char *other, const char *extension);

/* Where picture and table of a program go, "out/NAME.png" and "out/NAME.csv", as --out and --csv
   say; those of a quick run are "out/NAME_quick.png" and so on, beside the full ones. Both have
   `size` bytes. Returns CLI_RUN, or the exit code after one line on stderr, if the paths are too
   long or cannot be written. */
int cli_results(char *png, char *csv, size_t size, const char *name, const cli_options *o,
                int quick);

/* Prints what --plan says, "NAME 40 runs, 12 to do; 800.0 s on one core, 240.0 s to do", and for a
   quick run no times. Returns CLI_EXIT_OK, or CLI_EXIT_ERROR if that cannot be written. */
int cli_print_plan(const char *name, const cli_options *o, size_t runs, size_t to_do,
                   double seconds, double seconds_to_do);

/* What a figure says of a run in front of everything else: that it was a quick one, or "". */
const char *cli_quick_note(int quick);

/* ---- progress ---- */

/* One line on stderr with percent, rate, time so far and time to go:

       training  45% 12.3 steps/s 0:36 left 0:44  loss 0.31

   It is drawn only if stderr is a terminal that is not dumb, at most ten times a second, and erased
   at the end. Treat the members as private. */
typedef struct cli_progress {
    int active;
    const char *title, *unit;
    size_t total;
    double started, drawn; /* seconds of the monotonic clock */
} cli_progress;

/* Starts it: `title` and `unit` ("steps") must live until the end; `total` > 0 units of work.
   Without a unit no rate is shown. */
void cli_progress_start(cli_progress *p, const char *title, const char *unit, size_t total,
                        int quiet);

/* `done` units so far are done; `note` (or null) is shown behind the times. Cheap enough to be
   called for every step of a training. */
void cli_progress_update(cli_progress *p, size_t done, const char *note);

/* The same as a callback: `progress` is a cli_progress *. */
void cli_progress_tick(void *progress, size_t done);

/* Erases the line. Call it before anything else is printed. */
void cli_progress_end(cli_progress *p);

#endif /* CLI_H */
