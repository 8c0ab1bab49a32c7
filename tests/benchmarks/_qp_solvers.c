/* Times a quadratic program in our solver and in DAQP, which allocates its memory in each call. */

#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <time.h>
#include "daqp/api.h"

typedef double real_t;
#include "qp.c"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((visibility("default"))) double time_ours(
    int rounds, int n, int m, const double *h, const double *a, const double *low,
    const double *high, const double *slack, double *x, double *lam, double *work, int *solved) {
  double best = INFINITY;
  for (int round = 0; round < rounds; ++round) {
    const double begin = now();
    *solved = qp(n, m, h, a, low, high, slack, x, lam, work);
    best = fmin(best, now() - begin);
  }
  return best;
}

/* h and a by rows; no bounds of single unknowns. */
__attribute__((visibility("default"))) double time_daqp(
    int rounds, int n, int m, double *h, double *zero, double *a, double *low, double *high,
    int *sense, double *x, double *lam, int *solved) {
  double best = INFINITY;
  DAQPProblem problem = {n, m, 0, h, zero, a, high, low, sense};
  DAQPSettings settings;
  DAQPResult result;
  daqp_default_settings(&settings);
  settings.primal_tol = settings.dual_tol = 1e-12;
  result.x = x;
  result.lam = lam;
  for (int round = 0; round < rounds; ++round) {
    const double begin = now();
    daqp_quadprog(&result, &problem, &settings);
    best = fmin(best, now() - begin);
  }
  *solved = result.exitflag == 1;
  return best;
}
