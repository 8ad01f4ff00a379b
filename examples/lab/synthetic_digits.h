/*
synthetic_digits.h: handwritten-looking digits from a seed, 28 x 28 bytes each, much like MNIST

Every experiment of this project can run on MNIST. Whoever has no MNIST gets these digits, so that
nothing fails for want of data and every figure still means something. They are harder for a linear
classifier than MNIST and about as hard for a small network.

How a digit is made
    1. A style is drawn from a table: most digits have several (a 7 with or without a bar, an open
       or a closed 4, a 2 with or without a loop ...). A style is a few pen strokes through points.
    2. The points are moved: a smooth warp of the whole plane, a shift of each stroke, a tremor of
       each point; then an affine map (aspect, slant, rotation) of the whole digit.
    3. Each stroke becomes a Catmull-Rom spline, flattened to short pieces.
    4. The ink is scaled to fit a box of 20 x 20 pixels and placed with its centre of mass near the
       middle of the 28 x 28 image, as the makers of MNIST did.
    5. A round, slightly soft pen is stamped along the pieces. Its width and pressure change slowly
       over the digit. At last the ink (never the paper) gets a little noise: paper stays exactly 0,
       so that some pixels near the corners are 0 in every image, as they are in MNIST.

All arithmetic is on integers. The same seed therefore gives the same bytes under every compiler, at
every optimisation level and on every machine. Sample i depends on (seed, stream, i) alone: the
first 1000 digits of a set of 60000 are the set of 1000.

Use
    #include <stdio.h>
    #include "synthetic_digits.h"

    int main(void)
    {
        static unsigned char images[3 * SYNTHETIC_DIGITS_PIXELS], labels[3];
        int i, x, y;
        synthetic_digits_fill(images, labels, 3, 1, SYNTHETIC_DIGITS_TRAIN);
        for (i = 0; i < 3; i++) {
            printf("a %d\n", labels[i]);
            for (y = 0; y < 28; y++, putchar('\n'))
                for (x = 0; x < 28; x++) putchar(" .:oO@"[images[i * 784 + y * 28 + x] * 6 / 256]);
        }
        return 0;
    }

Licence: as the project, see LICENSE.
*/
#ifndef SYNTHETIC_DIGITS_H
#define SYNTHETIC_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SYNTHETIC_DIGITS_SIDE 28
#define SYNTHETIC_DIGITS_PIXELS (SYNTHETIC_DIGITS_SIDE * SYNTHETIC_DIGITS_SIDE)

/* Independent streams of one seed: what is drawn from one never shows up in the other. */
#define SYNTHETIC_DIGITS_TRAIN 0u
#define SYNTHETIC_DIGITS_TEST 1u

/* n digits: images [n][28*28], 0 is paper and 255 full ink; labels [n], 0..9, drawn uniformly. */
void synthetic_digits_fill(unsigned char *images, unsigned char *labels, size_t n, uint64_t seed,
                           unsigned stream);

#ifdef __cplusplus
}
#endif

#endif /* SYNTHETIC_DIGITS_H */
