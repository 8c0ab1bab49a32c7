/* See exchange.h. */

#define _GNU_SOURCE

#include "exchange.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

double rig_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -- punctuality --------------------------------------------------------------------------- */

void rig_init_punctuality(rig_punctuality *p) {
  memset(p, 0, sizeof *p);
  p->next = RIG_PAUSES;
  p->late = -1;
}

void rig_ask(rig_punctuality *p, int axis, double instant) {
  p->owed[axis][(p->first[axis] + p->count[axis]) % RIG_MOST_OWED] = instant;
  if (p->count[axis] < RIG_MOST_OWED)
    ++p->count[axis];
  else
    p->first[axis] = (p->first[axis] + 1) % RIG_MOST_OWED;
}

double rig_come(rig_punctuality *p, int axis) {
  const int first = p->first[axis];
  if (!p->count[axis]) return NAN;
  p->first[axis] = (first + 1) % RIG_MOST_OWED;
  --p->count[axis];
  return p->owed[axis][first];
}

int rig_doubts(const rig_punctuality *p, int axis) {
  return p->doubt[axis] > 0 || p->caught[axis] > 0;
}

static int largest(const int *numbers) {
  int i, found = 0;
  for (i = 1; i < RIG_AXES; ++i)
    if (numbers[i] > numbers[found]) found = i;
  return found;
}

/* Evaluate a pause: reports that arrived are late, outstanding ones are lost. */
static void judge(rig_punctuality *p) {
  const int first = !p->caught[largest(p->caught)];
  int i, any = 0;
  for (i = 0; i < RIG_AXES; ++i) {
    p->doubt[i] = 0;
    p->caught[i] += p->fresh[i];
    any = any || p->fresh[i];
    if (!(p->fresh[i] || p->outside[i])) p->count[i] = 0;
  }
  i = largest(p->caught);
  if (p->caught[i] >= RIG_CONFIRMED) p->late = i;
  if (first) p->next = any ? 0 : RIG_PAUSES;
  if (p->next < RIG_PAUSES)
    p->wait = rig_pauses[p->next++];
  else
    memset(p->caught, 0, sizeof p->caught);
}

void rig_end_window(rig_punctuality *p, int pausing) {
  int i;
  p->pauses = 0;
  for (i = 0; i < RIG_AXES; ++i) {
    p->strayed[i] = p->fresh[i] ? 0 : p->strayed[i] + p->outside[i];
    if (p->strayed[i] > RIG_FAULTS) p->late = i;
  }
  if (pausing) {
    judge(p);
  } else {
    for (i = 0; i < RIG_AXES; ++i) {
      if (!p->count[i])
        p->doubt[i] = 0;
      else if (p->fresh[i])
        ++p->doubt[i];
    }
  }
  if (p->wait)
    p->pauses = !--p->wait;
  else if (p->doubt[largest(p->doubt)] > RIG_DOUBTED)
    p->pauses = 1;
}

/* -- links --------------------------------------------------------------------------------- */

void rig_init_links(rig_links *links, const int *sockets, int count) {
  memset(links, 0, sizeof *links);
  memcpy(links->sockets, sockets, (size_t)count * sizeof *sockets);
  links->count = count;
  rig_init_punctuality(&links->punctuality);
  rig_init_drives(&links->drives);
}

/* Send frames on a link without waiting; return how many it took. */
static int send_all(int socket, rig_frame *frames, int count) {
  struct mmsghdr messages[RIG_AXES * (1 + RIG_ASIDES)];
  struct iovec parts[RIG_AXES * (1 + RIG_ASIDES)];
  int i, done = 0, tries = 2 * count; /* an absent peer loses frames, it does not reject them */
  memset(messages, 0, sizeof messages);
  for (i = 0; i < count; ++i) {
    parts[i].iov_base = &frames[i];
    parts[i].iov_len = sizeof frames[i];
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  while (done < count && tries--) {
    i = sendmmsg(socket, messages + done, (unsigned)(count - done), MSG_DONTWAIT);
    if (i > 0)
      done += i;
    else if (errno != ECONNREFUSED)
      break;
  }
  return done;
}

static void take(rig_links *links, const rig_frame *frame, int link, double came, int waiting,
                 rig_input *input) {
  rig_punctuality *p = &links->punctuality;
  const int axis = rig_axis_of(frame, link);
  if (frame->id & RIG_ERRORS) {
    if (frame->id & RIG_BUS_IS_OFF)
      links->off |= 1 << link;
    else if (frame->id & RIG_BUS_RESTARTED)
      links->off &= ~(1 << link);
  } else if (axis < 0) {
    links->foreign += rig_is_foreign(frame, link);
  } else if (rig_take(&links->drives, frame, axis, came, input)) {
    const double sampled = rig_come(p, axis) + RIG_DELAY;
    if (waiting) {
      p->outside[axis] = 1;
      if (sampled < came) input->time[axis] = sampled;
    } else {
      p->fresh[axis] = 1;
    }
  }
}

/* Take the frames of a link that are there; `waiting`: they came before the window. */
static void receive_all(rig_links *links, int link, int waiting, rig_input *input) {
  rig_frame frames[RIG_AXES];
  struct mmsghdr messages[RIG_AXES];
  struct iovec parts[RIG_AXES];
  int i, got;
  do {
    double came;
    memset(messages, 0, sizeof messages);
    for (i = 0; i < RIG_AXES; ++i) {
      parts[i].iov_base = &frames[i];
      parts[i].iov_len = sizeof frames[i];
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    got = recvmmsg(links->sockets[link], messages, RIG_AXES, MSG_DONTWAIT, 0);
    came = rig_now();
    /* Read after the window, because the loop was delayed, it came within it. */
    if (!waiting && came > input->start + RIG_WINDOW) came = input->start + RIG_WINDOW;
    for (i = 0; i < got; ++i)
      if (messages[i].msg_len == sizeof frames[i])
        take(links, &frames[i], link, came, waiting, input);
    /* A babbling node must not hold up the cycle. */
  } while (got == RIG_AXES && rig_now() < input->start + RIG_WINDOW);
}

static int all(const int *flags) {
  int i;
  for (i = 0; i < RIG_AXES; ++i)
    if (!flags[i]) return 0;
  return 1;
}

double rig_exchange(rig_links *links, rig_input *input) {
  static const rig_frame opening[] = {{0x080, 0, {0, 0, 0}, {0}},
                                      {0x700 + RIG_DRIVE_HOST, 1, {0, 0, 0}, {0x05}}};
  rig_punctuality *p = &links->punctuality;
  struct pollfd sockets[RIG_LINKS];
  struct timespec left;
  double rest, began, waited = 0.0;
  int i;
  memset(p->fresh, 0, sizeof p->fresh);
  memset(p->outside, 0, sizeof p->outside);
  for (i = 0; i < links->count; ++i) receive_all(links, i, 1, input);
  input->paused = p->pauses;
  for (i = 0; i < links->count; ++i) {
    rig_frame frames[2];
    memcpy(frames, opening, sizeof frames);
    if (!input->paused) send_all(links->sockets[i], frames, 2);
    sockets[i].fd = links->sockets[i];
    sockets[i].events = POLLIN;
  }
  for (i = 0; i < RIG_AXES && !input->paused; ++i) rig_ask(p, i, input->start);
  while (!all(p->fresh) && (rest = input->start + RIG_WINDOW - (began = rig_now())) > 0.0) {
    left.tv_sec = 0;
    left.tv_nsec = (long)(rest * 1e9);
    i = ppoll(sockets, (nfds_t)links->count, &left, 0);
    waited += rig_now() - began;
    if (i <= 0) continue;
    for (i = 0; i < links->count; ++i)
      if (sockets[i].revents) receive_all(links, i, 0, input);
  }
  rig_end_window(p, input->paused);
  input->now = rig_now();
  input->late = p->late;
  for (i = 0; i < RIG_AXES; ++i) input->doubtful[i] = rig_doubts(p, i);
  return waited;
}

void rig_send(rig_links *links, const rig_output *output, int resets, rig_input *input) {
  int link, axis, wanted = RIG_WANT_TORQUE, refused = 0;
  if (output->action == RIG_OFF) wanted = RIG_WANT_OFF;
  if (output->action == RIG_READY) wanted = RIG_WANT_READY;
  for (axis = 0; axis < RIG_AXES; ++axis)
    if (output->action == RIG_READY && resets && input->fault[axis]) wanted = RIG_WANT_RESET;
  ++links->cycle;
  for (link = 0; link < links->count; ++link) {
    rig_frame frames[RIG_AXES * (1 + RIG_ASIDES)], ordered[RIG_AXES * (1 + RIG_ASIDES)];
    int count = 0, size, i, sent;
    for (axis = 0; axis < RIG_AXES; ++axis)
      if (rig_drive[axis].link == link)
        rig_command(&links->drives, wanted, output->torque[axis], axis, &frames[count++]);
    /* A queue that rejects the last frame must not always cut off the same drive. */
    for (i = 0; i < count; ++i) ordered[i] = frames[(links->begin[link] + i) % count];
    size = count;
    for (axis = 0; axis < RIG_AXES; ++axis)
      if (rig_drive[axis].link == link)
        size += rig_asides(&links->drives, links->cycle, axis, &ordered[size]);
    sent = send_all(links->sockets[link], ordered, size);
    links->rejected += size - sent;
    refused = refused || sent < count;
    links->begin[link] = sent < count ? (links->begin[link] + sent) % count : 0;
  }
  links->refused = refused ? links->refused + 1 : 0;
  input->sent = rig_now();
}
