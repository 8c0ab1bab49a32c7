/* The loop of a rig: absolute deadlines, several links, a record, and memory shared with a
   supervisor, without which it stops. */

#ifndef RIG_LOOP_H
#define RIG_LOOP_H

#include <stddef.h>

#include "frames.h"
#include "shared.h"

typedef struct {
  rig_shared *shared;
  const double *reference; /* rows of pose, twist and acceleration */
  long long rows;
  void *ring; /* memory of the ring that takes the rows of a record; null: no record */
  size_t ring_size;
  double silence; /* time without a heartbeat after which the loop stops, s */
  const int *sockets;
  int links;
  const rig_drives *drives; /* as they were prepared; null: proved drives without a report */
  int resets;               /* whether faults of drives are reset while the rig is armed */
} rig_setup;

/* Run from arming until the drives are off; 0, or 2 if the ring has another layout. */
int rig_run(const rig_setup *setup);

#endif
