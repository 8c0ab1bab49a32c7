/* Drives of a rig on its links, which move the reduced model of its robot: for measurements.

       emulated MEMORY WATCHDOG LINK...

   A drive reports at SYNC, follows the state machine of CiA 402, and takes power from its motor if
   no command comes for the time WATCHDOG, s. It acts at the instants at which frames arrive, which
   the kernel notes, and not at those at which the machine runs this process. */

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
#define FRAMES 64      /* most frames that are read at once */
#define STEP 1e-3      /* longest step of the robot, s */
#define SHORTEST 50e-6 /* shortest one */
#define NAP 1000000L

static rig_emulated *shared;
static const double *arguments[RIG_ARGUMENTS];
static double *results[RIG_RESULTS], numbers[RIG_NUMBERS];
static long long integers[RIG_INTEGERS];
static double q[RIG_Q], after[RIG_Q], s[RIG_S], rates[RIG_RATES], rate[RIG_AXES];
static int state[RIG_AXES], target[RIG_AXES];
static double moved; /* instant to which the robot was moved, s */

typedef struct {
  double instant; /* of its arrival, s */
  int link, order;
  rig_frame frame;
} arrival;

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
  static int released;
  double dt;
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    shared->enabled[i] = state[i] == RIG_DRIVE_ENABLED;
    released = released || (shared->enabled[i] && target[i]);
  }
  if (!released && until > moved) moved = until;
  while (until - moved > SHORTEST) {
    dt = until - moved < STEP ? until - moved : STEP;
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
    moved += dt;
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

static void report(int link, int fd, double instant) {
  rig_frame frame;
  int i;
  long count;
  for (i = 0; i < RIG_AXES; ++i) {
    const rig_drive_table *drive = &rig_drive[i];
    if (drive->link != link) continue;
    count = lrint((shared->position[i] + shared->velocity[i] * (instant - moved) - drive->offset) /
                  drive->position);
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

/* Read a frame that waits, with the instant of its arrival; 0: no frame waits. */
static int take(int fd, arrival *next) {
  union {
    char bytes[CMSG_SPACE(sizeof(struct timespec))];
    struct cmsghdr header;
  } control;
  struct iovec part = {&next->frame, sizeof next->frame};
  struct msghdr message = {0};
  struct cmsghdr *found;
  struct timespec stamp, wall;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  if (recvmsg(fd, &message, MSG_DONTWAIT) != (ssize_t)sizeof next->frame) return 0;
  next->instant = now();
  found = CMSG_FIRSTHDR(&message);
  if (found && found->cmsg_level == SOL_SOCKET && found->cmsg_type == SCM_TIMESTAMPNS) {
    memcpy(&stamp, CMSG_DATA(found), sizeof stamp);
    clock_gettime(CLOCK_REALTIME, &wall);
    next->instant -= (double)(wall.tv_sec - stamp.tv_sec);
    next->instant -= 1e-9 * (double)(wall.tv_nsec - stamp.tv_nsec);
  }
  return 1;
}

static int earlier(const void *one, const void *other) {
  const arrival *a = one, *b = other;
  if (a->instant != b->instant) return a->instant > b->instant ? 1 : -1;
  return a->order - b->order;
}

/* Serve the frames that wait, in the order of their arrival; return whether there may be more. */
static int serve(const struct pollfd *links, int n, double watchdog) {
  static arrival waiting[FRAMES];
  int i, count = 0, more = 0;
  for (i = 0; i < n; ++i) {
    const int most = count + FRAMES / n;
    while (count < most && take(links[i].fd, &waiting[count])) {
      waiting[count].link = i;
      waiting[count].order = count;
      ++count;
    }
    more = more || count == most;
  }
  qsort(waiting, (size_t)count, sizeof *waiting, earlier);
  for (i = 0; i < count; ++i) {
    const arrival *next = &waiting[i];
    watch(next->instant, watchdog);
    move(next->instant);
    if (next->frame.id == 0x080)
      report(next->link, links[next->link].fd, next->instant);
    else
      obey(&next->frame, next->link, next->instant);
  }
  return more;
}

int main(int count, char **given) {
  struct pollfd links[LINKS];
  struct timespec nap = {0, NAP};
  double instant, watchdog;
  const pid_t parent = getppid();
  const int on = 1;
  int i, n = count - 3, file;
  if (n < 1 || n > LINKS || (file = open(given[1], O_RDWR)) < 0) return 2;
  shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) return 2;
  watchdog = atof(given[2]);
  for (i = 0; i < n; ++i) {
    links[i].fd = atoi(given[3 + i]);
    links[i].events = POLLIN;
    setsockopt(links[i].fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  }
  memcpy(q, rig_start, RIG_NQ * sizeof *q);
  for (i = 0; i < RIG_AXES; ++i) {
    state[i] = 1;
    shared->position[i] = rig_drive[i].start;
  }
  shared->ready = 1;
  while (!shared->end && getppid() == parent) {
    ppoll(links, (nfds_t)n, &nap, 0);
    instant = now(); /* before what is read below: a frame that waits is not late */
    while (serve(links, n, watchdog)) continue;
    watch(instant, watchdog);
    move(instant);
  }
  return 0;
}
