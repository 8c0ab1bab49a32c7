/* Small dense quadratic programs (QPs), by a dual active-set method.
   Minimise x h x / 2 + |t|^2 / 2 with low <= a x + sqrt(slack) t <= high; h is positive definite. A
   row whose slack is zero is kept exactly; of the others t is eliminated. Kept rows must be linearly
   independent; then every program has a solution. The caller provides all memory; all loops are
   bounded. Return 1, or 0 if the bound was met before the solution: x then misses some rows. */

#define QP_ROWS @ROWS@

static real_t qp_dot(int n, const real_t *x, const real_t *y) {
  real_t sum = 0;
  int i;
  for (i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/* Solve r^T y = x in place of x; r is upper triangular, its columns `stride` apart. */
static void qp_down(int n, int stride, const real_t *r, real_t *x) {
  int i;
  for (i = 0; i < n; ++i) x[i] = (x[i] - qp_dot(i, r + stride * i, x)) / r[(stride + 1) * i];
}

/* Solve r y = x in place of x. */
static void qp_up(int n, int stride, const real_t *r, real_t *x) {
  int i, j;
  for (i = n - 1; i >= 0; --i) {
    x[i] /= r[(stride + 1) * i];
    for (j = 0; j < i; ++j) x[j] -= r[stride * i + j] * x[i];
  }
}

/* Delete a column of the triangular factor of `count` columns; rotations make it triangular again. */
static void qp_without(int at, int count, int stride, real_t *r) {
  int i, j;
  for (j = at + 1; j < count; ++j) {
    real_t *to = r + stride * (j - 1), *from = r + stride * j;
    for (i = 0; i <= j; ++i) to[i] = from[i];
  }
  for (i = at; i < count - 1; ++i) {
    real_t *own = r + stride * i;
    const real_t size = sqrt(own[i] * own[i] + own[i + 1] * own[i + 1]);
    const real_t c = own[i] / size, s = own[i + 1] / size;
    for (j = i; j < count - 1; ++j) {
      real_t *column = r + stride * j;
      const real_t first = column[i];
      column[i] = c * first + s * column[i + 1];
      column[i + 1] = c * column[i + 1] - s * first;
    }
  }
}

static int qp(int n, int m, const real_t *h, const real_t *a, const real_t *low,
              const real_t *high, const real_t *slack, real_t *x, real_t *lam, real_t *work) {
  const real_t near = sizeof(real_t) < 8 ? 1e-5 : 1e-11;
  /* h = l^T l with l upper triangular; y = l x has the normals l^-T a, and r^T r is the matrix of
     products of the active normals, with their slacks on its diagonal. */
  real_t *l = work, *normals = l + n * n, *r = normals + n * m, *y = r + m * m, *size = y + n;
  real_t *force = size + m, *step = force + m, *right = step + m;
  int active[QP_ROWS], side[QP_ROWS], used[QP_ROWS];
  int i, j, k, round, count = 0, solved = 0, possible = 1;

  for (i = 0; i < n; ++i) x[i] = y[i] = 0;
  for (k = 0; lam && k < m; ++k) lam[k] = 0;
  for (j = 0; j < n; ++j) {
    real_t *column = l + n * j;
    for (i = 0; i < j; ++i) column[i] = h[i + n * j];
    qp_down(j, n, l, column);
    column[j] = h[(n + 1) * j] - qp_dot(j, column, column);
    if (!(column[j] > 0)) return 0;
    column[j] = sqrt(column[j]);
  }
  for (k = 0; k < m; ++k) {
    real_t *normal = normals + n * k;
    for (i = 0; i < n; ++i) normal[i] = a[k + m * i];
    qp_down(n, n, l, normal);
    size[k] = qp_dot(n, normal, normal) + slack[k];
    used[k] = !(size[k] > 0);
  }

  for (round = 0; possible && round < 4 * (n + m); ++round) {
    int worst = -1, sign = 0, inner;
    real_t most = 0, bound = 0, missing = 0, own = 0;
    for (k = 0; k < m; ++k) {
      if (!used[k]) {
        const real_t value = qp_dot(n, normals + n * k, y);
        const int below = low[k] - value > value - high[k];
        const real_t limit = below ? low[k] : high[k];
        const real_t beyond = below ? low[k] - value : value - high[k];
        if (beyond > near * (1 + fabs(limit)) && beyond * beyond > most * size[k]) {
          most = beyond * beyond / size[k];
          worst = k;
          sign = below ? 1 : -1;
          bound = sign * limit;
          missing = beyond;
        }
      }
    }
    if (worst < 0) {
      solved = 1;
      break;
    }
    for (inner = 0; inner <= m; ++inner) {
      const real_t *normal = normals + n * worst;
      real_t length, least = INFINITY, full = INFINITY, moved, *column = r + m * count;
      int blocking = -1;
      for (j = 0; j < count; ++j)
        column[j] = sign * side[j] * qp_dot(n, normals + n * active[j], normal);
      qp_down(count, m, r, column);
      length = size[worst] - qp_dot(count, column, column);
      for (j = 0; j < count; ++j) step[j] = column[j];
      qp_up(count, m, r, step);
      for (j = 0; j < count; ++j) {
        if (step[j] > 0 && force[j] < least * step[j]) {
          least = force[j] / step[j];
          blocking = j;
        }
      }
      if (length > 1e-3 * near * size[worst]) full = missing / length;
      moved = full < least ? full : least;
      possible = moved < INFINITY;
      if (!possible) break;
      missing -= moved * length;
      own += moved;
      for (i = 0; i < n; ++i) y[i] += sign * moved * normal[i];
      for (j = 0; j < count; ++j) {
        const real_t *other = normals + n * active[j];
        const real_t less = moved * step[j];
        force[j] -= less;
        for (i = 0; i < n; ++i) y[i] -= side[j] * less * other[i];
      }
      if (full <= least) {
        column[count] = sqrt(length);
        force[count] = own;
        right[count] = bound;
        active[count] = worst;
        side[count++] = sign;
        used[worst] = 1;
        break;
      }
      used[active[blocking]] = 0;
      qp_without(blocking, count--, m, r);
      for (j = blocking; j < count; ++j) {
        force[j] = force[j + 1];
        right[j] = right[j + 1];
        active[j] = active[j + 1];
        side[j] = side[j + 1];
      }
    }
  }

  /* Compute forces and point from the active rows, with one correction: without the steps' rounding. */
  for (i = 0; i < n; ++i) y[i] = 0;
  for (j = 0; j < count; ++j) force[j] = 0;
  for (round = 0; round < 2; ++round) {
    for (j = 0; j < count; ++j) {
      k = active[j];
      step[j] = right[j] - side[j] * qp_dot(n, normals + n * k, y) - slack[k] * force[j];
    }
    qp_down(count, m, r, step);
    qp_up(count, m, r, step);
    for (j = 0; j < count; ++j) {
      const real_t *normal = normals + n * active[j];
      force[j] += step[j];
      for (i = 0; i < n; ++i) y[i] += side[j] * step[j] * normal[i];
    }
  }
  for (j = 0; lam && j < count; ++j) lam[active[j]] = -side[j] * force[j];
  for (i = 0; i < n; ++i) x[i] = y[i];
  qp_up(n, n, l, x);
  return solved;
}
