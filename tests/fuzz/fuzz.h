/* fuzz.h - what the fuzz targets share: bytes of the input as choices, and what must hold.

   A target is a C file with the function that libFuzzer calls with one input after the other. It
   reads the input as a list of choices; when the bytes are used up, every choice is 0. */
#ifndef FUZZ_H
#define FUZZ_H
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was broken, and by which call; the sanitizer then shows where. */
#define HOLDS(condition, call)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken after %s: %s\n", __FILE__, __LINE__, (call),            \
                    #condition);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

typedef struct choices {
    const uint8_t *at;
    size_t left;
} choices;

static inline uint8_t choose_byte(choices *c)
{
    if (c->left == 0) return 0;
    c->left--;
    return *c->at++;
}

static inline size_t choose(choices *c, size_t n) /* 0 to n - 1 */
{
    return choose_byte(c) % n;
}

/* Mostly small, sometimes where products overflow. */
static inline size_t choose_size(choices *c)
{
    const size_t k = choose_byte(c);
    if (k < 224) return k % 8;
    if (k < 240) return SIZE_MAX >> (k - 224);
    return ((size_t)1 << (sizeof(size_t) * 4)) + k - 248;
}

/* An ordinary number, or one of those that break things. */
static inline double choose_number(choices *c)
{
    static const double odd[] = {0,     -0.0,    (double)NAN, HUGE_VAL, -HUGE_VAL, 1, -1,    0.5,
                                 2,     1e-5,    1e-45, 1e-40,    1e-38,     3e38,   1e300, -3e38,
                                 1e-300, 0.1, 0.999, 1e19,     -1e19,     1e-19,  1e6,   16777217};
    const size_t k = choose_byte(c);
    return k < sizeof odd / sizeof *odd ? odd[k] : ((double)k - 140) / 16;
}

static inline int choose_code(choices *c) /* of an enum: mostly one that is there */
{
    const int k = choose_byte(c);
    return k < 240 ? k % 8 : k < 248 ? k - 244 : k == 248 ? 0x7fffffff : k == 249 ? -0x7fffffff : 8;
}
#endif
