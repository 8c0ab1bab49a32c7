/* Frames of a cycle on all links: requests, reports until all have come or the window is over,
   commands; and which reports answer earlier requests, as `Punctuality` finds it in Python. */

#ifndef RIG_EXCHANGE_H
#define RIG_EXCHANGE_H

#include "frames.h"
#include "rig.h"
#include "timing.h"

#define RIG_LINKS 16

/* Requested and received reports. */
typedef struct {
  double owed[RIG_AXES][RIG_MOST_OWED]; /* instants of the requests of outstanding reports */
  int first[RIG_AXES], count[RIG_AXES];
  int fresh[RIG_AXES], outside[RIG_AXES]; /* whether a report came in, or before the window */
  int strayed[RIG_AXES]; /* consecutive cycles with reports outside of the window only */
  int doubt[RIG_AXES];   /* cycles with an outstanding report although another arrived */
  int caught[RIG_AXES];  /* pauses of a sequence with a report */
  int next, wait;        /* place in the sequence, or its length; cycles before the next pause */
  int pauses;            /* whether this cycle requests no report */
  int late;              /* axis whose reports answer earlier cycles, or -1 */
} rig_punctuality;

typedef struct {
  int sockets[RIG_LINKS], count;
  rig_punctuality punctuality;
  rig_drives drives;
  long long cycle;
  int foreign;    /* number of frames of other hosts that command these drives */
  int off;        /* whether a bus is off */
  int refused;    /* consecutive cycles in which a link rejected a command */
  long long rejected; /* number of rejected frames */
  int begin[RIG_LINKS]; /* first command of a link: it was rejected in the cycle before */
} rig_links;

double rig_now(void);

void rig_init_punctuality(rig_punctuality *punctuality);

/* Count a request for a report, at an instant. */
void rig_ask(rig_punctuality *punctuality, int axis, double instant);

/* Count a report; the instant of the oldest request, or NaN. */
double rig_come(rig_punctuality *punctuality, int axis);

/* End the receive window of a cycle. */
void rig_end_window(rig_punctuality *punctuality, int pausing);

/* Whether reports of an axis may be late. */
int rig_doubts(const rig_punctuality *punctuality, int axis);

void rig_init_links(rig_links *links, const int *sockets, int count);

/* Request reports on all links, and take them until all have come or the window is over; return
   the time of waiting, s. */
double rig_exchange(rig_links *links, rig_input *input);

/* Send the commands of the drives. */
void rig_send(rig_links *links, const rig_output *output, int resets, rig_input *input);

#endif
