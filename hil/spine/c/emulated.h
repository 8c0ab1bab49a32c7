/* Memory that emulated drives share with the process that started them. */

#ifndef RIG_EMULATED_H
#define RIG_EMULATED_H

#include "rig.h"

typedef struct {
  volatile int end;         /* request to end */
  int ready;                /* whether the links are served */
  double torque[RIG_AXES];  /* that acts now, N m (N) */
  double position[RIG_AXES], velocity[RIG_AXES];
  double command[RIG_AXES]; /* instant of the last command, s */
  double freed[RIG_AXES];   /* instant at which the watchdog last took power, s; 0: never */
  int enabled[RIG_AXES];
} rig_emulated;

#endif
