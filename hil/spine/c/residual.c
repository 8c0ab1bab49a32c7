/* Residuals of the axes, and the causes that explain them: the code of `hil.state` in C, with the
   same operations in the same order. See residual.h. */

#include "residual.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tables.h"

#define SLOW (RIG_RESIDUAL_RATES - 1)

/* Flags of a fit: of the motion of the encoder, of the torque, of a constant force. */
enum { OF_ENCODER, OF_TORQUE, OF_FORCE };

/* -- observers ----------------------------------------------------------------------------- */

/* Advance an observer without a sample. */
static void coast(rig_tracked *state, double a, double dt) {
  a += state->d;
  state->x = state->x + (state->w + 0.5 * a * dt) * dt;
  state->w = state->w + a * dt;
}

/* Correct an observer by a sample, dt after the one before; return the innovation. */
static double correct(rig_tracked *state, double y, double dt, double rate) {
  const double rest = y - state->x, theta = exp(-rate * dt), left = 1.0 - theta;
  state->x += (1.0 - theta * theta * theta) * rest;
  state->w += 1.5 * left * left * (1.0 + theta) * rest / dt;
  state->d += left * left * left * rest / (dt * dt);
  return rest;
}

/* Continue the least motion for one more equal report; `drag` may brake it. */
static void await(rig_unmoved *still, double a, double drag, double dt) {
  const double ahead = still->w > 0.0 ? 1.0 : -1.0;
  const double gained = (rig_least(ahead * (a + still->d), 0.0) - drag) * dt;
  const double speed = rig_most(fabs(still->w) + gained, 0.0);
  ++still->repeats;
  still->w = ahead * speed;
  still->way = still->way + speed * dt;
}

/* -- allowances ---------------------------------------------------------------------------- */

static double change_of(const rig_allowance *own, double torque) {
  return RIG_CHANGE * RIG_FLOOR * own->limit + 2.0 * own->dry + own->share * fabs(torque);
}

static double blur_of(const rig_allowance *own, double speed) {
  return own->step + own->timing * fabs(speed);
}

static double allowed_torque(const rig_allowance *own, double applied, double held, double speed) {
  const double friction = own->viscous * fabs(speed) + own->dry + own->losses * applied;
  return RIG_FLOOR * own->limit + friction + own->share * rig_most(applied, fabs(held));
}

/* -- samples ------------------------------------------------------------------------------- */

static void add(rig_axis_residual *axis, double t, double y, double a, double u, double rest) {
  const int place = (axis->first + axis->kept) % RIG_SAMPLES;
  const rig_sample sample = {t, y, a, u, axis->states[SLOW], rest};
  axis->samples[place] = sample;
  if (axis->kept < RIG_SAMPLES)
    ++axis->kept;
  else
    axis->first = (axis->first + 1) % RIG_SAMPLES;
}

static void keep(rig_axis_residual *axis, double y, double t, double a, double u, double rest) {
  axis->t = axis->seen = t;
  axis->y = y;
  add(axis, t, y, a, u, rest);
}

/* Continue the observers of an axis without a report. */
static void miss(rig_axis_residual *axis, double t, double a, double u) {
  const double dt = t - axis->t;
  int r;
  for (r = 0; r <= SLOW; ++r) coast(&axis->states[r], a, dt);
  axis->t = t;
  add(axis, t, NAN, a, u, 0.0);
}

/* Least speed of an axis, whatever friction and the steps of its encoder are. */
static double least_speed(const rig_axis_residual *axis, const rig_allowance *own, double drag) {
  const double blur = blur_of(own, axis->states[SLOW].w);
  double found = 0.0;
  int r;
  for (r = 0; r <= SLOW; ++r) {
    const double w = axis->states[r].w, rate = rig_residual_rates[r];
    const double certain = fabs(w) - RIG_SLIP * drag / rate - RIG_JITTER * rate * blur;
    if (certain > fabs(found)) found = copysign(certain, w);
  }
  return found;
}

/* Pass a report to the observers of an axis. `drag`: possible sudden change of its acceleration;
   `grip`: the part of dry friction. */
static void take(rig_axis_residual *axis, int i, double y, double t, double a, double u,
                 double drag, double grip) {
  static const rig_unmoved none = {0, 0.0, 0.0, 0.0};
  const rig_allowance *own = &rig_allowances[i];
  const double dt = t - axis->t;
  double passed, reach, rest = 0.0;
  int r;
  if (!(y - y == 0.0 && a - a == 0.0)) return;
  if (!(0.0 < dt && dt <= RIG_GAP * RIG_PERIOD)) { /* also at the start: its instant may be wrong */
    for (r = 0; r <= SLOW; ++r) {
      rig_tracked *state = &axis->states[r];
      const double d = state->d;
      if (dt == INFINITY)
        state->w = axis->speed;
      else if (dt > 0.0)
        coast(state, a, dt);
      state->x = y;
      state->d = d;
    }
    axis->first = axis->kept = 0;
    axis->still = none;
    keep(axis, y, t, a, u, 0.0);
    return;
  }
  passed = t - axis->seen;
  reach = rig_axes[i].overspeed * passed + rig_axes[i].slack;
  if (fabs(y - axis->y) > reach) return; /* a wrong frame; an encoder that jumps is lost */
  if (y == axis->y) {
    const double speed = fabs(axis->states[SLOW].w) - RIG_SLIP * grip / rig_residual_rates[SLOW];
    await(&axis->still, a, drag, dt);
    if (speed * dt > own->step && axis->still.repeats < RIG_REPEATS) {
      miss(axis, t, a, u); /* the report may have come twice */
      return;
    }
  }
  for (r = 0; r <= SLOW; ++r) {
    coast(&axis->states[r], a, dt);
    rest = correct(&axis->states[r], y, passed, rig_residual_rates[r]);
  }
  if (y != axis->y) {
    axis->still = none;
    axis->still.w = least_speed(axis, own, drag);
    axis->still.d = axis->states[SLOW].d;
  }
  keep(axis, y, t, a, u, rest);
}

/* -- explanation --------------------------------------------------------------------------- */

/* The newest samples, and some of the earlier ones; their number. */
static int chosen(int last, int newest, int *found) {
  const int count = last + 1 < RIG_EARLIER ? last + 1 : RIG_EARLIER;
  const int from = last > newest ? last - newest : 0;
  int k, n = 0;
  for (k = 0; k < count; ++k) {
    const int at = k * last / (count > 1 ? count - 1 : 1);
    if (at < from) found[n++] = at;
  }
  for (k = from; k <= last; ++k) found[n++] = k;
  return n;
}

/* Speeds and ways from rest of an acceleration that is constant before each sample. */
static void integrate(rig_explanation *e) {
  int k;
  for (k = 0; k < e->size; ++k) {
    const double a = e->a[k], dt = e->steps[k], gained = a * dt;
    e->w[k] = k ? e->w[k - 1] + gained : gained;
    e->x[k] = (e->w[k] - 0.5 * a * dt) * dt;
    if (k) e->x[k] = e->x[k - 1] + e->x[k];
  }
}

/* Way since instant j at sample k of the last acceleration. */
static double since(const rig_explanation *e, int j, int k, double tau) {
  return e->x[e->chosen[k]] - e->x[e->begins[j]] - e->w[e->begins[j]] * tau;
}

static double time_since(const rig_explanation *e, int j, int k) {
  const int at = e->chosen[k], begin = e->begins[j];
  return at > begin ? e->t[at] - e->t[begin] : 0.0;
}

static double weight_of(const rig_explanation *e, int j, int k) {
  return e->chosen[k] > e->begins[j] ? e->weights[k] : 0.0;
}

static int reason_of(double factor, int none, int scale) {
  if (fabs(factor) < RIG_NOT) return none;
  return factor < 0.0 ? RIG_WRONG_SIGN : scale;
}

static void consider(rig_explanation *e, int reason, double factor, double left, int encoder) {
  const rig_cause cause = {reason, encoder, factor, left};
  e->causes[e->count++] = cause;
}

/* Add the causes that a factor of an added motion is, at each instant. */
static void fit(rig_explanation *e, int kind, double limit) {
  int j;
  for (j = 0; j < e->instants; ++j) {
    const double factor = e->along[j] / (e->sizes[j] > 0.0 ? e->sizes[j] : INFINITY);
    const double left = e->left[j] + e->squares[j] - factor * e->along[j];
    if (kind == OF_FORCE) {
      if (fabs(factor) <= RIG_STRONGEST * limit) consider(e, RIG_CONTACT, factor, left, 0);
    } else if (!(fabs(factor) < RIG_NOT || fabs(1.0 + factor) > RIG_LARGEST)) {
      const int encoder = kind == OF_ENCODER;
      const int none = encoder ? RIG_STUCK : RIG_IGNORED;
      const int scale = encoder ? RIG_COUNT_SCALE : RIG_TORQUE_SCALE;
      consider(e, reason_of(1.0 + factor, none, scale), 1.0 + factor, left, encoder);
    }
  }
}

/* Add a term of sample k to a sum over samples; the first one begins it. */
static void sum(double *total, int k, double term) { *total = k ? *total + term : term; }

/* Difference from the motion without corrections; fit of the motion itself. */
static void compare_motion(rig_explanation *e) {
  int j, k;
  integrate(e);
  for (k = 0; k < e->kept; ++k) {
    for (j = 0; j < e->instants; ++j) {
      const rig_tracked *from = &e->states[e->begins[j]];
      const double tau = time_since(e, j, k), weight = weight_of(e, j, k);
      const double motion = from->w * tau + since(e, j, k, tau) + 0.5 * from->d * (tau * tau);
      const double rest = e->y[k] - from->x - motion;
      e->rest[k][j] = rest;
      sum(&e->squares[j], k, weight * (rest * rest));
      sum(&e->sizes[j], k, weight * (motion * motion));
      sum(&e->along[j], k, weight * (rest * motion));
    }
  }
}

/* Fit of the motion by an acceleration. */
static void compare_way(rig_explanation *e) {
  int j, k;
  integrate(e);
  for (k = 0; k < e->kept; ++k) {
    for (j = 0; j < e->instants; ++j) {
      const double tau = time_since(e, j, k), weight = weight_of(e, j, k);
      const double way = since(e, j, k, tau);
      sum(&e->sizes[j], k, weight * (way * way));
      sum(&e->along[j], k, weight * (e->rest[k][j] * way));
    }
  }
}

/* What remains if the torque acted later. */
static void compare_delay(rig_explanation *e, double delay) {
  const int last = e->size - 1;
  const double half = 0.5 * (e->t[last] - e->t[last - 1]); /* instants are not exact */
  int j, k, at = 0;
  for (k = 0; k <= last; ++k) {
    const double until = e->t[k] - delay + half;
    while (at <= last && e->t[at] <= until) ++at;
    e->a[k] = e->ease * (e->u[at > 0 ? at - 1 : 0] - e->u[k]);
  }
  integrate(e);
  for (k = 0; k < e->kept; ++k) {
    for (j = 0; j < e->instants; ++j) {
      const double differs = e->rest[k][j] - since(e, j, k, time_since(e, j, k));
      sum(&e->sizes[j], k, weight_of(e, j, k) * (differs * differs));
    }
  }
  for (j = 0; j < e->instants; ++j)
    consider(e, RIG_DELAYED, delay, e->left[j] + e->sizes[j], 0);
}

/* Sum of squares that a cause leaves, weighed by how unusual it is. */
static double doubt(const rig_cause *cause) {
  double near = 0.0;
  int k;
  if (cause->reason == RIG_CONTACT || cause->reason == RIG_DELAYED) return cause->left;
  for (k = 0; k < RIG_USUAL; ++k) {
    const double usual = rig_usual[k];
    const double away = fabs(cause->factor - usual) / rig_most(fabs(usual), 1.0);
    near = k ? rig_least(near, away) : away;
  }
  return cause->left * (near <= RIG_NEAR ? 1.0 / RIG_CLEARER : RIG_CLEARER);
}

/* Put the samples of an axis in order, with the sums that all causes share. */
static void prepare(rig_explanation *e, const rig_axis_residual *axis, double step) {
  double innovations = 0.0;
  int j, k, last = -1;
  e->size = axis->kept;
  for (k = j = 0; k < e->size; ++k) {
    const rig_sample *sample = &axis->samples[(axis->first + k) % RIG_SAMPLES];
    e->t[k] = sample->t;
    e->u[k] = sample->u;
    e->a[k] = sample->a;
    e->steps[k] = k ? e->t[k] - e->t[k - 1] : 0.0;
    e->states[k] = sample->state;
    sum(&innovations, k, sample->rest * sample->rest);
    if (j < e->instants && e->begins[j] == k) e->left[j++] = innovations;
  }
  for (j = 0; j < e->instants; ++j) e->left[j] += e->size * (step * step) / 12.0;
  for (k = 0; k < e->kept; ++k) {
    const int at = e->chosen[k]; /* with the weight of those that it skips */
    const double y = axis->samples[(axis->first + at) % RIG_SAMPLES].y;
    e->weights[k] = isfinite(y) ? (double)(at - last) : 0.0;
    e->y[k] = y == y ? y : 0.0;
    last = at;
  }
}

/* Find the best cause of the residual of an axis; 0 if no cause is possible yet. `clear`: whether
   all causes with another reason leave clearly more. */
static int explain(rig_memory *m, int i, rig_cause *best, int *clear) {
  rig_explanation *e = &m->explanation;
  const rig_axis_residual *axis = &m->residuals[i];
  const rig_allowance *own = &rig_allowances[i];
  const int last = axis->kept - 1;
  double least_doubt = 0.0, others = INFINITY;
  int k, any = 0;
  if (last < RIG_SHORTEST) return 0;
  e->ease = m->ease[i * RIG_AXES + i];
  e->instants = chosen(last - RIG_SHORTEST, RIG_NEWEST_INSTANTS, e->begins);
  e->kept = chosen(last, RIG_NEWEST, e->chosen);
  e->count = 0;
  prepare(e, axis, own->step);
  compare_motion(e);
  fit(e, OF_ENCODER, own->limit);
  for (k = 0; k < e->size; ++k) e->a[k] = e->ease * e->u[k];
  compare_way(e);
  fit(e, OF_TORQUE, own->limit);
  for (k = 0; k < e->size; ++k) e->a[k] = e->ease;
  compare_way(e);
  fit(e, OF_FORCE, own->limit);
  for (k = 0; k < RIG_DELAYS; ++k) compare_delay(e, rig_delays[k]);
  for (k = 0; k < e->count; ++k) {
    const double own_doubt = doubt(&e->causes[k]);
    if (k && !(own_doubt < least_doubt)) continue;
    least_doubt = own_doubt;
    *best = e->causes[k];
  }
  for (k = 0; k < e->count; ++k) {
    if (e->causes[k].reason == best->reason) continue;
    others = any ? rig_least(others, e->causes[k].left) : e->causes[k].left;
    any = 1;
  }
  *clear = RIG_CLEARER * best->left < others;
  return 1;
}

/* -- judgement ----------------------------------------------------------------------------- */

/* Reason to stop for a cause, with the numbers of the axis. */
static int found(rig_memory *m, int i, const rig_cause *cause) {
  rig_finding *f = &m->finding;
  memset(f, 0, sizeof *f);
  f->axis = i;
  f->reason = cause ? cause->reason : RIG_CONTACT;
  f->known = cause != 0;
  f->encoder = cause && cause->encoder;
  f->factor = cause ? cause->factor : NAN;
  f->residual = m->residual[i];
  f->allowed = m->allowed[i];
  f->applied = m->residuals[i].applied;
  return 1;
}

static int stuck(rig_memory *m, int i) {
  rig_finding *f = &m->finding;
  memset(f, 0, sizeof *f);
  f->axis = i;
  f->reason = RIG_STUCK;
  f->repeats = m->residuals[i].still.repeats;
  f->way = m->residuals[i].still.way;
  return 1;
}

/* Allowed residual of each axis without encoder noise, and its allowed sudden change: where more
   motors than velocities share their torques, what one motor explains is seen at all of them. */
static void bounds_of(const rig_memory *m, double *rests, double *changes) {
  double rest[RIG_AXES], change[RIG_AXES];
  int i, j, k;
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_axis_residual *axis = &m->residuals[i];
    const rig_allowance *own = &rig_allowances[i];
    rests[i] = allowed_torque(own, axis->applied, m->holding[i], axis->states[SLOW].w);
    changes[i] = change_of(own, m->acted[i] - axis->mean);
    changes[i] = changes[i] + own->viscous * fabs(axis->states[SLOW].w - axis->pace);
  }
  if (!RIG_SHARED_TORQUES) return;
  memcpy(rest, rests, sizeof rest);
  memcpy(change, changes, sizeof change);
  for (i = 0; i < RIG_AXES; ++i) {
    rests[i] = changes[i] = 0.0;
    for (k = 0; k < RIG_AXES; ++k) {
      double part = 0.0; /* of the torque of motor k in the residual of this axis */
      for (j = 0; j < RIG_AXES; ++j)
        part += m->inertia[j * RIG_AXES + i] * m->ease[k * RIG_AXES + j];
      rests[i] += fabs(part) * rest[k];
      changes[i] += fabs(part) * change[k];
    }
  }
}

/* Average the inertia over the delay of each observer. */
static void average(rig_memory *m) {
  int k, r;
  for (k = 0; k < RIG_AXES * RIG_AXES; ++k)
    if (!isfinite(m->inertia[k])) return;
  for (r = 0; r <= SLOW; ++r) {
    double *mean = m->mean_inertia[r];
    const int known = mean[0] == mean[0];
    for (k = 0; k < RIG_AXES * RIG_AXES; ++k)
      mean[k] = known ? mean[k] + rig_mean_shares[r] * (m->inertia[k] - mean[k]) : m->inertia[k];
  }
}

/* Compare residuals with their bounds; the axis furthest beyond, or -1, of both. */
static void compare(rig_memory *m, int *suspect, int *sudden) {
  double blurs[RIG_AXES], torques[SLOW + 1], largest = 1.0, rise = 1.0;
  double rests[RIG_AXES], changes[RIG_AXES];
  int i, k, r;
  *suspect = *sudden = -1;
  bounds_of(m, rests, changes);
  for (i = 0; i < RIG_AXES; ++i)
    blurs[i] = blur_of(&rig_allowances[i], m->residuals[i].states[SLOW].w);
  for (i = 0; i < RIG_AXES; ++i) {
    const double allowed = rests[i];
    double blur = 0.0, share = -1.0;
    for (k = 0; k < RIG_AXES; ++k) blur += fabs(m->inertia[k * RIG_AXES + i]) * blurs[k];
    for (r = 0; r <= SLOW; ++r) {
      torques[r] = 0.0;
      for (k = 0; k < RIG_AXES; ++k)
        torques[r] += m->mean_inertia[r][k * RIG_AXES + i] * m->residuals[k].states[r].d;
    }
    m->residual[i] = 0.0;
    m->allowed[i] = allowed;
    for (r = 0; r <= SLOW; ++r) {
      const double rate = rig_residual_rates[r], bound = allowed + RIG_PEAK * rate * rate * blur;
      if (!(fabs(torques[r]) > share * bound)) continue;
      share = fabs(torques[r]) / bound;
      m->residual[i] = torques[r];
      m->allowed[i] = bound;
    }
    if (share > largest) {
      largest = share;
      *suspect = i;
    }
    for (r = 0; r < SLOW; ++r) {
      const double rate = rig_residual_rates[r];
      share = fabs(torques[r] - torques[SLOW]) / (changes[i] + RIG_PEAK * rate * rate * blur);
      if (share > rise) {
        rise = share;
        *sudden = i;
      }
    }
  }
}

static int looks(int number) {
  int k;
  for (k = 0; k < RIG_LOOKS; ++k)
    if (rig_looks[k] == number) return 1;
  return 0;
}

/* Judge the axis under suspicion. */
static int judge(rig_memory *m) {
  const int i = m->suspected;
  const double u = m->acted[i], largest = rig_most(fabs(u), fabs(u + m->residual[i]));
  rig_cause cause;
  int over, known, clear = 0;
  ++m->since;
  m->impulse += RIG_PERIOD * rig_least(largest / rig_allowances[i].limit, 1.0);
  over = m->impulse > RIG_LARGEST_IMPULSE || m->since * RIG_PERIOD > RIG_LONGEST_SUSPICION;
  if (!(over || looks(m->since))) return 0;
  known = explain(m, i, &cause, &clear);
  if (known && clear && (m->firm || cause.encoder)) return found(m, i, &cause);
  if (!over) return 0;
  if (m->firm) return found(m, i, known ? &cause : 0);
  m->suspected = -1;
  return 0;
}

static int exceeds_half(const rig_memory *m, int i) {
  return fabs(m->residual[i]) > RIG_HALF * m->allowed[i];
}

/* Torques and accelerations between the last two samples of each axis: a drive that answers commands
   samples first, and between its samples acted the torques sent before the last ones. */
static void between_samples(rig_memory *m) {
  double differ[RIG_AXES];
  int i, k;
  for (i = 0; i < RIG_AXES; ++i) differ[i] = m->earlier[i] - m->acted[i];
  for (i = 0; i < RIG_AXES; ++i) {
    if (!rig_answers[i]) continue;
    m->acted[i] = m->earlier[i];
    for (k = 0; k < RIG_AXES; ++k) m->accelerated[i] += m->ease[k * RIG_AXES + i] * differ[k];
  }
}

int rig_follow(rig_memory *m, const rig_input *in) {
  double changes[RIG_AXES], drags[RIG_AXES], grips[RIG_AXES];
  int i, k, suspect, sudden, any = 0;
  between_samples(m);
  for (i = 0; i < RIG_AXES; ++i)
    changes[i] = change_of(&rig_allowances[i], m->acted[i] - m->residuals[i].mean);
  for (i = 0; i < RIG_AXES; ++i) {
    double drag = 0.0, grip = 0.0; /* friction of one axis also brakes others */
    for (k = 0; k < RIG_AXES; ++k) {
      const double part = fabs(m->ease[k * RIG_AXES + i]);
      drag += part * changes[k];
      grip += part * (2.0 * rig_allowances[k].dry);
    }
    drags[i] = drag - drag == 0.0 ? drag : INFINITY;
    grips[i] = drag - drag == 0.0 ? grip : INFINITY;
  }
  for (i = 0; i < RIG_AXES; ++i) {
    rig_axis_residual *axis = &m->residuals[i];
    const double u = m->acted[i], a = m->accelerated[i];
    axis->applied = rig_most(fabs(u), axis->applied * RIG_FADE);
    axis->mean += (1.0 - RIG_FADE) * (u - axis->mean);
    if (axis->t == -INFINITY && isfinite(a) && !rig_answers[i]) axis->speed += a * RIG_PERIOD;
    /* It is unknown which request a report answers if an earlier one may be outstanding, or if
       several came at once. */
    if (in->count[i] == axis->count + 1 && !in->doubtful[i])
      take(axis, i, in->position[i], in->time[i] - RIG_LATENCY, a, u, drags[i], grips[i]);
    else if (axis->t > -INFINITY)
      miss(axis, axis->t + RIG_PERIOD, a, u);
    axis->count = in->count[i];
  }
  for (i = 0; i < RIG_AXES; ++i) {
    rig_axis_residual *axis = &m->residuals[i];
    axis->pace += rig_mean_shares[SLOW] * (axis->states[SLOW].w - axis->pace);
  }
  average(m);
  compare(m, &suspect, &sudden);
  for (i = 0; i < RIG_AXES; ++i) any = any || exceeds_half(m, i);
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_unmoved *still = &m->residuals[i].still;
    const double steps = any ? RIG_STEPS : RIG_FEW;
    const int stands =
        still->repeats >= RIG_REPEATS && still->way > steps * rig_allowances[i].step;
    if (stands && !(any && !exceeds_half(m, i))) return stuck(m, i); /* not by another axis */
  }
  if (m->suspected < 0 ||
      (m->firm && fabs(m->residual[m->suspected]) <= m->allowed[m->suspected]) ||
      (suspect >= 0 && !m->firm)) {
    m->firm = suspect >= 0;
    m->suspected = m->firm ? suspect : sudden;
    m->since = 0;
    m->impulse = 0.0;
  }
  return m->suspected >= 0 && judge(m);
}

int rig_suspect(rig_memory *m, int axis) {
  double largest = -1.0;
  rig_cause cause;
  int k, i = 0, clear = 0;
  for (k = 0; k < RIG_AXES; ++k) {
    const double share = fabs(m->residual[k]) / rig_most(m->allowed[k], DBL_MIN);
    if (axis >= 0 ? k != axis : share <= largest) continue;
    largest = share;
    i = k;
    if (share != share) break;
  }
  if (!(largest > RIG_HALF) || !explain(m, i, &cause, &clear)) return 0;
  return clear && cause.reason != RIG_CONTACT && found(m, i, &cause);
}

void rig_start_residual(rig_memory *m) {
  int i, k, r;
  memset(m->residuals, 0, sizeof m->residuals);
  memset(m->residual, 0, sizeof m->residual);
  memset(m->allowed, 0, sizeof m->allowed);
  for (i = 0; i < RIG_AXES; ++i) {
    rig_axis_residual *axis = &m->residuals[i];
    axis->count = m->counts[i];
    for (k = 0; RIG_KNOWS_SPEEDS && k < RIG_TERMS; ++k) {
      const double rate = m->s[rig_speeds[rig_term_joint[k * RIG_AXES + i]]];
      const double speed = rate * rig_term_ratio[k * RIG_AXES + i];
      axis->speed = k ? axis->speed + speed : speed;
    }
    axis->t = axis->seen = -INFINITY;
    axis->y = NAN;
    for (r = 0; r <= SLOW; ++r) axis->states[r].x = NAN;
  }
  for (r = 0; r <= SLOW; ++r) m->mean_inertia[r][0] = NAN;
  m->suspected = -1;
  m->firm = m->since = 0;
  m->impulse = 0.0;
}
