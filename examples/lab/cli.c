/* cli.c - see cli.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "cli.h"
#include "csv.h"
#include "files.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLII_STANDARD 12
#define CLII_MESSAGE_MAX 800

/* ---- the options as one table ---- */

/* The options that all programs share, with the limits of this one; entry i belongs to the bit i of
   CLI_USES_... */
static void clii_make_standard(cli_option *table, const cli_program *program, cli_options *o)
{
    const double seeds = program->most_seeds ? (double)program->most_seeds : 1000;
    const double epochs = program->most_epochs ? (double)program->most_epochs : 1e6;
    const double least = program->least_batch ? (double)program->least_batch : 1;
    const double most = program->most_batch ? (double)program->most_batch : 1e6;
    const char *out = program->out ? program->out : "folder or file of the picture";
    const cli_option standard[CLII_STANDARD] = {
        {"seed", "N", "first random seed", CLI_U64, &o->seed, 0, 0, 0},
        {"seeds", "N", "number of seeds", CLI_COUNT, &o->seeds, 1, seeds, 0},
        {"epochs", "N", "passes over the data", CLI_COUNT, &o->epochs, 1, epochs, 0},
        {"batch", "N", "examples of a step", CLI_COUNT, &o->batch, least, most, 0},
        {"lr", "X", "learning rate", CLI_REAL, &o->lr, 1e-12, 1e6, 0},
        {"data", "DIR", "folder of MNIST, or \"synthetic\"", CLI_TEXT, &o->data, 0, 0, 0},
        {"out", "PATH", out, CLI_TEXT, &o->out, 0, 0, 0},
        {"csv", "PATH", "folder or file of the table", CLI_TEXT, &o->csv, 0, 0, 0},
        {"quick", "", "a small run, to see that it works", CLI_FLAG, &o->quick, 0, 0, 0},
        {"quiet", "", "no progress on the terminal", CLI_FLAG, &o->quiet, 0, 0, 0},
        {"threads", "N", "processes at once, 0: one for each processor", CLI_INT, &o->threads, 0,
         256, 0},
        {"plan", "", "only say what would run, and how long", CLI_FLAG, &o->plan, 0, 0, 0}};
    memcpy(table, standard, sizeof standard);
}

void cli_program_init(cli_program *program, const char *name, const char *purpose, unsigned uses)
{
    memset(program, 0, sizeof *program);
    program->name = name;
    program->purpose = purpose;
    program->uses = uses;
    program->defaults.seed = 11;
    program->defaults.seeds = 5;
    program->defaults.epochs = 1;
    program->defaults.batch = 128;
    program->defaults.lr = 0.1;
    program->defaults.out = "build/figures";
}

/* ---- help ---- */

/* Prints "(default ...)", if there is one to speak of. */
static void clii_print_default(const cli_option *option)
{
    char number[CSV_NUMBER_MAX];
    const char *text;
    switch (option->kind) {
    case CLI_FLAG:
        return;
    case CLI_COUNT:
        printf(" (default %zu)", *(const size_t *)option->value);
        return;
    case CLI_U64:
        printf(" (default %llu)", (unsigned long long)*(const uint64_t *)option->value);
        return;
    case CLI_INT:
        printf(" (default %d)", *(const int *)option->value);
        return;
    case CLI_REAL:
        printf(" (default %s)", csv_format(number, *(const double *)option->value));
        return;
    case CLI_TEXT:
        text = *(const char *const *)option->value;
        if (text) printf(" (default %s)", text);
        return;
    }
}

static void clii_print_option(const cli_option *option)
{
    char left[80];
    (void)snprintf(left, sizeof left, "--%s %s", option->name,
                   option->kind == CLI_FLAG ? "" : option->placeholder);
    printf("  %-22s  %s", left, option->help);
    clii_print_default(option);
    printf("\n");
}

static void clii_print_help(const cli_program *program, const cli_option *standard)
{
    size_t i;
    printf("%s: %s\n\nusage: %s [options]\n\n", program->name, program->purpose, program->name);
    for (i = 0; i < program->own_count; i++) clii_print_option(&program->own[i]);
    for (i = 0; i < CLII_STANDARD; i++)
        if (program->uses >> i & 1u) clii_print_option(&standard[i]);
    printf("  %-22s  this text\n  %-22s  the version\n", "--help", "--version");
    printf("\nexample: ");
    if (program->example)
        printf("%s\n", program->example);
    else
        printf("%s%s%s\n", program->name, program->uses & CLI_USES_QUICK ? " --quick" : "",
               program->uses & CLI_USES_SEED ? " --seed 3" : "");
}

/* A full disk or a closed pipe shows only when the text leaves the buffer. */
static int clii_finish_stdout(const cli_program *program)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_EXIT_OK;
    fprintf(stderr, "%s: cannot write to stdout\n", program->name);
    return CLI_EXIT_ERROR;
}

/* ---- parsing ---- */

/* Says "NAME: ..." in one line, whatever the user typed, and returns CLI_EXIT_USAGE. */
static int clii_complain(const cli_program *program, const char *what, const char *option,
                         const char *rest, const char *value)
{
    char line[CLII_MESSAGE_MAX], *c;
    (void)snprintf(line, sizeof line, "%s: %s%.100s%s%.100s", program->name, what, option, rest,
                   value);
    for (c = line; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127) *c = '?';
    fprintf(stderr, "%s\n", line);
    return CLI_EXIT_USAGE;
}

static int clii_out_of_range(const cli_program *program, const cli_option *option,
                             const char *value)
{
    char range[160], low[CSV_NUMBER_MAX], high[CSV_NUMBER_MAX];
    if (option->min < option->max)
        (void)snprintf(range, sizeof range, ": must be from %s to %s, not ",
                       csv_format(low, option->min), csv_format(high, option->max));
    else
        (void)snprintf(range, sizeof range, ": too small or too large: ");
    return clii_complain(program, "option --", option->name, range, value);
}

/* Is the whole text digits, perhaps behind a minus sign? */
static int clii_is_whole(const char *text)
{
    const char *digits = *text == '-' ? text + 1 : text;
    return *digits && strspn(digits, "0123456789") == strlen(digits);
}

static int clii_in_range(const cli_option *option, double x)
{
    return !(option->min < option->max) || (x >= option->min && x <= option->max);
}

/* Stores a whole number >= 0. */
static int clii_store_unsigned(const cli_program *program, const cli_option *option,
                               const char *value)
{
    const unsigned long long most = option->kind == CLI_COUNT ? (size_t)-1 : UINT64_MAX;
    unsigned long long x;
    errno = 0;
    x = strtoull(value, NULL, 10);
    if (*value == '-' || errno != 0 || x > most || !clii_in_range(option, (double)x))
        return clii_out_of_range(program, option, value);
    if (option->kind == CLI_COUNT)
        *(size_t *)option->value = (size_t)x;
    else
        *(uint64_t *)option->value = (uint64_t)x;
    return CLI_RUN;
}

static int clii_store_int(const cli_program *program, const cli_option *option, const char *value)
{
    long x;
    errno = 0;
    x = strtol(value, NULL, 10);
    if (errno != 0 || x < INT_MIN || x > INT_MAX || !clii_in_range(option, (double)x))
        return clii_out_of_range(program, option, value);
    *(int *)option->value = (int)x;
    return CLI_RUN;
}

static int clii_store(const cli_program *program, const cli_option *option, const char *value)
{
    double x;
    switch (option->kind) {
    case CLI_FLAG:
        *(int *)option->value = 1;
        return CLI_RUN;
    case CLI_TEXT:
        *(const char **)option->value = value;
        return CLI_RUN;
    case CLI_REAL:
        if (csv_read_number(value, &x) != 0 || isnan(x) || isinf(x))
            return clii_complain(program, "option --", option->name, ": not a number: ", value);
        if (!clii_in_range(option, x)) return clii_out_of_range(program, option, value);
        *(double *)option->value = x;
        return CLI_RUN;
    case CLI_COUNT:
    case CLI_U64:
    case CLI_INT:
        break;
    }
    if (!clii_is_whole(value))
        return clii_complain(program, "option --", option->name, ": not a whole number: ", value);
    return option->kind == CLI_INT ? clii_store_int(program, option, value)
                                   : clii_store_unsigned(program, option, value);
}

/* The option named by the first n characters, in the program's own table or the common one. An
   own option may hide a common one. */
static cli_option *clii_find(cli_program *program, cli_option *standard, const char *name, size_t n)
{
    size_t i;
    for (i = 0; i < program->own_count + CLII_STANDARD; i++) {
        cli_option *option =
            i < program->own_count ? &program->own[i] : &standard[i - program->own_count];
        if (strlen(option->name) == n && memcmp(option->name, name, n) == 0) return option;
    }
    return NULL;
}

/* Handles the option argv[*i], and its value behind it. Returns as cli_parse does. */
static int clii_parse_one(cli_options *o, cli_program *program, cli_option *standard, int argc,
                          char **argv, int *i)
{
    const char *name = argv[*i] + 2, *value = strchr(name, '=');
    cli_option *option =
        clii_find(program, standard, name, value ? (size_t)(value - name) : strlen(name));
    size_t index;
    if (!option) return clii_complain(program, "unknown option ", argv[*i], "; try --help", "");
    index = option >= standard && option < standard + CLII_STANDARD ? (size_t)(option - standard)
                                                                    : CLII_STANDARD;
    if (index < CLII_STANDARD && !(program->uses >> index & 1u))
        return clii_complain(program, "option --", option->name, " does not apply here; try --help",
                             "");
    if (option->kind == CLI_FLAG) {
        if (value) return clii_complain(program, "option --", option->name, " takes no value", "");
    } else if (value) {
        value++;
    } else if (*i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0) {
        value = argv[++*i];
    }
    if (option->kind != CLI_FLAG && (!value || !*value))
        return clii_complain(program, "option --", option->name, " needs a value", "");
    option->given = 1;
    if (index < CLII_STANDARD) o->given |= 1u << index;
    return clii_store(program, option, value);
}

int cli_parse(cli_options *o, cli_program *program, int argc, char **argv)
{
    cli_option standard[CLII_STANDARD];
    cli_options defaults = program->defaults;
    int i;
    *o = program->defaults;
    o->given = 0;
    for (i = 1; i < argc; i++) {
        int status;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            clii_make_standard(standard, program, &defaults);
            clii_print_help(program, standard);
            return clii_finish_stdout(program);
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("%s%s%s\n", program->name, program->version ? " " : "",
                   program->version ? program->version : "");
            return clii_finish_stdout(program);
        }
        if (argv[i][0] != '-' || argv[i][1] != '-' || !argv[i][2])
            return clii_complain(program,
                                 argv[i][0] == '-' ? "unknown option " : "unexpected argument ",
                                 argv[i], "; try --help", "");
        clii_make_standard(standard, program, o);
        status = clii_parse_one(o, program, standard, argc, argv, &i);
        if (status != CLI_RUN) return status;
    }
    return CLI_RUN;
}

/* ---- paths ---- */

/* Where the extension of the path starts, at its end if it has none. */
static const char *clii_extension(const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const char *dot = strrchr(file, '.');
    return dot && dot > file ? dot : path + strlen(path);
}

static int clii_fits(char *path, size_t size, int length)
{
    if (length >= 0 && (size_t)length < size) return 0;
    if (size) *path = 0;
    return -1;
}

int cli_path(char *path, size_t size, const char *out, const char *name)
{
    const char *extension = clii_extension(name);
    size_t n = out ? strlen(out) : 0;
    if (!n) return clii_fits(path, size, snprintf(path, size, "%s", name));
    if (*extension && strcmp(clii_extension(out), extension) == 0)
        return clii_fits(path, size, snprintf(path, size, "%s", out));
    return clii_fits(path, size,
                     snprintf(path, size, "%s%s%s", out, out[n - 1] == '/' ? "" : "/", name));
}

int cli_path_beside(char *path, size_t size, const char *other, const char *extension)
{
    size_t n = (size_t)(clii_extension(other) - other);
    if (n >= size) return clii_fits(path, size, -1);
    return clii_fits(path, size, snprintf(path, size, "%.*s%s", (int)n, other, extension));
}

int cli_results(char *png, char *csv, size_t size, const char *name, const cli_options *o,
                int quick)
{
    char file[2][256], err[FILES_ERR_MAX] = "the path is too long";
    int i, failed;
    for (i = 0; i < 2; i++)
        (void)snprintf(file[i], sizeof file[i], "%.200s%s%s", name, quick ? "_quick" : "",
                       i ? ".csv" : ".png");
    failed = cli_path(png, size, o->out, file[0]);
    if (!failed)
        failed =
            o->csv ? cli_path(csv, size, o->csv, file[1]) : cli_path_beside(csv, size, png, ".csv");
    if (!failed && !files_can_write(png, err) && !files_can_write(csv, err)) return CLI_RUN;
    fprintf(stderr, "%s: nothing was run: %s\n", name, err);
    return CLI_EXIT_USAGE;
}

int cli_print_plan(const char *name, const cli_options *o, size_t runs, size_t to_do,
                   double seconds, double seconds_to_do)
{
    printf("%s %zu runs, %zu to do; ", name, runs, to_do);
    if (o->quick)
        printf("quick ones, of a second or so\n");
    else
        printf("%.1f s on one core, %.1f s to do\n", seconds, seconds_to_do);
    return fflush(stdout) || ferror(stdout) ? CLI_EXIT_ERROR : CLI_EXIT_OK;
}

const char *cli_quick_note(int quick)
{
    return quick ? "QUICK RUN, only to show that it works. " : "";
}

/* ---- progress ---- */

static double clii_now(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Writes "BEFORE m:ss" or "BEFORE h:mm:ss". */
static void clii_print_time(const char *before, double seconds)
{
    const double most = 359999; /* 99:59:59 */
    const long s = (long)(seconds < most ? seconds : most);
    fprintf(stderr, "%s ", before);
    if (s >= 3600) fprintf(stderr, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    if (s < 3600) fprintf(stderr, "%ld:%02ld", s / 60, s % 60);
}

/* In a line that the terminal cuts instead of wrapping it. */
static void clii_draw(const cli_progress *p, size_t done, double now, const char *note)
{
    const double elapsed = now - p->started, rate = elapsed > 0 ? (double)done / elapsed : 0;
    fprintf(stderr, "\r\033[K\033[?7l%s %3d%%", p->title,
            (int)(100 * (double)done / (double)p->total));
    if (p->unit) fprintf(stderr, " %.*f %s/s", rate < 100 ? 1 : 0, rate, p->unit);
    clii_print_time("", elapsed);
    if (rate > 0) clii_print_time(" left", (double)(p->total - done) / rate);
    fprintf(stderr, "%s%s\033[?7h", note ? "  " : "", note ? note : "");
    (void)fflush(stderr);
}

void cli_progress_start(cli_progress *p, const char *title, const char *unit, size_t total,
                        int quiet)
{
    const char *term = getenv("TERM");
    memset(p, 0, sizeof *p);
    p->title = title;
    p->unit = unit;
    p->total = total;
    p->active = !quiet && term && *term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
    if (!p->active) return;
    p->started = p->drawn = clii_now();
    clii_draw(p, 0, p->started, NULL);
}

void cli_progress_update(cli_progress *p, size_t done, const char *note)
{
    double now;
    if (!p->active) return;
    now = clii_now();
    if (now - p->drawn < 0.1) return;
    p->drawn = now;
    clii_draw(p, done > p->total ? p->total : done, now, note);
}

void cli_progress_tick(void *progress, size_t done)
{
    cli_progress_update((cli_progress *)progress, done, NULL);
}

void cli_progress_end(cli_progress *p)
{
    if (p->active) fputs("\r\033[K", stderr);
    p->active = 0;
}
