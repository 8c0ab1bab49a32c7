/* A cycle of a rig in C99: estimator, law, guard and stop.

   `rig_step` gives from the same numbers the same torques, to the last bit, as the loop in Python,
   where both use the same machine code of the graphs. It allocates nothing and reads no clock.
   Units are SI, those of the motors; axes have the order of the rig's controls. */

#ifndef RIG_H
#define RIG_H

#include "sizes.h"

/* Inputs of a cycle. */
typedef struct {
  double start;    /* instant at which the cycle started, s of one monotonic clock */
  double deadline; /* instant at which it should have started, s */
  double now;      /* instant after the reports, s */
  double sent;     /* instant of the commands of the cycle before, s; NaN: drives sample at commands */
  double t;        /* time of the reference, s, for laws that take it */
  int skipped;     /* deadlines without a cycle since the cycle before */
  int paused;      /* whether the cycle requested no reports, so that none is missing */
  int run;         /* request: start the law as soon as `ready` */
  int stop;        /* reason to stop from outside, or RIG_NONE */
  int late;        /* axis whose reports answer an earlier request than the last one, or -1 */
  int last;        /* whether this is the last instant of the reference */
  int release;     /* request: end a stop that holds */
  /* Last report of each axis. */
  double position[RIG_AXES], velocity[RIG_AXES]; /* rad, rad/s (m, m/s); velocity NaN: none */
  double time[RIG_AXES];                         /* instant of its arrival, s */
  long long count[RIG_AXES];                     /* number of reports so far */
  int fault[RIG_AXES], enabled[RIG_AXES]; /* fault code or 0, above 0xFFFF: a fault without a code;
                                            whether torque is applied */
  int doubtful[RIG_AXES]; /* whether its reports may do so */
  /* Reference of all outputs, flat. */
  double pose[RIG_POSE], twist[RIG_TWIST], acceleration[RIG_TWIST];
} rig_input;

/* Reason of a stop by the motion of an axis, with its numbers. */
typedef struct {
  int reason, axis;
  int known, encoder; /* whether there is a cause, and whether it is a factor of the motion */
  double factor;      /* of motion or torque; for RIG_CONTACT a force, N m (N); RIG_DELAYED: s */
  double residual, allowed, applied; /* torques, N m (N) */
  int repeats;        /* number of equal positions, without a cause */
  double way;         /* least way meanwhile, rad (m) */
} rig_finding;

/* Outputs. */
typedef struct {
  double torque[RIG_AXES]; /* to send, N m (N) */
  int action;              /* command to the drives: RIG_OFF, RIG_READY, RIG_LAW, RIG_BRAKE, RIG_HOLD */
  int state, phase;        /* of the rig, and of its stop */
  int reason, axis;        /* of the stop, and the axis that causes it or -1 */
  int flags;               /* changes of the torques by the guard */
  int status;              /* of the law; 0: it gave torques */
  int ready;               /* whether `run` starts the law */
  int able;                /* the same whatever the law and its errors are */
  int wrong;               /* why the state is invalid, or RIG_NONE */
  int faults;              /* number of drives with a fault */
  int code, strays;        /* of the axis of the stop: fault code, whether its reports were late */
  double q[RIG_Q], s[RIG_S], error[RIG_OUTPUT];
  double demand[RIG_AXES], active[RIG_LIMITS]; /* torque of the law, N m (N); 1: it keeps a limit */
  double residual[RIG_AXES], allowed[RIG_AXES]; /* torque beyond the sent one and its bound, N m (N) */
  long long late, lost, clipped; /* so far: late cycles, missing reports, cycles with limited torque */
  rig_finding finding; /* valid if its reason is that of the stop */
} rig_output;

typedef struct {
  double x, w, t, stamp, last, reported;
  int refused;
} rig_observer;

/* State of an observer of a residual, one report with the model's numbers, and the expected motion
   of an axis since its position changed last. */
typedef struct {
  double x, w, d;
} rig_tracked;

typedef struct {
  double t, y, a, u;
  rig_tracked state;
  double rest;
} rig_sample;

typedef struct {
  int repeats;
  double w, d, way;
} rig_unmoved;

typedef struct {
  long long count;
  double speed, t, seen, y, applied, mean, pace;
  rig_tracked states[RIG_RESIDUAL_RATES];
  rig_unmoved still;
  int first, kept;
  rig_sample samples[RIG_SAMPLES];
} rig_axis_residual;

typedef struct {
  int reason, encoder;
  double factor, left;
} rig_cause;

/* Work memory of an explanation. */
typedef struct {
  int size, instants, kept, count;
  double ease;
  int begins[RIG_INSTANTS], chosen[RIG_CHOSEN];
  double t[RIG_SAMPLES], u[RIG_SAMPLES], a[RIG_SAMPLES], steps[RIG_SAMPLES];
  double w[RIG_SAMPLES], x[RIG_SAMPLES];
  rig_tracked states[RIG_SAMPLES];
  double y[RIG_CHOSEN], weights[RIG_CHOSEN], rest[RIG_CHOSEN][RIG_INSTANTS];
  double left[RIG_INSTANTS], squares[RIG_INSTANTS], sizes[RIG_INSTANTS], along[RIG_INSTANTS];
  rig_cause causes[RIG_CAUSES];
} rig_explanation;

/* Memory from cycle to cycle; `rig_init` fills it. */
typedef struct {
  rig_observer observers[RIG_AXES];
  long long counts[RIG_AXES], seen[RIG_AXES];
  double motor_position[RIG_AXES], motor_velocity[RIG_AXES], joint_rates[RIG_JOINTS];
  int started, valid;
  double now, begun;
  double q[RIG_Q], s[RIG_S], v[RIG_V], after[RIG_Q], next[RIG_S];
  double position[RIG_AXES], velocity[RIG_AXES];
  double acted[RIG_AXES], accelerated[RIG_AXES], holding[RIG_AXES];
  double inertia[RIG_AXES * RIG_AXES], ease[RIG_AXES * RIG_AXES]; /* column by column */
  double rates[RIG_RATES], demand[RIG_AXES], active[RIG_LIMITS], period, status;
  double before[RIG_KEPT], kept[RIG_KEPT], error[RIG_OUTPUT];
  double ages[RIG_AXES];
  int absent[RIG_AXES];
  int delayed, losing, late, lost;
  long long late_cycles, lost_reports, clipped_cycles;
  double torque[RIG_AXES], earlier[RIG_AXES], passed[RIG_AXES], held[RIG_AXES];
  double place[RIG_AXES], carried[RIG_AXES], heat[RIG_AXES];
  int flags;
  int state, phase, action, reason, axis, cycles, rest, trusted;
  int code, strays;
  double instant, entered, speed;
  rig_axis_residual residuals[RIG_AXES];
  double residual[RIG_AXES], allowed[RIG_AXES], impulse;
  double mean_inertia[RIG_RESIDUAL_RATES][RIG_AXES * RIG_AXES];
  int suspected, firm, since;
  rig_finding finding;
  rig_explanation explanation;
  /* Work memory of the graphs. */
  const double *arguments[RIG_ARGUMENTS];
  double *results[RIG_RESULTS];
  long long integers[RIG_INTEGERS];
  double numbers[RIG_NUMBERS];
} rig_memory;

/* Restart: armed, with zero torque, at a configuration; null: that at the start of the task. */
void rig_init(rig_memory *memory, const double *q);

/* One cycle, in every state: call it once for each period. */
void rig_step(rig_memory *memory, const rig_input *input, rig_output *output);

/* Stop if a report has become too old since the step, in which the loop may have been delayed. Call
   it before the commands; `now`: the present, s. */
void rig_check(rig_memory *memory, const rig_input *input, double now, rig_output *output);

#endif
