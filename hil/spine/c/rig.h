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
  int last;        /* whether this is the last instant of the reference */
  int release;     /* request: end a stop that holds */
  /* Last report of each axis. */
  double position[RIG_AXES], velocity[RIG_AXES]; /* rad, rad/s (m, m/s); velocity NaN: none */
  double time[RIG_AXES];                         /* instant of its arrival, s */
  long long count[RIG_AXES];                     /* number of reports so far */
  int fault[RIG_AXES], enabled[RIG_AXES]; /* fault code or 0, above 0xFFFF: a fault without a code;
                                            whether torque is applied */
  /* Reference of all outputs, flat. */
  double pose[RIG_POSE], twist[RIG_TWIST], acceleration[RIG_TWIST];
} rig_input;

/* Outputs. */
typedef struct {
  double torque[RIG_AXES]; /* to send, N m (N) */
  int action;              /* command to the drives: RIG_OFF, RIG_READY, RIG_LAW, RIG_BRAKE, RIG_HOLD */
  int state, phase;        /* of the rig, and of its stop */
  int reason, axis;        /* of the stop, and the axis that causes it or -1 */
  int flags;               /* changes of the torques by the guard */
  int status;              /* of the law; 0: it gave torques */
  int ready;               /* whether `run` starts the law */
  double q[RIG_Q], s[RIG_S], error[RIG_OUTPUT];
} rig_output;

typedef struct {
  double x, w, t, stamp, last, reported;
  int refused;
} rig_observer;

/* Memory from cycle to cycle; `rig_init` fills it. */
typedef struct {
  rig_observer observers[RIG_AXES];
  long long counts[RIG_AXES], seen[RIG_AXES];
  double motor_position[RIG_AXES], motor_velocity[RIG_AXES], joint_rates[RIG_JOINTS];
  int started, valid;
  double now, begun;
  double q[RIG_Q], s[RIG_S], v[RIG_V], after[RIG_Q], next[RIG_S];
  double position[RIG_AXES], velocity[RIG_AXES];
  double accelerated[RIG_AXES], rates[RIG_RATES], demand[RIG_AXES], period, status;
  double before[RIG_KEPT], kept[RIG_KEPT], error[RIG_OUTPUT];
  double ages[RIG_AXES];
  int absent[RIG_AXES];
  int delayed, losing, late, lost;
  double torque[RIG_AXES], earlier[RIG_AXES], passed[RIG_AXES], held[RIG_AXES];
  double place[RIG_AXES], carried[RIG_AXES], heat[RIG_AXES];
  int flags;
  int state, phase, action, reason, axis, cycles, rest, trusted;
  double instant, entered, speed;
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

#endif
