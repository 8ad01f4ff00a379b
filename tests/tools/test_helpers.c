/* test_helpers.c - the small headers of the examples: files, cli, csv, stats and jobs.

   Link it with the implementations of those headers. It writes only below a temporary folder of
   its own, which it removes. */
#define _XOPEN_SOURCE 700 /* mkdtemp and pseudo terminals */

#include "lab/cli.h"
#include "lab/csv.h"
#include "lab/files.h"
#include "lab/jobs.h"
#include "lab/stats.h"
#include "folder.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- helpers of the tests ---- */

/* Number of entries of a folder whose name contains `part`. */
static int count_entries(const char *folder, const char *part)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int n = 0;
    if (!dir) return -1;
    while ((entry = readdir(dir)) != NULL) n += strstr(entry->d_name, part) != NULL;
    closedir(dir);
    return n;
}

/* Does the file hold exactly this text? */
static int file_is(const char *path, const char *text)
{
    unsigned char *data;
    size_t n;
    int same;
    if (files_read(path, 1 << 20, &data, &n, NULL) != 0) return 0;
    same = n == strlen(text) && memcmp(data, text, n) == 0;
    free(data);
    return same;
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static int same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* ---- files.h ---- */

static void test_files_round_trip(void)
{
    char err[FILES_ERR_MAX];
    unsigned char bytes[256], *data;
    size_t i, n;
    for (i = 0; i < 256; i++) bytes[i] = (unsigned char)i;
    CHECK_INT(files_write("new/deep/folder/bytes.bin", bytes, 256, err), 0);
    CHECK_STR(err, "");
    CHECK_INT(files_read("new/deep/folder/bytes.bin", 256, &data, &n, err), 0);
    CHECK(n == 256 && memcmp(data, bytes, 256) == 0 && data[256] == 0);
    free(data);
    CHECK_INT(files_write("new/deep/folder/bytes.bin", NULL, 0, err), 0);
    CHECK_INT(files_read("new/deep/folder/bytes.bin", 0, &data, &n, err), 0);
    CHECK(n == 0 && data && data[0] == 0);
    free(data);
    CHECK_INT(count_entries("new/deep/folder", ".tmp"), 0);
}

static void test_files_without_folder(void)
{
    CHECK_INT(files_write("plain.txt", "plain", 5, NULL), 0);
    CHECK(file_is("plain.txt", "plain"));
}

/* A limit on the size of files makes the write fail in the middle, for any user. */
static void test_files_failed_write_keeps_old(void)
{
    pid_t child;
    int status = -1;
    CHECK_INT(files_write("failing/kept.txt", "old", 3, NULL), 0);
    child = fork();
    if (child == 0) {
        char err[FILES_ERR_MAX], *big = (char *)calloc(1, 100000);
        struct rlimit limit;
        int bad = 0;
        limit.rlim_cur = limit.rlim_max = 4096;
        (void)signal(SIGXFSZ, SIG_IGN);
        if (!big || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(99);
        if (files_write("failing/kept.txt", big, 100000, err) != -1) bad |= 1;
        if (!strstr(err, "failing/kept.txt")) bad |= 2;
        if (!strstr(err, strerror(EFBIG)) || strchr(err, '\n')) bad |= 4;
        _exit(bad);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    CHECK(file_is("failing/kept.txt", "old"));
    CHECK_INT(count_entries("failing", ""), 3); /* . .. kept.txt */
}

static void test_files_refusals(void)
{
    char err[FILES_ERR_MAX], longest[6000];
    CHECK_INT(files_write("a-file", "x", 1, err), 0);
    CHECK_INT(files_write("a-file/below", "x", 1, err), -1);
    CHECK(strstr(err, "a-file/below") != NULL && strstr(err, strerror(ENOTDIR)) != NULL);
    CHECK_INT(files_write("a-file/b/c", "x", 1, err), -1);
    CHECK_INT(files_write(test_folder, "x", 1, err), -1);
    CHECK(strstr(err, strerror(EISDIR)) != NULL);
    CHECK_INT(files_write("", "x", 1, err), -1);
    CHECK_INT(files_write(NULL, "x", 1, err), -1);
    CHECK_INT(files_write("x", NULL, 1, err), -1);
    CHECK_INT(access("x", F_OK), -1);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CHECK_INT(files_write(longest, "x", 1, err), -1);
    CHECK(strstr(err, strerror(ENAMETOOLONG)) != NULL && strlen(err) < FILES_ERR_MAX);
    CHECK_INT(files_write("a-file/two\nlines", "x", 1, err), -1);
    CHECK(strchr(err, '\n') == NULL);
    CHECK_INT(files_write("/dev/null", "x", 1, err), -1); /* a rename would take its place */
    CHECK(strstr(err, "not a regular file") != NULL);
    if (geteuid() == 0) return; /* nothing is unwritable for root */
    CHECK_INT(mkdir("locked", 0555), 0);
    CHECK_INT(files_write("locked/x", "x", 1, err), -1);
    CHECK(strstr(err, strerror(EACCES)) != NULL);
    CHECK_INT(chmod("a-file", 0444), 0);
    CHECK_INT(files_write("a-file", "y", 1, err), -1);
    CHECK(file_is("a-file", "x"));
}

static void test_files_read_limits(void)
{
    char err[FILES_ERR_MAX];
    unsigned char *data = (unsigned char *)err;
    size_t n = 7;
    CHECK_INT(files_write("ten.txt", "0123456789", 10, NULL), 0);
    CHECK_INT(files_read("ten.txt", 9, &data, &n, err), -1);
    CHECK(data == NULL && n == 0 && strstr(err, "ten.txt") != NULL);
    CHECK_INT(files_read("ten.txt", 10, &data, &n, err), 0);
    CHECK_INT(n, 10);
    free(data);
    CHECK_INT(files_read("ten.txt", (size_t)-1, &data, &n, err), 0);
    free(data);
    CHECK_INT(files_read("missing", 10, &data, &n, err), -1);
    CHECK(strstr(err, strerror(ENOENT)) != NULL);
    CHECK_INT(files_read(test_folder, 10, &data, &n, err), -1);
    CHECK_INT(files_read("/dev/zero", 10, &data, &n, err), -1);
    CHECK_INT(files_read("", 10, &data, &n, NULL), -1);
    CHECK_INT(mkfifo("fifo", 0600), 0);
    CHECK_INT(files_read("fifo", 10, &data, &n, err), -1); /* and does not wait for a writer */
}

/* Files of /proc say that they are empty and are not. */
static void test_files_read_unknown_size(void)
{
    unsigned char *data;
    size_t n;
    if (access("/proc/self/status", R_OK) != 0) return;
    CHECK_INT(files_read("/proc/self/status", 1 << 20, &data, &n, NULL), 0);
    CHECK(n > 100 && data && strlen((char *)data) == n);
    free(data);
    CHECK_INT(files_read("/proc/self/status", 100, &data, &n, NULL), -1);
}

static void test_files_hash(void)
{
    uint64_t h = files_hash(FILES_HASH_INIT, "foo", 3);
    CHECK(files_hash(FILES_HASH_INIT, "", 0) == FILES_HASH_INIT);
    CHECK(files_hash(FILES_HASH_INIT, "a", 1) == (uint64_t)0xaf63dc4c8601ec8cu);
    CHECK(files_hash(h, "bar", 3) == (uint64_t)0x85944171f73967e8u);
}

/* ---- cli.h ---- */

typedef struct cli_case {
    size_t seed, steps;
    int flag;
    double eps;
    const char *label;
    cli_option option[5];
} cli_case;

static void make_cli_case(cli_case *c)
{
    const cli_option option[5] = {{"steps", "N", "help", CLI_WHOLE, &c->steps, 1, 1000, 0},
                                  {"eps", "X", "help", CLI_REAL, &c->eps, -2, 2, 0},
                                  {"label", "TEXT", "help", CLI_TEXT, &c->label, 0, 0, 0},
                                  {"flag", "", "help", CLI_FLAG, &c->flag, 0, 0, 0},
                                  CLI_SEED(&c->seed)};
    memset(c, 0, sizeof *c);
    c->seed = 11;
    c->steps = 100;
    c->eps = 1e-5;
    memcpy(c->option, option, sizeof option);
}

/* Runs cli_parse on the words of `line` (no quoting; \1 stands for a blank inside a word). */
static int parse_line(cli_case *c, char *words, size_t size, const char *line)
{
    char *argv[32], *word, *p;
    int argc = 0;
    char name[] = "./prog";
    (void)snprintf(words, size, "%s", line);
    argv[argc++] = name;
    for (word = strtok(words, " "); word && argc < 31; word = strtok(NULL, " ")) {
        for (p = word; *p; p++)
            if (*p == 1) *p = ' ';
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return cli_parse("prog", "What it is for", c->option, COUNT(c->option), argc, argv);
}

/* Runs `work(context)` in a child with stdout and stderr caught as texts. Returns its result
   (0 to 255), or -1. */
static int run_caught(int (*work)(void *), void *context, char *out, char *err, size_t size)
{
    static const char *const paths[2] = {"stdout", "stderr"};
    char *texts[2];
    int i, status = -1;
    pid_t child;
    texts[0] = out;
    texts[1] = err;
    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        for (i = 0; i < 2; i++) {
            int fd = open(paths[i], O_WRONLY | O_CREAT | O_TRUNC, 0600);
            if (fd < 0 || dup2(fd, i + 1) < 0) _exit(250);
        }
        i = work(context);
        (void)fflush(NULL);
        _exit(i);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    for (i = 0; i < 2; i++) {
        unsigned char *data;
        size_t n;
        texts[i][0] = 0;
        if (files_read(paths[i], size - 1, &data, &n, NULL) != 0) return -1;
        memcpy(texts[i], data, n + 1);
        free(data);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The exit code of the program; 100 stands for CLI_RUN. */
static int parse_in_child(void *line)
{
    cli_case c;
    char words[400];
    int status;
    make_cli_case(&c);
    status = parse_line(&c, words, sizeof words, (const char *)line);
    return status == CLI_RUN ? 100 : status;
}

/* The same with what it prints. */
static int parse_caught(const char *line, char *out, char *err, size_t size)
{
    char kept[400];
    (void)snprintf(kept, sizeof kept, "%s", line);
    return run_caught(parse_in_child, kept, out, err, size);
}

static void test_cli_values(void)
{
    cli_case c;
    char words[400];
    make_cli_case(&c);
    CHECK_INT(parse_line(&c, words, sizeof words, ""), CLI_RUN);
    CHECK(c.seed == 11 && c.steps == 100 && c.eps == 1e-5 && !c.label && !c.flag);
    CHECK_INT(parse_line(&c, words, sizeof words,
                         "--steps 5 --eps=-1.5 --label=--x=y --flag --seed 1 --seed "
                         "9007199254740000"),
              CLI_RUN);
    CHECK(c.steps == 5 && c.eps == -1.5 && c.flag == 1 && c.seed == 9007199254740000u);
    CHECK_STR(c.label, "--x=y");
    make_cli_case(&c);
    CHECK_INT(parse_line(&c, words, sizeof words, "--label a\001b --eps -1e-3"), CLI_RUN);
    CHECK_STR(c.label, "a b");
    CHECK(c.eps == -1e-3 && c.option[1].given && c.option[2].given && !c.option[0].given);
}

static void test_cli_errors(void)
{
    static const struct {
        const char *line, *expected;
    } cases[] = {
        {"--sed 3", "unknown option --sed; try --help"},
        {"--seedy=3", "unknown option --seedy=3; try --help"},
        {"-s 3", "unexpected argument -s; try --help"},
        {"--", "unknown option --; try --help"},
        {"--=3", "unknown option --=3; try --help"},
        {"-", "unexpected argument -; try --help"},
        {"3", "unexpected argument 3; try --help"},
        {"--flag 3", "unexpected argument 3; try --help"},
        {"--seed", "option --seed needs a value"},
        {"--seed=", "option --seed needs a value"},
        {"--seed --flag", "option --seed needs a value"},
        {"--label", "option --label needs a value"},
        {"--label=", "option --label needs a value"},
        {"--label --flag", "option --label needs a value"},
        {"--flag=1", "option --flag takes no value"},
        {"--flag=", "option --flag takes no value"},
        {"--seed 3x", "option --seed: not a whole number: 3x"},
        {"--seed=0x3", "option --seed: not a whole number: 0x3"},
        {"--seed +3", "option --seed: not a whole number: +3"},
        {"--seed -3", "option --seed: not a whole number: -3"},
        {"--seed 3.0", "option --seed: not a whole number: 3.0"},
        {"--seed 1e3", "option --seed: not a whole number: 1e3"},
        {"--seed \0013", "option --seed: not a whole number:  3"},
        {"--seed 3\001", "option --seed: not a whole number: 3 "},
        {"--seed nan", "option --seed: not a whole number: nan"},
        {"--seed 9007199254740001",
         "option --seed: must be from 0 to 9.00719925474e+15, not 9007199254740001"},
        {"--steps 0", "option --steps: must be from 1 to 1000, not 0"},
        {"--steps 99999999999999999999999",
         "option --steps: must be from 1 to 1000, not 99999999999999999999999"},
        {"--eps 1e-5x", "option --eps: not a number: 1e-5x"},
        {"--eps 2.1", "option --eps: must be from -2 to 2, not 2.1"},
        {"--eps nan", "option --eps: must be from -2 to 2, not nan"},
        {"--eps inf", "option --eps: must be from -2 to 2, not inf"},
        {"--eps 1e999", "option --eps: not a number: 1e999"},
        {"--eps 1,5", "option --eps: not a number: 1,5"},
        {"--label a --two\nlines", "unknown option --two?lines; try --help"},
    };
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        char out[4096], err[4096], expected[256];
        int ok;
        (void)snprintf(expected, sizeof expected, "prog: %s\n", cases[i].expected);
        ok = CHECK_INT(parse_caught(cases[i].line, out, err, sizeof out), CLI_EXIT_USAGE);
        ok &= CHECK_STR(err, expected);
        ok &= CHECK_STR(out, "");
        if (!ok) printf("  the command line was: %s\n", cases[i].line);
    }
}

/* An option of any length still makes one line. */
static void test_cli_long_argument(void)
{
    char out[4096], err[4096], line[390];
    memset(line, 'a', sizeof line - 1);
    line[0] = line[1] = '-';
    line[sizeof line - 1] = 0;
    CHECK_INT(parse_caught(line, out, err, sizeof out), CLI_EXIT_USAGE);
    CHECK_INT(count_lines(err), 1);
}

static void test_cli_help(void)
{
    char out[4096], err[4096];
    CHECK_INT(parse_caught("--seed 99 --help --nonsense", out, err, sizeof out), 0);
    CHECK_STR(err, "");
    CHECK_STR(out, "prog: What it is for\n"
                   "\n"
                   "usage: prog [options]\n"
                   "\n"
                   "  --steps N               help (default 100)\n"
                   "  --eps X                 help (default 1e-05)\n"
                   "  --label TEXT            help\n"
                   "  --flag                  help\n"
                   "  --seed N                first random seed (default 11)\n"
                   "  --help                  this text\n");
}

static int help_into_full(void *context)
{
    int fd = open("/dev/full", O_WRONLY);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) return 1;
    return parse_in_child(context);
}

static void test_cli_help_into_full_disk(void)
{
    char out[4096], err[4096], line[] = "--help";
    CHECK_INT(run_caught(help_into_full, line, out, err, sizeof out), 1);
}

typedef struct results_work {
    const char *out;
    int quick;
    char png[100], table[100];
} results_work;

static int results(void *context)
{
    results_work *w = (results_work *)context;
    return cli_results(w->png, w->table, sizeof w->png, "walk", w->out, w->quick) == CLI_RUN ? 100
                                                                                             : 2;
}

static void test_cli_results(void)
{
    char out[600], err[600], lengthy[200];
    results_work w;
    memset(&w, 0, sizeof w);
    w.out = "cli/a";
    CHECK_INT(results(&w), 100); /* missing folders are made */
    CHECK_STR(w.png, "cli/a/walk.png");
    CHECK_STR(w.table, "cli/a/walk.csv");
    CHECK_INT(rmdir("cli/a"), 0); /* nothing was left there */
    CHECK_INT(rmdir("cli"), 0);
    w.quick = 1;
    w.out = "/dev/null";
    CHECK_INT(run_caught(results, &w, out, err, sizeof out), 2);
    CHECK_STR(err, "walk: nothing was run: cannot write '/dev/null/walk_quick.png': "
                   "Not a directory\n");
    w.out = ".";
    CHECK_INT(mkdir("walk_quick.csv", 0777), 0);
    CHECK_INT(run_caught(results, &w, out, err, sizeof out), 2);
    CHECK(strstr(err, strerror(EISDIR)) != NULL);
    CHECK_INT(rmdir("walk_quick.csv"), 0);
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = 0;
    w.out = lengthy;
    CHECK_INT(run_caught(results, &w, out, err, sizeof out), 2);
    CHECK_STR(err, "walk: nothing was run: the path is too long\n");
}

/* ---- progress ---- */

typedef struct progress_work {
    const char *term;
    int quiet;
    size_t total;
} progress_work;

static void set_variable(const char *name, const char *value)
{
    if (value)
        (void)setenv(name, value, 1);
    else
        (void)unsetenv(name);
}

/* A third of a second of very frequent updates. */
static int show_progress(void *context)
{
    const progress_work *work = (const progress_work *)context;
    struct timespec pause;
    cli_progress p;
    size_t i;
    pause.tv_sec = 0;
    pause.tv_nsec = 1000000;
    set_variable("TERM", work->term);
    cli_progress_start(&p, "training", work->total, work->quiet);
    for (i = 1; i <= 330; i++) {
        (void)nanosleep(&pause, NULL);
        cli_progress_update(&p, i, "loss 0.31 \xc3\xa9");
    }
    cli_progress_end(&p);
    return 0;
}

/* Runs show_progress with stderr on a pseudo terminal and returns what it drew, or null. */
static const char *watch_progress(progress_work *work, char *text, size_t size)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), status = -1;
    size_t used = 0;
    ssize_t got;
    pid_t child;
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return NULL;
    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
        if (end < 0 || dup2(end, STDERR_FILENO) < 0) _exit(1);
        (void)close(end);
        (void)close(terminal);
        _exit(show_progress(work));
    }
    if (child > 0) (void)waitpid(child, &status, 0); /* what it draws fits the buffer */
    (void)fcntl(terminal, F_SETFL, O_NONBLOCK);
    while (used + 1 < size && (got = read(terminal, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = 0;
    (void)close(terminal);
    return status == 0 ? text : NULL;
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    while ((text = strstr(text, part)) != NULL) {
        n++;
        text++;
    }
    return n;
}

static void test_progress_on_terminal(void)
{
    char text[8192];
    const char *drawn;
    progress_work work;
    int draws;
    memset(&work, 0, sizeof work);
    work.term = "xterm";
    work.total = 660;
    drawn = watch_progress(&work, text, sizeof text);
    if (!drawn) {
        printf("no pseudo terminal here: its tests are left out\n");
        return;
    }
    draws = count_of(drawn, "training");
    CHECK(draws >= 2 && draws <= 1 + 10 * 2); /* not 330; generous for a loaded machine */
    CHECK(strstr(drawn, "% 0:0") && strstr(drawn, " left 0:0"));
    CHECK(strstr(drawn, "  0%") != NULL && strstr(drawn, "loss 0.31 \xc3\xa9") != NULL);
    CHECK(strchr(drawn, '\n') == NULL);
    CHECK(strlen(drawn) > 4 && strcmp(drawn + strlen(drawn) - 4, "\r\033[K") == 0);
}

static void test_progress_silence(void)
{
    char text[8192], out[256], err[256];
    const char *drawn;
    progress_work work;
    memset(&work, 0, sizeof work);
    work.total = 330;
    work.term = "dumb";
    drawn = watch_progress(&work, text, sizeof text);
    CHECK(!drawn || !*drawn);
    work.term = NULL;
    drawn = watch_progress(&work, text, sizeof text);
    CHECK(!drawn || !*drawn);
    work.term = "xterm";
    work.quiet = 1;
    drawn = watch_progress(&work, text, sizeof text);
    CHECK(!drawn || !*drawn);
    work.quiet = 0;
    CHECK_INT(run_caught(show_progress, &work, out, err, sizeof out), 0);
    CHECK_STR(out, "");
    CHECK_STR(err, "");
}

/* ---- csv.h: numbers ---- */

static void check_number(double x)
{
    char text[CSV_NUMBER_MAX];
    double back = 0;
    CHECK_INT(csv_read_number(csv_format(text, x), &back), 0);
    if (!CHECK(same_bits(x, back))) printf("  the number was %s\n", text);
    CHECK(strlen(text) < CSV_NUMBER_MAX && !strchr(text, ','));
}

static void test_numbers_round_trip(void)
{
    static const double numbers[] = {0.0,
                                     -0.0,
                                     0.1,
                                     1.0 / 3,
                                     5e-324,
                                     1e308,
                                     DBL_MAX,
                                     -DBL_MAX,
                                     DBL_MIN,
                                     2.2250738585072009e-308,
                                     1e-320,
                                     1e22,
                                     1e23,
                                     123456789.0,
                                     9007199254740993.0,
                                     DBL_EPSILON,
                                     1 + DBL_EPSILON,
                                     -1e-5,
                                     4.35,
                                     0.30000000000000004};
    uint64_t state = 1;
    size_t i;
    for (i = 0; i < COUNT(numbers); i++) check_number(numbers[i]);
    for (i = 0; i < 20000; i++) { /* any bits */
        double x;
        state = state * (uint64_t)6364136223846793005u + (uint64_t)1442695040888963407u;
        memcpy(&x, &state, sizeof x);
        if (x - x == 0) check_number(x);
    }
}

static void test_number_spelling(void)
{
    char text[CSV_NUMBER_MAX];
    double x = 0;
    CHECK_STR(csv_format(text, (double)0.1f), "0.10000000149011612");
    CHECK_STR(csv_format(text, 0.1), "0.1");
    CHECK_STR(csv_format(text, -0.0), "-0");
    CHECK_STR(csv_format(text, 3), "3");
    CHECK_STR(csv_format(text, 1e308), "1e+308");
    CHECK_STR(csv_format(text, (double)NAN), "nan");
    CHECK_STR(csv_format(text, -(double)NAN), "nan");
    CHECK_STR(csv_format(text, (double)INFINITY), "inf");
    CHECK_STR(csv_format(text, -(double)INFINITY), "-inf");
    CHECK(csv_read_number("nan", &x) == 0 && x != x);
    CHECK(csv_read_number("inf", &x) == 0 && x > DBL_MAX);
    CHECK(csv_read_number("-inf", &x) == 0 && x < -DBL_MAX);
    CHECK(csv_read_number("+1.", &x) == 0 && x == 1);
    CHECK(csv_read_number(".5E+1", &x) == 0 && x == 5);
    CHECK(csv_read_number("1e-999", &x) == 0 && x == 0);
}

static void test_number_refusals(void)
{
    static const char *const bad[] = {
        "",      " 1",  "1 ",    "1x",    "0x10", "1e",     "1e+",  ".",   "-",
        "+-1",   "--1", "1,5",   "1.2.3", "NAN",  "nan(1)", "-nan", "Inf", "infinity",
        "1e999", "1d5", "1_000", "e5",    "\t1",  "1\n",    "+inf"};
    char digits[2000];
    double x;
    size_t i;
    for (i = 0; i < COUNT(bad); i++)
        if (!CHECK_INT(csv_read_number(bad[i], &x), -1)) printf("  the text was '%s'\n", bad[i]);
    memset(digits, '1', sizeof digits);
    digits[sizeof digits - 1] = 0;
    CHECK_INT(csv_read_number(digits, &x), -1);
}

/* ---- csv.h: tables ---- */

static void test_csv_text_of_a_table(void)
{
    static const char *const names[] = {"epoch", "loss", "arm, \"best\"", "list"};
    static const double values[] = {1, 2, 0.1, 4};
    csv_table t;
    char err[CSV_ERR_MAX];
    csv_begin(&t);
    csv_note(&t, "program", "a program");
    csv_note_real(&t, "lr", 0.1);
    csv_note_real(&t, "steps", -3);
    csv_columns(&t, names, 4);
    csv_real(&t, 1);
    csv_real(&t, 0.25);
    csv_text(&t, "plain text");
    csv_list(&t, values, 2, 2);
    csv_end_row(&t);
    csv_real(&t, 123456789012);
    csv_real(&t, 0.1);
    csv_text(&t, "say \"x\",\ny");
    csv_list(&t, values, 0, 1);
    csv_end_row(&t);
    CHECK_INT(csv_save(&t, "t.csv", err), 0);
    csv_end(&t);
    CHECK(file_is("t.csv", "# program: a program\n# lr: 0.1\n# steps: -3\n"
                           "epoch,loss,\"arm, \"\"best\"\"\",list\n"
                           "1,0.25,plain text,1 0.1\n"
                           "123456789012,0.1,\"say \"\"x\"\",\ny\",\n"));
}

static void test_csv_round_trip(void)
{
    static const char *const names[] = {"x", "#text", "y"};
    static const char *const texts[] = {"",         "#no comment",  "12",  "nan",
                                        " blank",   "a,b",          "q\"", "line\r\nend",
                                        "\xc3\xa9", "\xef\xbb\xbf", "\r",  "trail "};
    static const double values[] = {0.1, -0.0, 5e-324, 1e308, 1.0 / 3, 7, 8, 9, 10, 11, 12, 13};
    csv_table t;
    csv_data d;
    char err[CSV_ERR_MAX];
    const double *x, *y;
    char *const *back;
    size_t i;
    csv_begin(&t);
    csv_columns(&t, names, 3);
    for (i = 0; i < COUNT(texts); i++) {
        csv_real(&t, values[i]);
        csv_text(&t, texts[i]);
        csv_real(&t, i == 2 ? (double)NAN : i == 3 ? -(double)INFINITY : -values[i]);
        csv_end_row(&t);
    }
    CHECK_INT(csv_save(&t, "r.csv", err), 0);
    csv_end(&t);
    if (!CHECK_INT(csv_load("r.csv", &d, err), 0)) return;
    x = csv_numbers(&d, "x", err);
    y = csv_numbers(&d, "y", err);
    back = csv_texts(&d, "#text", err);
    CHECK(x && y && back && d.rows == COUNT(texts));
    for (i = 0; x && y && back && i < d.rows; i++) {
        CHECK(same_bits(x[i], values[i]));
        CHECK_STR(back[i], texts[i]);
        CHECK(i == 2 ? y[i] != y[i] : i == 3 ? y[i] < -DBL_MAX : same_bits(y[i], -values[i]));
    }
    CHECK(csv_numbers(&d, "#text", err) == NULL && strstr(err, "row 2") && strstr(err, "#text"));
    CHECK(csv_numbers(&d, "z", err) == NULL && strstr(err, "'z'"));
    CHECK(csv_texts(&d, "z", NULL) == NULL);
    csv_release(&d);
    csv_release(&d);
}

/* Texts that look like a comment or a number. */
static void test_csv_texts_stay_texts(void)
{
    static const char *const names[] = {"#name"};
    static const char *const texts[] = {"#12", "12", "nan"};
    size_t i;
    for (i = 0; i < COUNT(texts); i++) {
        char err[CSV_ERR_MAX];
        csv_table t;
        csv_data d;
        csv_begin(&t);
        csv_columns(&t, names, 1);
        csv_text(&t, texts[i]);
        csv_end_row(&t);
        CHECK_INT(csv_save(&t, "s.csv", err), 0);
        csv_end(&t);
        CHECK_INT(csv_load("s.csv", &d, err), 0);
        CHECK(d.rows == 1 && d.comments == 0);
        if (d.rows == 1) CHECK_STR(csv_texts(&d, "#name", NULL)[0], texts[i]);
        csv_release(&d);
    }
}

static void test_csv_origin(void)
{
    static const char *const names[] = {"x"};
    csv_table t;
    csv_data d;
    csv_origin origin;
    char err[CSV_ERR_MAX];
    memset(&origin, 0, sizeof origin);
    origin.program = "training";
    origin.version = "normlayers 1.0.0";
    origin.first_seed = 11;
    origin.seeds = 3;
    origin.data = "synthetic digits";
    origin.data_hash = 0xab;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    csv_columns(&t, names, 1);
    CHECK_INT(csv_save(&t, "o.csv", err), 0);
    csv_end(&t);
    if (!CHECK_INT(csv_load("o.csv", &d, err), 0)) return;
    CHECK_STR(csv_comment(&d, "program"), "training");
    CHECK_STR(csv_comment(&d, "version"), "normlayers 1.0.0");
    CHECK_STR(csv_comment(&d, "seeds"), "11 12 13");
    CHECK_STR(csv_comment(&d, "data"), "synthetic digits 00000000000000ab");
    CHECK(csv_comment(&d, "compiler") != NULL && csv_comment(&d, "flags") != NULL);
    CHECK(csv_comment(&d, "prog") == NULL);
    CHECK(d.rows == 0 && csv_numbers(&d, "x", err) != NULL);
    csv_release(&d);
}

static void test_csv_many_seeds(void)
{
    csv_table t;
    csv_origin origin;
    memset(&origin, 0, sizeof origin);
    origin.program = origin.version = "1";
    origin.first_seed = 100;
    origin.seeds = 1000;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    CHECK(t.text && strstr(t.text, "\n# seeds: 100 to 1099\n") != NULL);
    csv_end(&t);
    origin.seeds = 1;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    CHECK(t.text && strstr(t.text, "\n# seed: 100\n") != NULL);
    csv_end(&t);
}

/* A table that is not whole: csv_save must refuse it and leave no file. */
static void test_csv_writer_errors(void)
{
    static const char *const names[] = {"a", "b"};
    int cells;
    for (cells = -1; cells <= 3; cells++) { /* of the first row; -1: not even the names */
        char err[CSV_ERR_MAX];
        csv_table t;
        int i;
        csv_begin(&t);
        if (cells >= 0) csv_columns(&t, names, 2);
        for (i = 0; i < cells; i++) csv_real(&t, i);
        if (cells >= 0 && cells != 2) csv_end_row(&t);
        if (cells == 3) csv_end_row(&t); /* the first error sticks */
        CHECK_STR(t.error, cells == 0   ? "a row has 0 of 2 cells"
                           : cells == 1 ? "a row has 1 of 2 cells"
                           : cells == 3 ? "a row has 3 of 2 cells"
                                        : "");
        if (!CHECK_INT(csv_save(&t, "never.csv", err), -1)) printf("  %d cells\n", cells);
        CHECK(strstr(err, "never.csv") != NULL && strstr(err, t.error) != NULL);
        CHECK_INT(access("never.csv", F_OK), -1);
        csv_end(&t);
    }
}

static int parse_text(const char *text, size_t n, csv_data *d, char *err)
{
    char *block = (char *)malloc(n + 1);
    if (!block) return -1;
    memcpy(block, text, n);
    block[n] = 0;
    *err = 0;
    return csv_parse(block, n, "f.csv", d, err);
}

static void test_csv_malformed(void)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "f.csv: no row of column names"},
        {"# only\n# comments", "f.csv: no row of column names"},
        {"a,b\n1,2\n3\n", "f.csv: row 2: 1 cells where 2 are expected"},
        {"a,b\n1,2,3\n", "f.csv: row 1: 3 cells where 2 are expected"},
        {"a,b\n1,2,\n", "f.csv: row 1: 3 cells where 2 are expected"},
        {"a,b\n1,2\n3,", NULL},
        {"a,b\n\"x\ny\",2\n1\n", "f.csv: row 2: 1 cells where 2 are expected"},
        {"a\n\"open\n\n", "f.csv: row 1: a misplaced quote"},
        {"a\n\"", "f.csv: row 1: a misplaced quote"},
        {"a\n\"x\"\"", "f.csv: row 1: a misplaced quote"},
        {"a\n\"x\"y\n", "f.csv: row 1: a misplaced quote"},
        {"a\n\"x\" \n", "f.csv: row 1: a misplaced quote"},
        {"a\nx\"y\"\n", "f.csv: row 1: a misplaced quote"},
        {"a\nx\"\"y\n", "f.csv: row 1: a misplaced quote"},
    };
    csv_data d;
    char err[CSV_ERR_MAX];
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        int ok = CHECK_INT(parse_text(cases[i].text, strlen(cases[i].text), &d, err),
                           cases[i].expected ? -1 : 0);
        ok &= CHECK_STR(err, cases[i].expected ? cases[i].expected : "");
        if (cases[i].expected) ok &= CHECK(!d.names && !d.block && !d.rows);
        if (!ok) printf("  case %zu\n", i);
        csv_release(&d);
    }
    CHECK_INT(parse_text("a\n1\0\n", 5, &d, err), -1);
    CHECK_STR(err, "f.csv: a 0 byte; this is no text");
    CHECK_INT(csv_load("/nonexistent.csv", &d, err), -1);
    csv_release(&d);
}

static void test_csv_comments_and_empty_cells(void)
{
    static const char text[] = "#tight: 1\n# key: two \na,b\n1,\n# between\n\"\",3";
    csv_data d;
    char err[CSV_ERR_MAX];
    const double *a, *b;
    CHECK_INT(parse_text(text, strlen(text), &d, err), 0);
    CHECK(d.rows == 2 && d.columns == 2 && d.comments == 3);
    CHECK_STR(csv_comment(&d, "tight"), "1");
    CHECK_STR(csv_comment(&d, "key"), "two ");
    a = csv_numbers(&d, "a", err);
    b = csv_numbers(&d, "b", err);
    CHECK(a && b && a[0] == 1 && a[1] != a[1] && b[0] != b[0] && b[1] == 3);
    csv_release(&d);
    CHECK_INT(parse_text("#", 1, &d, err), -1);
    CHECK_INT(parse_text("a", 1, &d, err), 0);
    a = csv_numbers(&d, "a", err);
    CHECK(a != NULL && d.rows == 0);
    csv_release(&d);
}

/* Random bytes from the characters that matter: it must end, and never read out of bounds. */
static void test_csv_random_input(void)
{
    static const char alphabet[] = "a,\"\n#1 ";
    uint32_t state = 7;
    int round, accepted = 0;
    for (round = 0; round < 20000; round++) {
        char text[24], err[CSV_ERR_MAX];
        csv_data d;
        size_t i, n;
        state = state * 1664525u + 1013904223u;
        n = (state >> 16) % sizeof text;
        for (i = 0; i < n; i++) {
            state = state * 1664525u + 1013904223u;
            text[i] = alphabet[(state >> 16) % (sizeof alphabet - 1)];
        }
        accepted += parse_text(text, n, &d, err) == 0;
        csv_release(&d);
    }
    CHECK(accepted > 100 && accepted < 19900);
}

/* ---- stats.h ---- */

static void test_stats_summary(void)
{
    static const double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
    stats_summary s = stats_describe(x, 8);
    CHECK_NEAR(s.mean, 5, 0);
    CHECK_NEAR(s.sd, sqrt(32.0 / 7), 1e-15);
    CHECK(s.n == 8 && s.min == 2 && s.max == 9);
    /* central moments 4, 42/8 and 356/8 */
    CHECK_NEAR(s.skew, 0.65625, 1e-15);
    CHECK_NEAR(s.kurtosis, 44.5 / 16 - 3, 1e-15);
    s = stats_describe(x, 1);
    CHECK(s.mean == 2 && s.sd != s.sd && s.min == 2 && s.max == 2 && s.skew != s.skew);
    s = stats_describe(x + 1, 3);
    CHECK(s.mean == 4 && s.sd == 0 && s.skew != s.skew);
    s = stats_describe(x, 0);
    CHECK(s.mean != s.mean && s.sd != s.sd && s.min != s.min);
}

static void test_stats_large_offset(void)
{
    double x[1000], with_nan[3];
    stats_summary s;
    int i;
    for (i = 0; i < 1000; i++) x[i] = 1e9 + (i % 2 ? 1.0 : -1.0);
    s = stats_describe(x, 1000);
    CHECK_NEAR(s.mean, 1e9, 0);
    CHECK_NEAR(s.sd, sqrt(1000.0 / 999), 1e-12);
    with_nan[0] = 1;
    with_nan[1] = (double)NAN;
    with_nan[2] = 2;
    s = stats_describe(with_nan, 3);
    CHECK(s.mean != s.mean && s.sd != s.sd && s.min != s.min && s.max != s.max);
}

static void test_stats_quantiles(void)
{
    double x[] = {3, 1, 4, 2}, y[] = {2, 0, 1}, one = 5;
    double mixed[] = {2, 0, 1};
    stats_sort(x, 4);
    CHECK(x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == 4);
    CHECK_NEAR(stats_quantile(x, 4, 0.5), 2.5, 0);
    CHECK_NEAR(stats_quantile(x, 4, 0.25), 1.75, 0);
    CHECK_NEAR(stats_quantile(x, 4, 0.9), 3.7, 1e-15);
    CHECK_NEAR(stats_quantile(x, 4, 0), 1, 0);
    CHECK_NEAR(stats_quantile(x, 4, 1), 4, 0);
    CHECK_NEAR(stats_quantile(&one, 1, 0.3), 5, 0);
    stats_sort(y, 3);
    CHECK_NEAR(stats_quantile(y, 3, 0.5), 1, 0);
    CHECK(isnan(stats_quantile(x, 0, 0.5)) && isnan(stats_quantile(x, 4, 1.1)));
    CHECK(isnan(stats_quantile(x, 4, (double)NAN)));
    mixed[1] = (double)NAN;
    stats_sort(mixed, 3);
    CHECK(mixed[0] == 1 && mixed[1] == 2 && isnan(mixed[2]));
    CHECK(isnan(stats_quantile(mixed, 3, 0.5)));
    stats_sort(x, 0);
}

static void test_stats_histogram(void)
{
    static const double edges[] = {0, 1, 3, 4};
    double x[] = {0, 0.5, 1, 2.9, 4, -0.1, 4.1, 0}, density[3];
    x[7] = (double)NAN;
    CHECK_INT(stats_histogram(x, 8, edges, 3, density), 3);
    CHECK_NEAR(density[0], 2.0 / 5, 1e-15);
    CHECK_NEAR(density[1], 2.0 / 5 / 2, 1e-15);
    CHECK_NEAR(density[2], 1.0 / 5, 1e-15);
    CHECK_INT(stats_histogram(x + 5, 2, edges, 3, density), 2);
    CHECK(density[0] == 0 && density[1] == 0 && density[2] == 0);
}

static void test_stats_density(void)
{
    static const double x[] = {0, 1}, even[] = {1, 2, 3, 4, 5}, equal[] = {2, 2, 2};
    static const double flat[] = {0, 2, 2, 2, 2, 2, 2, 4}; /* quartiles 2 and 2, sd sqrt(8/7) */
    double grid[2001], density[2001], sum = 0;
    int i;
    /* sd sqrt(2.5) = 1.581, range 2 / 1.34 = 1.493 */
    CHECK_NEAR(stats_bandwidth(even, 5), 0.9 * 2 / 1.34 * pow(5, -0.2), 1e-15);
    CHECK_NEAR(stats_bandwidth(flat, 8), 0.9 * sqrt(8.0 / 7) * pow(8, -0.2), 1e-15);
    CHECK_NEAR(stats_bandwidth(equal, 3), 0, 0);
    CHECK(isnan(stats_bandwidth(even, 1)) && isnan(stats_bandwidth(even, 0)));
    for (i = 0; i <= 2000; i++) grid[i] = -10 + 0.01 * i;
    CHECK_INT(stats_kde(x, 2, 0.5, grid, 2001, density), 0);
    for (i = 0; i <= 2000; i++) sum += 0.01 * density[i];
    CHECK_NEAR(sum, 1, 1e-12);
    CHECK_NEAR(density[1000], (1 + exp(-2.0)) / (2 * 0.5 * sqrt(2 * acos(-1.0))), 1e-15);
    density[0] = 7;
    CHECK_INT(stats_kde(x, 2, 0, grid, 1, density), -1);
    CHECK_INT(stats_kde(x, 0, 1, grid, 1, density), -1);
    CHECK_INT(stats_kde(x, 2, (double)NAN, grid, 1, density), -1);
    CHECK(density[0] == 7);
}

static void test_stats_running_mean(void)
{
    double x[40], out[40];
    size_t n, window, i, k;
    for (i = 0; i < 40; i++) x[i] = (double)((i * 7919) % 101);
    for (n = 0; n <= 40; n++)
        for (window = 1; window <= 43; window++) {
            stats_running_mean(x, n, window, out);
            for (i = 0; i < n; i++) { /* all sums are exact here */
                size_t first = i + 1 > window ? i + 1 - window : 0;
                double sum = 0;
                for (k = first; k <= i; k++) sum += x[k];
                CHECK_NEAR(out[i], sum / (double)(i + 1 - first), 0);
            }
        }
    for (i = 0; i < 10; i++) x[i] = 1;
    x[3] = (double)NAN;
    x[7] = 1e300;
    stats_running_mean(x, 10, 2, out);
    CHECK(out[2] == 1 && isnan(out[3]) && isnan(out[4]) && out[5] == 1 && out[9] == 1);
}

/* Known values of Student's t: with 1 degree of freedom p = 1 - 2/pi atan t, with 2 p = 1 -
   t/sqrt(2 + t²), and the usual tables. */
static void test_stats_student(void)
{
    const double pi = 3.14159265358979323846;
    CHECK_NEAR(stats_t_p(1.7, 1), 1 - 2 / pi * atan(1.7), 1e-15);
    CHECK_NEAR(stats_t_p(-1.7, 2), 1 - 1.7 / sqrt(2 + 1.7 * 1.7), 1e-15);
    CHECK_NEAR(stats_t_p(2.7764451051977987, 4), 0.05, 1e-14);
    CHECK_NEAR(stats_t_p(4.6040948713499932, 4), 0.01, 1e-14);
    CHECK_NEAR(stats_t_p(2.2281388519862747, 10), 0.05, 1e-14);
    CHECK_NEAR(stats_t_p(3.355387331333395, 8), 0.01, 1e-14);
    CHECK_NEAR(stats_t_p(2.3646242515927853, 7), 0.05, 1e-14);
    CHECK_NEAR(stats_t_p(1.9719565442517538, 199), 0.05, 1e-12);
    CHECK_NEAR(stats_t_quantile(0.05, 1), 12.706204736174705, 1e-12);
    CHECK_NEAR(stats_t_quantile(0.05, 2), 4.3026527297494639, 1e-12);
    CHECK_NEAR(stats_t_quantile(0.05, 4), 2.7764451051977987, 1e-12);
    CHECK_NEAR(stats_t_quantile(0.32, 30), 1.0112157453924328, 1e-12);
    CHECK(stats_t_p(0, 3) == 1 && stats_t_p((double)INFINITY, 3) <= 0);
    CHECK(isnan(stats_t_p((double)NAN, 3)) && isnan(stats_t_p(1, 0)));
    CHECK(isnan(stats_t_quantile(0, 3)) && isnan(stats_t_quantile(1, 3)));
    CHECK(isnan(stats_t_quantile(0.05, 0)));
}

/* The fifteen p of Benjamini and Hochberg (1995), section 4.1, of which four are discoveries. */
static void test_stats_discoveries(void)
{
    static const double p[17] = {0.0344, 0.0001, (double)NAN, 0.4262, 0.0019,     0.0095,
                                 0.0201, 0.0278, 0.0298,      0.0004, 0.0459,     0.3240,
                                 0.5719, 0.6528, 0.7590,      1.0000, (double)NAN};
    double q[17];
    CHECK_NEAR(stats_discoveries(p, 17, 0.05, q), 0.0095, 0);
    CHECK_NEAR(q[1], 0.0015, 1e-15);
    CHECK_NEAR(q[9], 0.003, 1e-15);
    CHECK_NEAR(q[5], 0.035625, 1e-15);
    CHECK_NEAR(q[6], 0.0603, 1e-15);
    CHECK_NEAR(q[7], 0.0298 * 15 / 7, 1e-15); /* not 0.0278 * 15 / 6: q never falls with p */
    CHECK_NEAR(q[15], 1, 0);
    CHECK(isnan(q[2]) && isnan(q[16]));
    CHECK_NEAR(stats_discoveries(p, 17, 0.001, q), 0, 0);
    CHECK_NEAR(stats_discoveries(p, 0, 0.05, q), 0, 0);
}

static void test_stats_findings(void)
{
    static const double a[] = {3, 5, 4, 4}, b[] = {1, 2, 4, 5};
    stats_finding f = stats_judge_pairs(a, b, 4, +1, 1);
    stats_interval of = stats_interval_of(&f);
    CHECK(f.n == 4 && f.parts == 1 && f.size_met == 1);
    CHECK_NEAR(f.mean, 1, 0);
    CHECK_NEAR(f.sd, sqrt(10.0 / 3), 1e-15);
    CHECK_NEAR(stats_effect(&f), sqrt(0.3), 1e-15);
    CHECK_NEAR(stats_t_of(&f), sqrt(1.2), 1e-15);
    CHECK_NEAR(stats_p(&f), 0.3534, 1e-4);
    CHECK_NEAR(of.high - 1, 3.1824463052837096 * sqrt(10.0 / 12), 1e-12);
    CHECK_NEAR(of.low + of.high, 2, 1e-12);
    f = stats_judge_pairs(a, b, 4, -1, 1);
    CHECK_NEAR(f.mean, -1, 0);
    CHECK_NEAR(f.best_p, 1, 0); /* it is not as the claim says */
    f = stats_holds(1);
    CHECK(f.n == 0 && isnan(stats_p(&f)) && isnan(stats_interval_of(&f).low));
    f = stats_unknown();
    CHECK(f.n == 1 && isnan(stats_p(&f)) && stats_word(&f, 0.05) == STATS_INCONCLUSIVE);
}

static stats_verdict word(stats_finding f)
{
    return stats_word(&f, STATS_LEVEL);
}

/* Five differences: a mean and, by the rest, a spread. */
static stats_finding five(double mean, double spread, int sign, int size_met)
{
    const double x[5] = {mean - spread, mean + spread, mean, mean - spread, mean + spread};
    const double zero[5] = {0, 0, 0, 0, 0};
    return stats_judge_pairs(x, zero, 5, sign, size_met);
}

static void test_stats_parts(void)
{
    const stats_finding yes = five(1, 0.1, +1, 1), small = five(1, 0.1, +1, 0);
    const stats_finding maybe = five(0.1, 1, +1, 1), no = five(1, 0.1, -1, 1);
    stats_finding part[4];
    CHECK_INT(word(stats_together(&yes, 1)), STATS_REPRODUCED);
    part[0] = part[1] = yes;
    CHECK_INT(word(stats_together(part, 2)), STATS_REPRODUCED);
    part[1] = small;
    CHECK_INT(word(stats_together(part, 2)), STATS_PARTLY); /* the weakest part */
    part[1] = maybe;
    CHECK_INT(word(stats_together(part, 2)), STATS_PARTLY); /* some of its parts */
    part[0] = no;
    CHECK_INT(word(stats_together(part, 2)), STATS_NOT_REPRODUCED); /* a part is refuted */
    part[1] = part[2] = yes;
    part[3] = stats_together(part + 1, 2);
    CHECK_INT((int)stats_together(part, 4).parts, 5); /* parts of parts count */
    CHECK_INT(word(stats_together(part, 4)), STATS_PARTLY);
    CHECK_NEAR(stats_together(part, 4).mean, -1, 1e-15); /* what is shown is the weakest */
    part[0] = stats_holds(0);
    CHECK_INT(word(stats_together(part, 3)), STATS_PARTLY);
    CHECK_INT((int)stats_together(part, 3).n, 0);
    part[0] = stats_holds(1);
    CHECK_INT((int)stats_together(part, 3).n, 5);
    /* Two parts at p = 0.04 are as the claim says, and one of many at 0.04 may be so by chance. */
    part[0] = five(1, 0.74, +1, 1);
    CHECK_NEAR(stats_p(&part[0]), 0.04, 3e-3);
    CHECK_INT(word(part[0]), STATS_REPRODUCED);
    part[1] = maybe;
    CHECK_INT(word(stats_together(part, 2)), STATS_INCONCLUSIVE);
    CHECK_INT(word(stats_together(part, 0)), STATS_INCONCLUSIVE);
    CHECK_INT(word(stats_holds(1)), STATS_REPRODUCED);
    CHECK_INT(word(stats_holds(0)), STATS_NOT_REPRODUCED);
    CHECK_INT(word(stats_holds_partly(1, 0)), STATS_REPRODUCED);
    CHECK_INT(word(stats_holds_partly(0, 1)), STATS_PARTLY);
    CHECK_INT(word(stats_holds_partly(0, 0)), STATS_NOT_REPRODUCED);
}

static void test_stats_limits(void)
{
    const double x[5] = {2.1, 2.2, 2.0, 2.3, 1.9}, broken[3] = {2, (double)NAN, 2};
    double mixed[4] = {3, (double)NAN, 1, 2};
    CHECK_INT(word(stats_judge_limit(x, 5, 1.5, +1)), STATS_REPRODUCED);
    CHECK_INT(word(stats_judge_limit(x, 5, 1.5, -1)), STATS_NOT_REPRODUCED);
    CHECK_INT(word(stats_judge_limit(x, 5, 2.05, +1)), STATS_INCONCLUSIVE); /* the mean is above */
    CHECK_INT(word(stats_judge_limit(x, 1, 1.5, +1)), STATS_INCONCLUSIVE);
    CHECK_INT(word(stats_judge_limit(broken, 3, 1.5, +1)), STATS_INCONCLUSIVE);
    CHECK(stats_reproduced(stats_judge_limit(x, 5, 1.5, +1)));
    CHECK(!stats_reproduced(stats_judge_limit(x, 5, 2.05, +1)));
    CHECK(stats_mean(x, 3) > 2 && isnan(stats_mean(x, 0)));
    CHECK(stats_median(mixed, 4) == 2 && isnan(stats_median(mixed, 0)));
    CHECK(stats_most(4, 5) && !stats_most(3, 5) && !stats_most(7, 9));
    CHECK(stats_larger(1, 2) == 2 && stats_smaller(1, 2) == 1);
    CHECK(isnan(stats_larger(1, (double)NAN)) && isnan(stats_larger((double)NAN, 1)));
    CHECK(isnan(stats_smaller(1, (double)NAN)) && isnan(stats_smaller((double)NAN, 1)));
}

static void test_stats_verdicts(void)
{
    static const double nothing[5] = {0, 0, 0, 0, 0};
    static const struct {
        double d[5];
        size_t n;
        int sign, met;
        stats_verdict expected;
    } cases[] = {
        {{1, 1.1, 0.9, 1, 1}, 5, +1, 1, STATS_REPRODUCED},
        {{1, 1.1, 0.9, 1, 1}, 5, +1, 0, STATS_PARTLY},
        {{1, 1.1, 0.9, 1, 1}, 5, -1, 1, STATS_NOT_REPRODUCED},
        {{1, 1.1, 0.9, 1, 1}, 5, -1, 0, STATS_NOT_REPRODUCED},
        {{-1, -1.1, -0.9, -1, -1}, 5, -1, 1, STATS_REPRODUCED},
        {{1, 1, 1, 1, -0.1}, 5, +1, 1, STATS_REPRODUCED},      /* t = 3.5 */
        {{1, 1, 1, -0.1, -0.1}, 5, +1, 1, STATS_INCONCLUSIVE}, /* t = 2.1 */
        {{1, 1, 1, 0, 0}, 5, +1, 1, STATS_INCONCLUSIVE},       /* t = 2.4, p = 0.07 */
        {{1, 1, 1, 1, 0}, 5, +1, 1, STATS_REPRODUCED},         /* t = 4, p = 0.016 */
        {{1, 1, 1, 1, 10}, 5, +1, 1, STATS_INCONCLUSIVE},      /* t = 1.6 */
        {{-1, -1, -1, -1, -10}, 5, +1, 1, STATS_INCONCLUSIVE}, /* the same the other way */
        {{0.1, 0.1, 0.1, 0.1, -5}, 5, +1, 1, STATS_INCONCLUSIVE},
        {{0, 0, 0, 0, 0}, 5, +1, 1, STATS_NOT_REPRODUCED}, /* no difference in any */
        {{2, 2, 2, 2, 2}, 5, +1, 1, STATS_REPRODUCED},     /* no spread */
        {{2}, 1, +1, 1, STATS_INCONCLUSIVE},
        {{2}, 0, +1, 1, STATS_INCONCLUSIVE},
        {{2, 2.1}, 2, +1, 1, STATS_REPRODUCED},   /* t = 41, p = 0.016 */
        {{2, 2.5}, 2, +1, 1, STATS_INCONCLUSIVE}, /* t = 9, p = 0.07 */
        {{2, 2.1, 1.9}, 3, +1, 1, STATS_REPRODUCED},
        {{2, 2.1, 0}, 3, +1, 1, STATS_INCONCLUSIVE},
    };
    double bad[5] = {1, 1, 1, 1, 1}, many[100];
    stats_finding f;
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        f = stats_judge_pairs(cases[i].d, nothing, cases[i].n, cases[i].sign, cases[i].met);
        if (!CHECK_INT(word(f), cases[i].expected)) printf("  case %zu\n", i);
    }
    bad[2] = (double)NAN;
    CHECK_INT(word(stats_judge_pairs(bad, nothing, 5, +1, 1)), STATS_INCONCLUSIVE);
    bad[2] = (double)INFINITY;
    CHECK_INT(word(stats_judge_pairs(bad, nothing, 5, +1, 1)), STATS_INCONCLUSIVE);
    /* Many seeds: a difference of 0.3 standard deviations is sure, and too small; one of 0.1 is
       none to speak of; of a few seeds the same difference says nothing. */
    for (i = 0; i < 100; i++) many[i] = (i % 2 ? 1 : -1) + 0.3;
    CHECK_INT(word(stats_judge_limit(many, 100, 0, +1)), STATS_PARTLY);
    CHECK_INT(word(stats_judge_limit(many, 100, 0, -1)), STATS_NOT_REPRODUCED);
    CHECK_INT(word(stats_judge_limit(many, 100, 0.2, +1)), STATS_NOT_REPRODUCED);
    CHECK_INT(word(stats_judge_limit(many, 100, 0.2, -1)), STATS_NOT_REPRODUCED);
    CHECK_INT(word(stats_judge_limit(many, 10, 0.2, +1)), STATS_INCONCLUSIVE);
    CHECK_INT(word(stats_judge_limit(many, 100, -0.4, +1)), STATS_REPRODUCED);
    /* What is left of the level after the correction for many claims. */
    f = five(1, 0.74, +1, 1);
    CHECK_INT(stats_word(&f, 0.03), STATS_INCONCLUSIVE);
    CHECK_STR(stats_verdict_name(STATS_REPRODUCED), "reproduced");
    CHECK_STR(stats_verdict_name(STATS_PARTLY), "partly reproduced");
    CHECK_STR(stats_verdict_name(STATS_INCONCLUSIVE), "inconclusive");
    CHECK_STR(stats_verdict_name(STATS_NOT_REPRODUCED), "not reproduced");
}

/* ---- jobs.h ---- */

#define JOBS 12
#define NO_JOB 1000

enum { FATE_GOOD, FATE_CODE, FATE_SIGNAL, FATE_EXIT };

typedef struct job_board {
    double results[JOBS];
    long pids[JOBS];
    size_t units, bad; /* what is done; the job that meets the fate, or NO_JOB */
    int fate;
    int sleepers; /* 1: all others sleep long */
} job_board;

static int do_job(void *context, size_t index, volatile size_t *done)
{
    job_board *board = (job_board *)context;
    double x = (double)index + 0.1;
    int i;
    board->pids[index] = (long)getpid();
    if (index == board->bad && board->fate == FATE_CODE) return 3;
    if (index == board->bad && board->fate == FATE_SIGNAL) (void)raise(SIGKILL);
    if (index == board->bad && board->fate == FATE_EXIT) _exit(0);
    if (board->sleepers) (void)sleep(600);
    for (i = 0; i < 1000; i++) {
        x = 3.9 * x * (1 - x / 20) / (1 + x); /* any arithmetic in which the order matters */
        *done = (size_t)i + 1;
    }
    board->results[index] = x;
    return 0;
}

static void name_job(void *context, size_t index, char *name, size_t size)
{
    (void)context;
    (void)snprintf(name, size, "seed %zu", index + 11);
}

static void keep_units(void *context, size_t done)
{
    ((job_board *)context)->units = done;
}

static int run_jobs(job_board *board, size_t processes, size_t *units, char *err)
{
    const jobs_plan plan = {JOBS, processes, do_job, board, name_job, keep_units};
    const int status = jobs_run(&plan, err);
    *units = board->units;
    return status;
}

/* No child is left, not even a zombie. */
static int no_children(void)
{
    errno = 0;
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static int open_descriptors(void)
{
    int fd, n = 0;
    for (fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static void test_jobs_same_results(void)
{
    double expected[JOBS];
    const int before = open_descriptors();
    size_t processes;
    for (processes = 1; processes <= 20;
         processes = processes < 3 ? processes + 1 : processes + 17) {
        job_board *board = (job_board *)jobs_alloc(sizeof *board);
        char err[JOBS_ERR_MAX];
        size_t units = 0;
        if (!CHECK(board != NULL)) return;
        board->bad = NO_JOB;
        CHECK_INT(run_jobs(board, processes, &units, err), 0);
        CHECK_STR(err, "");
        CHECK_INT(units, JOBS * 1000);
        if (processes == 1) memcpy(expected, board->results, sizeof expected);
        CHECK(memcmp(expected, board->results, sizeof expected) == 0);
        CHECK(board->pids[0] != (long)getpid() && board->pids[0] != board->pids[1]);
        CHECK(no_children());
        jobs_free(board, sizeof *board);
    }
    CHECK_INT(open_descriptors(), before);
}

static void test_jobs_failures(void)
{
    static const char *const expected[] = {"", "seed 16 failed with code 3",
                                           "seed 16 was ended by signal 9",
                                           "seed 16 ended before it was finished"};
    const int before = open_descriptors();
    size_t processes;
    int fate;
    for (fate = FATE_CODE; fate <= FATE_EXIT; fate++)
        for (processes = 1; processes <= 3; processes++) {
            job_board *board = (job_board *)jobs_alloc(sizeof *board);
            char err[JOBS_ERR_MAX];
            size_t units = 0;
            if (!CHECK(board != NULL)) return;
            board->bad = 5;
            board->fate = fate;
            CHECK_INT(run_jobs(board, processes, &units, err), -1);
            CHECK(strncmp(err, expected[fate], strlen(expected[fate])) == 0);
            CHECK(no_children());
            jobs_free(board, sizeof *board);
        }
    CHECK_INT(open_descriptors(), before);
}

/* The failure of one ends the others, which would sleep for minutes. */
static void test_jobs_failure_ends_the_rest(void)
{
    job_board *board = (job_board *)jobs_alloc(sizeof *board);
    char err[JOBS_ERR_MAX];
    size_t units = 0;
    time_t start = time(NULL);
    if (!CHECK(board != NULL)) return;
    board->bad = 2;
    board->fate = FATE_CODE;
    board->sleepers = 1;
    CHECK_INT(run_jobs(board, 3, &units, err), -1);
    CHECK(time(NULL) - start < 60);
    CHECK(no_children());
    jobs_free(board, sizeof *board);
}

/* A program that ends, however, takes its jobs with it, which would sleep for minutes: then nobody
   holds the pipe any more. */
static void test_jobs_end_with_the_program(void)
{
#ifdef __linux__
    static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
    size_t i;
    for (i = 0; i < COUNT(signals); i++) {
        job_board *board = (job_board *)jobs_alloc(sizeof *board);
        struct pollfd all_ended = {0, POLLIN, 0};
        int status = 0, waited, ends[2];
        pid_t program;
        if (!CHECK(board != NULL && pipe(ends) == 0)) return;
        board->bad = NO_JOB;
        board->sleepers = 1;
        (void)fflush(NULL);
        program = fork();
        if (program == 0) {
            char err[JOBS_ERR_MAX];
            size_t units = 0;
            (void)signal(signals[i], SIG_DFL); /* tests in the background have SIGINT ignored */
            (void)run_jobs(board, 2, &units, err);
            _exit(0);
        }
        (void)close(ends[1]);
        for (waited = 0; waited < 2000 && !(board->pids[0] && board->pids[1]); waited++)
            (void)poll(NULL, 0, 10);
        CHECK_INT(kill(program, signals[i]), 0);
        CHECK(waitpid(program, &status, 0) == program);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        all_ended.fd = ends[0];
        CHECK_INT(poll(&all_ended, 1, 60000), 1);
        CHECK(board->pids[2] == 0); /* and no other job began */
        (void)close(ends[0]);
        jobs_free(board, sizeof *board);
    }
#endif
}

static void test_jobs_edges(void)
{
    jobs_plan plan;
    char err[JOBS_ERR_MAX];
    memset(&plan, 0, sizeof plan);
    CHECK_INT(jobs_run(&plan, err), 0); /* nothing to do */
    CHECK(jobs_processors() >= 1 && jobs_processors() <= 8);
    CHECK(jobs_alloc(0) == NULL);
    jobs_free(NULL, 0);
}

/* Where SIGCHLD is ignored the system keeps no exit codes; the jobs say themselves how it went. */
static void test_jobs_without_exit_codes(void)
{
    job_board *board = (job_board *)jobs_alloc(sizeof *board);
    char err[JOBS_ERR_MAX];
    size_t units = 0;
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    if (!CHECK(board != NULL)) return;
    board->bad = NO_JOB;
    CHECK_INT(run_jobs(board, 3, &units, err), 0);
    board->bad = 5;
    board->fate = FATE_CODE;
    CHECK_INT(run_jobs(board, 1, &units, err), -1);
    CHECK_STR(err, "seed 16 failed with code 3");
    (void)signal(SIGCHLD, old);
    jobs_free(board, sizeof *board);
}

/* Text that waits in a buffer when the children start must come out once. */
static int print_around_jobs(void *context)
{
    char err[JOBS_ERR_MAX];
    size_t units = 0;
    int status;
    printf("before ");
    status = run_jobs((job_board *)context, 3, &units, err);
    printf("after\n");
    return status;
}

static void test_jobs_buffered_output(void)
{
    job_board *board = (job_board *)jobs_alloc(sizeof *board);
    char out[256], err[256];
    if (!CHECK(board != NULL)) return;
    board->bad = NO_JOB;
    CHECK_INT(run_caught(print_around_jobs, board, out, err, sizeof out), 0);
    CHECK_STR(out, "before after\n");
    jobs_free(board, sizeof *board);
}

int main(void)
{
    folder_enter();
    RUN(test_files_round_trip);
    RUN(test_files_without_folder);
    RUN(test_files_failed_write_keeps_old);
    RUN(test_files_refusals);
    RUN(test_files_read_limits);
    RUN(test_files_read_unknown_size);
    RUN(test_files_hash);
    RUN(test_cli_values);
    RUN(test_cli_errors);
    RUN(test_cli_long_argument);
    RUN(test_cli_help);
    RUN(test_cli_help_into_full_disk);
    RUN(test_cli_results);
    RUN(test_progress_on_terminal);
    RUN(test_progress_silence);
    RUN(test_numbers_round_trip);
    RUN(test_number_spelling);
    RUN(test_number_refusals);
    RUN(test_csv_text_of_a_table);
    RUN(test_csv_round_trip);
    RUN(test_csv_texts_stay_texts);
    RUN(test_csv_origin);
    RUN(test_csv_many_seeds);
    RUN(test_csv_writer_errors);
    RUN(test_csv_malformed);
    RUN(test_csv_comments_and_empty_cells);
    RUN(test_csv_random_input);
    RUN(test_stats_summary);
    RUN(test_stats_large_offset);
    RUN(test_stats_quantiles);
    RUN(test_stats_histogram);
    RUN(test_stats_density);
    RUN(test_stats_running_mean);
    RUN(test_stats_student);
    RUN(test_stats_discoveries);
    RUN(test_stats_findings);
    RUN(test_stats_parts);
    RUN(test_stats_limits);
    RUN(test_stats_verdicts);
    RUN(test_jobs_same_results);
    RUN(test_jobs_failures);
    RUN(test_jobs_failure_ends_the_rest);
    RUN(test_jobs_end_with_the_program);
    RUN(test_jobs_edges);
    RUN(test_jobs_without_exit_codes);
    RUN(test_jobs_buffered_output);
    folder_leave();
    return test_report("helpers");
}
