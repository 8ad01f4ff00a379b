/* test_lab.c - the frame of the experiments: runs are done once and again only if their file is
   missing, cut, or of other settings; the table of all runs is the same whatever was interrupted;
   figures and verdicts come from the table alone.

   Link it with the implementations of the examples' helpers. */
#define _XOPEN_SOURCE 700 /* mkdtemp */

#include "lab/lab.h"
#include "lab/files.h"
#include "lab/matrix.h"
#include "lab/page.h"
#include "folder.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 16 };

/* The content of a file below the folder; "" if there is none. */
static const char *content(const char *name)
{
    static char text[2][TEXT_MAX];
    static int which;
    unsigned char *data;
    size_t n;
    which = !which;
    text[which][0] = 0;
    if (files_read(name, TEXT_MAX - 1, &data, &n, NULL) == 0) {
        memcpy(text[which], data, n + 1);
        free(data);
    }
    return text[which];
}

/* ---- an experiment of two arms --------------------------------------------------------------- */

static int fail_arm = -1, check_holds = 1; /* what the next experiment does */
static int meddle;                         /* 1: its last run spoils the file of another one */
static int nothing;                        /* 1: its runs record nothing */

/* Each run appends one byte to a file, so that the runs can be counted. */
static void count_run(void)
{
    const int fd = open("count", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0) return;
    if (write(fd, "x", 1) != 1) fprintf(stderr, "test_lab: cannot count\n");
    (void)close(fd);
}

static size_t runs_so_far(void)
{
    return strlen(content("count"));
}

/* As another build of the program does that is started in the middle of this one. */
static void write_foreign_run(void)
{
    static const char *const text =
        "# program: 00_test\n# version: 9.9\n# rows: 1\narm,series,x,seed_11\nfirst,loss,0,1\n";
    CHECK(files_write("runs/00_test/first_seed11.csv", text, strlen(text), NULL) == 0);
}

static int run(lab_run *r)
{
    size_t step;
    count_run();
    if ((int)r->arm == fail_arm) return 1;
    if (nothing) return 0;
    if (meddle && r->arm == 1 && r->seed == 13) write_foreign_run();
    for (step = 0; step < 5; step++) {
        lab_record(r, "loss", (double)step, (double)(r->seed - 10 + 10 * r->arm) / 3);
        lab_record_as(r, (double)step, r->arm == 1 && step > 2 ? (double)NAN : 1e-300, "%s/series",
                      "other");
        lab_record(r, "hill", pow(10, (double)step), step == 2 ? 1 : -0.5);
    }
    if (r->seed > 11) lab_record(r, "late", (double)r->seed, 1);
    lab_progress(r, 0.5);
    return 0;
}

static const lab_claim claim = {"1a",          "The second arm is higher, \"much\" higher",
                                "Nobody 2020", "1, or so",
                                "higher",      "none",
                                LAB_TRAINING,  LAB_NEWS};

static int report(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, &(lab_page){.title = "A test", .height = 600, .settings = "other settings", .seeds = 2});
    plot_panel *p = plot_place(f, 0);
    lab_plot(r, p, 0, "loss", NULL, lab_style("none"));
    lab_plot_seeds(r, p, 1, "loss", NULL, lab_style("batch"));
    lab_verdict(r, &claim,
                lab_more(lab_all(r, 1, "loss", LAB_LAST), lab_all(r, 0, "loss", LAB_LAST), 1),
                "remark", "%s", lab_text(r, 1, "loss", 2, 3));
    lab_check(r, check_holds, "the check", "%d", check_holds);
    CHECK_INT(lab_seeds(r, 0), 5);
    CHECK_INT(lab_seeds(r, 1), 3);
    CHECK_NEAR(lab_at(r, 0, 1, "loss", 4), 0.6666667, 1e-12); /* seven digits */
    CHECK(isnan(lab_at(r, 0, 1, "loss", 17)) && isnan(lab_at(r, 0, 7, "loss", 0)));
    CHECK(isnan(lab_at(r, 0, 0, "none such", 0)));
    CHECK(isnan(lab_over_seeds(r, 1, "other/series").mean[4]));
    CHECK_NEAR(lab_mean(r, 0, "loss", 0), 1, 1e-7);
    CHECK_NEAR(lab_within(lab_all(r, 0, "loss", 0), 1, 1).mean, 0.6,
               1e-7); /* 1 less 2/3, 1/3, 0, 1/3, 2/3 */
    CHECK_INT(stats_reproduced(lab_within(lab_all(r, 0, "loss", 0), 1, 2)), 1);
    CHECK_NEAR(lab_above(lab_all(r, 0, "loss", 0), 2).mean, -1, 1e-6);
    CHECK(lab_at(r, 0, 2, "late", 13) == 1 && isnan(lab_at(r, 0, 2, "late", 12)));
    CHECK(lab_get(r, 1, 2, "late").n == 1 && lab_get(r, 0, 0, "late").n == 0);
    CHECK_INT(strlen(lab_format(r, "%01000d", 1)), 1000);
    CHECK(lab_round(0.123456, 3) == 0.123 && isnan(lab_round((double)NAN, 3)));
    return lab_save(r, f, "page");
}

static const lab_arm arms[2] = {{"first", "the first", 1, 0}, {"second", "the second", 1, 3}};
static lab_program program = {"00_test", "0.0", "?", "settings", 1, 0, arms, 2, NULL, run, report};

/* lab_main with its output in a folder of the tests' own. */
static int experiment(char *option, char *value)
{
    char *argv[12];
    int argc = 0, status, old, silent = open("/dev/null", O_WRONLY);
    argv[argc++] = "00_test";
    argv[argc++] = "--out";
    argv[argc++] = "out";
    argv[argc++] = "--runs";
    argv[argc++] = "runs";
    argv[argc++] = "--quiet";
    if (option) argv[argc++] = option;
    if (value) argv[argc++] = value;
    argv[argc] = NULL;
    (void)fflush(stdout);
    old = dup(1);
    (void)dup2(silent, 1);
    status = lab_main(&program, argc, argv);
    (void)fflush(stdout);
    (void)dup2(old, 1);
    (void)close(old);
    (void)close(silent);
    return status;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_all_runs_once(void)
{
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK_INT(runs_so_far(), 8);
    CHECK(strstr(content("out/00_test.csv"), "# seeds: 11 12 13 14 15\n") != NULL);
    CHECK(strstr(content("out/00_test.csv"),
                 "\nfirst,late,12,,1,,,\nfirst,late,13,,,1,,\nfirst,late,14,,,,1,\n") != NULL);
    CHECK(strstr(content("out/00_test.csv"),
                 "\nsecond,loss,0 1 2 3 4,3.666667 3.666667 3.666667 3.666667 3.666667,4 4 4 4 4,"
                 "4.333333 4.333333 4.333333 4.333333 4.333333,,\n") != NULL);
    CHECK(strstr(content("out/00_test_verdicts.csv"), ",reproduced,remark,") != NULL);
    /* class, why not, n, difference, low, high, effect, p, size, parts, best_p: the seeds differ by
       10/3 each, but for the seventh digit */
    CHECK(strstr(content("out/00_test_verdicts.csv"), ",training,news,3,3.333,3.333,3.333,") !=
          NULL);
    CHECK(strstr(content("out/00_test_verdicts.csv"), "\ncheck,\"\",the check,") != NULL);
    CHECK(*content("out/00_test_page.png") != 0);
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK_INT(runs_so_far(), 8);
}

static void test_missing_and_cut_runs_again(void)
{
    char table[TEXT_MAX];
    struct stat whole;
    (void)snprintf(table, sizeof table, "%s", content("out/00_test.csv"));
    CHECK(unlink("runs/00_test/first_seed12.csv") == 0);
    CHECK(stat("runs/00_test/second_seed12.csv", &whole) == 0);
    CHECK(truncate("runs/00_test/second_seed12.csv",
                   whole.st_size - (long)strlen("second,late,12,1\n")) == 0);
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK_INT(runs_so_far(), 10);
    CHECK_STR(content("out/00_test.csv"), table);
}

/* The last number loses digits: still a row of four cells. */
static void test_a_cut_number_runs_again(void)
{
    const size_t before = runs_so_far();
    char table[TEXT_MAX];
    struct stat whole;
    (void)snprintf(table, sizeof table, "%s", content("out/00_test.csv"));
    CHECK(stat("runs/00_test/first_seed12.csv", &whole) == 0);
    CHECK(truncate("runs/00_test/first_seed12.csv", whole.st_size - 3) == 0);
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK_INT(runs_so_far(), before + 1);
    CHECK_STR(content("out/00_test.csv"), table);
}

/* As many rows as there should be, but one is no number: it must not stop the experiment for
   ever. */
static void test_a_damaged_run_runs_again(void)
{
    const size_t before = runs_so_far();
    char table[TEXT_MAX];
    size_t i;
    (void)snprintf(table, sizeof table, "%s", content("out/00_test.csv"));
    for (i = 0; i < 2; i++) {
        char text[TEXT_MAX];
        char *at;
        (void)snprintf(text, sizeof text, "%s", content("runs/00_test/first_seed12.csv"));
        at = i == 0 ? text + strlen(text) - 2 : strstr(text, "\narm,series,x");
        if (!CHECK(at != NULL)) return;
        memcpy(at, i == 0 ? "x" : "\nArm", i == 0 ? 1 : 4);
        CHECK(files_write("runs/00_test/first_seed12.csv", text, strlen(text), NULL) == 0);
        CHECK_INT(experiment(NULL, NULL), 0);
        CHECK_INT(runs_so_far(), before + i + 1);
        CHECK_STR(content("out/00_test.csv"), table);
    }
}

static void test_nothing_runs_where_nothing_can_be_written(void)
{
    const size_t before = runs_so_far();
    CHECK(unlink("runs/00_test/first_seed12.csv") == 0);
    CHECK_INT(experiment("--out", "count/below a file"), 1);
    CHECK_INT(runs_so_far(), before);
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK_INT(runs_so_far(), before + 1);
}

/* A pass without MNIST must not cost the runs with it. */
static void test_runs_on_other_data_have_their_folder(void)
{
    const size_t before = runs_so_far();
    struct stat at;
    program.uses = LAB_USES_DATA;
    CHECK_INT(experiment("--data", "synthetic"), 0);
    CHECK_INT(runs_so_far(), before + 8);
    CHECK(stat("runs/00_test_synthetic/first_seed12.csv", &at) == 0);
    program.uses = 0;
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK_INT(runs_so_far(), before + 8);
}

/* A table speaks for one build; the file of another one does not get into it unseen. */
static void test_a_foreign_run_is_not_joined(void)
{
    meddle = 1;
    CHECK(unlink("runs/00_test/second_seed13.csv") == 0);
    CHECK_INT(experiment(NULL, NULL), 1);
    meddle = 0;
    CHECK_INT(experiment(NULL, NULL), 0);
}

static void test_other_settings_run_again(void)
{
    const size_t before = runs_so_far();
    program.revision = 2;
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK_INT(runs_so_far(), before + 8);
    program.settings = "other settings";
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK_INT(runs_so_far(), before + 16);
    CHECK(strstr(content("out/00_test.csv"), "# settings: other settings\n") != NULL);
}

static void test_redrawn_without_runs(void)
{
    const size_t before = runs_so_far();
    char verdicts[TEXT_MAX];
    (void)snprintf(verdicts, sizeof verdicts, "%s", content("out/00_test_verdicts.csv"));
    CHECK(rename("out/00_test.csv", "kept.csv") == 0);
    CHECK(unlink("out/00_test_verdicts.csv") == 0);
    CHECK_INT(experiment("--from", "kept.csv"), 0);
    CHECK_INT(runs_so_far(), before);
    CHECK_STR(content("out/00_test_verdicts.csv"), verdicts);
}

static void test_other_data_do_not_count(void)
{
    char table[TEXT_MAX];
    const int n =
        snprintf(table, sizeof table, "# data: MNIST 0123456789abcdef\n%s", content("kept.csv"));
    CHECK(n > 0 && n < TEXT_MAX);
    CHECK(files_write("other.csv", table, (size_t)n, NULL) == 0);
    CHECK_INT(experiment("--from", "other.csv"), 0);
    CHECK(strstr(content("out/00_test_verdicts.csv"), ",not counted: not the data of MNIST,"));
    CHECK(strstr(content("out/00_test_verdicts.csv"), ",reproduced,") == NULL);
}

static void test_refused_tables(void)
{
    static const char *const table[] = {
        "# program: 99_other\narm,series,x,seed_11\nfirst,loss,0,1\n",
        "# program: 00_test\narm,series,x,seed_11\nthird,loss,0,1\n",       /* no such arm */
        "# program: 00_test\narm,series,x,seed_11\nfirst,loss,0 1 2,1 2\n", /* a number is gone */
        "# program: 00_test\narm,series,x,seed_11\nfirst,loss,0 1,1 two\n",
        "# program: 00_test\narm,series,x,seed_11,seed_12\nfirst,loss,0,,1\n", /* so is a run */
        "# program: 00_test\narm,series,x,y\nfirst,loss,0,1\n",
        "# program: 00_test\narm,series,x\nfirst,loss,0\n",
        "# program: 00_test\narm,series,x,seed_11\nfirst,loss,0,1"}; /* perhaps it was 1.5 */
    size_t i;
    for (i = 0; i < LAB_COUNT(table); i++) {
        CHECK(files_write("bad.csv", table[i], strlen(table[i]), NULL) == 0);
        CHECK_INT(experiment("--from", "bad.csv"), 1);
    }
    CHECK_INT(experiment("--from", "no such file.csv"), 1);
}

/* ---- claims and panels as tables: losses are 1/3, 2/3, ... and 10/3 more --------------------- */

static void judge_by_function(lab_report *r, const lab_claim *c)
{
    const lab_numbers a = lab_all(r, 0, c->series, 0), b = lab_all(r, 1, c->series, 0);
    CHECK_INT(a.n, 5);
    CHECK_INT(lab_calc(a, '-', b).n, 3);
    CHECK_NEAR(lab_describe(lab_calc(b, '-', a)).mean, 10.0 / 3, 1e-6);
    CHECK_NEAR(lab_calc(a, '/', b).of[1], 2.0 / 12, 1e-6);
    CHECK_NEAR(lab_calc(a, '*', a).of[1] + lab_calc(a, '+', a).of[1], 4.0 / 9 + 4.0 / 3, 1e-6);
    CHECK_NEAR(lab_map(lab_times(a, 3), sqrt).of[3], 2, 1e-6);
    CHECK_NEAR(lab_mean_over(r, 0, c->series, 1, 3).of[2], 1, 1e-6);
    CHECK_NEAR(lab_most_over(r, 0, c->series, 1, 3).of[2], 1, 1e-6);
    CHECK(isnan(lab_mean_over(r, 0, c->series, 7, 8).of[0]));
    CHECK_NEAR(lab_largest(r, 1, c->series), 5 / 3.0 + 10 / 3.0 - 2 / 3.0, 1e-6);
    CHECK(isnan(lab_largest(r, 1, "none such")) && isnan(lab_worst(r, "none such")));
    CHECK_NEAR(lab_worst(r, c->series), 13 / 3.0, 1e-6);
    CHECK_NEAR(lab_least(r, 0, 1, c->series, 0), 1 / 3.0, 1e-6);
    CHECK(isnan(lab_least(r, 0, 1, "none such", 0)));
    CHECK_NEAR(lab_slope(r, 0, 1, c->series, 0, 4, 0), 0, 1e-6);
    CHECK_NEAR(lab_slope(r, 0, 1, c->series, 1, 3, 1), 0, 1e-6);
    CHECK_NEAR(lab_decades_above(r, 0, 1, "hill", 0, 0, 1e4), 4.0 / 3, 1e-6);
    CHECK_NEAR(lab_decades_above(r, 0, 1, "hill", -1, 10, 1e3), 2, 1e-6);
    CHECK(isnan(lab_decades_above(r, 1, 1, "other/series", 0, 1, 4)));
    lab_verdict(r, c, lab_more(b, a, 1), "", "%s", lab_pm(r, a, 2));
}

static double ten_times(const lab_report *r, size_t arm, size_t seed)
{
    return 10 * lab_at(r, arm, seed, "loss", 0);
}

static const lab_claim table[] = {
    {"9a", "above", "", "", "", "", LAB_TRAINING, LAB_NEWS, .test = LAB_MORE, .a = 1, .b = 0,
     .series = "loss", .decimals = 1},
    {"9b", "below", "", "", "", "", LAB_TRAINING, LAB_NEWS, .test = LAB_LESS, .a = 1, .b = 0,
     .series = "loss", .decimals = 1, .remark = "expected to fail"},
    {"9c", "above 3", "", "", "", "", LAB_TRAINING, LAB_NEWS, .test = LAB_ABOVE, .a = 1,
     .series = "loss", .at = 2, .limit = 3},
    {"9d", "below 3", "", "", "", "", LAB_TRAINING, LAB_NEWS, .test = LAB_BELOW, .a = 1,
     .series = "loss", .at = 2, .limit = 3},
    {"9e", "about 4", "", "", "", "", LAB_TRAINING, LAB_NEWS, .test = LAB_WITHIN, .a = 1,
     .series = "loss", .at = LAB_LAST, .limit = 4, .tolerance = 2},
    {"9f", "by a function", "", "", "", "", LAB_TRAINING, LAB_NEWS, judge_by_function,
     .series = "loss"},
    {"9g", "of parts", "", "", "", "", LAB_TRAINING, LAB_NEWS,
     LAB_PARTS({LAB_MORE, 1, 0, "loss", 2, 3}, {.a = 1, .series = "loss"},
               {LAB_ABOVE, .a = 1, .limit = 9, .each = ten_times}),
     .decimals = 1, .say = "#2, $1, $4", .remark = "and $3; #! of 2"},
    {"9h", "5 times", "", "", "", "", LAB_TRAINING, LAB_NEWS, .test = LAB_LESS, .a = 0, .b = 1,
     .series = "loss", .times = 5, .decimals = -2},
    {"9i", "told", "", "", "", "", LAB_TRAINING, LAB_NEWS,
     LAB_PARTS({LAB_MORE, 1, 0, "loss", .to = 4}), .decimals = 1,
     .say = "$1[2], $1[100 0], #1[max %.2f], #2[min 100 %.0f], #1-2[10^%.0f], #2, #1/2[%.2f]",
     .remark = "#1..2[min %.2f] to #1..2[max %.2f]"},
    {"9j", "nearly", "", "", "", "", LAB_TRAINING, LAB_NEWS, .test = LAB_MORE, .a = 0, .b = 1,
     .series = "loss", .tolerance = 5},
    {"9k", "from 2 to 3", "", "", "", "", LAB_TRAINING, LAB_NEWS, .test = LAB_MORE, .a = 1, .b = 0,
     .series = "loss", .a_mean = {4, 5}, .b_mean = {2, 3}},
    {"9l", "exact", "", "", "", "", LAB_IDENTITY, LAB_NEWS,
     LAB_PARTS({LAB_EXACT, 0, .series = "loss", .limit = 2},
               {LAB_EXACT, 0, .series = "loss", .at = 7, .to = 8, .limit = 2}),
     .decimals = 1},
    {"9m", "in most seeds", "", "", "", "", LAB_TRAINING, LAB_NEWS,
     LAB_PARTS({LAB_MORE, 1, 0, "loss", .a_mean = {3.9, 4.1}, .most = 1})}};

static void draw_more(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const double x[2] = {0, 1};
    const lab_numbers y[2] = {lab_all(r, 0, panel->series, 0), lab_all(r, 1, panel->series, 0)};
    lab_draw_numbers(p, "both", x, y, 2, plot_solid(PLOT_BLUE));
    lab_draw_bars(p, "both", y, 2, plot_solid(PLOT_BLUE));
}

static const char *const names[2] = {"first", "second"};
static const lab_panel panels[] = {
    {.axes = {.heading = "a", .x = "step", .y_scale = PLOT_LOG10, .y_range = {0.1, 10}},
     .line = {{0, "loss", .to = 1},
              {1, "loss", "", {PLOT_BLUE}, LAB_EACH_SEED},
              {0, "loss", .how = LAB_GEOMETRIC},
              {0, "loss", .how = LAB_POWERS},
              {0, "loss", .how = LAB_MEAN, .level = {1, 2}}},
     .mark = {{LAB_HLINE, .y = 1, .text = ""}, {LAB_NOTE, 1, 1, "one", PLOT_LEFT}},
     .under = {{LAB_VLINE, .x = 1, .text = ""}}},
    {.axes = {.col = 1, .grid = -1, .legend = PLOT_LEGEND_NONE},
     .line = {{1, "loss", .how = LAB_ONE_SEED}},
     .draw = draw_more,
     .series = "loss"},
    {.axes = {.col = 2, .x_names = names, .x_count = 2},
     .line = {{0, "loss", "bars", {PLOT_BLUE}, LAB_BARS}},
     .value = 1},
    {.axes = {.row = 1, .x_names = names, .x_count = 2},
     .line = {{0, "loss", "errors", {PLOT_BLUE}, LAB_ERRORS, 1}}}};
static const lab_page page = {"Tables", "tables", 600, 0.8, .widths = {1, 2}, LAB_PANELS(panels)};

static void test_claims_and_panels_as_tables(void)
{
    const lab_program kept = program;
    const char *found;
    program.before = NULL;
    program.page = &page;
    program.pages = 1;
    program.claim = table;
    program.claims = LAB_COUNT(table);
    CHECK_INT(experiment("--from", "kept.csv"), 0);
    program = kept;
    found = content("out/00_test_verdicts.csv");
    CHECK(strstr(found, "9a,above,\"\",\"\",4.0 ± 0.3 against 1.0 ± 0.5,reproduced,") != NULL);
    CHECK(strstr(found, "against 1.0 ± 0.5,not reproduced,expected to fail,") != NULL);
    CHECK(strstr(found, "9c,above 3,\"\",\"\",4 ± 0,reproduced,") != NULL);
    CHECK(strstr(found, "9d,below 3,\"\",\"\",4 ± 0,not reproduced,") != NULL);
    CHECK(strstr(found, "9e,about 4,\"\",\"\",4 ± 0,reproduced,") != NULL);
    CHECK(strstr(found, "9g,of parts,\"\",\"\",\"1.0, 4.0 ± 0.3, 40.0 ± 3.3\",reproduced,and 4.0"));
    CHECK(strstr(found, "reproduced,and 4.0 ± 0.3; 2 of 2,") != NULL);
    CHECK(strstr(found, "9h,5 times,\"\",\"\",1 ± 0.5 against 4 ± 0.3,partly reproduced,") != NULL);
    CHECK(strstr(found,
                 "\"4.00 ± 0.33, 400 ± 33, 4.33, 33, 1000, 1.0, 4.00\",reproduced,0.33 to 4.33,"));
    CHECK(strstr(found, "9j,nearly,\"\",\"\",1 ± 1 against 4 ± 0,reproduced,") != NULL);
    CHECK(strstr(found, "9k,from 2 to 3,\"\",\"\",4 ± 0 against 1 ± 1,partly reproduced,") != NULL);
    CHECK(strstr(found, "9m,in most seeds,\"\",\"\",4 ± 0 against 1 ± 1,partly reproduced,"));
    CHECK(strstr(found, "9l,exact,\"\",\"\",1.7e+00 against nan,not reproduced,") != NULL);
    CHECK(strstr(found, "9f,by a function,\"\",\"\",1.00 ± 0.53,reproduced,") != NULL);
    CHECK(strstr(found, "\ncheck,") == NULL);
    CHECK(*content("out/00_test_tables.png") != 0);
}

static void test_a_seventh_panel_is_refused(void)
{
    lab_panel seven[7] = {{.axes = {.row = 0}}};
    lab_page crowded = {"A test", "crowded", 1200, .panel = seven, .panels = 7};
    const int kept = dup(2);
    size_t i;
    for (i = 0; i < 7; i++) {
        seven[i].axes.row = (int)i / 3;
        seven[i].axes.col = (int)i % 3;
    }
    program.page = &crowded;
    program.pages = 1;
    CHECK(freopen("said", "w", stderr) != NULL);
    CHECK_INT(experiment("--from", "kept.csv"), 1);
    (void)fflush(stderr);
    CHECK(dup2(kept, fileno(stderr)) >= 0 && close(kept) == 0);
    CHECK(strstr(content("said"), "'A test': 7 panels") != NULL);
    CHECK(*content("out/00_test_crowded.png") == 0);
    crowded.panels = 6;
    CHECK_INT(experiment("--from", "kept.csv"), 0);
    CHECK(*content("out/00_test_crowded.png") != 0);
    program.pages = 0;
}

static void test_eigenvalues(void)
{
    double a[9] = {2, 1, 0, 1, 2, 0, 0, 0, 5}, v[9], alone[4] = {2, 1, 1, 2};
    CHECK(matrix_eigen(a, v, 3) > 0);
    CHECK_NEAR(fabs(a[0] - 2) + fabs(a[4] - 2), 2, 1e-12); /* 1 and 3 */
    CHECK_NEAR(a[8], 5, 0);
    CHECK_NEAR(fabs(v[0]), sqrt(0.5), 1e-12);
    CHECK_NEAR(v[0] * v[1] + v[3] * v[4], 0, 1e-12);
    (void)matrix_eigen(alone, NULL, 2);
    CHECK_NEAR(alone[0] * alone[3], 3, 1e-12);
}

static void test_whitening(void)
{
    const double x[8] = {1, 2, 3, 5, 4, 1, 7, 9};
    double y[8], c[4], l[9] = {4, 2, 6, 2, 5, 5, 6, 5, 11}, w[9] = {0};
    size_t i, j, k;
    CHECK(matrix_whiten(y, x, 4, 2) > 0);
    (void)matrix_covariance(c, y, 4, 2, 0);
    CHECK_NEAR(c[0], 1, 1e-12);
    CHECK_NEAR(c[1], 0, 1e-12);
    CHECK_NEAR(c[3], 1, 1e-12);
    CHECK_NEAR(y[0] + y[2] + y[4] + y[6], 0, 1e-12);
    matrix_cholesky(l, 3); /* 2; 1 2; 3 1 1 */
    CHECK_NEAR(l[3] + 10 * l[4] + 100 * l[6] + 1000 * l[7] + 10000 * l[8], 11321, 1e-9);
    matrix_invert_lower(w, l, 3);
    for (i = 0; i < 3; i++)
        for (j = 0; j <= i; j++) {
            double sum = 0;
            for (k = j; k <= i; k++) sum += w[i * 3 + k] * l[k * 3 + j];
            CHECK_NEAR(sum, i == j ? 1 : 0, 1e-12);
        }
}

/* Seeds go through tables as numbers: beyond 2^53 two of them would be one. */
static void test_seeds_out_of_range(void)
{
    const size_t before = runs_so_far();
    CHECK_INT(experiment("--seed", "9007199254740992"), 2);
    CHECK_INT(experiment("--seed", "18446744073709551615"), 2);
    CHECK_INT(experiment("--seeds", "513"), 2);
    CHECK_INT(experiment("--seeds", "0"), 2);
    CHECK_INT(runs_so_far(), before);
}

static void test_a_path_that_is_too_long(void)
{
    const size_t before = runs_so_far();
    char path[1100];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    CHECK_INT(experiment("--runs", path), 2);
    CHECK_INT(experiment("--out", path), 2);
    CHECK_INT(runs_so_far(), before); /* it does not take hours to find out */
}

static int no_report(lab_report *r)
{
    (void)r;
    return -1;
}

static void test_a_plan_runs_nothing(void)
{
    const size_t before = runs_so_far();
    program.before = no_report;
    CHECK_INT(experiment("--plan", NULL), 0);
    CHECK_INT(runs_so_far(), before);
    program.before = report;
}

static int report_quick(lab_report *r)
{
    plot_free(lab_figure(r, &(lab_page){.title = "A test", .height = 600, .seeds = 5}));
    CHECK(lab_quick(r));
    lab_verdict(r, &claim, stats_holds(1), "", "%d", 1);
    return 0;
}

static void test_quick_runs_do_not_count(void)
{
    const size_t before = runs_so_far();
    program.before = report_quick;
    CHECK_INT(experiment("--quick", NULL), 0);
    program.before = report;
    CHECK_INT(runs_so_far(), before + 4); /* two seeds */
    CHECK(strstr(content("out/00_test_quick_verdicts.csv"), ",not counted: quick run,") != NULL);
    CHECK(strstr(content("out/00_test_quick_verdicts.csv"), ",reproduced,") == NULL);
    CHECK(strstr(content("out/00_test_verdicts.csv"), "quick") == NULL); /* the full ones stay */
}

static void test_a_failed_check_fails(void)
{
    check_holds = 0;
    CHECK_INT(experiment(NULL, NULL), 1);
    CHECK(strstr(content("out/00_test_verdicts.csv"), ",failed,") != NULL);
    check_holds = 1;
}

static void test_a_failed_run_fails(void)
{
    fail_arm = 1;
    program.revision = 3;
    CHECK_INT(experiment(NULL, NULL), 1);
    fail_arm = -1;
    nothing = 1; /* the table would not even show that there was a run */
    CHECK_INT(experiment(NULL, NULL), 1);
    nothing = 0;
    CHECK_INT(experiment(NULL, NULL), 0);
}

static size_t counted[3];

static int count(lab_report *r)
{
    counted[0] = lab_seeds(r, 0);
    counted[1] = lab_seeds(r, 1);
    counted[2] = lab_more(lab_all(r, 1, "loss", 0), lab_all(r, 0, "loss", 0), 1).n;
    return 0;
}

/* An arm may have more seeds than the others; --seeds is the most of any. */
static void test_an_arm_with_more_seeds(void)
{
    static const lab_arm more[2] = {{"first", "the first", 1, 0}, {"second", "the second", 1, 7}};
    const lab_program usual = program;
    program.arm = more;
    program.before = count;
    CHECK_INT(experiment(NULL, NULL), 0);
    CHECK(counted[0] == 5 && counted[1] == 7 && counted[2] == 5);
    CHECK(strstr(content("out/00_test.csv"), "# seeds: 11 12 13 14 15 16 17\n") != NULL);
    CHECK_INT(experiment("--seeds", "4"), 0);
    CHECK(counted[0] == 4 && counted[1] == 4 && counted[2] == 4);
    program = usual;
}

int main(void)
{
    folder_enter();
    RUN(test_all_runs_once);
    RUN(test_missing_and_cut_runs_again);
    RUN(test_a_cut_number_runs_again);
    RUN(test_a_damaged_run_runs_again);
    RUN(test_nothing_runs_where_nothing_can_be_written);
    RUN(test_runs_on_other_data_have_their_folder);
    RUN(test_a_foreign_run_is_not_joined);
    RUN(test_other_settings_run_again);
    RUN(test_redrawn_without_runs);
    RUN(test_other_data_do_not_count);
    RUN(test_refused_tables);
    RUN(test_claims_and_panels_as_tables);
    RUN(test_a_seventh_panel_is_refused);
    RUN(test_eigenvalues);
    RUN(test_whitening);
    RUN(test_seeds_out_of_range);
    RUN(test_a_path_that_is_too_long);
    RUN(test_a_plan_runs_nothing);
    RUN(test_quick_runs_do_not_count);
    RUN(test_a_failed_check_fails);
    RUN(test_a_failed_run_fails);
    RUN(test_an_arm_with_more_seeds);
    folder_leave();
    return test_report("lab");
}
