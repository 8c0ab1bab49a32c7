/* Small dense quadratic programs (QPs), by the dual method of Goldfarb and Idnani.
   Minimise x h x / 2 + g x with low_a <= a x <= high_a and low_x <= x <= high_x; h is positive
   definite. The caller provides all memory; all loops are bounded; without a solution x is NaN. */

#define QP_SIZE @SIZE@

static real_t qp_dot(int n, const real_t *x, const real_t *y) {
  real_t sum = 0;
  int i;
  for (i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/* Solve a triangular system in place of x: l is lower triangular, stored by columns. */
static void qp_lower(int n, const real_t *l, real_t *x) {
  int i, j;
  for (i = 0; i < n; ++i) {
    for (j = 0; j < i; ++j) x[i] -= l[i + n * j] * x[j];
    x[i] /= l[i + n * i];
  }
}

static void qp_upper(int n, int size, const real_t *l, int stride, int step, real_t *x) {
  int i, j;
  for (i = size - 1; i >= 0; --i) {
    for (j = i + 1; j < size; ++j) x[i] -= l[stride * i + step * j] * x[j];
    x[i] /= l[(n + 1) * i];
  }
}

/* Part of d orthogonal to the columns of q, computed twice for accuracy; `along`: components. */
static void qp_across(int n, int count, const real_t *q, const real_t *d, real_t *across,
                      real_t *along) {
  int i, j, round;
  for (i = 0; i < n; ++i) across[i] = d[i];
  for (j = 0; j < count; ++j) along[j] = 0;
  for (round = 0; round < 2; ++round) {
    for (j = 0; j < count; ++j) {
      real_t part = qp_dot(n, q + n * j, across);
      along[j] += part;
      for (i = 0; i < n; ++i) across[i] -= part * q[n * j + i];
    }
  }
}

static void qp(int n, int m, const real_t *h, const real_t *g, const real_t *a,
               const real_t *low_a, const real_t *high_a, const real_t *low_x,
               const real_t *high_x, real_t *x, real_t *lam_a, real_t *lam_x,
               real_t *work) {
  const int rows = m + n;
  real_t *l = work, *normals = l + n * n, *q = normals + n * rows, *r = q + n * n;
  real_t *v = r + n * n, *y = v + n, *d = y + n, *z = d + n, *step = z + n, *lam = step + n;
  real_t *right = lam + n;
  int active[QP_SIZE], side[QP_SIZE];
  int i, j, k, count = 0, round, solved = 0, possible = 1;

  for (i = 0; i < n; ++i) x[i] = NAN;
  for (i = 0; lam_a && i < m; ++i) lam_a[i] = 0;
  for (i = 0; lam_x && i < n; ++i) lam_x[i] = 0;
  /* h = l l^T; with y = l^T x + v the QP minimises the length of y. */
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
  qp_lower(n, l, v);
  for (k = 0; k < rows; ++k) {
    real_t *normal = normals + n * k;
    for (i = 0; i < n; ++i) normal[i] = k < m ? a[k + m * i] : (real_t)(k - m == i);
    qp_lower(n, l, normal);
  }
  for (i = 0; i < n; ++i) y[i] = 0;

  for (round = 0; possible && round < 10 * rows + 20; ++round) {
    int worst = -1, worst_side = 0, inner;
    real_t most = 0, bound = 0, own = 0;
    for (k = 0; k < rows; ++k) {
      const real_t *normal = normals + n * k;
      const real_t low = k < m ? low_a[k] : low_x[k - m];
      const real_t high = k < m ? high_a[k] : high_x[k - m];
      const real_t size = sqrt(qp_dot(n, normal, normal));
      const real_t offset = qp_dot(n, normal, v);
      const real_t value = qp_dot(n, normal, y) - offset;
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
      qp_across(n, count, q, d, z, step);
      qp_upper(n, count, r, 1, n, step);
      for (j = 0; j < count; ++j) {
        if (step[j] > 0 && lam[j] / step[j] < least) {
          least = lam[j] / step[j];
          blocking = j;
        }
      }
      length = qp_dot(n, z, z);
      if (count < n && length > 1e-20 * qp_dot(n, d, d)) {
        full = (bound - qp_dot(n, d, y)) / length;
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
        /* Add the constraint to the active set. */
        qp_across(n, count, q, d, z, r + n * count);
        length = sqrt(qp_dot(n, z, z));
        for (i = 0; i < n; ++i) q[n * count + i] = z[i] / length;
        r[(n + 1) * count] = length;
        lam[count] = own;
        right[count] = bound;
        active[count] = worst;
        side[count] = worst_side;
        ++count;
        break;
      }
      /* Remove a constraint from the active set and recompute the columns after it. */
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
        qp_across(n, j, q, x, column, r + n * j);
        length = sqrt(qp_dot(n, column, column));
        for (i = 0; i < n; ++i) column[i] /= length;
        r[(n + 1) * j] = length;
      }
    }
  }
  for (i = 0; i < n; ++i) x[i] = NAN;
  if (!solved) return;

  /* Recompute the solution in one step, for accuracy. */
  for (i = 0; i < count; ++i) {
    for (j = 0; j < i; ++j) right[i] -= r[n * i + j] * right[j];
    right[i] /= r[(n + 1) * i];
  }
  for (i = 0; i < n; ++i) x[i] = -v[i];
  for (j = 0; j < count; ++j) {
    for (i = 0; i < n; ++i) x[i] += right[j] * q[n * j + i];
  }
  qp_upper(n, n, l, n, 1, x);
  qp_upper(n, count, r, 1, n, right);
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
