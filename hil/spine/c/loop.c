/* See loop.h. */

#define _GNU_SOURCE

#include "loop.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "exchange.h"
#include "record.h"

#define ROW (RIG_POSE + 2 * RIG_TWIST)

static rig_memory memory;
static rig_input input;
static rig_output output;
static rig_links links;
static rig_ring ring;

static void sleep_until(double instant) {
  struct timespec t;
  t.tv_sec = (time_t)instant;
  t.tv_nsec = (long)((instant - (double)t.tv_sec) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR) continue;
}

/* Time for which the machine was suspended, s. */
static double asleep(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec - rig_now();
}

static void add(unsigned *bins, double duration) {
  const double place = duration * 1e6;
  ++bins[place > 0.0 ? (place < RIG_BINS ? (int)place : RIG_BINS - 1) : 0];
}

static void aim(const rig_setup *setup, long long index) {
  const long long last = setup->rows - 1, at = index < last ? index : last;
  const double *row = setup->reference + at * ROW;
  memcpy(input.pose, row, sizeof input.pose);
  memcpy(input.twist, row + RIG_POSE, sizeof input.twist);
  memcpy(input.acceleration, row + RIG_POSE + RIG_TWIST, sizeof input.acceleration);
  input.t = (double)at * RIG_CYCLE;
  input.last = index >= last;
}

static int reason_to_stop(const rig_shared *shared, int silent, double slept) {
  if (shared->stop) return shared->stop;
  if (silent) return RIG_DEADMAN;
  if (asleep() - slept > RIG_ASLEEP) return RIG_CLOCK;
  if (links.foreign) return RIG_FOREIGN;
  return links.off || links.refused > RIG_FAULTS ? RIG_BUS_OFF : RIG_NONE;
}

int rig_run(const rig_setup *setup) {
  rig_shared *shared = setup->shared;
  const double slept = asleep();
  double deadline = rig_now() + RIG_CYCLE, heard = rig_now(), behind, waited, read, done;
  double transfer, compute, elapsed;
  long long index = 0, beat = shared->heartbeat;
  int i, running, silent, off = 0;
  memset(&ring, 0, sizeof ring);
  if (setup->ring && !rig_ring_in(&ring, setup->ring, setup->ring_size)) return 2;
  memset(&input, 0, sizeof input);
  memset(&output, 0, sizeof output);
  rig_init(&memory, 0);
  rig_init_links(&links, setup->sockets, setup->links);
  if (setup->drives) links.drives = *setup->drives;
  shared->elapsed = NAN;
  for (i = 0; i < RIG_OUTPUT; ++i) shared->error[i] = NAN;
  input.sent = NAN;
  for (i = 0; i < RIG_AXES; ++i) input.position[i] = input.velocity[i] = input.time[i] = NAN;
  while (off < RIG_POSTLUDE) {
    sleep_until(deadline);
    input.start = rig_now();
    input.deadline = deadline;
    behind = input.start - deadline + input.skipped * RIG_CYCLE;
    waited = rig_exchange(&links, &input);
    read = rig_now();
    if (shared->heartbeat != beat) {
      beat = shared->heartbeat;
      heard = input.start;
    }
    silent = input.start - heard > setup->silence;
    aim(setup, index);
    input.stop = reason_to_stop(shared, silent, slept);
    input.run = shared->run;
    input.release = shared->release || silent;
    running = output.state == RIG_RUN;
    rig_step(&memory, &input, &output);
    done = rig_now();
    rig_check(&memory, &input, done, &output);
    rig_send(&links, &output, setup->resets, &input);
    transfer = read - input.start - waited + input.sent - done;
    compute = done - read;
    if (running || output.state == RIG_RUN) {
      shared->elapsed = (double)index++ * RIG_CYCLE;
      memcpy(shared->error, output.error, sizeof shared->error);
    }
    off = output.state == RIG_STOP && output.action == RIG_OFF ? off + 1 : 0;
    add(shared->lateness, input.start - deadline);
    add(shared->duration, input.sent - input.start);
    add(shared->compute, compute);
    add(shared->transfer, transfer);
    shared->latest = fmax(shared->latest, input.start - deadline);
    shared->busiest = fmax(shared->busiest, transfer);
    shared->slowest = fmax(shared->slowest, compute);
    shared->longest = fmax(shared->longest, input.sent - input.start);
    if (input.skipped || input.start - deadline > RIG_LATE_CYCLE) {
      ++shared->delays;
      shared->delayed += behind;
      shared->most_delayed = fmax(shared->most_delayed, behind);
    }
    shared->rejected = links.rejected;
    for (i = 0, shared->invalid = 0; i < RIG_AXES; ++i) shared->invalid += links.drives.invalid[i];
    ++shared->writes;
    __sync_synchronize();
    shared->output = output;
    __sync_synchronize();
    ++shared->writes;
    ++shared->cycles;
    elapsed = output.state == RIG_RUN ? shared->elapsed : NAN;
    if (ring.rows)
      rig_record(&ring, &input, &output, &links.drives, shared->cycles, elapsed, compute);
    deadline += RIG_CYCLE;
    input.skipped = (int)fmax(0.0, rint((rig_now() - deadline) / RIG_CYCLE));
    shared->skipped += input.skipped;
    if (output.state == RIG_RUN) index += input.skipped;
    deadline += input.skipped * RIG_CYCLE;
  }
  shared->ended = 1;
  return 0;
}
