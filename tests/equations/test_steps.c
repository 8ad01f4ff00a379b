/* test_steps.c - every step of the chapters, executed.

   The chapters of docs/ show how the formulas of the header come about, one move of algebra a line,
   and number these steps: \tag{BN.19a} is a step on the way to BN.19; some families (MV, GR, ...)
   are the chapters' own. Each of these tags has a claim in a *.claims file (claims.h says how they
   are read) or, where it takes a program, a DERIVE line in a steps_*.h file (derive_tools.h). Which
   tags there must be is read from the chapters themselves, so that a claim that is never reached
   cannot go unseen. Equations of the header are the business of test_derivations.c. Run with -v for
   the table of all residuals; with CLAIMS=1 in the environment each claim that fails is named. */
#define NORMLAYERS_IMPLEMENTATION /* the steps_*.h files call private functions, nrmi_... */
#include "normlayers.h"

#include "claims_calls.h"
#include "steps_numerics.h"
#include "test.h"

typedef struct chapter {
    const char *page, *claims;
    void (*steps)(void); /* what no file of claims can say */
} chapter;

static const chapter chapters[] = {
    {"docs/07_numerics.md", "numerics", steps_numerics},
    {"docs/01_batch_norm.md", "batch_norm", NULL},
    {"docs/02_layer_norm.md", "layer_norm", NULL},
    {"docs/04_noisy_batch_norm.md", "noisy", NULL},
    {"docs/03_family.md", "family", NULL},
    {"docs/05_gradient_checking.md", "gradient_checking", NULL},
    {"docs/06_network.md", "network", NULL},
    {"docs/08_smoothness.md", "smoothness", NULL},
    {"docs/10_conventions.md", "conventions", NULL},
    {"docs/09_faq.md", "questions", NULL},
};

/* The text of a file, to be freed; a test that cannot read its page has failed. */
static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) size = ftell(f);
    if (size >= 0) text = (char *)malloc((size_t)size + 1);
    if (text) {
        rewind(f);
        text[fread(text, 1, (size_t)size, f)] = '\0';
    }
    if (f) fclose(f);
    if (text) return text;
    printf("cannot read %s\n", path);
    exit(1);
}

/* Equations of the header end in their tag, in brackets; steps in round ones. */
static int in_header(const char *header, const char *tag)
{
    char equation[24], step[24];
    snprintf(equation, sizeof equation, "[%s]\n", tag);
    snprintf(step, sizeof step, "(%s)\n", tag);
    return strstr(header, equation) != NULL || strstr(header, step) != NULL;
}

/* All tags that the chapter has and the header has not. */
static void report_chapter(const chapter *c, const char *header, int verbose)
{
    char *text = read_text(c->page);
    const char *at = text;
    while ((at = strstr(at, "\\tag{")) != NULL) {
        char tag[16];
        at += strlen("\\tag{");
        if (sscanf(at, "%15[^}]", tag) == 1 && !in_header(header, tag))
            derivation_report(tag, verbose);
    }
    free(text);
}

int main(int argc, char **argv)
{
    const int verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    char *header = read_text("normlayers.h");
    size_t i;
    for (i = 0; i < LENGTH(chapters); i++) {
        if (chapters[i].claims != NULL) claims_run(chapters[i].claims, 200 + i);
        if (chapters[i].steps != NULL) chapters[i].steps();
    }
    if (verbose) printf("tag     kind   times    residual     bound\n");
    for (i = 0; i < LENGTH(chapters); i++) report_chapter(&chapters[i], header, verbose);
    free(header);
    return test_report("steps");
}
