/* See rig.h. The order of all operations is that of the loop in Python, whose results are the same
   to the last bit if this file is compiled without contraction of operations (-std=c99 of GCC, or
   -ffp-contract=off) and without -ffast-math. */

#include "rig.h"

#include <math.h>
#include <string.h>

#include "residual.h"
#include "tables.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "-ffast-math deletes the checks for NaN: compile without it"
#endif

static int finite_all(const double *x, int n) {
  int i;
  for (i = 0; i < n; ++i)
    if (!isfinite(x[i])) return 0;
  return 1;
}

/* -- observers ----------------------------------------------------------------------------- */

static void refuse(rig_observer *o) {
  ++o->refused;
  o->reported = NAN;
}

static double sampled(const rig_observer *o, const rig_axis *axis, double y, double t) {
  const double dt = t - o->t, way = o->w * dt;
  const double share = fabs(way) > axis->slack ? (y - o->x) / way : 1.0;
  if (!(0.0 < share && share < 1.0)) return t;
  return o->t + rig_most(share * dt, rig_least(0.5 * RIG_PERIOD, dt));
}

static void observe(rig_observer *o, const rig_axis *axis, double y, double speed, double t,
                    const double *known) {
  double dt, stamp, missed, rate, gained, ahead, rest, reach, theta, left;
  if (o->refused >= RIG_IMPLAUSIBLE || !(isfinite(y) && isfinite(t))) {
    refuse(o);
    return;
  }
  if (fabs(speed) > 2.0 * axis->speed) speed = NAN;
  dt = t - o->t;
  if (dt == INFINITY) {
    o->x = o->last = y;
    o->t = o->stamp = t;
    o->reported = speed;
    o->w = speed == speed ? speed : 0.0;
    return;
  }
  if (dt <= 0.0) return;
  stamp = t;
  missed = (t - o->stamp) / RIG_PERIOD;
  if (1.5 < missed && missed < RIG_LONGEST_WAIT) {
    t = sampled(o, axis, y, t);
    dt = t - o->t;
  }
  rate = RIG_BANDWIDTH_RATE;
  gained = speed - o->reported;
  if (gained == gained)
    rate *= RIG_SHARE;
  else
    gained = known ? *known * dt : 0.0;
  ahead = o->x + (o->w + 0.5 * gained) * dt;
  rest = y - ahead;
  reach = axis->speed * dt + axis->slack;
  if (fabs(rest) > reach && reach < fabs(y - o->last)) {
    refuse(o);
    return;
  }
  theta = exp(-rate * dt);
  left = 1.0 - theta;
  o->x = ahead + (1.0 + theta) * left * rest;
  o->w += gained + left * left * rest / dt;
  o->t = t;
  o->last = y;
  o->reported = speed;
  o->refused = 0;
  o->stamp = stamp;
}

/* -- estimator ----------------------------------------------------------------------------- */

static void call(rig_memory *m, rig_graph *graph) {
  graph(m->arguments, m->results, m->integers, m->numbers, 0);
}

/* Accelerations of the motors by the torques that acted since the cycle before; null: unknown. */
static const double *accelerate(rig_memory *m, const rig_input *in) {
  const double passed = in->start - m->begun;
  double share = in->start > m->begun ? (in->sent - m->begun) / passed : 0.0;
  double size = 0.0;
  int i;
  share = share == share ? rig_least(rig_most(share, 0.0), 1.0) : 0.0;
  for (i = 0; i < RIG_AXES; ++i)
    m->acted[i] = m->torque[i] + share * (m->earlier[i] - m->torque[i]);
  for (i = 0; i < RIG_RATES; ++i) m->rates[i] = m->s[rig_shape[i]];
  m->arguments[0] = m->q;
  m->arguments[1] = m->rates;
  m->arguments[2] = m->acted;
  m->results[0] = m->accelerated;
  m->results[1] = m->inertia;
  m->results[2] = m->holding;
  m->results[3] = m->ease;
  call(m, RIG_ACCELERATION);
  for (i = 0; i < RIG_AXES; ++i) size += fabs(m->accelerated[i]);
  return size < RIG_ABSURD ? m->accelerated : 0;
}

/* Move the configuration to the present. */
static void move(rig_memory *m, double dt) {
  m->arguments[0] = m->q;
  m->arguments[1] = m->motor_position;
  m->arguments[2] = m->motor_velocity;
  m->arguments[3] = &dt;
  m->arguments[4] = rig_origin;
  m->results[0] = m->after;
  m->results[1] = m->next;
  m->results[2] = m->v;
  m->results[3] = 0;
  m->results[4] = m->joint_rates;
  call(m, RIG_ESTIMATOR);
}

/* Positions and velocities of the motors that belong to the state. */
static void place_motors(rig_memory *m) {
  int i, k;
  for (i = 0; i < RIG_AXES; ++i) {
    for (k = 0; k < RIG_TERMS; ++k) {
      const int joint = rig_term_joint[k * RIG_AXES + i];
      const double ratio = rig_term_ratio[k * RIG_AXES + i];
      const double q = m->after[rig_places[joint]] * ratio, v = m->joint_rates[joint] * ratio;
      m->position[i] = k ? m->position[i] + q : q;
      m->velocity[i] = k ? m->velocity[i] + v : v;
    }
  }
}

/* Take new reports, and predict all motors to the present; return whether all have reported. */
static int differentiate(rig_memory *m, const rig_input *in, const double *known) {
  int i, ready = 1;
  for (i = 0; i < RIG_AXES; ++i) {
    rig_observer *o = &m->observers[i];
    double past, gained;
    if (in->count[i] != m->seen[i]) {
      const double t = rig_least(in->time[i], in->now) - RIG_LATENCY;
      observe(o, &rig_axes[i], in->position[i], in->velocity[i], t, known ? &known[i] : 0);
      m->seen[i] = in->count[i];
    }
    past = in->now - o->t;
    gained = known ? known[i] * past : 0.0;
    if (past >= RIG_HORIZON) {
      m->motor_position[i] = o->x + o->w * RIG_HORIZON;
      m->motor_velocity[i] = 0.0;
    } else {
      m->motor_position[i] = o->x + (o->w + 0.5 * gained) * past;
      m->motor_velocity[i] = o->w + gained;
    }
    ready = ready && past < INFINITY;
  }
  return ready;
}

static void estimate(rig_memory *m, const rig_input *in, const double *known) {
  int i, lost = 0;
  double dt;
  const int ready = differentiate(m, in, known);
  if (!ready) {
    m->now = in->now;
    m->valid = 0;
    return;
  }
  if (!m->started) { /* the first reports have positions, but no motion since the cycle before */
    move(m, 0.0);
    for (i = 0; i < RIG_JOINTS; ++i) m->q[rig_places[i]] = m->after[rig_places[i]];
    m->started = 1;
  }
  dt = in->now - m->now;
  move(m, dt > 0.0 ? dt : 0.0);
  place_motors(m);
  m->now = in->now;
  if (!finite_all(m->after, RIG_NQ) || !finite_all(m->v, RIG_NV)) {
    m->valid = 0;
    return;
  }
  memcpy(m->q, m->after, sizeof m->q);
  memcpy(m->s, m->next, sizeof m->s);
  for (i = 0; i < RIG_AXES; ++i) lost = lost || m->observers[i].refused >= RIG_IMPLAUSIBLE;
  m->valid = !lost;
}

/* -- law ----------------------------------------------------------------------------------- */

static void evaluate(rig_memory *m, const rig_input *in, int running) {
  const double *given[] = {RIG_LAW_ARGUMENTS};
  double *found[] = {RIG_LAW_RESULTS};
  int i;
  m->period = running ? RIG_PERIOD : 0.0; /* the state of a law stays zero before the run */
  memcpy(m->arguments, given, sizeof given);
  memcpy(m->results, found, sizeof found);
  m->status = RIG_LAW_FAILED;
  if (RIG_LAW_GRAPH(m->arguments, m->results, m->integers, m->numbers, 0)) m->status = RIG_LAW_FAILED;
  memcpy(m->before, m->kept, sizeof m->before);
  if (m->status != 0.0)
    for (i = 0; i < RIG_AXES; ++i) m->demand[i] = 0.0;
  m->arguments[0] = m->q;
  m->arguments[1] = m->s;
  m->arguments[2] = in->pose;
  m->arguments[3] = in->twist;
  m->results[0] = m->error;
  m->results[1] = m->results[2] = 0;
  call(m, RIG_ERRORS);
}

static int within(const rig_memory *m, double bound) {
  int i;
  for (i = 0; i < RIG_NE; ++i)
    if (!(-bound <= m->error[i] && m->error[i] <= bound)) return 0;
  return 1;
}

/* -- guard --------------------------------------------------------------------------------- */

static int stop_at(double *out, int reason, int axis, int *found) {
  memset(out, 0, RIG_AXES * sizeof *out);
  *found = axis;
  return reason;
}

static int fresh(const rig_memory *m, int i) {
  return -RIG_PERIOD <= m->ages[i] && m->ages[i] <= RIG_LARGEST_AGE;
}

/* Limit the torque of a joint near an end of its range, by all its motors; return flags. */
static int ease(const rig_joint *joint, double q, double *torques, const double *velocities) {
  double v = 0.0, torque = 0.0, bound, share, end;
  int k;
  for (k = 0; k < joint->motors; ++k) {
    const rig_motor *motor = &rig_motors[joint->first + k];
    v += motor->back * velocities[motor->axis];
    torque += motor->ratio * torques[motor->axis];
  }
  bound = torque;
  if (joint->high - q < joint->zone && v >= 0.0) {
    share = rig_most((joint->high - q) / joint->zone, 0.0);
    end = joint->torque * share - joint->damping * v * (1.0 - share);
    bound = rig_least(bound, rig_most(end, -joint->torque));
  }
  if (q - joint->low < joint->zone && v <= 0.0) {
    share = rig_most((q - joint->low) / joint->zone, 0.0);
    end = -joint->torque * share - joint->damping * v * (1.0 - share);
    bound = rig_most(bound, rig_least(end, joint->torque));
  }
  if (bound == torque) return 0;
  if (joint->motors == 1) {
    torques[rig_motors[joint->first].axis] = bound / rig_motors[joint->first].ratio;
  } else {
    for (k = 0; k < joint->motors; ++k) {
      const rig_motor *motor = &rig_motors[joint->first + k];
      torques[motor->axis] += motor->back * (bound - torque);
    }
  }
  return RIG_NEAR_END;
}

/* Check a torque vector and limit it into `out`; return a reason to stop, or RIG_NONE. */
static int judge(rig_memory *m, const double *demand, const double *position,
                 const double *velocity, double *out, int *axis) {
  double torques[RIG_AXES];
  int i, k, flags = 0;
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_axis *a = &rig_axes[i];
    const double q = position[i], v = velocity[i];
    double torque = demand[i], share;
    if (!fresh(m, i)) return stop_at(out, RIG_STALE, i, axis);
    if (!(torque - torque == 0.0 && q - q == 0.0 && v - v == 0.0))
      return stop_at(out, RIG_NOT_FINITE, i, axis);
    if (!(-a->overspeed <= v && v <= a->overspeed)) return stop_at(out, RIG_OVERSPEED, i, axis);
    if (torque > a->torque) {
      torque = a->torque;
      flags |= RIG_CLIPPED_TORQUE;
    } else if (torque < -a->torque) {
      torque = -a->torque;
      flags |= RIG_CLIPPED_TORQUE;
    }
    share = fabs(v) / a->speed;
    if (share > 1.0 && torque * v > 0.0) {
      const double bound = a->torque * rig_most(1.0 - (share - 1.0) / RIG_HALF_MARGIN, 0.0);
      if (fabs(torque) > bound) {
        torque = copysign(bound, torque);
        flags |= RIG_CLIPPED_SPEED;
      }
    }
    torques[i] = torque;
  }
  for (i = 0; i < RIG_RANGES; ++i) {
    const rig_joint *joint = &rig_joints[i];
    double q = 0.0;
    for (k = 0; k < joint->motors; ++k)
      q += rig_motors[joint->first + k].back * position[rig_motors[joint->first + k].axis];
    if (joint->low + joint->zone <= q && q <= joint->high - joint->zone) continue;
    if (!(joint->low - joint->zone <= q && q <= joint->high + joint->zone))
      return stop_at(out, RIG_OUT_OF_RANGE, rig_motors[joint->first].axis, axis);
    flags |= ease(joint, q, torques, velocity);
  }
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_axis *a = &rig_axes[i];
    const double v = velocity[i], step = a->step;
    double torque = rig_least(rig_most(torques[i], -a->torque), a->torque), before = m->torque[i];
    if (fabs(torque) * fabs(v) > a->power) {
      torque = copysign(a->power / fabs(v), torque);
      flags |= RIG_CLIPPED_POWER;
    }
    if (before - before != 0.0) before = 0.0;
    before = rig_least(rig_most(before, -a->torque), a->torque);
    if (torque > before + step) {
      torque = before + step;
      flags |= RIG_CLIPPED_RATE;
    } else if (torque < before - step) {
      torque = before - step;
      flags |= RIG_CLIPPED_RATE;
    }
    torques[i] = torque;
  }
  memcpy(out, torques, sizeof torques);
  m->flags |= flags;
  return RIG_NONE;
}

/* Joint damping, and stiffness about `anchor` unless it is null. */
static void damp(const rig_memory *m, const double *position, const double *anchor,
                 const double *velocity, double *out) {
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_axis *a = &rig_axes[i];
    const double v = velocity[i], q = anchor ? position[i] : 0.0, place = anchor ? anchor[i] : 0.0;
    double torque = 0.0;
    if (fresh(m, i) && v - v == 0.0 && q - q == 0.0 && place - place == 0.0) {
      torque = -a->damping * v;
      if (anchor) torque += a->stiffness * (place - q);
      torque = torque == torque ? rig_least(rig_most(torque, -a->torque), a->torque) : 0.0;
      if (fabs(torque) * fabs(v) > a->power) torque = copysign(a->power / fabs(v), torque);
    }
    out[i] = torque;
  }
}

/* Torque of a late cycle, or of one with a missing report; return a reason to stop. */
static int excuse(rig_memory *m, int policy, int reason, int failing, const double *velocity,
                  int *axis) {
  double target[RIG_AXES];
  int i;
  if (policy == RIG_POLICY_STOP || !(0 < failing && failing <= RIG_PATIENCE))
    return stop_at(m->held, reason, -1, axis);
  for (i = 0; i < RIG_AXES; ++i)
    if (m->torque[i] - m->torque[i] != 0.0) return stop_at(m->held, RIG_NOT_FINITE, i, axis);
  if (policy == RIG_POLICY_DAMP)
    damp(m, 0, 0, velocity, target);
  else
    memcpy(target, m->torque, sizeof target);
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_axis *a = &rig_axes[i];
    const double before = rig_least(rig_most(m->torque[i], -a->torque), a->torque);
    const double torque = rig_least(rig_most(target[i], -a->torque), a->torque);
    m->held[i] = rig_least(rig_most(torque, before - a->step), before + a->step);
  }
  m->flags = policy == RIG_POLICY_DAMP ? RIG_DAMPED : RIG_HELD;
  return RIG_NONE;
}

/* The guard's verdict about the torque of this cycle. */
static int verdict(rig_memory *m, const double *demand, const double *position,
                   const double *velocity, int *axis) {
  int i, hot = -1, policy, reason, failing, wrong;
  m->flags = 0;
  *axis = -1;
  for (i = 0; i < RIG_AXES; ++i)
    if (m->heat[i] > 1.0 && (hot < 0 || m->heat[i] > m->heat[hot])) hot = i;
  if (hot >= 0) return stop_at(m->passed, RIG_OVERHEATED, hot, axis);
  policy = m->lost ? RIG_ON_MISSING : RIG_ON_LATE;
  reason = m->lost ? RIG_LOST : RIG_LATE;
  failing = m->lost ? m->lost : m->late;
  if (failing) {
    wrong = excuse(m, policy, reason, failing, velocity, axis);
    if (wrong) return stop_at(m->passed, wrong, *axis, axis);
    demand = m->held;
  }
  return judge(m, demand, position, velocity, m->passed, axis);
}

/* Heat the motors by the torque of the cycles before. */
static void warm(rig_memory *m, double cycles) {
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_axis *a = &rig_axes[i];
    const double load = m->torque[i] / a->continuous;
    if (RIG_HEATS) m->heat[i] += -expm1(-cycles * RIG_PERIOD / a->thermal) * (load * load - m->heat[i]);
  }
}

/* -- latch --------------------------------------------------------------------------------- */

static void enter(rig_memory *m, int state, int phase, int action) {
  m->state = state;
  m->phase = phase;
  m->action = action;
  m->cycles = 0;
}

static void remove_power(rig_memory *m) {
  if (m->phase != RIG_PHASE_OFF) enter(m, RIG_STOP, RIG_PHASE_OFF, RIG_OFF);
}

static int among(unsigned long long reasons, int reason) { return (int)(reasons >> reason & 1u); }

static void stop(rig_memory *m, int reason) {
  int brakes;
  if (!reason) return;
  if (m->state == RIG_STOP) {
    m->trusted = m->trusted && !among(RIG_NO_HOLDING, reason);
    if (among(RIG_BLIND, reason) || (m->phase == RIG_PHASE_HOLDING && !m->trusted)) remove_power(m);
    return;
  }
  brakes = m->state == RIG_RUN && !among(RIG_BLIND, reason);
  m->reason = reason;
  m->trusted = !among(RIG_NO_HOLDING, reason);
  m->entered = m->speed = NAN;
  m->rest = 0;
  if (brakes && reason == RIG_END && RIG_HOLDS_AT_END)
    enter(m, RIG_STOP, RIG_PHASE_HOLDING, RIG_HOLD);
  else if (brakes)
    enter(m, RIG_STOP, RIG_PHASE_BRAKING, RIG_BRAKE);
  else
    enter(m, RIG_STOP, RIG_PHASE_OFF, RIG_OFF);
}

static void brake_on(rig_memory *m, double now, double speed) {
  if (isnan(m->entered)) m->entered = now;
  m->rest = speed < RIG_REST ? m->rest + 1 : 0;
  if (isnan(m->speed)) {
    m->speed = speed;
  } else if (speed > m->speed + RIG_WORSE) {
    remove_power(m); /* damping that accelerates has the wrong sign */
    return;
  }
  if (m->cycles >= RIG_BRAKING_CYCLES || now - m->entered >= RIG_STOP_TIME ||
      m->rest >= RIG_REST_CYCLES) {
    if (RIG_STOP_CATEGORY == 2 && m->trusted)
      enter(m, RIG_STOP, RIG_PHASE_HOLDING, RIG_HOLD);
    else
      remove_power(m);
  }
}

static void latch(rig_memory *m, double now, int reason, double speed) {
  const int advances = isfinite(now) && (isnan(m->instant) || now > m->instant);
  if (isfinite(now)) m->instant = now;
  ++m->cycles;
  if (!advances) stop(m, RIG_CLOCK);
  stop(m, reason);
  if (m->phase == RIG_PHASE_BRAKING) brake_on(m, now, speed);
}

static double largest_speed(const rig_memory *m, const double *velocity) {
  double largest = 0.0;
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    if (!(fresh(m, i) && velocity[i] - velocity[i] == 0.0)) return NAN;
    largest = rig_most(largest, fabs(velocity[i]) / rig_axes[i].speed);
  }
  return largest;
}

static int asks_for_torque(const rig_memory *m) {
  return m->state == RIG_RUN || m->phase == RIG_PHASE_BRAKING || m->phase == RIG_PHASE_HOLDING;
}

/* -- cycle --------------------------------------------------------------------------------- */

/* Ages of the reports; the number of axes without a new one. */
static int count(rig_memory *m, const rig_input *in) {
  int i, missing = 0;
  for (i = 0; i < RIG_AXES; ++i) {
    const int old = in->count[i] == m->counts[i];
    m->ages[i] = in->now - in->time[i];
    m->counts[i] = in->count[i];
    if (in->paused) continue;
    m->absent[i] = old ? m->absent[i] + 1 : 0;
    missing += old;
  }
  return missing;
}

static void count_failures(rig_memory *m, const rig_input *in, int running, int late, int prompt,
                           int missing) {
  int i, absent = 0, failed;
  for (i = 0; i < RIG_AXES; ++i) absent = m->absent[i] > absent ? m->absent[i] : absent;
  if (!running) {
    m->lost = m->losing = 0;
  } else if (in->paused) {
    m->lost = 0;
  } else {
    m->losing = missing ? m->losing + 1 : 0;
    m->lost = m->losing <= RIG_PATIENCE || absent > RIG_PATIENCE ? absent : 0;
  }
  failed = late + in->skipped;
  m->delayed = running && !(prompt && !failed) ? m->delayed + failed : 0;
  m->late = failed ? m->delayed : 0;
}

static int reason_of_drives(const rig_memory *m, const rig_input *in) {
  int i, off = 0;
  if (!asks_for_torque(m)) return RIG_NONE;
  for (i = 0; i < RIG_AXES; ++i) {
    if (in->fault[i]) return RIG_DRIVE_FAULT;
    off = off || !in->enabled[i];
  }
  return off ? RIG_DRIVE_OFF : RIG_NONE;
}

/* Why the axes do not move by the torques that were sent. */
static int reason_of_motion(rig_memory *m, const rig_input *in) {
  if (!rig_follow(m, in)) return RIG_NONE;
  return in->doubtful[m->finding.axis] ? RIG_STALE : m->finding.reason;
}

static int reason_of_state(const rig_memory *m) {
  int i;
  if (m->valid) return RIG_NONE;
  for (i = 0; i < RIG_AXES; ++i)
    if (m->observers[i].refused >= RIG_IMPLAUSIBLE) return RIG_JUMP;
  return RIG_NOT_FINITE;
}

/* Whether a fault may be a loss of power: none, a voltage (0x3000), or detected by the host. */
static int without_power(int code) { return code == 0 || code >> 12 == 3 || code > 0xFFFF; }

/* The cause in place of its effect: of an axis that is too fast or too far, that of its residual;
   all drives that fall silent or off at once have lost their power. */
static int named(rig_memory *m, const rig_input *in, int reason, int axis) {
  int i, off = 1, same = 1;
  if (m->state != RIG_RUN) return reason;
  if (reason == RIG_TRACKING) axis = -1;
  if ((reason == RIG_OVERSPEED || reason == RIG_OUT_OF_RANGE || reason == RIG_TRACKING) &&
      rig_suspect(m, axis) && !in->doubtful[m->finding.axis])
    return m->finding.reason;
  if (RIG_AXES < 2) return reason;
  for (i = 0; i < RIG_AXES; ++i) {
    same = same && m->absent[i] == m->absent[0] && m->absent[i] > 0;
    off = off && (in->fault[i] || !in->enabled[i]) && without_power(in->fault[i]);
  }
  if (reason == RIG_LOST && same) return RIG_POWER_LOST;
  if ((reason == RIG_DRIVE_OFF || reason == RIG_DRIVE_FAULT) && off) return RIG_POWER_LOST;
  return reason;
}

/* The axis that causes a stop, or -1. */
static int blamed(const rig_memory *m, const rig_input *in, int wrong, int axis) {
  int i, fault = 0, off = 0, silent = 0, jump = 0;
  for (i = RIG_AXES - 1; i >= 0; --i) {
    if (in->fault[i]) fault = i;
    if (!in->enabled[i]) off = i;
    if (m->observers[i].refused >= RIG_IMPLAUSIBLE) jump = i;
    if (m->absent[i] >= m->absent[silent]) silent = i;
  }
  if (among(RIG_CAUSES_OF_RESIDUAL, m->reason)) return m->finding.axis;
  if (m->reason == RIG_DRIVE_FAULT) return fault;
  if (m->reason == RIG_DRIVE_OFF) return off;
  if (m->reason == RIG_LOST) return silent;
  if (m->reason == RIG_STALE && in->late >= 0) return in->late;
  if (m->reason == RIG_JUMP) return jump;
  return m->reason == wrong ? axis : -1;
}

static void act(rig_memory *m, const double *position, const double *velocity) {
  int i;
  if (m->action == RIG_LAW) {
    memcpy(m->torque, m->passed, sizeof m->torque);
  } else if (m->action == RIG_BRAKE) {
    damp(m, 0, 0, velocity, m->torque);
  } else if (m->action == RIG_HOLD) {
    damp(m, position, m->place, velocity, m->torque);
    for (i = 0; i < RIG_AXES; ++i) {
      const double largest = rig_axes[i].torque, torque = m->torque[i] + m->carried[i];
      m->torque[i] = torque < -largest ? -largest : torque > largest ? largest : torque;
    }
  } else {
    memset(m->torque, 0, sizeof m->torque);
  }
}

void rig_init(rig_memory *m, const double *q) {
  int i;
  memset(m, 0, sizeof *m);
  memcpy(m->q, q ? q : rig_start, RIG_NQ * sizeof *q);
  for (i = 0; i < RIG_AXES; ++i) {
    rig_observer *o = &m->observers[i];
    o->x = o->last = o->reported = NAN;
    o->t = o->stamp = -INFINITY;
    m->position[i] = NAN;
  }
  for (i = 0; i < RIG_NE; ++i) m->error[i] = NAN;
  m->begun = m->now = m->instant = m->entered = m->speed = NAN;
  m->trusted = 1;
  m->axis = m->suspected = -1;
  enter(m, RIG_ARMED, RIG_PHASE_NONE, RIG_READY);
}

static void show(const rig_memory *m, rig_output *out) {
  memcpy(out->torque, m->torque, sizeof out->torque);
  memcpy(out->q, m->q, sizeof out->q);
  memcpy(out->s, m->s, sizeof out->s);
  memcpy(out->error, m->error, sizeof out->error);
  memcpy(out->residual, m->residual, sizeof out->residual);
  memcpy(out->allowed, m->allowed, sizeof out->allowed);
  out->finding = m->finding;
  memcpy(out->demand, m->demand, sizeof out->demand);
  memcpy(out->active, m->active, sizeof out->active);
  out->late = m->late_cycles;
  out->lost = m->lost_reports;
  out->clipped = m->clipped_cycles;
  out->action = m->action;
  out->state = m->state;
  out->phase = m->phase;
  out->reason = m->reason;
  out->axis = m->axis;
  out->flags = m->flags;
  out->status = (int)m->status;
}

void rig_step(rig_memory *m, const rig_input *in, rig_output *out) {
  const double lateness = in->start - in->deadline;
  const double behind = lateness + in->skipped * RIG_PERIOD;
  const int running = m->state == RIG_RUN, late = lateness > RIG_LATE_SHARE * RIG_PERIOD;
  const int prompt = lateness <= RIG_PROMPT_SHARE * RIG_PERIOD;
  const double *position, *velocity, *known = 0;
  int i, missing, reason, wrong, axis, before, ran, enabled = 1, reported = 1, ready = 0, able = 0;
  warm(m, 1 + in->skipped);
  missing = count(m, in);
  reason = in->late >= 0 && (!in->stop || in->stop == RIG_BUS_OFF) ? RIG_STALE : in->stop;
  reason = reason ? reason : reason_of_drives(m, in);
  for (i = 0; i < RIG_AXES; ++i) {
    enabled = enabled && in->enabled[i];
    reported = reported && in->count[i] > 0;
  }
  if (asks_for_torque(m)) known = accelerate(m, in);
  if (m->started || reported) estimate(m, in, known);
  if (running) {
    const int motion = reason_of_motion(m, in);
    reason = reason ? reason : motion ? motion : reason_of_state(m);
  }
  count_failures(m, in, running, late, prompt, missing);
  m->late_cycles += late;
  m->lost_reports += running ? missing : 0; /* none is missing in a pause */
  if (m->started) {
    evaluate(m, in, running);
    if (running && !reason) {
      if (m->status != 0.0)
        reason = RIG_TICK_REFUSED;
      else if (!within(m, RIG_LARGEST_ERROR))
        reason = RIG_TRACKING;
      else if (in->last)
        reason = RIG_END;
    }
  }
  if (m->state == RIG_ARMED && m->started && !reason) {
    able = m->valid && !missing && enabled && m->cycles >= RIG_PRELUDE;
    ready = able && m->status == 0.0 && within(m, RIG_START_ERROR);
    if (ready && in->run) {
      enter(m, RIG_RUN, RIG_PHASE_NONE, RIG_LAW);
      rig_start_residual(m);
    }
  }
  if (behind > RIG_SHORTEST_WATCHDOG) {
    stop(m, RIG_LATE);
    if (m->state == RIG_STOP) remove_power(m);
  }
  position = m->started ? m->position : in->position;
  velocity = m->started ? m->velocity : rig_still;
  wrong = verdict(m, m->state == RIG_RUN ? m->demand : rig_still, position, velocity, &axis);
  if (m->state == RIG_RUN) {
    m->clipped_cycles += (m->flags & RIG_CLIPPED) != 0;
    reason = reason ? reason : wrong;
  } else if (asks_for_torque(m)) {
    stop(m, reason_of_drives(m, in));
    stop(m, wrong);
  } else if (m->state == RIG_ARMED && m->started) {
    reason = reason ? reason : wrong;
  }
  before = m->action;
  ran = m->state != RIG_STOP;
  latch(m, in->start, named(m, in, reason, axis), largest_speed(m, velocity));
  if (ran && m->state == RIG_STOP) {
    m->axis = blamed(m, in, wrong, axis);
    m->code = m->axis < 0 ? 0 : in->fault[m->axis];
    m->strays = m->reason == RIG_STALE && in->late >= 0;
  }
  if (m->phase == RIG_PHASE_HOLDING && in->release) remove_power(m);
  if (m->action == RIG_HOLD && before != RIG_HOLD) {
    memcpy(m->place, position, sizeof m->place);
    for (i = 0; i < RIG_AXES; ++i) m->carried[i] = before == RIG_LAW ? m->torque[i] : 0.0;
  }
  memcpy(m->earlier, m->torque, sizeof m->earlier);
  act(m, position, velocity);
  m->begun = in->start;
  show(m, out);
  out->ready = ready;
  out->able = able;
  out->code = m->code;
  out->strays = m->strays;
  for (i = out->faults = 0; i < RIG_AXES; ++i) out->faults += in->fault[i] != 0;
  out->wrong = m->started ? reason_of_state(m) : RIG_LOST;
}

void rig_check(rig_memory *m, const rig_input *in, double now, rig_output *out) {
  int i, old = 0;
  if (!asks_for_torque(m)) return;
  for (i = 0; i < RIG_AXES; ++i) old = old || !(now - in->time[i] <= RIG_LARGEST_AGE);
  if (!old) return;
  for (i = 0; i < RIG_AXES; ++i) m->ages[i] = now - in->time[i];
  stop(m, RIG_LATE);
  act(m, m->position, m->velocity);
  show(m, out);
}
