/* The loop of a rig as a process without threads: absolute deadlines, several links, and memory
   shared with a supervisor, without which it stops.

       loop MEMORY REFERENCE PRIORITY LOCK SILENCE LINK...

   LINK: number of an open socket. SILENCE: time without a heartbeat after which it stops, s. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"
#include "shared.h"

#define LINKS 16
#define ROW (RIG_POSE + 2 * RIG_TWIST)
#define POSTLUDE 50 /* cycles with frames that switch the drives off */

static rig_memory memory;
static rig_input input;
static rig_output output;
static rig_drives drives;
static int links[LINKS], link_count;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double instant) {
  struct timespec t;
  t.tv_sec = (time_t)instant;
  t.tv_nsec = (long)((instant - (double)t.tv_sec) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR) continue;
}

/* Send frames on a link without waiting; those that do not fit are lost. */
static void send_all(int link, rig_frame *frames, int count) {
  struct mmsghdr messages[RIG_AXES];
  struct iovec parts[RIG_AXES];
  int i;
  memset(messages, 0, sizeof messages);
  for (i = 0; i < count; ++i) {
    parts[i].iov_base = &frames[i];
    parts[i].iov_len = sizeof frames[i];
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  if (count) (void)sendmmsg(links[link], messages, (unsigned)count, MSG_DONTWAIT);
}

/* Take the frames that wait on a link; `late`: instant of the request that they answer. */
static void receive_all(int link, double late, int *fresh) {
  rig_frame frames[RIG_AXES];
  struct mmsghdr messages[RIG_AXES];
  struct iovec parts[RIG_AXES];
  int i, got, axis, rounds = 8; /* a babbling node must not hold up the cycle */
  double instant;
  do {
    memset(messages, 0, sizeof messages);
    for (i = 0; i < RIG_AXES; ++i) {
      parts[i].iov_base = &frames[i];
      parts[i].iov_len = sizeof frames[i];
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    got = recvmmsg(links[link], messages, RIG_AXES, MSG_DONTWAIT, 0);
    instant = isnan(late) ? now() : late;
    for (i = 0; i < got; ++i) {
      if (messages[i].msg_len != sizeof frames[i]) continue;
      axis = rig_axis_of(&frames[i], link);
      if (axis >= 0 && rig_take(&drives, &frames[i], axis, instant, &input) && isnan(late))
        fresh[axis] = 1;
    }
  } while (got == RIG_AXES && --rounds);
}

static int all(const int *flags) {
  int i;
  for (i = 0; i < RIG_AXES; ++i)
    if (!flags[i]) return 0;
  return 1;
}

/* Request reports on all links, and take them until all have come or the window is over. */
static void exchange(double start, double before) {
  static const rig_frame sync = {0x080, 0, {0, 0, 0}, {0}};
  struct pollfd waiting[LINKS];
  struct timespec left;
  int i, fresh[RIG_AXES] = {0};
  double rest;
  for (i = 0; i < link_count; ++i) receive_all(i, before, fresh);
  for (i = 0; i < link_count; ++i) {
    rig_frame frame = sync;
    send_all(i, &frame, 1);
    waiting[i].fd = links[i];
    waiting[i].events = POLLIN;
  }
  while (!all(fresh) && (rest = start + RIG_WINDOW - now()) > 0.0) {
    left.tv_sec = 0;
    left.tv_nsec = (long)(rest * 1e9);
    if (ppoll(waiting, (nfds_t)link_count, &left, 0) <= 0) continue;
    for (i = 0; i < link_count; ++i)
      if (waiting[i].revents) receive_all(i, NAN, fresh);
  }
  input.now = now();
}

static void command(void) {
  rig_frame frames[RIG_AXES];
  int link, axis, count;
  for (link = 0; link < link_count; ++link) {
    for (axis = count = 0; axis < RIG_AXES; ++axis)
      if (rig_link_of(axis) == link) rig_command(&drives, &output, axis, &frames[count++]);
    send_all(link, frames, count);
  }
}

static void add(unsigned *bins, double duration) {
  const double place = duration * 1e6;
  ++bins[place > 0.0 ? (place < RIG_BINS ? (int)place : RIG_BINS - 1) : 0];
}

static const double *reference; /* rows of pose, twist and acceleration */
static long long rows;

static void aim(long long index) {
  const double *row = reference + (index < rows ? index : rows - 1) * ROW;
  memcpy(input.pose, row, sizeof input.pose);
  memcpy(input.twist, row + RIG_POSE, sizeof input.twist);
  memcpy(input.acceleration, row + RIG_POSE + RIG_TWIST, sizeof input.acceleration);
  input.t = (double)(index < rows ? index : rows - 1) * RIG_CYCLE;
  input.last = index + 1 >= rows;
}

static int reason_to_stop(const rig_shared *shared, double start, double silence) {
  static long long beat = -1;
  static double since;
  if (shared->heartbeat != beat) {
    beat = shared->heartbeat;
    since = start;
  }
  if (start - since > silence) return RIG_DEADMAN;
  return shared->request == RIG_ASK_STOP ? RIG_OPERATOR : RIG_NONE;
}

static void run(rig_shared *shared, double silence) {
  double deadline = now() + RIG_CYCLE, before = NAN;
  long long index = 0, off = 0;
  rig_init(&memory, 0);
  input.sent = NAN;
  while (off < POSTLUDE) {
    sleep_until(deadline);
    input.start = now();
    input.deadline = deadline;
    exchange(input.start, before);
    aim(index);
    input.stop = reason_to_stop(shared, input.start, silence);
    input.run = shared->request == RIG_ASK_RUN;
    input.release = input.stop != RIG_NONE;
    rig_step(&memory, &input, &output);
    command();
    before = input.start + RIG_DELAY;
    input.sent = now();
    index += output.state == RIG_RUN;
    off = output.state == RIG_STOP && output.action == RIG_OFF ? off + 1 : 0;
    add(shared->lateness, input.start - deadline);
    add(shared->duration, input.sent - input.start);
    shared->latest = fmax(shared->latest, input.start - deadline);
    shared->longest = fmax(shared->longest, input.sent - input.start);
    shared->output = output;
    ++shared->cycles;
    deadline += RIG_CYCLE;
    input.skipped = (int)fmax(0.0, rint((now() - deadline) / RIG_CYCLE));
    shared->skipped += input.skipped;
    if (output.state == RIG_RUN) index += input.skipped;
    deadline += input.skipped * RIG_CYCLE;
  }
}

static void *mapped(const char *path, int writes, size_t *size) {
  struct stat facts;
  const int file = open(path, writes ? O_RDWR : O_RDONLY);
  void *found;
  if (file < 0 || fstat(file, &facts)) return MAP_FAILED;
  *size = (size_t)facts.st_size;
  found = mmap(0, *size, writes ? PROT_READ | PROT_WRITE : PROT_READ,
               MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  return found;
}

int main(int count, char **words) {
  struct sched_param priority;
  rig_shared *shared;
  size_t size, length;
  void *table;
  int i;
  if (count < 7 || count - 6 > LINKS) return 2;
  shared = mapped(words[1], 1, &size);
  table = mapped(words[2], 0, &length);
  if (shared == MAP_FAILED || size < sizeof *shared || table == MAP_FAILED) return 2;
  reference = table;
  rows = (long long)(length / (ROW * sizeof(double)));
  priority.sched_priority = atoi(words[3]);
  shared->scheduled = priority.sched_priority > 0 && !sched_setscheduler(0, SCHED_FIFO, &priority);
  shared->locked = atoi(words[4]) && !mlockall(MCL_CURRENT | MCL_FUTURE);
  for (i = 6; i < count; ++i) links[link_count++] = atoi(words[i]);
  run(shared, atof(words[5]));
  shared->ended = 1;
  return 0;
}
