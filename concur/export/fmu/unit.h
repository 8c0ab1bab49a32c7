/* An FMU independent of the version of FMI: its numbers, its modes, and the calls allowed in each
   mode. `model.h` defines the model. All memory of an instance is contiguous; instances share
   nothing. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#elif defined(_MSC_VER)
#pragma warning(disable : 4100 4996)
#endif

/* As numbered by FMI 2 and 3. */
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } status_t;

/* Categories of messages by status. */
static const char *const categories_of_status[] = {"", "logStatusWarning", "logStatusDiscard",
                                                   "logStatusError"};

enum { INSTANTIATED = 1, INITIALIZING = 2, STEPPING = 4, TERMINATED = 8 };

/* Data of an instance that is saved and restored. */
typedef struct {
  char token[sizeof MODEL_TOKEN];
  int mode, has_stop, reported, stale;
  double time, stop;
  double x[MODEL_VALUES];
} numbers_t;

typedef struct {
  numbers_t now;
  memory_t memory;
  int logging;
} unit_t;

/* What each version of FMI defines: messages and memory of the environment. */
static void log_message(unit_t *unit, status_t status, const char *message);
static void *allocated(unit_t *unit, size_t size);
static void freed(unit_t *unit, void *memory);

/* All calls with a missing instance are refused here. */
static status_t refuse(unit_t *unit, const char *message) {
  if (unit) log_message(unit, ERROR, message);
  return ERROR;
}

static status_t refuse_call(unit_t *unit, const char *function, const char *why) {
  char message[256];
  snprintf(message, sizeof message, "%s: %s", function, why);
  return refuse(unit, message);
}

/* Whether a function may be called in this mode. */
static int allowed(unit_t *unit, int modes, const char *function) {
  if (unit && unit->now.mode & modes) return 1;
  refuse_call(unit, function, "not allowed in this mode");
  return 0;
}

static status_t unit_enter(unit_t *unit, int from, int to, const char *function) {
  if (!allowed(unit, from, function)) return ERROR;
  unit->now.mode = to;
  return OK;
}

static status_t unit_logging(unit_t *unit, int on, size_t count, const char *const categories[],
                             const char *every, const char *function) {
  size_t i;
  if (!unit) return ERROR;
  for (i = 0; i < count; ++i) {
    if (!categories || !categories[i] ||
        (strncmp(categories[i], "logStatus", 9) != 0 && strcmp(categories[i], every) != 0)) {
      return refuse_call(unit, function, "no such category");
    }
  }
  unit->logging = on;
  return OK;
}

static status_t unit_reset(unit_t *unit) {
  if (!unit) return ERROR;
  memset(&unit->now, 0, sizeof unit->now);
  memcpy(unit->now.token, MODEL_TOKEN, sizeof MODEL_TOKEN);
  memcpy(unit->now.x, model_start, sizeof model_start);
  unit->now.mode = INSTANTIATED;
  unit->now.stale = 1;
  return OK;
}

/* Update the outputs from inputs, parameters and state. */
static status_t unit_refresh(unit_t *unit) {
  numbers_t *now = &unit->now;
  if (now->stale) {
#if MODEL_STATES
    if (now->mode == INITIALIZING) {
      int i, sound = model_initial(&unit->memory, now->x);
      for (i = 0; i < MODEL_STATES; ++i) sound = sound && fabs(now->x[MODEL_STATE + i]) <= DBL_MAX;
      if (!sound) return refuse(unit, "The start values are invalid: " MODEL_UNSOUND);
    }
#endif
    model_outputs(&unit->memory, now->x);
    now->stale = 0;
#ifdef MODEL_STATUS
    {
      const int status = (int)now->x[MODEL_STATUS];
      if (status && status != now->reported) log_message(unit, WARNING, model_status[status]);
      now->reported = status;
    }
#endif
  }
#ifdef MODEL_STATUS
  if (now->x[MODEL_STATUS] != 0) return WARNING;
#endif
  return OK;
}

/* Keep the memory of the end of a step. Outputs compare themselves with it from the next inputs on,
   so they do not depend on how often they are read. */
static void unit_keep(numbers_t *now) {
#ifdef MODEL_MEMORY
  memcpy(now->x + MODEL_HELD, now->x + MODEL_AFTER, MODEL_MEMORY * sizeof *now->x);
#endif
}

static void unit_compare(numbers_t *now) {
#ifdef MODEL_MEMORY
  memcpy(now->x + MODEL_BEFORE, now->x + MODEL_HELD, MODEL_MEMORY * sizeof *now->x);
#endif
}

static status_t unit_setup(unit_t *unit, double start, int has_stop, double stop,
                           const char *function) {
  if (!allowed(unit, INSTANTIATED, function)) return ERROR;
  if (!(fabs(start) <= DBL_MAX) || (has_stop && !(stop >= start))) {
    return refuse(unit, "The start time must be finite, and the stop time must not precede it.");
  }
  unit->now.time = start;
  unit->now.has_stop = has_stop;
  unit->now.stop = stop;
  return OK;
}

static status_t unit_start(unit_t *unit, const char *function) {
  status_t status;
  if (!allowed(unit, INITIALIZING, function)) return ERROR;
#if MODEL_STATES
  if (!(unit->now.x[MODEL_STEP_SIZE] > 0 && unit->now.x[MODEL_STEP_SIZE] <= DBL_MAX)) {
    return refuse(unit, "`step_size` must be above zero.");
  }
#endif
  unit->now.stale = 1;
  status = unit_refresh(unit);
  if (status == ERROR) return ERROR;
  unit_keep(&unit->now);
  unit->now.mode = STEPPING;
  return OK;
}

/* Refuse unknown variables, and another number of values than theirs. */
static status_t unit_check(unit_t *unit, int modes, const unsigned *references, size_t count,
                           int integer, size_t room, const char *function) {
  size_t i;
  if (!allowed(unit, modes, function)) return ERROR;
  for (i = 0; i < count; ++i) {
    const unsigned k = references[i];
    if (k >= MODEL_VARIABLES || model_variables[k].integer != integer) {
      return refuse_call(unit, function, "no variable of this type has this value reference");
    }
    if (model_variables[k].size > room) return refuse_call(unit, function, "too few values");
    room -= model_variables[k].size;
  }
  return room ? refuse_call(unit, function, "too many values") : OK;
}

/* Values of variables, one after the other: doubles, or ints; `room` is their number. */
static status_t unit_get(unit_t *unit, const unsigned *references, size_t count, int integer,
                         void *values, size_t room, const char *function) {
  size_t i, k, done = 0;
  if (unit_check(unit, INITIALIZING | STEPPING | TERMINATED, references, count, integer, room,
                 function) != OK) {
    return ERROR;
  }
  for (i = 0; i < count; ++i) {
    const variable_t *variable = model_variables + references[i];
    const double *source =
        variable->causality == INDEPENDENT ? &unit->now.time : unit->now.x + variable->offset;
    if (variable->causality == OUTPUT && unit_refresh(unit) == ERROR) return ERROR;
    for (k = 0; k < variable->size; ++k, ++done) {
      if (integer) ((int *)values)[done] = (int)source[k];
      else ((double *)values)[done] = source[k];
    }
  }
  return OK;
}

static status_t unit_set(unit_t *unit, const unsigned *references, size_t count,
                         const double *values, size_t room, const char *function) {
  size_t i;
  if (unit_check(unit, INSTANTIATED | INITIALIZING | STEPPING, references, count, 0, room,
                 function) != OK) {
    return ERROR;
  }
  for (i = 0; i < count; ++i) {
    const causality_t causality = model_variables[references[i]].causality;
    if (causality == OUTPUT || causality == INDEPENDENT) {
      return refuse_call(unit, function, "only inputs and parameters can be set");
    }
    if (causality == PARAMETER && unit->now.mode == STEPPING) {
      return refuse_call(unit, function, "parameters are fixed once the initialization is over");
    }
  }
  for (i = 0; i < count; ++i) {
    const variable_t *variable = model_variables + references[i];
    memcpy(unit->now.x + variable->offset, values, variable->size * sizeof *values);
    values += variable->size;
  }
  unit_compare(&unit->now);
  unit->now.stale = 1;
  return OK;
}

/* Step from t to t + h. A step that cannot be computed is discarded and changes nothing. */
static status_t unit_step(unit_t *unit, double t, double h, const char *function) {
  numbers_t *now = &unit->now;
  status_t status;
  if (!allowed(unit, STEPPING, function)) return ERROR;
  if (!(h > 0 && h <= DBL_MAX)) return refuse_call(unit, function, "the step must be above zero");
  if (!(fabs(t - now->time) <= 1e-3 * h + 1e-9 * fabs(now->time))) {
    return refuse_call(unit, function, "the step must start where the last one ended");
  }
  if (now->has_stop && t + h > now->stop + 1e-3 * h + 1e-9 * fabs(now->stop)) {
    return refuse_call(unit, function, "the step leads beyond the stop time");
  }
#if MODEL_STATES
  {
    /* Parts of equal length, at most the step of the integration. */
    const double parts = ceil(h / now->x[MODEL_STEP_SIZE] - 1e-6);
    const double part = parts > 1 ? h / parts : h;
    double state[MODEL_STATES], done;
    int i, sound = 1;
    if (!(parts < 1e9)) return refuse_call(unit, function, "too many parts in the step");
    memcpy(state, now->x + MODEL_STATE, sizeof state);
    for (done = 0; sound && (done == 0 || done < parts); ++done) {
      model_move(&unit->memory, now->x, part, state);
      for (i = 0; i < MODEL_STATES; ++i) sound = sound && fabs(state[i]) <= DBL_MAX;
    }
    if (!sound) {
      log_message(unit, DISCARD, "The step is discarded: an input or the new state is not finite.");
      return DISCARD;
    }
    memcpy(now->x + MODEL_STATE, state, sizeof state);
  }
#endif
  unit_compare(now);
  now->time = t + h;
  now->stale = 1;
#ifdef MODEL_PERIOD
  /* A longer step is bad input, as a negative period is. */
  now->x[MODEL_PERIOD] = h <= now->x[MODEL_LONGEST_STEP] ? h : -1;
  status = unit_refresh(unit);
  now->x[MODEL_PERIOD] = 0;
  if (status == OK) {
    /* Outputs at the end of the step have the state of the law there. */
    memcpy(now->x + MODEL_ADVANCED, now->x + MODEL_ADVANCED + MODEL_MEMORY,
           MODEL_ADVANCING * sizeof *now->x);
    now->stale = 1;
    status = unit_refresh(unit);
  }
#else
  status = unit_refresh(unit);
#endif
  unit_keep(now);
  return status;
}
