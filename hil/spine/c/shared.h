/* Memory that the loop shares with its supervisor. */

#ifndef RIG_SHARED_H
#define RIG_SHARED_H

#include "rig.h"
#include "timing.h"

typedef struct {
  /* The supervisor writes. */
  volatile long long heartbeat; /* a number that changes */
  volatile int request; /* RIG_ASK_... */
  /* The loop writes. */
  int scheduled, locked, ended; /* whether FIFO and locked memory are granted; whether it is over */
  long long cycles, skipped;
  double longest; /* duration of a cycle, from its start to its last frame, s */
  double latest;  /* largest lateness of its start, s */
  unsigned duration[RIG_BINS], lateness[RIG_BINS]; /* bins of 1 us; the last has all longer ones */
  rig_output output; /* of the last cycle */
} rig_shared;

#endif
