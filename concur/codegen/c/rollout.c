/* Worlds through time: a group of worlds takes all its ticks, then the next group.

   A period: one tick of the law, the delay of its commands, and the steps of the plant. Demands are
   reduced on the fly. All memory comes from the caller or the stack. */

#ifdef _OPENMP
#include <omp.h>
#endif

#define LARGEST 1e6
enum { MOST, LEAST, LAST, LAST_ABOVE, FIRST_ABOVE, COUNT_ABOVE, FIRST_BELOW };

/* Numbers of the caller's arrays are aligned to 8 bytes only. */
typedef double loose __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));
typedef unsigned long long word __attribute__((vector_size(8 * WIDTH)));
typedef struct {
  long long signal, kind, first, last;
  double threshold;
} demand_t;
typedef struct {
  long long count, threads, ticks, steps, seed, ring_length, demand_count, stride, rows;
  long long reference_step;
  const double *start, *numbers, *reference, *delay, *jitter;
  const long long *worlds;
  const demand_t *demands;
  const unsigned char *watched;
  double *ring, *values;
  long long *stopped, *status;
  double *states, *commands, *signals;
} job_t;

static inline word words(unsigned long long x) { return x - (word){0}; }

static inline int any(mask m) {
  long long found = 0;
  for (int i = 0; i < WIDTH; ++i) found |= m[i];
  return found != 0;
}

/* Philox4x32-10 (Salmon et al. 2011): numbers from seed, world, tick and stream, in any order. */
static inline void philox(word seed, word world, word tick, word stream, lane *one, lane *two) {
  const word low = words(0xFFFFFFFF);
  word a = world & low, b = world >> 32, c = tick & low, d = stream & low;
  word k = seed & low, l = seed >> 32;
  for (int i = 0; i < 10; ++i) {
    word p = a * 0xD2511F53ull, q = c * 0xCD9E8D57ull;
    a = (q >> 32) ^ b ^ k;
    c = (p >> 32) ^ d ^ l;
    b = q & low;
    d = p & low;
    k = (k + 0x9E3779B9ull) & low;
    l = (l + 0xBB67AE85ull) & low;
  }
  /* 52 bits each as a number from 1 to 2, less 1. */
  *one = (lane)(((a << 20) | (b >> 12)) | 0x3FF0000000000000ull) - 1.0;
  *two = (lane)(((c << 20) | (d >> 12)) | 0x3FF0000000000000ull) - 1.0;
}

/* Standard normal numbers by Box and Muller, two of a stream. Stream 0 is the jitter's. */
static void normal(word seed, word world, word tick, lane *numbers) {
  for (int j = 0; j < NOISES; j += 2) {
    lane one, two;
    philox(seed, world, tick, words(j / 2 + 1), &one, &two);
    lane radius = lane_sqrt(-2.0 * lane_log(1.0 - one)), turn = 6.283185307179586 * two;
    numbers[j] = radius * lane_cos(turn);
    if (j + 1 < NOISES) numbers[j + 1] = radius * lane_sin(turn);
  }
}

/* Lanes with an entry that is not below a bound; NaN fails every comparison. */
static inline mask astray(const lane *x, int size, double bound) {
  mask fine = ~(mask){0};
  for (int i = 0; i < size; ++i) fine &= lane_fabs(x[i]) < bound;
  return ~fine;
}

static inline mask astray_watched(const lane *y, int size, const unsigned char *watched) {
  mask fine = ~(mask){0};
  for (int i = 0; i < size; ++i)
    if (watched[i]) fine &= lane_fabs(y[i]) < INFINITY;
  return ~fine;
}

static void reduce(
    const job_t *job, loose *values, long long tick, const lane *y, int from, int size,
    mask live) {
  for (long long i = 0; i < job->demand_count; ++i) {
    const demand_t d = job->demands[i];
    if (d.signal < from || d.signal >= from + size || tick < d.first || tick > d.last) continue;
    lane now = y[d.signal - from], old = values[i], new = old, at = lane_of((double)tick);
    mask above = now > d.threshold;
    switch (d.kind) {
      case MOST: new = lane_where(now > old, now, old); break;
      case LEAST: new = lane_where(now < old, now, old); break;
      case LAST: new = now; break;
      case LAST_ABOVE: new = lane_where(above, at, old); break;
      case FIRST_ABOVE: new = lane_where(above & (old > at), at, old); break;
      case COUNT_ABOVE: new = old + lane_truth(above); break;
      case FIRST_BELOW: new = lane_where((now < d.threshold) & (old > at), at, old); break;
    }
    values[i] = lane_where(live, new, old);
  }
}

/* Rows of the record, for the lanes that are live. */
static void keep(
    double *to, const lane *from, int size, long long stride, long long world, int surplus,
    mask live) {
  for (int k = 0; k < WIDTH - surplus; ++k)
    if (live[k])
      for (int j = 0; j < size; ++j) to[(world + k) * stride + j] = from[j][k];
}

#ifdef ENTRY
extern int ENTRY(const double **, double **, long long *, double *, int);

/* A tick with a quadratic program, world by world. */
static void ticked(
    const lane *x, const lane *p, const lane *r, const lane *n, lane *next, lane *u, lane *y,
    mask live) {
  const lane *given[] = {x, p, r, n};
  const int in[] = {NX, NP, NR, NOISES}, out[] = {NX, NU, NY};
  lane *found[] = {next, u, y};
  double numbers[NX + NP + NR + NOISES + 1], results[NX + NU + NY + 1], work[NUMBERS];
  long long integers[INTEGERS];
  for (int k = 0; k < WIDTH; ++k) {
    const double *arg[POINTERS_IN] = {0};
    double *res[POINTERS_OUT] = {0}, *at = numbers;
    for (int i = 0; i < 4; ++i) {
      arg[i] = at;
      for (int j = 0; j < in[i]; ++j) *at++ = given[i][j][k];
    }
    at = results;
    for (int i = 0; i < 3; at += out[i++]) res[i] = at;
    int failed = live[k] ? ENTRY(arg, res, integers, work, 0) : 0;
    at = results;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < out[i]; ++j, ++at) found[i][j][k] = !live[k] ? 0.0 : failed ? NAN : *at;
  }
}
#else
static inline void ticked(
    const lane *x, const lane *p, const lane *r, const lane *n, lane *next, lane *u, lane *y,
    mask live) {
  const lane *arg[] = {x, p, r, n};
  lane *res[] = {next, u, y};
  graph_tick(arg, res, 0, 0, 0);
}
#endif

/* The average over a period of the commands in force, from the newest one back. A row of the ring is
   a command and its delay. The first command is in force before it arrives. */
static void arrive(const loose *ring, long long length, long long tick, lane *arrived) {
  for (int k = 0; k < WIDTH; ++k) {
    double end = 1.0;
    for (int j = 0; j < NU; ++j) arrived[j][k] = -0.0;
    for (long long back = 0; end > 0.0; ++back) {
      const loose *row = ring + ((tick > back ? tick - back : 0) & (length - 1)) * (NU + 1);
      const double late = row[NU][k] - (double)back, least = late > 0.0 ? late : 0.0;
      const double start = least < 1.0 ? least : 1.0, share = end - start;
      if (share > 0.0)
        for (int j = 0; j < NU; ++j) arrived[j][k] += share * row[j][k];
      end = start;
    }
  }
}

static void group(const job_t *job, long long first, loose *ring) {
  /* Arrays of the graphs: one entry more, as none may be empty. */
  lane one[NX + 1], two[NX + 1], p[NP + 1], r[NR + 1], n[NOISES + 1], u[NU + 1], arrived[NU + 1];
  lane y[NY + 1], of_step[NY_STEP + 1], *x = one, *next = two, delay, jitter, late = {0};
  mask live = ~(mask){0};
  word world, seed = words(job->seed);
  long long rows[WIDTH], stopped[WIDTH], status[WIDTH], length = job->ring_length;
  loose *values = (loose *)job->values + first / WIDTH * job->demand_count;
  int surplus = first + WIDTH > job->count ? first + WIDTH - job->count : 0, late_ones = length > 0;
  for (int k = 0; k < WIDTH; ++k) {
    /* Surplus lanes repeat the last world. */
    long long row = rows[k] = first + k < job->count ? first + k : job->count - 1;
    for (int j = 0; j < NX; ++j) x[j][k] = job->start[row * NX + j];
    for (int j = 0; j < NP; ++j) p[j][k] = job->numbers[row * NP + j];
    delay[k] = job->delay[row];
    jitter[k] = job->jitter[row];
    world[k] = (unsigned long long)job->worlds[row];
    stopped[k] = job->ticks;
    status[k] = 0;
  }

/* Stop lanes in this tick, with a status for each. */
#define STOP(lanes, code) \
  do { \
    mask found_ = live & (lanes); \
    if (any(found_)) { \
      for (int k = 0; k < WIDTH; ++k) \
        if (found_[k]) { \
          stopped[k] = tick; \
          status[k] = (code); \
        } \
      live &= ~found_; \
    } \
  } while (0)

  for (long long tick = 0; tick < job->ticks; ++tick) {
    if (tick == 0) STOP(astray(x, NX, LARGEST), -1);
    if (!any(live)) break;
    const double *row = job->reference + tick * NR;
    if (job->reference_step == 0)
      for (int j = 0; j < NR; ++j) r[j] = lane_of(row[j]);
    else
      for (int k = 0; k < WIDTH; ++k)
        for (int j = 0; j < NR; ++j) r[j][k] = row[rows[k] * job->reference_step + j];
    normal(seed, world, words(tick), n);
    ticked(x, p, r, n, next, u, y, live);

    long long kept = job->stride > 0 && tick % job->stride == 0 ? tick / job->stride : -1;
    if (kept >= 0) {
      keep(job->states + kept * NX, x, NX, job->rows * NX, first, surplus, live);
      keep(job->commands + kept * NU, u, NU, job->rows * NU, first, surplus, live);
      keep(job->signals + kept * (NY + NY_STEP), y, NY, job->rows * (NY + NY_STEP), first, surplus,
           live);
    }
    STOP(y[0] != 0.0, fabs(y[0][k]) >= 1.0 && fabs(y[0][k]) < LARGEST ? (long long)y[0][k] : -1);
    /* A limit of torque in the plant, fmin or fmax, would turn a NaN into the limit. */
    STOP(astray(next, NX, LARGEST) | astray(u, NU, INFINITY), -1);
    STOP(astray_watched(y, NY, job->watched), -1);
    if (!any(live)) break;
    reduce(job, values, tick, y, 0, NY, live);
    lane *swapped = x;
    x = next;
    next = swapped;
    if (any(~live))
      for (int j = 0; j < NX; ++j) x[j] = lane_where(live, x[j], next[j]);

    const lane *command = u;
    if (late_ones) {
      lane uniform, unused, least = late - 1.0;
      philox(seed, world, words(tick), words(0), &uniform, &unused);
      lane drawn = delay + jitter * uniform;
      late = tick == 0 ? drawn : lane_where(drawn > least, drawn, least);
      loose *newest = ring + (tick & (length - 1)) * (NU + 1);
      for (int j = 0; j < NU; ++j) newest[j] = u[j];
      newest[NU] = late;
      arrive(ring, length, tick, arrived);
      command = arrived;
    }
    for (long long k = 0; k < job->steps; ++k) {
      const lane *arg[] = {x, p, command};
      lane *res[] = {next, of_step};
      graph_step(arg, res, 0, 0, 0);
      if (kept >= 0 && k == 0)
        keep(job->signals + kept * (NY + NY_STEP) + NY, of_step, NY_STEP,
             job->rows * (NY + NY_STEP), first, surplus, live);
      STOP(astray(next, NX, LARGEST) | astray_watched(of_step, NY_STEP, job->watched + NY), -1);
      if (!any(live)) break;
      reduce(job, values, tick, of_step, NY, NY_STEP, live);
      swapped = x;
      x = next;
      next = swapped;
      if (any(~live))
        for (int j = 0; j < NX; ++j) x[j] = lane_where(live, x[j], next[j]);
    }
  }
  for (int k = 0; k < WIDTH - surplus; ++k) {
    job->stopped[first + k] = stopped[k];
    job->status[first + k] = status[k];
  }
}

__attribute__((visibility("default"))) int concur_width(void) { return WIDTH; }

__attribute__((visibility("default"))) int concur_rollout(const job_t *job) {
  long long groups = (job->count + WIDTH - 1) / WIDTH, own = job->ring_length * (NU + 1);
#ifdef _OPENMP
#pragma omp parallel for num_threads(job->threads) schedule(dynamic) if (job->threads > 1)
  for (long long i = 0; i < groups; ++i)
    group(job, i * WIDTH, (loose *)job->ring + omp_get_thread_num() * own);
  /* End the threads: a forked process would wait for them forever. */
  if (job->threads > 1) omp_pause_resource_all(omp_pause_hard);
#else
  for (long long i = 0; i < groups; ++i) group(job, i * WIDTH, (loose *)job->ring);
#endif
  return 0;
}
