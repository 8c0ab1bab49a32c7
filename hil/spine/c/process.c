/* The loop of a rig as a process without threads.

       loop MEMORY REFERENCE RING PRIORITY LOCK SILENCE LINK...

   MEMORY: file of `rig_shared`. RING: file of the ring that takes the rows of a record; - for none.
   SILENCE: time without a heartbeat after which it stops, s. LINK: number of an open socket. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exchange.h"
#include "loop.h"

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
  rig_setup setup = {0};
  size_t size, length;
  void *shared, *table;
  int i, sockets[RIG_LINKS];
  if (count < 8 || count - 7 > RIG_LINKS) return 2;
  shared = mapped(words[1], 1, &size);
  table = mapped(words[2], 0, &length);
  if (shared == MAP_FAILED || size < sizeof(rig_shared) || table == MAP_FAILED) return 2;
  if (strcmp(words[3], "-")) {
    setup.ring = mapped(words[3], 1, &setup.ring_size);
    if (setup.ring == MAP_FAILED) return 2;
  }
  setup.shared = shared;
  setup.reference = table;
  setup.rows = (long long)(length / ((RIG_POSE + 2 * RIG_TWIST) * sizeof(double)));
  priority.sched_priority = atoi(words[4]);
  setup.shared->scheduled =
      priority.sched_priority > 0 && !sched_setscheduler(0, SCHED_FIFO, &priority);
  setup.shared->locked = atoi(words[5]) && !mlockall(MCL_CURRENT | MCL_FUTURE);
  setup.silence = atof(words[6]);
  for (i = 7; i < count; ++i) sockets[setup.links++] = atoi(words[i]);
  setup.sockets = sockets;
  return rig_run(&setup);
}
