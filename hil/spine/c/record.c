/* See record.h. The order of the writes is that of `Ring.publish` in Python. */

#define _GNU_SOURCE

#include "record.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "rows.h"

int rig_ring_in(rig_ring *ring, void *memory, size_t size) {
  char *bytes = memory;
  if (size < RIG_RING_HEADER) return 0;
  ring->header = memory;
  ring->rows = ring->header[RIG_RING_ROWS];
  ring->stamps = (volatile long long *)(bytes + RIG_RING_HEADER);
  ring->table = (double *)(bytes + RIG_RING_HEADER + 8 * ring->rows);
  ring->next = ring->header[RIG_RING_WRITTEN];
  return ring->rows > 0 && ring->header[RIG_RING_WIDTH] == RIG_ROW &&
         size == RIG_RING_HEADER + 8 * (size_t)ring->rows * (1 + RIG_ROW);
}

static void publish(rig_ring *ring, const double *row) {
  const long long number = ring->next + 1, slot = ring->next % ring->rows;
  struct timespec t;
  ring->stamps[slot] = 0;
  __sync_synchronize();
  memcpy(ring->table + slot * RIG_ROW, row, RIG_ROW * sizeof *row);
  __sync_synchronize();
  ring->next = number;
  ring->stamps[slot] = number;
  ring->header[RIG_RING_WRITTEN] = number;
  clock_gettime(CLOCK_MONOTONIC, &t);
  ring->header[RIG_RING_HEARTBEAT] = t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void put(double *row, const double *values, int count) {
  memcpy(row, values, (size_t)count * sizeof *row);
}

void rig_record(rig_ring *ring, const rig_input *input, const rig_output *output,
                const rig_drives *drives, long long cycle, double elapsed, double compute) {
  double row[RIG_ROW];
  int i;
  row[RIG_ROW_CYCLE] = (double)cycle;
  row[RIG_ROW_TIME] = input->start;
  row[RIG_ROW_DEADLINE] = input->deadline;
  row[RIG_ROW_ELAPSED] = elapsed;
  row[RIG_ROW_COMPUTE] = compute;
  row[RIG_ROW_STATE] = output->state;
  row[RIG_ROW_REASON] = output->reason;
  row[RIG_ROW_TICK] = output->status;
  row[RIG_ROW_FLAGS] = output->flags;
  row[RIG_ROW_LATE] = (double)output->late;
  row[RIG_ROW_LOST] = (double)output->lost;
  row[RIG_ROW_CLIPPED] = (double)output->clipped;
  row[RIG_ROW_POSE_AGE] = NAN;
  row[RIG_ROW_COMMAND_TIME] = input->sent;
  row[RIG_ROW_AXIS] = output->axis;
  put(row + RIG_ROW_Q, output->q, RIG_NQ);
  put(row + RIG_ROW_S, output->s, RIG_ROW_S_SIZE);
  put(row + RIG_ROW_POSE, input->pose, RIG_ROW_POSE_SIZE);
  put(row + RIG_ROW_TWIST, input->twist, RIG_ROW_TWIST_SIZE);
  put(row + RIG_ROW_ACCELERATION, input->acceleration, RIG_ROW_TWIST_SIZE);
  put(row + RIG_ROW_ERROR, output->error, RIG_NE);
  put(row + RIG_ROW_DEMAND, output->demand, RIG_AXES);
  put(row + RIG_ROW_TORQUE, output->torque, RIG_AXES);
  put(row + RIG_ROW_POSITION, input->position, RIG_AXES);
  put(row + RIG_ROW_VELOCITY, input->velocity, RIG_AXES);
  put(row + RIG_ROW_MEASURED, drives->torque, RIG_AXES);
  put(row + RIG_ROW_RESIDUAL, output->residual, RIG_AXES);
  put(row + RIG_ROW_ALLOWED, output->allowed, RIG_AXES);
  put(row + RIG_ROW_REPORT_TIME, input->time, RIG_AXES);
  for (i = 0; i < RIG_AXES; ++i) {
    row[RIG_ROW_DOUBTFUL + i] = input->doubtful[i] != 0;
    row[RIG_ROW_REPORTS + i] = (double)input->count[i];
    row[RIG_ROW_INVALID + i] = (double)drives->invalid[i];
    row[RIG_ROW_ENABLED + i] = input->enabled[i] != 0;
    row[RIG_ROW_FAULT + i] = input->fault[i];
  }
#ifdef RIG_ROW_ACTIVE
  put(row + RIG_ROW_ACTIVE, output->active, RIG_ROW_ACTIVE_SIZE);
#endif
  publish(ring, row);
}
