/* Frames of CiA 402 drives on CAN: reports (TPDO1) and commands (RPDO1) by the tables of a rig.

   A datagram is a `struct can_frame` of Linux, so that the same code serves sockets of SocketCAN
   and pairs of sockets on one machine. */

#ifndef RIG_FRAMES_H
#define RIG_FRAMES_H

#include <stdint.h>

#include "rig.h"

typedef struct {
  uint32_t id;
  uint8_t length, padding[3];
  uint8_t data[8];
} rig_frame;

/* Last report of each drive. */
typedef struct {
  long long counts[RIG_AXES]; /* unwrapped */
  int seen[RIG_AXES], status[RIG_AXES];
  int measured[RIG_AXES]; /* torque in units of the drive */
} rig_drives;

/* Axis whose report a frame on a link is, or -1. */
int rig_axis_of(const rig_frame *frame, int link);

/* Take the report of an axis into `input`, sampled at an instant; 0 if it is invalid. */
int rig_take(rig_drives *drives, const rig_frame *frame, int axis, double instant,
             rig_input *input);

/* Command of an axis for the outputs of a cycle. */
void rig_command(const rig_drives *drives, const rig_output *output, int axis, rig_frame *frame);

/* Link of an axis. */
int rig_link_of(int axis);

#endif
