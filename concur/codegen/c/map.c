/* A batch, world by world; matrices are row-major as in NumPy. */

#ifdef _OPENMP
#include <omp.h>
#endif

extern int ENTRY(const double **, double **, long long *, double *, int);

static void world_of(
    long long world, const double *const *arguments, const long long *steps_in,
    double *const *results, const long long *steps_out) {
  const double *arg[POINTERS_IN] = {0};
  double *res[POINTERS_OUT] = {0}, given[GIVEN], found[FOUND], numbers[NUMBERS], *next = given;
  long long integers[INTEGERS];
  for (int i = 0; i < ARGUMENTS; ++i) {
    const double *row = arguments[i] + world * steps_in[i];
    arg[i] = next;
    for (int c = 0; c < columns_in[i]; ++c)
      for (int r = 0; r < rows_in[i]; ++r) *next++ = row[r * columns_in[i] + c];
  }
  next = found;
  for (int i = 0; i < RESULTS; ++i) {
    res[i] = next;
    next += rows_out[i] * columns_out[i];
  }
  int failed = ENTRY(arg, res, integers, numbers, 0);
  next = found;
  for (int i = 0; i < RESULTS; ++i)
    for (int c = 0; c < columns_out[i]; ++c)
      for (int r = 0; r < rows_out[i]; ++r, ++next)
        results[i][world * steps_out[i] + r * columns_out[i] + c] = failed ? NAN : *next;
}

__attribute__((visibility("default"))) int concur_width(void) { return 1; }

__attribute__((visibility("default"))) int concur_batch(
    long long count, int threads, const double *const *arguments, const long long *steps_in,
    double *const *results, const long long *steps_out) {
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
#endif
  for (long long i = 0; i < count; ++i)
    world_of(i, arguments, steps_in, results, steps_out);
#ifdef _OPENMP
  /* End the threads: a forked process would wait for them forever. */
  if (threads > 1) omp_pause_resource_all(omp_pause_hard);
#endif
  return 0;
}
