/* Drives of a rig on its links, which move the reduced model of its robot: for measurements.

       emulated MEMORY WATCHDOG LINK...

   A drive reports at SYNC, follows the state machine of CiA 402, and takes power from its motor if
   no command comes for the time WATCHDOG, s. */

#define _GNU_SOURCE

#include "emulated.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"
#include "tables.h"

#define LINKS 16
#define STEP 1e-3 /* longest step of the robot, s */
#define NAP 1000000L

static rig_emulated *shared;
static const double *arguments[RIG_ARGUMENTS];
static double *results[RIG_RESULTS], numbers[RIG_NUMBERS];
static long long integers[RIG_INTEGERS];
static double q[RIG_Q], after[RIG_Q], s[RIG_S], rates[RIG_RATES], rate[RIG_AXES];
static int state[RIG_AXES], target[RIG_AXES];

/* Bits of the statusword in each state, with voltage, remote and "follows". */
static const unsigned words[] = {0x00, 0x40, 0x21, 0x23, 0x27, 0x07, 0x0F, 0x08};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Configuration and velocities of the robot for positions of its motors. */
static void place(double dt) {
  arguments[0] = q;
  arguments[1] = shared->position;
  arguments[2] = shared->velocity;
  arguments[3] = &dt;
  arguments[4] = rig_origin;
  results[0] = after;
  results[1] = s;
  results[2] = results[3] = results[4] = 0;
  RIG_ESTIMATOR(arguments, results, integers, numbers, 0);
  memcpy(q, after, sizeof q);
}

/* Move the robot, which is held until the first torque, as on a stand. */
static void move(double until) {
  static double time;
  static int released;
  double dt;
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    shared->enabled[i] = state[i] == RIG_DRIVE_ENABLED;
    released = released || (shared->enabled[i] && target[i]);
  }
  if (time == 0.0 || !released) time = until;
  while (until - time > 1e-6) {
    dt = until - time < STEP ? until - time : STEP;
    place(dt);
    for (i = 0; i < RIG_RATES; ++i) rates[i] = s[rig_shape[i]];
    for (i = 0; i < RIG_AXES; ++i)
      shared->torque[i] = shared->enabled[i] ? target[i] / rig_drive[i].torque : 0.0;
    arguments[0] = q;
    arguments[1] = rates;
    arguments[2] = shared->torque;
    results[0] = rate;
    results[1] = results[2] = results[3] = 0;
    RIG_ACCELERATION(arguments, results, integers, numbers, 0);
    for (i = 0; i < RIG_AXES; ++i) {
      shared->velocity[i] += rate[i] * dt;
      shared->position[i] += shared->velocity[i] * dt;
    }
    time = until - time > STEP ? time + dt : until;
  }
}

static void watch(double instant, double watchdog) {
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    if (state[i] < 2 || state[i] > 4 || instant - shared->command[i] <= watchdog) continue;
    state[i] = RIG_DRIVE_FAILED;
    target[i] = 0;
    shared->torque[i] = 0.0;
    shared->enabled[i] = 0;
    shared->freed[i] = instant;
  }
}

static void report(int link, int fd) {
  rig_frame frame;
  int i;
  long count;
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_drive_table *drive = &rig_drive[i];
    if (drive->link != link) continue;
    count = lrint((shared->position[i] - drive->offset) / drive->position);
    memset(&frame, 0, sizeof frame);
    frame.id = 0x180 + (uint32_t)drive->node;
    frame.length = 8;
    frame.data[0] = (uint8_t)(words[state[i]] | 0x10);
    frame.data[1] = 0x12;
    frame.data[2] = (uint8_t)((unsigned long)count & 0xFFu);
    frame.data[3] = (uint8_t)((unsigned long)count >> 8 & 0xFFu);
    frame.data[4] = (uint8_t)((unsigned long)count >> 16 & 0xFFu);
    frame.data[5] = (uint8_t)((unsigned long)count >> 24 & 0xFFu);
    frame.data[6] = (uint8_t)((unsigned)target[i] & 0xFFu);
    frame.data[7] = (uint8_t)((unsigned)target[i] >> 8 & 0xFFu);
    (void)send(fd, &frame, sizeof frame, MSG_DONTWAIT);
  }
}

static void obey(const rig_frame *frame, int link, double instant) {
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    unsigned word, number;
    if (rig_drive[i].link != link || 0x200 + (uint32_t)rig_drive[i].node != frame->id ||
        frame->length != 4)
      continue;
    word = frame->data[0] | (unsigned)frame->data[1] << 8;
    number = frame->data[2] | (unsigned)frame->data[3] << 8;
    target[i] = (int)(number ^ 0x8000u) - 0x8000;
    shared->command[i] = instant;
    if (state[i] == RIG_DRIVE_FAILED) continue;
    if (word == 0x06)
      state[i] = 2;
    else if (word == 0x07 && state[i] == 2)
      state[i] = 3;
    else if (word == 0x0F && state[i] >= 3)
      state[i] = RIG_DRIVE_ENABLED;
    else if (word != 0x0F)
      state[i] = 1;
  }
}

int main(int count, char **given) {
  struct pollfd links[LINKS];
  struct timespec nap = {0, NAP};
  rig_frame frame;
  double instant, watchdog;
  const pid_t parent = getppid();
  int i, n = count - 3, file;
  if (n < 1 || n > LINKS || (file = open(given[1], O_RDWR)) < 0) return 2;
  shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) return 2;
  watchdog = atof(given[2]);
  for (i = 0; i < n; ++i) {
    links[i].fd = atoi(given[3 + i]);
    links[i].events = POLLIN;
  }
  memcpy(q, rig_start, RIG_NQ * sizeof *q);
  for (i = 0; i < RIG_AXES; ++i) {
    state[i] = 1;
    shared->position[i] = rig_drive[i].start;
  }
  shared->ready = 1;
  while (!shared->end && getppid() == parent) {
    ppoll(links, (nfds_t)n, &nap, 0);
    instant = now();
    watch(instant, watchdog);
    move(instant);
    for (i = 0; i < n; ++i) {
      while (recv(links[i].fd, &frame, sizeof frame, MSG_DONTWAIT) == (ssize_t)sizeof frame) {
        if (frame.id == 0x080)
          report(i, links[i].fd);
        else
          obey(&frame, i, now());
      }
    }
  }
  return 0;
}
