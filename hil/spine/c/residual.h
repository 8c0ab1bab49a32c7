/* Residuals of the axes, and functions of numbers; for rig.c and residual.c. */

#ifndef RIG_RESIDUAL_H
#define RIG_RESIDUAL_H

#include "rig.h"

/* As in Python, also with NaN: the first one unless the second is surely beyond it. */
static inline double rig_least(double a, double b) { return b < a ? b : a; }
static inline double rig_most(double a, double b) { return b > a ? b : a; }

/* Restart at the next reports, when the law starts. */
void rig_start_residual(rig_memory *memory);

/* Process the reports of a cycle; 1 if `memory->finding` is a reason to stop. */
int rig_follow(rig_memory *memory, const rig_input *input);

/* Whether the residual of an axis, or with -1 of any, is a clear cause of its wrong motion; then
   it is in `memory->finding`. */
int rig_suspect(rig_memory *memory, int axis);

#endif
