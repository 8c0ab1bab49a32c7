/* CiA 402 drives on CAN, by the tables of a rig: reports (TPDO1), commands (RPDO1), and the frames
   beside them. A frame has the same meaning as for `Cia402Drive` in Python.

   A datagram is a `struct can_frame` of Linux, so that the same code serves sockets of SocketCAN
   and pairs of sockets on one machine. */

#ifndef RIG_FRAMES_H
#define RIG_FRAMES_H

#include <stdint.h>

#include "rig.h"
#include "drives.h"

#define RIG_REMOTE 0x40000000u /* flag of an identifier: a remote frame */
#define RIG_ERRORS 0x20000000u /* flag of an identifier: an error frame of the bus */
#define RIG_ASIDES 2           /* largest number of further frames of a drive in a cycle */

typedef struct {
  uint32_t id;
  uint8_t length, padding[3];
  uint8_t data[8];
} rig_frame;

/* Numbers of a drive; a supervisor replaces those that it has read from it. */
typedef struct {
  int link, node;
  long long modulus;        /* of the counter */
  int bounded;              /* whether the first report is the turn nearest to `middle` */
  long long middle;
  double offset, position;  /* of the motor, and its motion by one count */
  double torque, unit;      /* numbers of the drive for 1 N m (N), and its inverse */
  double start;             /* position at the start of the task */
  int has_torque, has_mode; /* whether its reports have them */
  int asks, guards, every;  /* whether to query its mode, to guard its node, and cycles in between */
  int ready;                /* bits of the statusword that it has while it is enabled */
  int margin;               /* tolerated difference of the measured torque, numbers of the drive */
} rig_drive_table;

extern rig_drive_table rig_drive[RIG_AXES];

/* Last report of each drive, and what has become of it. */
typedef struct {
  long long counts[RIG_AXES];  /* unwrapped */
  int located[RIG_AXES], status[RIG_AXES], state[RIG_AXES];
  double torque[RIG_AXES];     /* measured, N m (N) */
  long long invalid[RIG_AXES]; /* number of rejected frames */
  int prepared[RIG_AXES], proved[RIG_AXES]; /* whether settings are written, the watchdog tested */
  int latched[RIG_AXES];   /* fault after which the drive stays off */
  int emergency[RIG_AXES]; /* code of the last one, 0 after its reset */
  int asked[RIG_AXES];     /* consecutive commands to be enabled */
  int edge[RIG_AXES], unanswered[RIG_AXES];
  int targets[RIG_AXES][RIG_DRIVE_LAG + 1], place[RIG_AXES]; /* of the last cycles, in a ring */
  int wrong[RIG_AXES], shows[RIG_AXES], follows[RIG_AXES];
} rig_drives;

/* Requests to a drive in a cycle. */
enum { RIG_WANT_OFF, RIG_WANT_READY, RIG_WANT_TORQUE, RIG_WANT_RESET };

/* Drives that are prepared and proved, without a report. */
void rig_init_drives(rig_drives *drives);

/* Axis whose drive sends a frame on a link, or -1. */
int rig_axis_of(const rig_frame *frame, int link);

/* Take a frame of an axis into `input`, sampled at an instant; 1 if it is a valid report. */
int rig_take(rig_drives *drives, const rig_frame *frame, int axis, double instant,
             rig_input *input);

/* Command of an axis for a torque, N m (N). */
void rig_command(rig_drives *drives, int wanted, double torque, int axis, rig_frame *frame);

/* Further frames of an axis in a cycle, at most RIG_ASIDES; their number. */
int rig_asides(rig_drives *drives, long long cycle, int axis, rig_frame *frames);

/* Whether a frame of another host on a link commands drives of this rig. */
int rig_is_foreign(const rig_frame *frame, int link);

#endif
