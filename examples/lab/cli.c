/* cli.c - see cli.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "cli.h"
#include "csv.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- help ---- */

static void clii_print_option(const cli_option *option)
{
    const void *value = option->value;
    char left[80], number[CSV_NUMBER_MAX];
    (void)snprintf(left, sizeof left, "--%s %s", option->name, option->placeholder);
    printf("  %-22s  %s", left, option->help);
    if (option->kind == CLI_WHOLE) printf(" (default %zu)", *(const size_t *)value);
    if (option->kind == CLI_REAL)
        printf(" (default %s)", csv_format(number, *(const double *)value));
    if (option->kind == CLI_TEXT && *(const char *const *)value)
        printf(" (default %s)", *(const char *const *)value);
    printf("\n");
}

/* ---- parsing ---- */

/* Takes the value of an option. Returns 0, or -1 with the reason in err. */
static int clii_store(const cli_option *option, const char *value, char *err)
{
    char low[CSV_NUMBER_MAX], high[CSV_NUMBER_MAX];
    const int whole = option->kind == CLI_WHOLE;
    double x;
    if (!value || !*value) return files_fail(err, "option --%s needs a value", option->name);
    if (option->kind == CLI_TEXT) {
        *(const char **)option->value = value;
        return 0;
    }
    if (csv_read_number(value, &x) || (whole && value[strspn(value, "0123456789")]))
        return files_fail(err, "option --%s: not a %snumber: %.100s", option->name,
                          whole ? "whole " : "", value);
    if (!(x >= option->min && x <= option->max))
        return files_fail(err, "option --%s: must be from %s to %s, not %.100s", option->name,
                          csv_format(low, option->min), csv_format(high, option->max), value);
    if (whole)
        *(size_t *)option->value = (size_t)x;
    else
        *(double *)option->value = x;
    return 0;
}

/* Takes the option argv[*i], and its value behind it. Returns 0, or -1 with the reason in err. */
static int clii_take(cli_option *option, size_t options, int argc, char **argv, int *i, char *err)
{
    const char *word = argv[*i], *name = word + 2, *value = NULL;
    const size_t n = strcspn(word, "=");
    size_t k = 0;
    if (strncmp(word, "--", 2) != 0)
        return files_fail(err, "unexpected argument %.100s; try --help", word);
    while (k < options &&
           (strlen(option[k].name) != n - 2 || memcmp(option[k].name, name, n - 2) != 0))
        k++;
    if (k == options) return files_fail(err, "unknown option %.100s; try --help", word);
    option += k;
    option->given = 1;
    if (option->kind == CLI_FLAG) {
        *(int *)option->value = 1;
        return word[n] ? files_fail(err, "option --%s takes no value", option->name) : 0;
    }
    if (word[n])
        value = word + n + 1;
    else if (*i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0)
        value = argv[++*i];
    return clii_store(option, value, err);
}

int cli_parse(const char *name, const char *purpose, cli_option *option, size_t options, int argc,
              char **argv)
{
    char err[FILES_ERR_MAX];
    size_t k;
    int i;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0) continue;
        printf("%s: %s\n\nusage: %s [options]\n\n", name, purpose, name);
        for (k = 0; k < options; k++) clii_print_option(&option[k]);
        printf("  %-22s  this text\n", "--help");
        return fflush(stdout) || ferror(stdout); /* a full disk or a closed pipe */
    }
    for (i = 1; i < argc; i++) {
        if (clii_take(option, options, argc, argv, &i, err) == 0) continue;
        fprintf(stderr, "%s: %s\n", name, err);
        return CLI_EXIT_USAGE;
    }
    return CLI_RUN;
}

int cli_results(char *png, char *csv, size_t size, const char *name, const char *out, int quick)
{
    const char *const infix = quick ? "_quick" : "";
    char err[FILES_ERR_MAX] = "the path is too long";
    const int n = snprintf(png, size, "%s/%s%s.png", out, name, infix);
    (void)snprintf(csv, size, "%s/%s%s.csv", out, name, infix);
    if (n > 0 && (size_t)n < size && !files_can_write(png, err) && !files_can_write(csv, err))
        return CLI_RUN;
    fprintf(stderr, "%s: nothing was run: %s\n", name, err);
    return CLI_EXIT_USAGE;
}

const char *cli_quick_note(int quick)
{
    return quick ? "QUICK RUN, only to show that it works. " : "";
}

/* ---- progress ---- */

double cli_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
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
    const double elapsed = now - p->started;
    fprintf(stderr, "\r\033[K\033[?7l%s %3d%%", p->title,
            (int)(100 * (double)done / (double)p->total));
    clii_print_time("", elapsed);
    if (done > 0) clii_print_time(" left", elapsed * (double)(p->total - done) / (double)done);
    fprintf(stderr, "  %s\033[?7h", note);
    (void)fflush(stderr);
}

void cli_progress_start(cli_progress *p, const char *title, size_t total, int quiet)
{
    const char *term = getenv("TERM");
    memset(p, 0, sizeof *p);
    p->title = title;
    p->total = total;
    p->active = !quiet && term && *term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
    if (!p->active) return;
    p->started = p->drawn = cli_seconds();
    clii_draw(p, 0, p->started, "");
}

void cli_progress_update(cli_progress *p, size_t done, const char *note)
{
    const double now = p->active ? cli_seconds() : 0;
    if (!p->active || now - p->drawn < 0.1) return;
    p->drawn = now;
    clii_draw(p, done > p->total ? p->total : done, now, note);
}

void cli_progress_end(cli_progress *p)
{
    if (p->active) fputs("\r\033[K", stderr);
    p->active = 0;
}
