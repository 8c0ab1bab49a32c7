/* A batch, group by group: rows of numbers are transposed to lanes, and results back to rows. */

#ifdef _OPENMP
#include <omp.h>
#endif

static void group(
    long long first, long long last, const double *const *arguments, const long long *steps_in,
    double *const *results, const long long *steps_out) {
  lane given[GIVEN], found[FOUND];
  const lane *arg[ARGUMENTS];
  lane *res[RESULTS], *next = given;
  for (int i = 0; i < ARGUMENTS; ++i) {
    arg[i] = next;
    for (int k = 0; k < WIDTH; ++k) {
      /* Surplus lanes repeat the last world, without side effects. */
      long long world = first + k < last ? first + k : last - 1;
      const double *row = arguments[i] + world * steps_in[i];
      for (int j = 0; j < sizes_in[i]; ++j) next[j][k] = row[j];
    }
    next += sizes_in[i];
  }
  next = found;
  for (int i = 0; i < RESULTS; ++i) {
    res[i] = next;
    for (int j = 0; j < sizes_out[i]; ++j) next[j] = lane_of(0.0);
    next += sizes_out[i];
  }
  worlds(arg, res, 0, 0, 0);
  for (int i = 0; i < RESULTS; ++i)
    for (long long world = first; world < last && world < first + WIDTH; ++world) {
      double *row = results[i] + world * steps_out[i];
      for (int j = 0; j < sizes_out[i]; ++j) row[j] = res[i][j][world - first];
    }
}

__attribute__((visibility("default"))) int concur_width(void) { return WIDTH; }

__attribute__((visibility("default"))) int concur_batch(
    long long count, int threads, const double *const *arguments, const long long *steps_in,
    double *const *results, const long long *steps_out) {
  long long groups = (count + WIDTH - 1) / WIDTH;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
#endif
  for (long long i = 0; i < groups; ++i)
    group(i * WIDTH, count, arguments, steps_in, results, steps_out);
#ifdef _OPENMP
  /* End the threads: a forked process would wait for them forever. */
  if (threads > 1) omp_pause_resource_all(omp_pause_hard);
#endif
  return 0;
}
