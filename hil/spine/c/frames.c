/* See frames.h. */

#include "frames.h"

#include <math.h>
#include <string.h>

rig_drive_table rig_drive[RIG_AXES] = {RIG_DRIVES};

static unsigned low(const uint8_t *data) { return data[0] | (unsigned)data[1] << 8; }

static int signed16(unsigned number) { return (int)((number ^ 0x8000u) & 0xFFFFu) - 0x8000; }

static int failed(int state) { return state == RIG_DRIVE_REACTS || state == RIG_DRIVE_FAILED; }

/* Difference of two counts, the short way round. */
static long long wrapped(long long difference, long long modulus) {
  const long long half = modulus / 2, step = (difference + half) % modulus;
  return (step < 0 ? step + modulus : step) - half;
}

void rig_init_drives(rig_drives *drives) {
  int i;
  memset(drives, 0, sizeof *drives);
  for (i = 0; i < RIG_AXES; ++i) {
    drives->torque[i] = NAN;
    drives->state[i] = RIG_DRIVE_UNKNOWN;
    drives->prepared[i] = drives->proved[i] = 1;
  }
}

int rig_axis_of(const rig_frame *frame, int link) {
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    const uint32_t node = (uint32_t)rig_drive[i].node;
    if (rig_drive[i].link == link && (frame->id == 0x180 + node || frame->id == 0x080 + node ||
                                      frame->id == 0x580 + node || frame->id == 0x700 + node))
      return i;
  }
  return -1;
}

/* Whether a drive is enabled, and was commanded to be for long enough to be checked. */
static int is_sure(const rig_drives *d, int i) {
  return d->state[i] == RIG_DRIVE_ENABLED && d->asked[i] >= RIG_DRIVE_SURE && d->proved[i] &&
         !d->latched[i];
}

static void latch(rig_drives *d, int i, int code, rig_input *input) {
  if (!d->prepared[i]) return;
  if (d->latched[i] != RIG_DRIVE_RESTARTED) d->latched[i] = code;
  d->state[i] = RIG_DRIVE_UNKNOWN;
  input->fault[i] = d->latched[i];
  input->enabled[i] = 0;
}

/* Compare the measured torque with the commanded one; a fault code, or 0. */
static int compare(rig_drives *d, int i, int status, int torque) {
  const rig_drive_table *drive = &rig_drive[i];
  const int *targets = d->targets[i], last = targets[d->place[i]], margin = drive->margin;
  int k, least = targets[0], most = targets[0];
  if (drive->ready & RIG_DRIVE_FOLLOWS) {
    if (status & RIG_DRIVE_FOLLOWS)
      d->follows[i] = 1;
    else if (d->follows[i])
      return RIG_DRIVE_NOT_FOLLOWING;
  }
  if (!drive->has_torque) return 0;
  if (!d->shows[i]) {
    if (torque == 0) return 0; /* some drives have the object and never fill it in */
    d->shows[i] = 1;
  }
  for (k = 1; k <= RIG_DRIVE_LAG; ++k) {
    least = targets[k] < least ? targets[k] : least;
    most = targets[k] > most ? targets[k] : most;
  }
  if (status & RIG_DRIVE_LIMITED) { /* the drive's own limit never increases the torque */
    least = least < 0 ? least : 0;
    most = most > 0 ? most : 0;
  }
  if ((-margin <= torque - last && torque - last <= margin) ||
      (least - margin <= torque && torque <= most + margin)) {
    d->wrong[i] = 0;
    return 0;
  }
  return ++d->wrong[i] >= RIG_DRIVE_LAG ? RIG_DRIVE_OTHER_TORQUE : 0;
}

static int take_report(rig_drives *d, const rig_frame *frame, int i, double instant,
                       rig_input *input) {
  const rig_drive_table *drive = &rig_drive[i];
  const uint8_t *data = frame->data;
  const int size = drive->has_mode ? 7 : drive->has_torque ? 8 : 6, status = (int)low(data);
  const long long number = (int32_t)(low(data + 2) | (uint32_t)low(data + 4) << 16);
  const int last = drive->has_mode ? (int8_t)data[6] : signed16(low(data + 6));
  const int leap = (int)(drive->modulus / 4 < 0x7FFFFFFF ? drive->modulus / 4 : 0x7FFFFFFF);
  long long step;
  int state, fault;
  if (frame->length != size) {
    ++d->invalid[i];
    return 0;
  }
  if (!d->located[i]) {
    d->located[i] = 1;
    d->counts[i] = drive->bounded
                       ? drive->middle + wrapped(number - drive->middle, drive->modulus)
                       : number;
  }
  step = wrapped(number - d->counts[i], drive->modulus);
  /* No axis moves by a quarter of the counter between two reports: a bit is wrong. */
  if (!(-leap < step && step < leap)) {
    ++d->invalid[i];
    return 0;
  }
  d->counts[i] += step;
  state = rig_states[status & 0x7F];
  if (state != RIG_DRIVE_ENABLED && d->state[i] == RIG_DRIVE_ENABLED && d->prepared[i] &&
      d->asked[i] >= RIG_DRIVE_SURE && !failed(state) && !d->latched[i])
    d->latched[i] = RIG_DRIVE_FELL;
  d->state[i] = state;
  d->status[i] = status;
  if (is_sure(d, i)) {
    d->latched[i] = compare(d, i, status, last);
    if (drive->has_mode && last != RIG_DRIVE_TORQUE_MODE)
      d->latched[i] = RIG_DRIVE_OTHER_MODE;
    else if (d->unanswered[i] > RIG_DRIVE_UNANSWERED)
      d->latched[i] = RIG_DRIVE_MUTE;
  } else {
    d->follows[i] = 0;
  }
  fault = d->latched[i] ? d->latched[i] : d->emergency[i];
  if (!fault && failed(state)) fault = RIG_DRIVE_UNNAMED;
  if (!fault && d->prepared[i] && !d->proved[i]) fault = RIG_DRIVE_UNPROVED;
  if (drive->has_torque) d->torque[i] = last * drive->unit;
  input->position[i] = drive->offset + (double)d->counts[i] * drive->position;
  input->velocity[i] = NAN;
  input->fault[i] = fault;
  input->enabled[i] = state == RIG_DRIVE_ENABLED && !d->latched[i] &&
                      (status & drive->ready) == drive->ready;
  input->time[i] = instant;
  ++input->count[i];
  return 1;
}

int rig_take(rig_drives *d, const rig_frame *frame, int i, double instant, rig_input *input) {
  const uint32_t kind = frame->id - (uint32_t)rig_drive[i].node;
  const uint8_t *data = frame->data;
  if (kind == 0x180) return take_report(d, frame, i, instant, input);
  if (kind == 0x580) {
    if (frame->length == 8 && (data[0] & 0xE0) == 0x40 && low(data + 1) == 0x6061 && !data[3]) {
      d->unanswered[i] = 0;
      if ((int8_t)data[4] != RIG_DRIVE_TORQUE_MODE && is_sure(d, i))
        latch(d, i, RIG_DRIVE_OTHER_MODE, input);
    }
  } else if (kind == 0x080 && frame->length == 8) {
    d->emergency[i] = low(data) & 0xFF00u ? (int)low(data) : 0;
    if (d->emergency[i]) input->fault[i] = d->emergency[i];
  } else if (kind == 0x700 && frame->length == 1) {
    if (!(data[0] & 0x7F)) /* power was cycled, and all written settings are lost */
      latch(d, i, RIG_DRIVE_RESTARTED, input);
    else if ((data[0] & 0x7F) != 5)
      latch(d, i, RIG_DRIVE_NOT_OPERATIONAL, input);
  } else {
    ++d->invalid[i];
  }
  return 0;
}

void rig_command(rig_drives *d, int wanted, double torque, int i, rig_frame *frame) {
  const rig_drive_table *drive = &rig_drive[i];
  const int state = d->state[i], enabled = state == RIG_DRIVE_ENABLED;
  unsigned word;
  int target = 0;
  /* Drives are enabled while the rig is armed; one that leaves this state later stays off. */
  if (d->latched[i] || (wanted == RIG_WANT_TORQUE && !enabled) ||
      (d->prepared[i] && !d->proved[i] && wanted != RIG_WANT_RESET))
    wanted = RIG_WANT_OFF;
  if (wanted == RIG_WANT_RESET && !failed(state)) d->emergency[i] = 0;
  d->edge[i] = wanted == RIG_WANT_RESET && !d->edge[i];
  word = wanted == RIG_WANT_RESET ? (d->edge[i] && state == RIG_DRIVE_FAILED ? RIG_DRIVE_RESET : 0)
         : wanted == RIG_WANT_OFF ? 0
                                  : rig_words[state];
  d->asked[i] = word == RIG_DRIVE_ENABLE ? d->asked[i] + 1 : 0;
  if (wanted == RIG_WANT_TORQUE && enabled) {
    const double number = torque * drive->torque;
    target = fabs(number) <= 32767.0 ? (int)lrint(number) : 0; /* half to even, as in Python */
  }
  d->place[i] = d->place[i] < RIG_DRIVE_LAG ? d->place[i] + 1 : 0;
  d->targets[i][d->place[i]] = target;
  memset(frame, 0, sizeof *frame);
  frame->id = 0x200 + (uint32_t)drive->node;
  frame->length = 4;
  frame->data[0] = (uint8_t)word;
  frame->data[1] = (uint8_t)(word >> 8);
  frame->data[2] = (uint8_t)((unsigned)target & 0xFFu);
  frame->data[3] = (uint8_t)((unsigned)target >> 8 & 0xFFu);
}

int rig_asides(rig_drives *d, long long cycle, int i, rig_frame *frames) {
  const rig_drive_table *drive = &rig_drive[i];
  int count = 0;
  if (!(drive->guards || drive->asks) || (cycle + i) % drive->every) return 0;
  memset(frames, 0, RIG_ASIDES * sizeof *frames);
  if (drive->guards) {
    frames[count].id = RIG_REMOTE | (0x700 + (uint32_t)drive->node);
    frames[count++].length = 1;
  }
  if (drive->asks) {
    ++d->unanswered[i];
    frames[count].id = 0x600 + (uint32_t)drive->node;
    frames[count].length = 8;
    frames[count].data[0] = 0x40;
    frames[count].data[1] = 0x61;
    frames[count++].data[2] = 0x60;
  }
  return count;
}

int rig_is_foreign(const rig_frame *frame, int link) {
  const uint8_t *data = frame->data;
  int i;
  for (i = 0; i < RIG_AXES; ++i) {
    const uint32_t node = (uint32_t)rig_drive[i].node;
    if (rig_drive[i].link != link) continue;
    if (frame->id == 0x200 + node || frame->id == 0x080 || frame->id == 0x700 + RIG_DRIVE_HOST)
      return 1;
    if (frame->id == 0x000 && frame->length == 2 && (!data[1] || data[1] == node)) return 1;
    if (frame->id == 0x600 + node && frame->length &&
        ((data[0] & 0xE0) == 0x00 || (data[0] & 0xE0) == 0x20 || (data[0] & 0xE0) == 0xC0))
      return 1;
  }
  return 0;
}
