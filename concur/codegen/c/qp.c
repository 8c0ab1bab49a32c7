/* Small dense quadratic programs (QPs), by a dual active-set method.
   Minimise x h x / 2 + |t|^2 / 2 with low <= a x + sqrt(slack) t <= high; h is positive definite. A
   row whose slack is zero is kept exactly; of the others t is eliminated. Kept rows must be linearly
   independent; then every program has a solution. The caller provides all memory. Return 1, or 0
   if the bound of steps was met before the solution: x then misses some rows.

   Each step adds a row to the active ones or drops one. Products of the active normals are kept as
   a triangular factor, to which a step adds or takes one column. Every program starts without
   active rows, so that the same numbers always give the same bits. */

#ifndef QP_ROWS
#define QP_ROWS @ROWS@
#endif
#ifndef QP_STEPS
#define QP_STEPS (4 * (n + m))
#endif

/* Sums of four terms each, which a compiler may take at once. */
static real_t qp_dot(int n, const real_t *x, const real_t *y) {
  real_t a = 0, b = 0, c = 0, d = 0;
  int i;
  for (i = 0; i + 3 < n; i += 4) {
    a += x[i] * y[i];
    b += x[i + 1] * y[i + 1];
    c += x[i + 2] * y[i + 2];
    d += x[i + 3] * y[i + 3];
  }
  for (; i < n; ++i) a += x[i] * y[i];
  return (a + b) + (c + d);
}

/* y += factor x */
static void qp_add(int n, real_t factor, const real_t *restrict x, real_t *restrict y) {
  int i;
  for (i = 0; i + 3 < n; i += 4) {
    y[i] += factor * x[i];
    y[i + 1] += factor * x[i + 1];
    y[i + 2] += factor * x[i + 2];
    y[i + 3] += factor * x[i + 3];
  }
  for (; i < n; ++i) y[i] += factor * x[i];
}

/* Solve r^T y = x in place of x; r is upper triangular, its columns `stride` apart. */
static void qp_down(int n, int stride, const real_t *r, real_t *x) {
  int i;
  for (i = 0; i < n; ++i) x[i] = (x[i] - qp_dot(i, r + stride * i, x)) / r[(stride + 1) * i];
}

/* Solve r y = x in place of x. */
static void qp_up(int n, int stride, const real_t *r, real_t *x) {
  int i;
  for (i = n - 1; i >= 0; --i) {
    x[i] /= r[(stride + 1) * i];
    qp_add(i, -x[i], r + stride * i, x);
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
  real_t *l = work, *rows = l + n * n, *normals = rows + n * m, *r = normals + n * m;
  real_t *y = r + m * m, *size = y + n, *value = size + m, *force = value + m, *step = force + m;
  real_t *right = step + m;
  int active[QP_ROWS], side[QP_ROWS], used[QP_ROWS];
  int i, j, k, count = 0, steps = 0, solved = 1, possible = 1;

  for (i = 0; i < n; ++i) x[i] = y[i] = 0;
  for (k = 0; lam && k < m; ++k) lam[k] = 0;
  for (k = 0; k < m; ++k) solved = solved && low[k] <= 0 && high[k] >= 0;
  for (j = 0; j < n; ++j) solved = solved && h[(n + 1) * j] > 0;
  if (solved) return 1;
  for (j = 0; j < n; ++j) {
    real_t *column = l + n * j;
    for (i = 0; i < j; ++i) column[i] = h[i + n * j];
    qp_down(j, n, l, column);
    column[j] = h[(n + 1) * j] - qp_dot(j, column, column);
    if (!(column[j] > 0)) return 0;
    column[j] = sqrt(column[j]);
  }
  for (k = 0; k < m; ++k) {
    size[k] = slack[k];
    value[k] = 0;
  }
  for (i = 0; i < n; ++i) {
    real_t *row = rows + m * i;
    const real_t inverse = 1 / l[(n + 1) * i];
    for (k = 0; k < m; ++k) row[k] = a[k + m * i];
    for (j = 0; j < i; ++j) qp_add(m, -l[j + n * i], rows + m * j, row);
    for (k = 0; k < m; ++k) {
      row[k] *= inverse;
      size[k] += row[k] * row[k];
    }
  }
  for (k = 0; k < m; ++k) used[k] = !(size[k] > 0);

  while (possible) {
    int worst = -1, sign = 0;
    real_t most = 0, bound = 0, missing = 0, own = 0;
    if (count > 0) {
      for (k = 0; k < m; ++k) value[k] = 0;
      for (i = 0; i < n; ++i) qp_add(m, y[i], rows + m * i, value);
    }
    for (k = 0; k < m; ++k) {
      if (!used[k]) {
        const int below = low[k] - value[k] > value[k] - high[k];
        const real_t limit = below ? low[k] : high[k];
        const real_t beyond = below ? low[k] - value[k] : value[k] - high[k];
        if (beyond > near * (1 + fabs(limit)) && beyond * beyond > most * size[k]) {
          most = beyond * beyond / size[k];
          worst = k;
          sign = below ? 1 : -1;
          bound = sign * limit;
          missing = beyond;
        }
      }
    }
    solved = worst < 0;
    if (solved) break;
    for (;;) {
      real_t *normal = normals + n * count;
      real_t length, least = INFINITY, full = INFINITY, moved, *column = r + m * count;
      int blocking = -1;
      possible = steps++ < QP_STEPS;
      if (!possible) break;
      for (i = 0; i < n; ++i) normal[i] = sign * rows[worst + m * i];
      for (j = 0; j < count; ++j) column[j] = qp_dot(n, normals + n * j, normal);
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
      qp_add(n, moved, normal, y);
      for (j = 0; j < count; ++j) {
        const real_t less = moved * step[j];
        force[j] -= less;
        qp_add(n, -less, normals + n * j, y);
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
      for (i = n * blocking; i < n * count; ++i) normals[i] = normals[i + n];
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
  for (j = 0; j < count; ++j) qp_add(n, force[j], normals + n * j, y);
  for (j = 0; j < count; ++j)
    step[j] = right[j] - qp_dot(n, normals + n * j, y) - slack[active[j]] * force[j];
  qp_down(count, m, r, step);
  qp_up(count, m, r, step);
  for (j = 0; j < count; ++j) {
    force[j] += step[j];
    qp_add(n, step[j], normals + n * j, y);
    if (lam) lam[active[j]] = -side[j] * force[j];
  }
  for (i = 0; i < n; ++i) x[i] = y[i];
  qp_up(n, n, l, x);
  return solved;
}
