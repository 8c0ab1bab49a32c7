/* Memory that the loop shares with its supervisor. */

#ifndef RIG_SHARED_H
#define RIG_SHARED_H

#include "rig.h"
#include "timing.h"

typedef struct {
  /* The supervisor writes. */
  volatile long long heartbeat; /* a number that changes */
  volatile int run;     /* whether the law starts as soon as it can */
  volatile int stop;    /* reason to stop, or RIG_NONE */
  volatile int release; /* whether a stop that holds ends */
  /* The loop writes. */
  int scheduled, locked, ended; /* whether FIFO and locked memory are granted; whether it is over */
  volatile long long writes; /* number of changes of `output`, odd during one */
  long long cycles, skipped;
  double longest; /* duration of a cycle, from its start to its last frame, s */
  double slowest; /* longest computing in a cycle, s */
  double latest;  /* largest lateness of its start, s */
  double busiest; /* longest time of sending and receiving in a cycle, s */
  unsigned duration[RIG_BINS], compute[RIG_BINS], lateness[RIG_BINS], transfer[RIG_BINS];
  /* bins of 1 us; the last has all longer ones */
  long long rejected, invalid; /* frames that a link, or a drive's layout, rejected */
  long long delays;            /* late cycles and gaps between cycles */
  double delayed, most_delayed; /* their sum and the longest, s */
  double elapsed;              /* time in RUN, s; NaN before */
  double error[RIG_OUTPUT];    /* last tracking error in RUN */
  rig_output output; /* of the last cycle */
} rig_shared;

#endif
