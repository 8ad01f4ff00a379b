/* cli.h - the command line of the examples, and their progress on the terminal.

   `--opt value` and `--opt=value` are the same; of an option given twice the last counts. Whatever
   is wrong on the command line is said in one line on stderr, and the program ends with code 2,
   before any work. So it does if a result cannot be written where it should go.

   An example of a whole program:

       int main(int argc, char **argv)
       {
           size_t seed = 11, steps = 100, i;
           int quick = 0;
           cli_option option[] = {{"steps", "N", "steps of a run", CLI_WHOLE, &steps, 1, 1e6},
                                  CLI_SEED(&seed), CLI_QUICK(&quick)};
           cli_progress progress;
           int status = cli_parse("walk", "A random walk, as an example", option, 3, argc, argv);
           if (status != CLI_RUN) return status;
           if (quick && !option[0].given) steps = 10;
           cli_progress_start(&progress, "walking", steps, 0);
           for (i = 0; i < steps; i++) cli_progress_update(&progress, i, "on foot");
           cli_progress_end(&progress);
           printf("%zu steps with seed %zu\n", steps, seed);
           return 0;
       }
*/
#ifndef CLI_H
#define CLI_H

#include <stddef.h>

/* What cli_parse returns: run the program, or end it with this very exit code. */
#define CLI_RUN (-1)
#define CLI_EXIT_USAGE 2 /* the command line is wrong */

/* What an option takes, and the type behind its `value`. */
typedef enum cli_kind {
    CLI_FLAG,  /* nothing; int, set to 1                  */
    CLI_WHOLE, /* a whole number >= 0; size_t             */
    CLI_REAL,  /* a number; double                        */
    CLI_TEXT   /* a text, not empty; const char *         */
} cli_kind;

typedef struct cli_option {
    const char *name;        /* without the dashes                                 */
    const char *placeholder; /* "N", for --help                                   */
    const char *help;        /* half a line                                        */
    cli_kind kind;
    void *value;     /* holds the default before, the choice after, cli_parse      */
    double min, max; /* of numbers, both allowed                                   */
    int given;       /* is set by cli_parse: 1 if it was on the command line       */
} cli_option;

/* The options that several programs have. */
/* clang-format off */
#define CLI_SEED(value) {"seed", "N", "first random seed", CLI_WHOLE, value, 0, 9007199254740000, 0}
#define CLI_SEEDS(value, most) {"seeds", "N", "number of seeds", CLI_WHOLE, value, 1, most, 0}
#define CLI_DATA(value) \
    {"data", "DIR", "folder of MNIST, or \"synthetic\"", CLI_TEXT, value, 0, 0, 0}
#define CLI_OUT(value) {"out", "DIR", "folder of the results", CLI_TEXT, value, 0, 0, 0}
#define CLI_QUICK(value) \
    {"quick", "", "a small run, to see that it works", CLI_FLAG, value, 0, 0, 0}
#define CLI_QUIET(value) {"quiet", "", "no progress on the terminal", CLI_FLAG, value, 0, 0, 0}
/* clang-format on */

/* Reads the command line into the options of the program `name`. Returns CLI_RUN, or the exit code
   with which main must return at once: 0 after --help (1 if stdout is broken), or CLI_EXIT_USAGE
   after one line on stderr. */
int cli_parse(const char *name, const char *purpose, cli_option *option, size_t options, int argc,
              char **argv);

/* Where picture and table of a program go, "out/NAME.png" and "out/NAME.csv"; those of a quick run
   are "out/NAME_quick.png" and so on, beside the full ones. Both have `size` bytes. Returns
   CLI_RUN, or the exit code after one line on stderr, if they cannot be written. */
int cli_results(char *png, char *csv, size_t size, const char *name, const char *out, int quick);

/* What a figure says of a run in front of everything else: that it was a quick one, or "". */
const char *cli_quick_note(int quick);

/* ---- progress ---- */

/* One line on stderr with percent, time so far and time to go:

       training  45% 0:36 left 0:44  loss 0.31

   It is drawn only if stderr is a terminal that is not dumb, at most ten times a second, and erased
   at the end. Treat the members as private. */
typedef struct cli_progress {
    int active;
    const char *title;
    size_t total;
    double started, drawn; /* seconds of the monotonic clock */
} cli_progress;

/* Starts it: `title` must live until the end; `total` > 0 units of work. */
void cli_progress_start(cli_progress *p, const char *title, size_t total, int quiet);

/* `done` units so far are done; `note` is shown behind the times. Cheap enough to be called for
   every step of a training. */
void cli_progress_update(cli_progress *p, size_t done, const char *note);

/* Erases the line. Call it before anything else is printed. */
void cli_progress_end(cli_progress *p);

/* Seconds of the monotonic clock. */
double cli_seconds(void);

#endif /* CLI_H */
