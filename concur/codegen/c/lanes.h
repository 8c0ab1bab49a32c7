/* Worlds side by side: each number is a vector, with one entry for each world.

   Arithmetic uses vector instructions. Functions are those of glibc's vector library if available
   (errors up to 4 units in the last place), else the scalar ones, entry by entry. Comparisons
   return 1 or 0 as in scalar code; NaN counts as true, as in C. */

#include <math.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#ifndef WIDTH
#if defined(__AVX512F__)
#define WIDTH 8
#else
#define WIDTH 4
#endif
#endif

typedef double lane __attribute__((vector_size(8 * WIDTH)));
typedef long long mask __attribute__((vector_size(8 * WIDTH)));
typedef lane casadi_real;
typedef long long casadi_int;

/* Not 0 + x, which loses the sign of -0. */
static inline lane lane_of(double x) { return x - (lane){0}; }
static inline lane lane_truth(mask m) { return (lane)(m & (mask)lane_of(1.0)); }
static inline lane lane_where(mask m, lane a, lane b) {
  return (lane)((m & (mask)a) | (~m & (mask)b));
}

#define lane_lt(a, b) lane_truth((a) < (b))
#define lane_le(a, b) lane_truth((a) <= (b))
#define lane_eq(a, b) lane_truth((a) == (b))
#define lane_ne(a, b) lane_truth((a) != (b))
#define lane_not(a) lane_truth((a) == 0.0)
#define lane_and(a, b) lane_truth(((a) != 0.0) & ((b) != 0.0))
#define lane_or(a, b) lane_truth(((a) != 0.0) | ((b) != 0.0))
#define lane_if(a, b) ((lane)(((a) != 0.0) & (mask)(b)))

static inline lane lane_fabs(lane a) { return (lane)((mask)a & ~(mask)lane_of(-0.0)); }
static inline lane lane_fmin(lane a, lane b) { return lane_where((a < b) | (b != b), a, b); }
static inline lane lane_fmax(lane a, lane b) { return lane_where((a > b) | (b != b), a, b); }
static inline lane lane_sign(lane a) {
  return lane_where(a < 0.0, lane_of(-1.0), lane_where(a > 0.0, lane_of(1.0), a));
}
static inline lane lane_copysign(lane a, lane b) {
  mask sign = (mask)lane_of(-0.0);
  return (lane)(((mask)a & ~sign) | ((mask)b & sign));
}

static inline lane lane_sqrt(lane a) {
#if defined(__AVX512F__) && WIDTH == 8
  return (lane)_mm512_sqrt_pd((__m512d)a);
#elif defined(__AVX__) && WIDTH == 4
  return (lane)_mm256_sqrt_pd((__m256d)a);
#else
  for (int i = 0; i < WIDTH; ++i) a[i] = sqrt(a[i]);
  return a;
#endif
}

#define EACH(name) \
  static inline lane lane_##name(lane a) { \
    for (int i = 0; i < WIDTH; ++i) a[i] = name(a[i]); \
    return a; \
  }
#define EACH_OF_TWO(name) \
  static inline lane lane_##name(lane a, lane b) { \
    for (int i = 0; i < WIDTH; ++i) a[i] = name(a[i], b[i]); \
    return a; \
  }

/* glibc has vector versions of these functions since 2.35, for x86; zig's does not. */
#if defined(__GLIBC__) && defined(__x86_64__) && !defined(SCALAR_FUNCTIONS)
#if __GLIBC_PREREQ(2, 35) && WIDTH == 8 && defined(__AVX512F__)
#define OF_ONE(name) _ZGVeN8v_##name
#define OF_TWO(name) _ZGVeN8vv_##name
#elif __GLIBC_PREREQ(2, 35) && WIDTH == 4 && defined(__AVX2__)
#define OF_ONE(name) _ZGVdN4v_##name
#define OF_TWO(name) _ZGVdN4vv_##name
#endif
#endif

#ifdef OF_ONE
#define KNOWN(name) \
  extern lane OF_ONE(name)(lane) __attribute__((const)); \
  static inline lane lane_##name(lane a) { return OF_ONE(name)(a); }
#define KNOWN_OF_TWO(name) \
  extern lane OF_TWO(name)(lane, lane) __attribute__((const)); \
  static inline lane lane_##name(lane a, lane b) { return OF_TWO(name)(a, b); }
#else
#define KNOWN EACH
#define KNOWN_OF_TWO EACH_OF_TWO
#endif

KNOWN(sin) KNOWN(cos) KNOWN(tan) KNOWN(asin) KNOWN(acos) KNOWN(atan) KNOWN(sinh) KNOWN(cosh)
KNOWN(tanh) KNOWN(asinh) KNOWN(acosh) KNOWN(atanh) KNOWN(exp) KNOWN(log) KNOWN(expm1)
KNOWN(log1p) KNOWN(erf)
EACH(floor) EACH(ceil)
KNOWN_OF_TWO(atan2) KNOWN_OF_TWO(pow) KNOWN_OF_TWO(hypot)
EACH_OF_TWO(fmod) EACH_OF_TWO(remainder)
