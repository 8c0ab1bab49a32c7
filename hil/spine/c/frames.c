/* See frames.h. */

#include "frames.h"

#include <math.h>
#include <string.h>

#include "drives.h"

static unsigned low(const uint8_t *data) { return data[0] | (unsigned)data[1] << 8; }

static int signed16(unsigned number) { return (int)((number ^ 0x8000u) & 0xFFFFu) - 0x8000; }

int rig_link_of(int axis) { return rig_drive[axis].link; }

int rig_axis_of(const rig_frame *frame, int link) {
  int i;
  for (i = 0; i < RIG_AXES; ++i)
    if (rig_drive[i].link == link && rig_drive[i].report == frame->id) return i;
  return -1;
}

int rig_take(rig_drives *drives, const rig_frame *frame, int axis, double instant,
             rig_input *input) {
  const rig_drive_table *drive = &rig_drive[axis];
  const uint8_t *data = frame->data;
  const long long half = drive->modulus / 2;
  long long number, step;
  int state;
  if (frame->length != 8) return 0;
  number = (int32_t)(low(data + 2) | (uint32_t)low(data + 4) << 16);
  step = (number - drives->counts[axis] + half) % drive->modulus;
  step = (step < 0 ? step + drive->modulus : step) - half;
  if (!drives->seen[axis]) {
    drives->seen[axis] = 1;
    drives->counts[axis] = number;
  } else {
    /* No axis moves by a quarter of the counter between two reports: a bit is wrong. */
    if (!(-drive->modulus / 4 < step && step < drive->modulus / 4)) return 0;
    drives->counts[axis] += step;
  }
  drives->status[axis] = (int)low(data);
  drives->measured[axis] = signed16(low(data + 6));
  input->position[axis] = drive->offset + (double)drives->counts[axis] * drive->position;
  input->velocity[axis] = NAN;
  state = rig_states[drives->status[axis] & 0x7F];
  input->fault[axis] =
      state == RIG_DRIVE_REACTS || state == RIG_DRIVE_FAILED ? RIG_DRIVE_UNNAMED : 0;
  input->enabled[axis] = state == RIG_DRIVE_ENABLED &&
                         (drives->status[axis] & RIG_DRIVE_READY) == RIG_DRIVE_READY;
  input->time[axis] = instant;
  ++input->count[axis];
  return 1;
}

void rig_command(const rig_drives *drives, const rig_output *output, int axis, rig_frame *frame) {
  const rig_drive_table *drive = &rig_drive[axis];
  const int state = rig_states[drives->status[axis] & 0x7F];
  const int torque = output->action > RIG_READY, enabled = state == RIG_DRIVE_ENABLED;
  unsigned word = 0;
  long target = 0;
  /* Drives are enabled while the rig is armed; one that leaves this state later stays off. */
  if (output->action == RIG_READY || (torque && enabled)) word = rig_words[state];
  if (torque && enabled) {
    const double number = output->torque[axis] * drive->torque;
    target = fabs(number) <= 32767.0 ? lrint(number) : 0; /* half to even, as in Python */
  }
  memset(frame, 0, sizeof *frame);
  frame->id = drive->command;
  frame->length = 4;
  frame->data[0] = (uint8_t)word;
  frame->data[1] = (uint8_t)(word >> 8);
  frame->data[2] = (uint8_t)((unsigned long)target & 0xFFu);
  frame->data[3] = (uint8_t)((unsigned long)target >> 8 & 0xFFu);
}
