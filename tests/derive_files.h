/* derive_files.h - CRC, FILE: the checksum, where arrays begin, and how a double is rounded. */
#ifndef DERIVE_FILES_H
#define DERIVE_FILES_H

#include "derive_tools.h"

/* The division on paper: the bits of a message, lowest of each byte first, and 32 zeros, the first
   32 of them turned over; from the highest on, the divisor of 33 bits is taken off below each 1.
   What is left is turned over too, and read backwards. */
static uint32_t divide_polynomials(const unsigned char *message, size_t n)
{
    static const char divisor[] = "100000100110000010001110110110111"; /* 104c11db7 */
    unsigned char bit[8 * 64 + 32];
    uint32_t rest = 0;
    size_t i, k;
    memset(bit, 0, sizeof bit);
    for (i = 0; i < 8 * n; i++) bit[i] = message[i / 8] >> i % 8 & 1;
    for (i = 0; i < 32; i++) bit[i] ^= 1;
    for (i = 0; i < 8 * n; i++) {
        if (bit[i] == 0) continue;
        for (k = 0; k <= 32; k++) bit[i + k] ^= divisor[k] == '1';
    }
    for (i = 0; i < 32; i++) rest |= (uint32_t)(bit[8 * n + i] ^ 1) << i;
    return rest;
}

/* One step of CRC.1, by division and remainder. */
static uint64_t one_step(uint64_t c)
{
    return (c / 2) ^ (c % 2 * (uint64_t)3988292384u);
}

static void derive_checksum(void)
{
    nrm_rng rng = stream(1901);
    unsigned char message[64];
    uint32_t table[256];
    size_t n, i;
    nrmi_crc_table(table);
    for (n = 0; n < 256; n++) {
        uint64_t c = n;
        for (i = 0; i < 8; i++) c = one_step(c);
        DERIVE("CRC.1", unless(table[n] == c), replay());
        for (i = 0; i < 256; i++) /* division is linear */
            ALSO(unless((table[n] ^ table[i]) == table[n ^ i]), algebra());
    }
    for (n = 0; n < 64; n++) {
        uint64_t c = 4294967295u; /* 2³² − 1 */
        uint32_t in_two;
        for (i = 0; i < n; i++) message[i] = (unsigned char)nrm_rng_below(&rng, 256);
        for (i = 0; i < n; i++) c = (c / 256) ^ table[(c ^ message[i]) % 256];
        DERIVE("CRC.2", unless(nrmi_crc(table, 0, message, n) == (c ^ 4294967295u)), replay());
        in_two = nrmi_crc(table, nrmi_crc(table, 0, message, n / 3), message + n / 3, n - n / 3);
        ALSO(unless(in_two == nrmi_crc(table, 0, message, n)), algebra());
        DERIVE("CRC.3", unless(nrmi_crc(table, 0, message, n) == divide_polynomials(message, n)),
               algebra());
    }
    memcpy(message, "123456789", 9); /* the value that every list of checksums gives */
    ALSO_OF("CRC.3", unless(nrmi_crc(table, 0, message, 9) == 0xcbf43926u), algebra());
}

static void derive_alignment(void)
{
    uint64_t end;
    for (end = 0; end < 1000; end++) {
        const uint64_t at = nrmi_aligned(end);
        DERIVE("FILE.1", apart((wide)at, 64 * ceill((wide)end / 64), 0), algebra());
    }
}

/* The value of a float's pattern below infinity, from its definition. */
static wide value_of(uint32_t bits)
{
    const int exponent = (int)(bits >> 23 & 255);
    const wide fraction = (wide)(bits & 0x7fffffu);
    return exponent == 0 ? ldexpl(fraction, -149) : ldexpl(fraction + 8388608, exponent - 150);
}

/* The result is as near as a float can be: no neighbour is nearer, and of two that are as near it
   is the even one. The neighbours of a pattern are the patterns beside it. */
static void derive_rounding(void)
{
    nrm_rng rng = stream(1902);
    int i;
    for (i = 0; i < 20000; i++) {
        const int exponent = (int)nrm_rng_below(&rng, 300) - 170;
        uint64_t p = (uint64_t)1 << 52 | (uint64_t)nrm_rng_below(&rng, 1u << 26) << 26;
        const unsigned cut = nrm_rng_below(&rng, 53);
        double a;
        uint64_t pattern;
        uint32_t got;
        wide gap, below, above;
        if (i % 2 == 0) p |= nrm_rng_below(&rng, 1u << 26);
        if (i % 3 == 0) p = p >> cut << cut; /* more ties */
        a = ldexp((double)p, exponent - 52);
        if (a >= ldexp(1, 127)) continue; /* then the neighbour may be infinite */
        memcpy(&pattern, &a, sizeof pattern);
        got = nrmi_narrow(pattern);
        gap = fabsl(value_of(got) - (wide)a);
        above = fabsl(value_of(got + 1) - (wide)a);
        below = got > 0 ? fabsl((wide)a - value_of(got - 1)) : (wide)HUGE_VAL;
        DERIVE("FILE.2",
               unless(gap <= above && gap <= below &&
                      ((gap < above && gap < below) || (got & 1) == 0)),
               algebra());
    }
}

static void derive_files(void)
{
    derive_checksum();
    derive_alignment();
    derive_rounding();
}

#endif
