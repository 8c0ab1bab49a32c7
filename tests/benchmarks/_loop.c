/* Times functions from within: all calls, with the arguments of one row each. */

#define _POSIX_C_SOURCE 199309L
#include <time.h>

static double seconds(struct timespec begin, struct timespec end) {
  return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

/* CasADi's functions take the arrays of pointers as work memory too, beyond their arguments. */
__attribute__((visibility("default"))) double time_ours(
    int (*function)(const double**, double**, long long*, double*, int), int rounds, int count,
    int arguments, const double** rows, const double** arg, double** res, long long* iw,
    double* w) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int round = 0; round < rounds; ++round)
    for (int row = 0; row < count; ++row) {
      for (int i = 0; i < arguments; ++i) arg[i] = rows[row * arguments + i];
      function(arg, res, iw, w, 0);
    }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return seconds(begin, end);
}

__attribute__((visibility("default"))) double time_theirs(
    int (*function)(void*, const double**, double**), void* robot, int rounds, int count,
    int arguments, const double** rows, double** res) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int round = 0; round < rounds; ++round)
    for (int row = 0; row < count; ++row) function(robot, rows + row * arguments, res);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return seconds(begin, end);
}
