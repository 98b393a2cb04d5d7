/* Poisson streams of tokenwatt_site/method/schedule.py once more, draw by draw the same: Python's
 * Mersenne Twister, its quantile of the normal distribution, its rounding. A test holds it to that.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* random.Random with a seed below 2**64 */

typedef struct {
    uint32_t state[624];
    int i;
} Twister;

static void twister_seed(Twister *r, uint64_t seed) {
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, *m = r->state;
    int length = key[1] ? 2 : 1, i = 1, j = 0;
    m[0] = 19650218u;
    for (int k = 1; k < 624; k++) m[k] = 1812433253u * (m[k - 1] ^ (m[k - 1] >> 30)) + k;
    for (int k = 624; k; k--) {
        m[i] = (m[i] ^ ((m[i - 1] ^ (m[i - 1] >> 30)) * 1664525u)) + key[j] + j;
        if (++i == 624) m[0] = m[623], i = 1;
        if (++j == length) j = 0;
    }
    for (int k = 623; k; k--) {
        m[i] = (m[i] ^ ((m[i - 1] ^ (m[i - 1] >> 30)) * 1566083941u)) - i;
        if (++i == 624) m[0] = m[623], i = 1;
    }
    m[0] = 0x80000000u;
    r->i = 624;
}

static uint32_t twister_next(Twister *r) {
    uint32_t *m = r->state;
    if (r->i == 624) {
        for (int k = 0; k < 624; k++) {
            uint32_t y = (m[k] & 0x80000000u) | (m[(k + 1) % 624] & 0x7fffffffu);
            m[k] = m[(k + 397) % 624] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        r->i = 0;
    }
    uint32_t y = m[r->i++];
    y ^= y >> 11, y ^= (y << 7) & 0x9d2c5680u, y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static double open_unit(Twister *r) { /* rng.py: 52 bits, the low word first */
    uint64_t low = twister_next(r), high = twister_next(r) >> 12;
    return ((double)(low | high << 32) + 0.5) / 4503599627370496.0;
}

/* The quantile of the normal distribution by Wichura's AS 241, as Python's statistics takes it. */
static double normal_quantile(double p) {
    double q = p - 0.5, r, x, num, den;
    if (fabs(q) <= 0.425) {
        r = 0.180625 - q * q;
        num = (((((((2.5090809287301226727e+3 * r + 3.3430575583588128105e+4) * r +
                    6.7265770927008700853e+4) * r + 4.5921953931549871457e+4) * r +
                  1.3731693765509461125e+4) * r + 1.9715909503065514427e+3) * r +
                1.3314166789178437745e+2) * r + 3.3871328727963666080e+0) * q;
        den = ((((((5.2264952788528545610e+3 * r + 2.8729085735721942674e+4) * r +
                   3.9307895800092710610e+4) * r + 2.1213794301586595867e+4) * r +
                 5.3941960214247511077e+3) * r + 6.8718700749205790830e+2) * r +
               4.2313330701600911252e+1) * r + 1.0;
        return num / den;
    }
    r = sqrt(-log(q <= 0.0 ? p : 1.0 - p));
    if (r <= 5.0) {
        r = r - 1.6;
        num = ((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r +
                   2.41780725177450611770e-1) * r + 1.27045825245236838258e+0) * r +
                 3.64784832476320460504e+0) * r + 5.76949722146069140550e+0) * r +
               4.63033784615654529590e+0) * r + 1.42343711074968357734e+0;
        den = ((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r +
                   1.51986665636164571966e-2) * r + 1.48103976427480074590e-1) * r +
                 6.89767334985100004550e-1) * r + 1.67638483018380384940e+0) * r +
               2.05319162663775882187e+0) * r + 1.0;
    } else {
        r = r - 5.0;
        num = ((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
                   1.24266094738807843860e-3) * r + 2.65321895265761230930e-2) * r +
                 2.96560571828504891230e-1) * r + 1.78482653991729133580e+0) * r +
               5.46378491116411436990e+0) * r + 6.65790464350110377720e+0;
        den = ((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r +
                   1.84631831751005468180e-5) * r + 7.86869131145613259100e-4) * r +
                 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r +
               5.99832206555887937690e-1) * r + 1.0;
    }
    x = num / den;
    return q < 0.0 ? -x : x;
}

typedef struct {
    double median, sigma;
    int64_t top; /* of a fixed length, sigma is 0 and nothing is drawn */
} Lengths;

static int64_t draw_length(Twister *r, const Lengths *l) {
    if (!l->sigma) return l->top;
    double tokens = rint(l->median * exp(l->sigma * normal_quantile(open_unit(r))));
    return tokens < 1 ? 1 : tokens > l->top ? l->top : (int64_t)tokens;
}

/* Python's round(x, 6): the nearest decimal, then the nearest double to that. */
static double micro(double x) {
    double scaled = x * 1e6, whole = rint(scaled);
    if (fabs(fabs(scaled - whole) - 0.5) > 1e-3) return whole / 1e6; /* no tie in sight */
    char text[64];
    snprintf(text, sizeof text, "%.6f", x);
    return strtod(text, NULL);
}

/* Fill the columns with a Poisson stream in [0, horizon_s); return its length, or -1 if it's over most. */
int64_t poisson_schedule(uint64_t seed, double rate_rps, double horizon_s, const Lengths *input,
                         const Lengths *output, int64_t most, double *arrival_s, int64_t *inputs,
                         int64_t *outputs) {
    Twister r;
    twister_seed(&r, seed);
    double now_s = 0.0;
    for (int64_t n = 0;; n++) {
        now_s -= log(open_unit(&r)) / rate_rps;
        double at_s = micro(now_s);
        if (at_s >= horizon_s) return n;
        if (n == most) return -1;
        arrival_s[n] = at_s;
        inputs[n] = draw_length(&r, input);
        outputs[n] = draw_length(&r, output);
    }
}
