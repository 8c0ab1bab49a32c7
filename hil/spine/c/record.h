/* Rows of a record, as the loop in Python writes them, in a ring in shared memory. */

#ifndef RIG_RECORD_H
#define RIG_RECORD_H

#include <stddef.h>

#include "frames.h"
#include "rig.h"

typedef struct {
  volatile long long *header, *stamps;
  double *table;
  long long rows, next;
} rig_ring;

/* Use the memory of a ring; 0 if it is another one. */
int rig_ring_in(rig_ring *ring, void *memory, size_t size);

/* Publish the row of a cycle. `cycle`: its number, from 1; `elapsed`: time in RUN, s, or NaN;
   `compute`: its computing time, s. */
void rig_record(rig_ring *ring, const rig_input *input, const rig_output *output,
                const rig_drives *drives, long long cycle, double elapsed, double compute);

#endif
