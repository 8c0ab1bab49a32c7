/* Quadratic programmes: the dual method of Goldfarb and Idnani for small dense ones.
   Least h/2 + g x with low_a <= a x <= high_a and low_x <= x <= high_x; h is positive definite.
   All memory comes from outside, all loops are bounded; where no solution is found, x is NaN. */

#define PROGRAMME_SIZE @SIZE@

static real_t programme_dot(int n, const real_t *x, const real_t *y) {
  real_t sum = 0;
  int i;
  for (i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/* Solve l x = x, or its transpose; l is lower triangular, in columns. */
static void programme_lower(int n, const real_t *l, real_t *x) {
  int i, j;
  for (i = 0; i < n; ++i) {
    for (j = 0; j < i; ++j) x[i] -= l[i + n * j] * x[j];
    x[i] /= l[i + n * i];
  }
}

static void programme_upper(int n, int size, const real_t *l, int stride, int step, real_t *x) {
  int i, j;
  for (i = size - 1; i >= 0; --i) {
    for (j = i + 1; j < size; ++j) x[i] -= l[stride * i + step * j] * x[j];
    x[i] /= l[(n + 1) * i];
  }
}

/* Part of d across the columns of q, twice for the sake of rounding; along has its parts in them. */
static void programme_across(int n, int count, const real_t *q, const real_t *d, real_t *across,
                             real_t *along) {
  int i, j, round;
  for (i = 0; i < n; ++i) across[i] = d[i];
  for (j = 0; j < count; ++j) along[j] = 0;
  for (round = 0; round < 2; ++round) {
    for (j = 0; j < count; ++j) {
      real_t part = programme_dot(n, q + n * j, across);
      along[j] += part;
      for (i = 0; i < n; ++i) across[i] -= part * q[n * j + i];
    }
  }
}

static void programme(int n, int m, const real_t *h, const real_t *g, const real_t *a,
                      const real_t *low_a, const real_t *high_a, const real_t *low_x,
                      const real_t *high_x, real_t *x, real_t *lam_a, real_t *lam_x,
                      real_t *work) {
  const int rows = m + n;
  real_t *l = work, *normals = l + n * n, *q = normals + n * rows, *r = q + n * n;
  real_t *v = r + n * n, *y = v + n, *d = y + n, *z = d + n, *step = z + n, *lam = step + n;
  real_t *right = lam + n;
  int active[PROGRAMME_SIZE], side[PROGRAMME_SIZE];
  int i, j, k, count = 0, round, solved = 0, possible = 1;

  for (i = 0; i < n; ++i) x[i] = NAN;
  for (i = 0; lam_a && i < m; ++i) lam_a[i] = 0;
  for (i = 0; lam_x && i < n; ++i) lam_x[i] = 0;
  /* h = l l^T; with y = l^T x + v the programme is to find the least y. */
  for (j = 0; j < n; ++j) {
    for (i = j; i < n; ++i) {
      real_t sum = h[i + n * j];
      for (k = 0; k < j; ++k) sum -= l[i + n * k] * l[j + n * k];
      if (i == j) {
        if (!(sum > 0)) return;
        l[i + n * i] = sqrt(sum);
      } else {
        l[i + n * j] = sum / l[j + n * j];
      }
    }
  }
  for (i = 0; i < n; ++i) v[i] = g[i];
  programme_lower(n, l, v);
  for (k = 0; k < rows; ++k) {
    real_t *normal = normals + n * k;
    for (i = 0; i < n; ++i) normal[i] = k < m ? a[k + m * i] : (real_t)(k - m == i);
    programme_lower(n, l, normal);
  }
  for (i = 0; i < n; ++i) y[i] = 0;

  for (round = 0; possible && round < 10 * rows + 20; ++round) {
    int worst = -1, worst_side = 0, inner;
    real_t most = 0, bound = 0, own = 0;
    for (k = 0; k < rows; ++k) {
      const real_t *normal = normals + n * k;
      const real_t low = k < m ? low_a[k] : low_x[k - m];
      const real_t high = k < m ? high_a[k] : high_x[k - m];
      const real_t size = sqrt(programme_dot(n, normal, normal));
      const real_t offset = programme_dot(n, normal, v);
      const real_t value = programme_dot(n, normal, y) - offset;
      const int below = low - value > value - high;
      const real_t limit = below ? low : high;
      const real_t missing = below ? low - value : value - high;
      int known = 0;
      for (j = 0; j < count; ++j) known = known || active[j] == k;
      if (known || !(size > 0)) continue;
      if (missing > 1e-11 * (1 + fabs(limit)) && missing > most * size) {
        most = missing / size;
        worst = k;
        worst_side = below ? 1 : -1;
        bound = worst_side * (limit + offset);
      }
    }
    if (worst < 0) {
      solved = 1;
      break;
    }
    for (i = 0; i < n; ++i) d[i] = worst_side * normals[n * worst + i];
    for (inner = 0; inner <= n; ++inner) {
      real_t length, least = INFINITY, full = INFINITY, moved;
      int blocking = -1;
      programme_across(n, count, q, d, z, step);
      programme_upper(n, count, r, 1, n, step);
      for (j = 0; j < count; ++j) {
        if (step[j] > 0 && lam[j] / step[j] < least) {
          least = lam[j] / step[j];
          blocking = j;
        }
      }
      length = programme_dot(n, z, z);
      if (count < n && length > 1e-20 * programme_dot(n, d, d)) {
        full = (bound - programme_dot(n, d, y)) / length;
      }
      moved = full < least ? full : least;
      if (!(moved < INFINITY)) {
        possible = 0;
        break;
      }
      if (moved < 0) moved = 0;
      if (full < INFINITY) {
        for (i = 0; i < n; ++i) y[i] += moved * z[i];
      }
      for (j = 0; j < count; ++j) lam[j] -= moved * step[j];
      own += moved;
      if (full <= least) {
        /* The constraint holds from now on. */
        programme_across(n, count, q, d, z, r + n * count);
        length = sqrt(programme_dot(n, z, z));
        for (i = 0; i < n; ++i) q[n * count + i] = z[i] / length;
        r[(n + 1) * count] = length;
        lam[count] = own;
        right[count] = bound;
        active[count] = worst;
        side[count] = worst_side;
        ++count;
        break;
      }
      /* One of those that held is let go, and the columns behind it are found anew. */
      --count;
      for (j = blocking; j < count; ++j) {
        lam[j] = lam[j + 1];
        right[j] = right[j + 1];
        active[j] = active[j + 1];
        side[j] = side[j + 1];
      }
      for (j = blocking; j < count; ++j) {
        real_t *column = q + n * j;
        for (i = 0; i < n; ++i) x[i] = side[j] * normals[n * active[j] + i];
        programme_across(n, j, q, x, column, r + n * j);
        length = sqrt(programme_dot(n, column, column));
        for (i = 0; i < n; ++i) column[i] /= length;
        r[(n + 1) * j] = length;
      }
    }
  }
  for (i = 0; i < n; ++i) x[i] = NAN;
  if (!solved) return;

  /* Once more in one step, for the sake of rounding. */
  for (i = 0; i < count; ++i) {
    for (j = 0; j < i; ++j) right[i] -= r[n * i + j] * right[j];
    right[i] /= r[(n + 1) * i];
  }
  for (i = 0; i < n; ++i) x[i] = -v[i];
  for (j = 0; j < count; ++j) {
    for (i = 0; i < n; ++i) x[i] += right[j] * q[n * j + i];
  }
  programme_upper(n, n, l, n, 1, x);
  programme_upper(n, count, r, 1, n, right);
  for (j = 0; j < count; ++j) {
    k = active[j];
    if (k < m) {
      if (lam_a) lam_a[k] = -side[j] * right[j];
    } else {
      if (lam_x) lam_x[k - m] = -side[j] * right[j];
      x[k - m] = side[j] > 0 ? low_x[k - m] : high_x[k - m];
    }
  }
}
