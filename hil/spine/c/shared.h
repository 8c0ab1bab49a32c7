/* Memory that the loop shares with its supervisor. */

#ifndef RIG_SHARED_H
#define RIG_SHARED_H

#include "rig.h"

#define RIG_BINS 5000 /* of 1 us */

enum { RIG_ASK_ARM = 0, RIG_ASK_RUN = 1, RIG_ASK_STOP = 2 };

typedef struct {
  /* The supervisor writes. */
  volatile long long heartbeat; /* a number that changes */
  volatile int request;
  /* The loop writes. */
  int scheduled, locked, ended; /* whether FIFO and locked memory are granted; whether it is over */
  long long cycles, skipped;
  double longest; /* duration of a cycle, from its start to its last frame, s */
  unsigned duration[RIG_BINS], lateness[RIG_BINS];
  rig_output output; /* of the last cycle */
} rig_shared;

#endif
