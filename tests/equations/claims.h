/* claims.h - reads and checks the equations of a *.claims file.

   A claim is one line: a tag, and two or more sides that must agree.

       x = random(1, 7, 0.7, 1)                  # computed once: data
       mu := mean(x)                             # computed anew whenever it is asked for
       r := 1/sqrt(var(x) + eps)
       BN.16b: d(x - mu, x) = I(7) - 1/7
       BN.8a: 0.9^50 shows 0.0052

   Values are matrices of dual numbers (a value, and its derivative by whatever d() is moving);
   numbers are matrices of 1 by 1, vectors of 1 by n. + - * / ^ and functions go entry by entry, a
   side of one entry, row or column counting for all; a @ b is the product of matrices, a' the
   transpose. a[i] is entry i of a vector, or row i of a matrix. < <= > >= == and ! give 1 or 0.

       name = expression           name1, name2 = call of the header
       name := expression          name(a, b) := expression of a, b and other names
       for i in 0 .. n-1; s in 1, 10  ...  end        if condition  ...  end
       total(i, from, to, expr)    vector(i, from, to, expr)    sums and vectors over i
       d(expr, name)               the gradient of a number, in the form of the name; of anything
                                   else its Jacobian: a row for each entry, a column for each of the
                                   name's. The name may be of data or of a definition, a node.
       d(expr, name[i])            by one entry, in the form of expr
       TAG (kind): a = b = c ~ scale        the largest gap between two sides beside the scale; if
                                            there is none beside the largest entry on the right
       TAG: condition              TAG: a shows 1.25            rounded to as many decimals

   Kinds: none for algebra, or derivatives if there is a d(); code and acc, a result of the header
   of type nrm_real or nrm_acc; places, a function of it that is right to the last ones; bits, equal
   to the last one; chance, in standard errors; next, what a series leaves out beside its next term;
   rule, an integral by one. A line that ends in a backslash goes on in the next. Calls of the
   header are in claims_calls.h. */
#ifndef CLAIMS_H
#define CLAIMS_H

#include <ctype.h>

#include "derive_tools.h"
#include "lab/draw.h"

enum { CLAIMS_RESULTS = 20, CLAIMS_LINES = 2000, CLAIMS_NAMES = 400, CLAIMS_ARENA = 1 << 21 };

typedef struct num {
    wide v, d;
} num;

typedef struct value {
    size_t r, c;
    num *a;
} value;

typedef struct node { /* of an expression: its kind, a name or a number, and what it works on */
    char kind;        /* # number, $ name, ( call, [ index, , list, else an operator */
    char name[24];
    wide number;
    struct node *kid[12], *made_before;
    int kids, decimals;
    struct variable *variable; /* of its name, once there is one, */
    int names;                 /* and how many names there were when it was looked for */
} node;

typedef struct variable {
    char name[24];
    int params, used; /* of a function: how many; used: may it be shadowed by another run? */
    char param[4][24];
    node *rule; /* of a definition */
    value now;
    unsigned long as_of; /* for which round of nudges `now` was computed */
} variable;

enum line_kind { L_LET, L_DEFINE, L_FOR, L_IF, L_END, L_CLAIM };

typedef struct claims_row {
    enum line_kind kind;
    int number, count, to;         /* to: the line of the end */
    char name[CLAIMS_RESULTS][24]; /* assigned to, or loop variables; of a claim its tag, kind */
    node *side[8], *scale;
    int shows;
} claims_row;

static const char *claims_file, *claims_at; /* the page, and where its parser stands */
static int claims_number;
static claims_row claims_line[CLAIMS_LINES];
static int claims_lines;
static variable claims_name[CLAIMS_NAMES];
static int claims_names;
static num claims_arena[CLAIMS_ARENA];
static size_t claims_top;
static unsigned long claims_round = 1; /* of nudges */
static variable *claims_moved;         /* what d() moves, and which entry */
static size_t claims_entry;
static nrm_rng claims_rng;

static void claims_fail(const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", claims_file, claims_number, what);
    exit(1);
}

/* ---- values ---------------------------------------------------------------------------------- */

static value claims_make(size_t r, size_t c)
{
    value out;
    out.r = r;
    out.c = c;
    out.a = claims_arena + claims_top;
    claims_top += r * c;
    if (claims_top > CLAIMS_ARENA) claims_fail("no room for a value");
    memset(out.a, 0, r * c * sizeof *out.a);
    return out;
}

static num number_of(wide v)
{
    num n;
    n.v = v;
    n.d = 0;
    return n;
}

static value claims_number_value(wide v)
{
    value out = claims_make(1, 1);
    out.a[0].v = v;
    return out;
}

static size_t count_of(value a)
{
    return a.r * a.c;
}

static value claims_copy(value a)
{
    value out = claims_make(a.r, a.c);
    memcpy(out.a, a.a, count_of(a) * sizeof *out.a);
    return out;
}

static value claims_keep(value a) /* a copy that lasts */
{
    value out = a;
    out.a = (num *)malloc((count_of(a) + 1) * sizeof *out.a);
    memcpy(out.a, a.a, count_of(a) * sizeof *out.a);
    return out;
}

static num operate(char kind, num a, num b)
{
    num out = {0, 0};
    switch (kind) {
    case '+': out.v = a.v + b.v, out.d = a.d + b.d; break;
    case '-': out.v = a.v - b.v, out.d = a.d - b.d; break;
    case '*': out.v = a.v * b.v, out.d = a.v * b.d + a.d * b.v; break;
    case '/': out.v = a.v / b.v, out.d = (a.d - out.v * b.d) / b.v; break;
    case '^':
        out.v = powl(a.v, b.v);
        if (a.d != 0) out.d = b.v * powl(a.v, b.v - 1) * a.d;
        if (b.d != 0) out.d += out.v * logl(a.v) * b.d;
        break;
    case '<': out.v = a.v < b.v; break;
    case '>': out.v = a.v > b.v; break;
    case 'l': out.v = a.v <= b.v; break;
    case 'g': out.v = a.v >= b.v; break;
    case 'e': out.v = a.v == b.v; break;
    case 'n': out.v = a.v != b.v; break;
    case 'm': out = b.v < a.v ? b : a; break;
    case 'M': out = b.v > a.v ? b : a; break;
    default: out.v = fmodl(a.v, b.v); break;
    }
    return out;
}

static value entrywise(char kind, value a, value b)
{
    value out = claims_make(a.r > b.r ? a.r : b.r, a.c > b.c ? a.c : b.c);
    size_t i, j;
    if ((a.r != out.r && a.r != 1) || (b.r != out.r && b.r != 1) || (a.c != out.c && a.c != 1) ||
        (b.c != out.c && b.c != 1))
        claims_fail("shapes do not fit");
    for (i = 0; i < out.r; i++)
        for (j = 0; j < out.c; j++)
            out.a[i * out.c + j] = operate(kind, a.a[(a.r == 1 ? 0 : i) * a.c + (a.c == 1 ? 0 : j)],
                                           b.a[(b.r == 1 ? 0 : i) * b.c + (b.c == 1 ? 0 : j)]);
    return out;
}

static value product(value a, value b)
{
    value out = claims_make(a.r, b.c);
    size_t i, j, k;
    if (a.c != b.r) claims_fail("matrices do not fit");
    for (i = 0; i < a.r; i++)
        for (j = 0; j < b.c; j++)
            for (k = 0; k < a.c; k++) {
                const num *p = &a.a[i * a.c + k], *q = &b.a[k * b.c + j];
                out.a[i * b.c + j].v += p->v * q->v;
                out.a[i * b.c + j].d += p->v * q->d + p->d * q->v;
            }
    return out;
}

static value transpose(value a)
{
    value out = claims_make(a.c, a.r);
    size_t i, j;
    for (i = 0; i < a.r; i++)
        for (j = 0; j < a.c; j++) out.a[j * a.r + i] = a.a[i * a.c + j];
    return out;
}

/* *to = f(x) for a function of one number, with its derivative; 0 if there is none of that name. */
static int apply(num *to, const char *f, num x)
{
    num out = number_of(0);
    wide slope = 0;
#define IS(name) (strcmp(f, name) == 0)
    if (IS("sqrt"))
        out.v = sqrtl(x.v), slope = x.d == 0 ? 0 : 1 / (2 * out.v);
    else if (IS("exp"))
        slope = out.v = expl(x.v);
    else if (IS("expm1"))
        out.v = expm1l(x.v), slope = 1 + out.v;
    else if (IS("log"))
        out.v = logl(x.v), slope = 1 / x.v;
    else if (IS("log1p"))
        out.v = log1pl(x.v), slope = 1 / (1 + x.v);
    else if (IS("tanh"))
        out.v = tanhl(x.v), slope = 1 - out.v * out.v;
    else if (IS("sin"))
        out.v = sinl(x.v), slope = cosl(x.v);
    else if (IS("cos"))
        out.v = cosl(x.v), slope = -sinl(x.v);
    else if (IS("asin"))
        out.v = asinl(x.v), slope = 1 / sqrtl(1 - x.v * x.v);
    else if (IS("acos"))
        out.v = acosl(x.v), slope = -1 / sqrtl(1 - x.v * x.v);
    else if (IS("erf"))
        out.v = erfl(x.v), slope = 2 * expl(-x.v * x.v) / sqrtl(acosl(-1));
    else if (IS("abs"))
        out.v = fabsl(x.v), slope = x.v < 0 ? -1 : 1;
    else if (IS("relu"))
        out.v = x.v > 0 ? x.v : 0, slope = x.v > 0;
    else if (IS("step"))
        out.v = x.v > 0;
    else if (IS("sign"))
        out.v = (x.v > 0) - (x.v < 0);
    else if (IS("floor"))
        out.v = floorl(x.v);
    else if (IS("gamma_of"))
        out.v = tgammal(x.v);
    else if (IS("log_gamma"))
        out.v = lgammal(x.v);
    else if (IS("real"))
        out.v = (wide)(nrm_real)x.v; /* rounded as the header would */
    else if (IS("acc"))
        out.v = (wide)(nrm_acc)x.v;
    else if (IS("float"))
        out.v = (wide)(float)x.v;
    else if (IS("double"))
        out.v = (wide)(double)x.v;
    else if (IS("isnan"))
        out.v = x.v != x.v;
    else if (IS("!"))
        out.v = x.v == 0;
    else
        return 0;
    out.d = x.d == 0 ? 0 : slope * x.d;
    *to = out;
    return 1;
}

static void apply_to_all(const char *f, value a)
{
    size_t k;
    for (k = 0; k < count_of(a); k++) (void)apply(&a.a[k], f, a.a[k]);
}

/* ---- the parser ------------------------------------------------------------------------------ */

static node *parse_expression(int level);

static node *claims_nodes; /* all of a file, one after the other */

static node *claims_node(char kind, node *a, node *b)
{
    node *n = (node *)calloc(1, sizeof *n);
    if (n == NULL) claims_fail("no memory");
    n->made_before = claims_nodes;
    claims_nodes = n;
    n->kind = kind;
    if (a != NULL) n->kid[n->kids++] = a;
    if (b != NULL) n->kid[n->kids++] = b;
    return n;
}

static int claims_next(const char *word) /* is this what comes? Then step over it. */
{
    const size_t length = strlen(word);
    while (*claims_at == ' ') claims_at++;
    if (strncmp(claims_at, word, length) != 0) return 0;
    if (isalpha((unsigned char)*word) && (isalnum((unsigned char)claims_at[length]))) return 0;
    claims_at += length;
    return 1;
}

static void claims_expect(const char *word)
{
    if (!claims_next(word)) {
        fprintf(stderr, "expected %s before: %.40s\n", word, claims_at);
        claims_fail("no such expression");
    }
}

static int claims_word(char *name) /* a name, if there is one */
{
    size_t n = 0;
    while (*claims_at == ' ') claims_at++;
    if (!isalpha((unsigned char)*claims_at)) return 0;
    while (isalnum((unsigned char)claims_at[n]) || claims_at[n] == '_') n++;
    if (n > 23) claims_fail("a long name");
    memcpy(name, claims_at, n);
    name[n] = 0;
    claims_at += n;
    return 1;
}

static void parse_list(node *n, const char *end)
{
    if (claims_next(end)) return;
    do {
        if (n->kids == 12) { /* longer lists are lists of lists */
            node *first = claims_node(',', NULL, NULL);
            memcpy(first->kid, n->kid, sizeof n->kid);
            first->kids = n->kids;
            n->kids = 0;
            n->kid[n->kids++] = first;
        }
        n->kid[n->kids++] = parse_expression(0);
    } while (claims_next(","));
    claims_expect(end);
}

static node *parse_primary(void)
{
    node *n = claims_node('#', NULL, NULL);
    char *end;
    while (*claims_at == ' ') claims_at++;
    if (claims_next("(")) {
        n = parse_expression(0);
        claims_expect(")");
    } else if (claims_next("[")) {
        n->kind = ',';
        parse_list(n, "]");
    } else if (isdigit((unsigned char)*claims_at)) {
        const char *from = claims_at, *point;
        n->number = strtold(claims_at, &end);
        if (strncmp(end - 1, "..", 2) == 0) end--; /* 0..n */
        claims_at = end;
        for (point = from; point < claims_at && *point != '.' && *point != 'e'; point++) continue;
        while (*point == '.' && isdigit((unsigned char)point[1 + n->decimals])) n->decimals++;
        while (point < claims_at && *point != 'e') point++;
        if (*point == 'e' && point < claims_at) n->decimals -= atoi(point + 1);
    } else if (claims_word(n->name)) {
        n->kind = '$';
        if (*claims_at == '(') {
            claims_at++;
            n->kind = '(';
            parse_list(n, ")");
        }
    } else {
        fprintf(stderr, "at: %.40s\n", claims_at);
        claims_fail("no expression");
    }
    for (;;) {
        if (*claims_at == '\'') {
            claims_at++;
            n = claims_node('\'', n, NULL);
        } else if (*claims_at == '[') {
            claims_at++;
            n = claims_node('[', n, parse_expression(0));
            claims_expect("]");
        } else
            return n;
    }
}

static node *parse_power(void)
{
    node *n = parse_primary();
    if (claims_next("^"))
        n = claims_node('^', n, *claims_at == '-' ? parse_expression(3) : parse_power());
    return n;
}

/* Levels: 0 comparisons, 1 sums, 2 products, 3 signs and powers. */
static node *parse_expression(int level)
{
    static const char *const words[3][7] = {
        {"<=", ">=", "==", "!=", "<", ">", NULL}, {"+", "-", NULL}, {"*", "/", "@", "%", NULL}};
    static const char kinds[3][7] = {"lgen<>", "+-", "*/@%"};
    node *n;
    int i;
    if (level == 3) {
        if (claims_next("-"))
            return claims_node('-', claims_node('#', NULL, NULL), parse_expression(3));
        if (claims_next("!")) {
            n = claims_node('(', parse_expression(3), NULL);
            strcpy(n->name, "!");
            return n;
        }
        return parse_power();
    }
    n = parse_expression(level + 1);
    for (i = 0; words[level][i] != NULL; i++)
        if (claims_next(words[level][i])) {
            n = claims_node(kinds[level][i], n, parse_expression(level + 1));
            i = -1;
        }
    return n;
}

/* ---- the evaluator --------------------------------------------------------------------------- */

static struct { /* parameters, and the variables of sums, of the function now at work */
    char name[24];
    value now;
} claims_frame[64];
static size_t claims_frame_from, claims_frame_to;

static value evaluate(node *n);
static int claims_call(const char *name, const value *in, int count, value *out);

static variable *claims_find(const char *name, int make)
{
    int i;
    for (i = 0; i < claims_names; i++)
        if (strcmp(claims_name[i].name, name) == 0) return &claims_name[i];
    if (!make || claims_names == CLAIMS_NAMES) return NULL;
    strcpy(claims_name[claims_names].name, name);
    return &claims_name[claims_names++];
}

static void claims_bind(const char *name, value v)
{
    if (claims_frame_to == LENGTH(claims_frame)) claims_fail("too deep");
    strcpy(claims_frame[claims_frame_to].name, name);
    claims_frame[claims_frame_to++].now = v;
}

static void claims_set(const char *name, value v)
{
    variable *x = claims_find(name, 1);
    value kept = claims_keep(v);
    if (x == NULL) claims_fail("too many names");
    free(x->now.a);
    x->now = kept;
    x->rule = NULL;
    claims_round++;
}

/* The variable or function that a node names, or NULL. */
static variable *claims_named(node *n)
{
    if (n->variable == NULL && n->names != claims_names) n->variable = claims_find(n->name, 0);
    n->names = claims_names;
    return n->variable;
}

static value evaluate_variable(variable *x)
{
    value out;
    if (x->rule != NULL && x->as_of != claims_round) {
        const size_t from = claims_frame_from;
        value found;
        claims_frame_from = claims_frame_to;
        found = evaluate(x->rule);
        claims_frame_from = from;
        if (x == claims_moved) found.a[claims_entry].d += 1;
        found = claims_keep(found);
        free(x->now.a);
        x->now = found;
        x->as_of = claims_round;
    }
    out = claims_copy(x->now); /* for it may be computed anew meanwhile */
    if (x == claims_moved && x->rule == NULL) out.a[claims_entry].d += 1;
    return out;
}

static value evaluate_name(node *n)
{
    size_t i;
    for (i = claims_frame_to; i > claims_frame_from; i--)
        if (strcmp(claims_frame[i - 1].name, n->name) == 0)
            return claims_copy(claims_frame[i - 1].now); /* for a function changes what it takes */
    if (claims_named(n) == NULL) claims_fail(n->name);
    return evaluate_variable(n->variable);
}

static size_t index_of(node *n)
{
    const wide i = evaluate(n).a[0].v;
    if (!(i >= 0)) claims_fail("a negative index");
    return (size_t)(i + 0.5L);
}

static value evaluate_derivative(node *n)
{
    node *by = n->kid[1];
    const int one = by->kind == '[';
    variable *x = claims_named(one ? by->kid[0] : n->kid[1]);
    value at, out, whole;
    size_t entry, inputs, i, top;
    if (x == NULL || claims_moved != NULL) claims_fail("no such derivative");
    entry = one ? index_of(by->kid[1]) : 0;
    at = evaluate_variable(x);
    inputs = one ? 1 : count_of(at);
    if (entry >= count_of(at)) claims_fail("no such entry");
    out.r = out.c = 0;
    for (i = 0; i < inputs; i++) {
        size_t j;
        claims_moved = x;
        claims_entry = entry + i;
        claims_round++;
        if (i == 0) { /* its shape */
            whole = evaluate(n->kid[0]);
            if (one || inputs == 1)
                out = claims_make(whole.r, whole.c);
            else if (count_of(whole) == 1)
                out = claims_make(at.r, at.c);
            else
                out = claims_make(count_of(whole), inputs);
        }
        top = claims_top;
        whole = evaluate(n->kid[0]);
        for (j = 0; j < count_of(whole); j++)
            out.a[one ? j : j * inputs + i] = number_of(whole.a[j].d);
        claims_top = top;
        claims_moved = NULL;
    }
    claims_round++;
    return out;
}

static value evaluate_series(node *n, int vector) /* total, vector */
{
    const wide from = evaluate(n->kid[1]).a[0].v, to = evaluate(n->kid[2]).a[0].v;
    value out = claims_make(1, vector ? (size_t)(to - from + 1.5L) : 1), index, one;
    wide i;
    size_t at = 0;
    for (i = from; i <= to + 0.25L; i++) {
        const size_t top = claims_top;
        index = claims_number_value(i);
        claims_bind(n->kid[0]->name, index);
        one = evaluate(n->kid[3]);
        claims_frame_to--;
        if (vector)
            out.a[at++] = one.a[0];
        else if (count_of(out) == 1 && count_of(one) > 1 && i == from) { /* a sum of matrices */
            out = claims_make(one.r, one.c);
            memcpy(out.a, one.a, count_of(one) * sizeof *one.a);
            continue;
        } else if (count_of(out) == 1)
            out.a[0] = operate('+', out.a[0], one.a[0]);
        else {
            size_t k;
            for (k = 0; k < count_of(one); k++) out.a[k] = operate('+', out.a[k], one.a[k]);
        }
        claims_top = top;
    }
    return out;
}

/* Sums of all entries, of rows ('r') or of columns ('c'). */
static value reduce(char axis, value a, int mean)
{
    value out = claims_make(axis == 'r' ? a.r : 1, axis == 'c' ? a.c : 1);
    const num n = number_of((wide)count_of(a) / (wide)count_of(out));
    size_t i, j;
    for (i = 0; i < a.r; i++)
        for (j = 0; j < a.c; j++) {
            num *to = &out.a[axis == 'r' ? i : axis == 'c' ? j : 0];
            to->v += a.a[i * a.c + j].v, to->d += a.a[i * a.c + j].d;
        }
    for (i = 0; mean && i < count_of(out); i++) out.a[i] = operate('/', out.a[i], n);
    return out;
}

static value variance(char axis, value a)
{
    const value off = entrywise('-', a, reduce(axis, a, 1));
    return reduce(axis, entrywise('*', off, off), 1);
}

static value extreme(char kind, value a)
{
    value out = claims_make(1, 1);
    size_t i;
    out.a[0] = a.a[0];
    for (i = 1; i < count_of(a); i++) out.a[0] = operate(kind, out.a[0], a.a[i]);
    return out;
}

static value flatten(const value *in, int count)
{
    size_t n = 0, at = 0;
    value out;
    int i;
    for (i = 0; i < count; i++) n += count_of(in[i]);
    out = claims_make(1, n);
    for (i = 0; i < count; at += count_of(in[i++]))
        memcpy(out.a + at, in[i].a, count_of(in[i]) * sizeof *out.a);
    return out;
}

static value entries(char kind, value a) /* functions of the place */
{
    value out = claims_make(a.r, a.c);
    size_t i, j;
    for (i = 0; i < a.r; i++)
        for (j = 0; j < a.c; j++)
            out.a[i * a.c + j] = number_of(kind == 'I'   ? i == j
                                           : kind == '1' ? 1
                                           : kind == 'i' ? (wide)(i * a.c + j)
                                                         : 0);
    return out;
}

static value evaluate_call(node *n)
{
    const char *f = n->name;
    value in[12], out[CLAIMS_RESULTS];
    variable *x = claims_named(n);
    num one;
    size_t k;
    int i;
    if (IS("d")) return evaluate_derivative(n);
    if (IS("total") || IS("vector")) return evaluate_series(n, IS("vector"));
    if (IS("if")) return evaluate(n->kid[evaluate(n->kid[0]).a[0].v != 0 ? 1 : 2]);
    for (i = 0; i < n->kids; i++) in[i] = evaluate(n->kid[i]);
    if (x != NULL && x->rule != NULL && x->params > 0) {
        const size_t from = claims_frame_from, to = claims_frame_to;
        if (x->params != n->kids) claims_fail("another number of parameters");
        for (i = 0; i < x->params; i++) claims_bind(x->param[i], in[i]);
        claims_frame_from = to;
        out[0] = evaluate(x->rule);
        claims_frame_from = from;
        claims_frame_to = to;
        return out[0];
    }
#define SIZE(i) (size_t)(in[i].a[0].v + 0.5L)
    if (IS("sum")) return reduce('a', in[0], 0);
    if (IS("mean")) return reduce('a', in[0], 1);
    if (IS("var")) return variance('a', in[0]);
    if (IS("rsum") || IS("csum")) return reduce(*f, in[0], 0);
    if (IS("rmean") || IS("cmean")) return reduce(*f, in[0], 1);
    if (IS("rvar") || IS("cvar")) return variance(*f, in[0]);
    if (IS("rmost") || IS("rmin")) { /* of each row: the largest size, the least entry */
        out[0] = claims_make(in[0].r, 1);
        for (k = 0; k < in[0].r; k++) {
            value row = in[0];
            row.r = 1;
            row.a = in[0].a + k * row.c;
            if (IS("rmost")) apply_to_all("abs", row);
            out[0].a[k] = extreme(IS("rmost") ? 'M' : 'm', row).a[0];
        }
        return out[0];
    }
    if (IS("dot")) return reduce('a', entrywise('*', in[0], in[1]), 0);
    if (IS("max") || IS("min"))
        return n->kids == 2 ? entrywise(f[1] == 'a' ? 'M' : 'm', in[0], in[1])
                            : extreme(f[1] == 'a' ? 'M' : 'm', in[0]);
    if (IS("most") || IS("gross")) { /* the largest size, the sum of sizes */
        apply_to_all("abs", in[0]);
        return IS("most") ? extreme('M', in[0]) : reduce('a', in[0], 0);
    }
    if (IS("n")) return claims_number_value((wide)count_of(in[0]));
    if (IS("rows")) return claims_number_value((wide)in[0].r);
    if (IS("cols")) return claims_number_value((wide)in[0].c);
    if (IS("I")) return entries('I', claims_make(SIZE(0), SIZE(0)));
    if (IS("ones")) return entries('1', claims_make(SIZE(0), SIZE(1)));
    if (IS("zeros")) return claims_make(SIZE(0), SIZE(1));
    if (IS("index")) return entries('i', claims_make(1, SIZE(0)));
    if (IS("trace")) return reduce('a', entrywise('*', in[0], entries('I', in[0])), 0);
    if (IS("flat")) return flatten(in, n->kids);
    if (IS("matrix")) { /* matrix(a, rows): the same entries in so many rows */
        in[0].c = count_of(in[0]) / SIZE(1);
        in[0].r = SIZE(1);
        return in[0];
    }
    if (IS("part")) { /* part(a, from, n): rows of a matrix, entries of a vector */
        const size_t width = in[0].r == 1 ? 1 : in[0].c, rows = SIZE(2);
        out[0] = claims_make(in[0].r == 1 ? 1 : rows, in[0].r == 1 ? rows : width);
        if ((SIZE(1) + rows) * width > count_of(in[0])) claims_fail("no such part");
        memcpy(out[0].a, in[0].a + SIZE(1) * width, rows * width * sizeof(num));
        return out[0];
    }
    if (IS("pick")) { /* pick(a, indices): these entries, in that order */
        out[0] = claims_make(in[1].r, in[1].c);
        for (k = 0; k < count_of(in[1]); k++) {
            if (in[1].a[k].v < 0 || in[1].a[k].v > (wide)count_of(in[0]) - 0.5L)
                claims_fail("no such entry");
            out[0].a[k] = in[0].a[(size_t)(in[1].a[k].v + 0.5L)];
        }
        return out[0];
    }
    if (IS("random")) { /* random(rows, columns, centre, spread): normal numbers the header holds */
        out[0] = claims_make(SIZE(0), SIZE(1));
        for (k = 0; k < count_of(out[0]); k++)
            out[0].a[k].v =
                (wide)(nrm_real)(in[2].a[0].v + in[3].a[0].v * (wide)draw_normal(&claims_rng));
        return out[0];
    }
    if (IS("uniform")) { /* uniform(rows, columns, low, high) */
        out[0] = claims_make(SIZE(0), SIZE(1));
        for (k = 0; k < count_of(out[0]); k++)
            out[0].a[k].v =
                (wide)uniform_between(&claims_rng, (double)in[2].a[0].v, (double)in[3].a[0].v);
        return out[0];
    }
    if (n->kids == 1 && apply(&one, f, number_of(0))) {
        apply_to_all(f, in[0]);
        return in[0];
    }
    if (claims_call(f, in, n->kids, out) == 0) claims_fail(f);
    return out[0];
}

static value evaluate(node *n)
{
    value in[12], out;
    size_t at;
    int i;
    switch (n->kind) {
    case '#': return claims_number_value(n->number);
    case '$': return evaluate_name(n);
    case '(': return evaluate_call(n);
    case '\'': return transpose(evaluate(n->kid[0]));
    case '@':
        in[0] = evaluate(n->kid[0]);
        return product(in[0], evaluate(n->kid[1]));
    case ',':
        for (i = 0; i < n->kids; i++) in[i] = evaluate(n->kid[i]);
        return flatten(in, n->kids);
    case '[':
        in[0] = evaluate(n->kid[0]);
        at = index_of(n->kid[1]);
        if (at >= (in[0].r > 1 ? in[0].r : in[0].c)) claims_fail("no such entry");
        out = claims_make(1, in[0].r > 1 ? in[0].c : 1);
        memcpy(out.a, in[0].a + at * out.c, out.c * sizeof *out.a);
        return out;
    default:
        in[0] = evaluate(n->kid[0]);
        return entrywise(n->kind, in[0], evaluate(n->kid[1]));
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Is there a derivative in it, or in a definition that it names? */
static int has_derivative(node *n, int depth)
{
    const variable *x = n->kind == '$' || n->kind == '(' ? claims_named(n) : NULL;
    int i;
    if (n->kind == '(' && strcmp(n->name, "d") == 0) return 1;
    if (x != NULL && x->rule != NULL && depth < 4 && has_derivative(x->rule, depth + 1)) return 1;
    for (i = 0; i < n->kids; i++)
        if (has_derivative(n->kid[i], depth)) return 1;
    return 0;
}

static witness claim_kind(const claims_row *l)
{
    const char *f = l->name[1];
    int i;
    if (IS("code")) return identity();
    if (IS("acc")) return acc_identity();
    if (IS("bits") || l->shows) return replay();
    if (IS("chance")) return statistics();
    if (IS("places")) return last_place();
    if (IS("rule")) return acc_difference();
    if (IS("next")) return make_witness('O', 0.02);
    if (*f != 0) claims_fail("no such kind");
    for (i = 0; i < l->count; i++)
        if (has_derivative(l->side[i], 0)) return complex_step();
    return algebra();
}

static int decimals_of(node *n)
{
    return n->kind == '-' ? n->kid[1]->decimals : n->decimals;
}

static wide claim_shows(value a, node *stated)
{
    node *const *list = &stated;
    const value b = evaluate(stated);
    wide worst = unless(count_of(a) == count_of(b));
    size_t i;
    if (worst > 0) return worst;
    if (stated->kind == ',') list = stated->kid;
    for (i = 0; i < count_of(a); i++) {
        node *one = list[i];
        worst = worse(worst, unless(fabsl(a.a[i].v - b.a[i].v) <=
                                    0.5000001L * powl(10, -(wide)decimals_of(one))));
    }
    return worst;
}

static wide claim_gap(value a, value b, const value *scale)
{
    const value gap = entrywise('-', a, b);
    value by = claims_make(1, 1);
    wide worst = 0;
    size_t i;
    if (count_of(a) != 1 && count_of(b) != 1 && (a.r != b.r || a.c != b.c))
        claims_fail("two sides of another shape");
    for (i = 0; i < count_of(b); i++) by.a[0].v = worse(by.a[0].v, fabsl(b.a[i].v));
    by = entrywise('+', claims_make(gap.r, gap.c), scale != NULL ? *scale : by);
    if (count_of(by) != count_of(gap)) claims_fail("a scale of another shape");
    for (i = 0; i < count_of(gap); i++) worst = worse(worst, apart(gap.a[i].v, 0, by.a[i].v));
    return worst;
}

/* The table keeps a tag, so it needs a place. */
static const char *claims_tag(const char *tag)
{
    static char tags[ROWS_OF_TABLE][sizeof claims_line[0].name[0]];
    static size_t count;
    size_t i;
    for (i = 0; i < count; i++)
        if (strcmp(tags[i], tag) == 0) return tags[i];
    if (count == ROWS_OF_TABLE) claims_fail("too many tags");
    return strcpy(tags[count++], tag);
}

static void run_claim(const claims_row *l)
{
    value scale, left, right;
    wide worst = 0;
    int i;
    left = evaluate(l->side[0]);
    if (l->shows)
        worst = claim_shows(left, l->side[1]);
    else if (l->count == 1)
        worst = unless(left.a[0].v == 1);
    else if (l->scale != NULL)
        scale = evaluate(l->scale);
    for (i = 1; i < l->count && !l->shows; i++, left = right) {
        right = evaluate(l->side[i]);
        worst = worse(worst, claim_gap(left, right, l->scale != NULL ? &scale : NULL));
    }
    derivation_record(claims_tag(l->name[0]), worst, claim_kind(l));
    if (getenv("CLAIMS") != NULL && !(worst <= (wide)claim_kind(l).most))
        fprintf(stderr, "%s:%d: %s: %Lg\n", claims_file, l->number, l->name[0], worst);
}

static void run_lines(int from, int to);

static void run_for(const claims_row *l, int from, int to, int k)
{
    const size_t top = claims_top;
    value all;
    size_t i;
    if (k == l->count) {
        run_lines(from, to);
        return;
    }
    all = evaluate(l->side[k]);
    if (l->side[k]->kind == 'r') {
        const wide low = evaluate(l->side[k]->kid[0]).a[0].v;
        const wide high = evaluate(l->side[k]->kid[1]).a[0].v;
        all = claims_make(1, high < low ? 0 : (size_t)(high - low + 1.5L));
        for (i = 0; i < all.c; i++) all.a[i].v = low + (wide)i;
    }
    for (i = 0; i < count_of(all); i++) {
        claims_set(l->name[k], claims_number_value(all.a[i].v));
        run_for(l, from, to, k + 1);
    }
    claims_top = top;
}

static void run_let(const claims_row *l)
{
    value out[CLAIMS_RESULTS], in[12];
    node *call = l->side[0];
    int i;
    if (l->count == 1) {
        out[0] = evaluate(call);
    } else {
        for (i = 0; i < call->kids; i++) in[i] = evaluate(call->kid[i]);
        if (claims_call(call->name, in, call->kids, out) < l->count) claims_fail(call->name);
    }
    for (i = 0; i < l->count; i++) claims_set(l->name[i], out[i]);
}

static void run_lines(int from, int to)
{
    int k;
    for (k = from; k < to; k++) {
        const claims_row *l = &claims_line[k];
        const size_t top = claims_top;
        variable *x;
        claims_number = l->number;
        switch (l->kind) {
        case L_LET: run_let(l); break;
        case L_DEFINE:
            x = claims_find(l->name[0], 1);
            x->rule = l->side[0];
            x->params = l->count;
            memcpy(x->param, l->name[1], sizeof x->param);
            claims_round++;
            break;
        case L_CLAIM: run_claim(l); break;
        case L_FOR:
            run_for(l, k + 1, l->to, 0);
            k = l->to;
            break;
        case L_IF: if (evaluate(l->side[0]).a[0].v == 0) k = l->to; break;
        default: break;
        }
        claims_top = top;
    }
}

static void parse_claim(claims_row *l)
{
    size_t n = strcspn(claims_at, " :");
    l->kind = L_CLAIM;
    memcpy(l->name[0], claims_at, n);
    claims_at += n;
    if (claims_next("(")) {
        claims_word(l->name[1]);
        claims_expect(")");
    }
    claims_expect(":");
    do l->side[l->count++] = parse_expression(0);
    while (claims_next("="));
    if (claims_next("~"))
        l->scale = parse_expression(0);
    else if (claims_next("shows")) {
        l->side[l->count++] = parse_expression(0);
        l->shows = 1;
    }
}

static void parse_line(claims_row *l)
{
    const char *from = claims_at;
    l->number = claims_number;
    if (isupper((unsigned char)*from) && strchr(from, '.') != NULL &&
        strspn(from, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == (size_t)(strchr(from, '.') - from)) {
        parse_claim(l);
    } else if (claims_next("for")) {
        l->kind = L_FOR;
        do {
            node *list = claims_node(',', NULL, NULL);
            claims_word(l->name[l->count]);
            claims_expect("in");
            list->kid[list->kids++] = parse_expression(0);
            if (claims_next("..")) {
                list->kind = 'r';
                list->kid[list->kids++] = parse_expression(0);
            }
            while (list->kind == ',' && claims_next(","))
                list->kid[list->kids++] = parse_expression(0);
            l->side[l->count++] = list;
        } while (claims_next(";"));
    } else if (claims_next("if")) {
        l->kind = L_IF;
        l->side[0] = parse_expression(0);
    } else if (claims_next("end")) {
        l->kind = L_END;
    } else {
        do claims_word(l->name[l->count++]);
        while (claims_next(","));
        if (claims_next("(")) {
            l->count = 0;
            do claims_word(l->name[++l->count]);
            while (claims_next(","));
            claims_expect(")");
            claims_expect(":=");
            l->kind = L_DEFINE;
        } else if (claims_next(":=")) {
            l->kind = L_DEFINE;
            l->count = 0;
        } else {
            claims_expect("=");
        }
        l->side[0] = parse_expression(0);
    }
    while (*claims_at == ' ') claims_at++;
    if (*claims_at != 0) claims_expect("the end of the line");
}

/* Checks all of a file, with random numbers of its own. */
static void claims_run(const char *name, uint64_t seed)
{
    static char path[64];
    static char text[8192], more[256];
    FILE *f;
    int open[16], depth = 0, number = 0;
    snprintf(path, sizeof path, "tests/equations/%s.claims", name);
    claims_file = path;
    f = fopen(path, "r");
    if (f == NULL) claims_fail("cannot be read");
    claims_lines = claims_names = 0;
    memset(claims_name, 0, sizeof claims_name);
    claims_rng = stream(seed);
    memset(claims_line, 0, sizeof claims_line);
    text[0] = 0;
    while (fgets(more, sizeof more, f) != NULL) {
        size_t length;
        number++;
        more[strcspn(more, "#\n")] = 0;
        if (strlen(text) + strlen(more) >= sizeof text) claims_fail("a long line");
        strcat(text, more);
        length = strlen(text);
        if (length > 0 && text[length - 1] == '\\') {
            text[length - 1] = 0;
            continue;
        }
        claims_at = text + strspn(text, " ");
        claims_number = number;
        if (*claims_at != 0) {
            claims_row *l = &claims_line[claims_lines];
            if (claims_lines == CLAIMS_LINES) claims_fail("too many lines");
            parse_line(l);
            if (l->kind == L_FOR || l->kind == L_IF) open[depth++] = claims_lines;
            if (l->kind == L_END && depth > 0) claims_line[open[--depth]].to = claims_lines;
            claims_lines++;
        }
        text[0] = 0;
    }
    if (depth != 0) claims_fail("a block without an end");
    fclose(f);
    run_lines(0, claims_lines);
    while (claims_nodes != NULL) {
        node *made_before = claims_nodes->made_before;
        free(claims_nodes);
        claims_nodes = made_before;
    }
    while (claims_names > 0) free(claims_name[--claims_names].now.a);
}
#endif
