/* A unit for co-simulation by FMI 2.0 or 3.0, which MODEL_FMI chooses; `model.h` defines the model.
   Functions are those of the standard, https://fmi-standard.org, with the types that its names
   stand for; calls of features that the description does not offer are rejected. All memory of an
   instance is contiguous; instances share nothing. */

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#elif defined(_MSC_VER)
#pragma warning(disable : 4100 4996)
#endif

/* As numbered by FMI 2 and 3. */
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } status_t;

/* ROOM is the parameter for the number of values, which is LENGTH. */
#if MODEL_FMI == 3
#define FMI(name) fmi3##name
#define OF_STATE(before, after) before##FMUState##after
#define DESERIALIZE_STATE DeserializeFMUState
#define ROOM , size_t room
#define LENGTH room
typedef bool flag_t;
typedef uint8_t byte_t;
typedef void (*log_t)(void *, status_t, const char *, const char *);
#else
#define FMI(name) fmi2##name
#define OF_STATE(before, after) before##FMUstate##after
#define DESERIALIZE_STATE DeSerializeFMUstate
#define ROOM
#define LENGTH count
typedef int flag_t;
typedef char byte_t;
typedef void (*log_t)(void *, const char *, status_t, const char *, const char *, ...);
#endif

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

/* A tool that links the code statically may define a prefix of the names. */
#define JOINED(prefix, name) prefix##name
#define WITH_PREFIX(prefix, name) JOINED(prefix, name)
#if defined(FMI3_FUNCTION_PREFIX) && !defined(FMI3_OVERRIDE_FUNCTION_PREFIX)
#define NAME(name) WITH_PREFIX(FMI3_FUNCTION_PREFIX, name)
#elif defined(FMI2_FUNCTION_PREFIX) && !defined(FMI2_OVERRIDE_FUNCTION_PREFIX)
#define NAME(name) WITH_PREFIX(FMI2_FUNCTION_PREFIX, name)
#else
#define NAME(name) name
#endif
#define API(type, name) EXPORT type NAME(FMI(name))
#define QUOTED(name) #name
#define TEXT_OF(name) QUOTED(name)
#define TEXT(name) TEXT_OF(FMI(name))

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
  log_t log;
  void *environment;
  char name[256];
} unit_t;

static void log_message(const unit_t *unit, status_t status, const char *message) {
  static const char *const categories[] = {"", "logStatusWarning", "logStatusDiscard",
                                           "logStatusError"};
  if (!unit->logging || !unit->log) return;
#if MODEL_FMI == 3
  unit->log(unit->environment, status, categories[status], message);
#else
  /* Some environments ignore the arguments after the format. */
  unit->log(unit->environment, unit->name, status, categories[status],
            strchr(message, '%') ? "%s" : message, message);
#endif
}

/* All calls with a missing instance are refused here. */
static status_t refuse(const unit_t *unit, const char *message) {
  if (unit) log_message(unit, ERROR, message);
  return ERROR;
}

static status_t refuse_call(const unit_t *unit, const char *function, const char *why) {
  char message[256];
  snprintf(message, sizeof message, "%s: %s", function, why);
  return refuse(unit, message);
}

/* Whether a function may be called in this mode. */
static int allowed(const unit_t *unit, int modes, const char *function) {
  if (unit && unit->now.mode & modes) return 1;
  refuse_call(unit, function, "not allowed in this mode");
  return 0;
}

/* --- life of an instance ---------------------------------------------------------------------- */

API(status_t, Reset)(unit_t *unit) {
  if (!unit) return ERROR;
  memset(&unit->now, 0, sizeof unit->now);
  memcpy(unit->now.token, MODEL_TOKEN, sizeof MODEL_TOKEN);
  memcpy(unit->now.x, model_start, sizeof model_start);
  unit->now.mode = INSTANTIATED;
  unit->now.stale = 1;
  return OK;
}

static unit_t *instantiated(const char *name, const char *token, int logging, void *environment,
                            log_t log, const char *wrong) {
  unit_t *unit = (unit_t *)calloc(1, sizeof *unit);
  if (!unit) return NULL;
  unit->logging = 1;
  unit->log = log;
  unit->environment = environment;
  snprintf(unit->name, sizeof unit->name, "%s", name ? name : "");
  if (!wrong && (!token || strcmp(token, MODEL_TOKEN) != 0)) {
    wrong = "The token differs: binary and description do not match.";
  }
  if (wrong) {
    refuse(unit, wrong);
    free(unit);
    return NULL;
  }
  unit->logging = logging;
  NAME(FMI(Reset))(unit);
  return unit;
}

#define ONLY_CO_SIMULATION "This unit is for co-simulation only."
#if MODEL_FMI == 3
typedef void (*call_t)(void); /* a callback that is never called */

API(unit_t *, InstantiateCoSimulation)
(const char *name, const char *token, const char *resources, flag_t visible, flag_t logging,
 flag_t events, flag_t early, const unsigned required[], size_t count, void *environment, log_t log,
 call_t update) {
  return instantiated(name, token, logging, environment, log,
                      events || count
                          ? "There is no event mode, and there are no intermediate variables."
                          : NULL);
}

API(unit_t *, InstantiateModelExchange)
(const char *name, const char *token, const char *resources, flag_t visible, flag_t logging,
 void *environment, log_t log) {
  return instantiated(name, token, logging, environment, log, ONLY_CO_SIMULATION);
}

API(unit_t *, InstantiateScheduledExecution)
(const char *name, const char *token, const char *resources, flag_t visible, flag_t logging,
 void *environment, log_t log, call_t update, call_t lock, call_t unlock) {
  return instantiated(name, token, logging, environment, log, ONLY_CO_SIMULATION);
}

API(const char *, GetVersion)(void) { return "3.0"; }
#else
typedef enum { MODEL_EXCHANGE, CO_SIMULATION } kind_t;
typedef struct {
  log_t logger;
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
  void (*step_finished)(void *, status_t);
  void *environment;
} callbacks_t;

API(unit_t *, Instantiate)
(const char *name, kind_t kind, const char *token, const char *resources,
 const callbacks_t *callbacks, flag_t visible, flag_t logging) {
  if (!callbacks) return NULL;
  return instantiated(name, token, logging, callbacks->environment, callbacks->logger,
                      kind == CO_SIMULATION ? NULL : ONLY_CO_SIMULATION);
}

API(const char *, GetTypesPlatform)(void) { return "default"; }

API(const char *, GetVersion)(void) { return "2.0"; }
#endif

API(void, FreeInstance)(unit_t *unit) { free(unit); }

API(status_t, SetDebugLogging)
(unit_t *unit, flag_t on, size_t count, const char *const categories[]) {
  size_t i;
  if (!unit) return ERROR;
  for (i = 0; i < count; ++i) {
    if (!categories || !categories[i] ||
        (strncmp(categories[i], "logStatus", 9) != 0 &&
         strcmp(categories[i], MODEL_FMI == 3 ? "" : "logAll") != 0)) {
      return refuse_call(unit, TEXT(SetDebugLogging), "no such category");
    }
  }
  unit->logging = on;
  return OK;
}

static status_t unit_enter(unit_t *unit, int from, int to, const char *function) {
  if (!allowed(unit, from, function)) return ERROR;
  unit->now.mode = to;
  return OK;
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

#if MODEL_FMI == 3
API(status_t, EnterInitializationMode)
(unit_t *unit, flag_t has_tolerance, double tolerance, double start, flag_t has_stop, double stop) {
  const char *const name = TEXT(EnterInitializationMode);
  if (unit_setup(unit, start, has_stop, stop, name) != OK) return ERROR;
  return unit_enter(unit, INSTANTIATED, INITIALIZING, name);
}
#else
API(status_t, SetupExperiment)
(unit_t *unit, flag_t has_tolerance, double tolerance, double start, flag_t has_stop, double stop) {
  return unit_setup(unit, start, has_stop, stop, TEXT(SetupExperiment));
}

API(status_t, EnterInitializationMode)(unit_t *unit) {
  return unit_enter(unit, INSTANTIATED, INITIALIZING, TEXT(EnterInitializationMode));
}
#endif

/* --- model -------------------------------------------------------------------------------------*/

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

API(status_t, ExitInitializationMode)(unit_t *unit) {
  if (!allowed(unit, INITIALIZING, TEXT(ExitInitializationMode))) return ERROR;
#if MODEL_STATES
  if (!(unit->now.x[MODEL_STEP_SIZE] > 0 && unit->now.x[MODEL_STEP_SIZE] <= DBL_MAX)) {
    return refuse(unit, "`step_size` must be above zero.");
  }
#endif
  unit->now.stale = 1;
  if (unit_refresh(unit) == ERROR) return ERROR;
  unit_keep(&unit->now);
  unit->now.mode = STEPPING;
  return OK;
}

API(status_t, Terminate)(unit_t *unit) {
  return unit_enter(unit, STEPPING, TERMINATED, TEXT(Terminate));
}

/* Step from t to t + h. A step that cannot be computed is discarded and changes nothing. */
static status_t unit_step(unit_t *unit, double t, double h, const char *function) {
  numbers_t *now;
  status_t status;
  if (!allowed(unit, STEPPING, function)) return ERROR;
  now = &unit->now;
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

#if MODEL_FMI == 3
API(status_t, DoStep)
(unit_t *unit, double time, double step, flag_t no_earlier_state, flag_t *events, flag_t *terminate,
 flag_t *early, double *last) {
  const status_t status = unit_step(unit, time, step, TEXT(DoStep));
  if (events) *events = false;
  if (terminate) *terminate = false;
  if (early) *early = false;
  if (last && unit) *last = unit->now.time;
  return status;
}
#else
API(status_t, DoStep)(unit_t *unit, double time, double step, flag_t no_earlier_state) {
  return unit_step(unit, time, step, TEXT(DoStep));
}
#endif

/* --- values ----------------------------------------------------------------------------------- */

/* Refuse unknown variables, and another number of values than theirs. */
static status_t unit_check(const unit_t *unit, int modes, const unsigned *references, size_t count,
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
  const int modes = INITIALIZING | STEPPING | TERMINATED;
  size_t i, k, done = 0;
  if (unit_check(unit, modes, references, count, integer, room, function) != OK) return ERROR;
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
  const int modes = INSTANTIATED | INITIALIZING | STEPPING;
  size_t i;
  if (unit_check(unit, modes, references, count, 0, room, function) != OK) return ERROR;
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

#define REFERENCES unit_t *unit, const unsigned references[], size_t count
#define GET(name, type, integer) \
  API(status_t, name)(REFERENCES, type values[] ROOM) { \
    return unit_get(unit, references, count, integer, values, LENGTH, TEXT(name)); \
  }
#define SET(name) \
  API(status_t, name)(REFERENCES, const double values[] ROOM) { \
    return unit_set(unit, references, count, values, LENGTH, TEXT(name)); \
  }
/* No variable has this type, or it cannot be set. */
#define NONE(name, ...) \
  API(status_t, name)(REFERENCES, __VA_ARGS__) { \
    return unit && !count ? OK : refuse_call(unit, TEXT(name), "not supported"); \
  }
#define NO_VALUES(type, name) \
  NONE(Get##name, type values[] ROOM) \
  NONE(Set##name, const type values[] ROOM)

#if MODEL_FMI == 3
GET(GetFloat64, double, 0)
GET(GetInt32, int32_t, 1)
SET(SetFloat64)
NO_VALUES(float, Float32)
NO_VALUES(int8_t, Int8)
NO_VALUES(uint8_t, UInt8)
NO_VALUES(int16_t, Int16)
NO_VALUES(uint16_t, UInt16)
NO_VALUES(uint32_t, UInt32)
NO_VALUES(int64_t, Int64)
NO_VALUES(uint64_t, UInt64)
NO_VALUES(bool, Boolean)
NO_VALUES(char *, String)
NONE(SetInt32, const int32_t values[] ROOM)
typedef const byte_t *binary_t;
NONE(GetBinary, size_t sizes[], binary_t values[] ROOM)
NONE(SetBinary, const size_t sizes[], const binary_t values[] ROOM)
NONE(GetClock, bool values[])
NONE(SetClock, const bool values[])
#else
GET(GetReal, double, 0)
GET(GetInteger, int, 1)
SET(SetReal)
NO_VALUES(int, Boolean)
NO_VALUES(char *, String)
NONE(SetInteger, const int values[])
#endif

/* --- saved states: the numbers of an instance, as they are or as bytes ------------------------ */

static int is_own(const numbers_t *saved) {
  return saved && memcmp(saved->token, MODEL_TOKEN, sizeof MODEL_TOKEN) == 0;
}

static status_t copied(const unit_t *unit, const numbers_t *saved, numbers_t **state,
                       const char *name) {
  if (!*state) *state = (numbers_t *)malloc(sizeof *saved);
  if (!*state) return refuse_call(unit, name, "no memory");
  memcpy(*state, saved, sizeof *saved);
  return OK;
}

API(status_t, OF_STATE(Get, ))(unit_t *unit, numbers_t **state) {
  if (!unit || !state) return ERROR;
  return copied(unit, &unit->now, state, TEXT(OF_STATE(Get, )));
}

API(status_t, OF_STATE(Set, ))(unit_t *unit, numbers_t *state) {
  if (!unit || !is_own(state)) {
    return refuse_call(unit, TEXT(OF_STATE(Set, )), "no state of this unit");
  }
  memcpy(&unit->now, state, sizeof *state);
  return OK;
}

API(status_t, OF_STATE(Free, ))(unit_t *unit, numbers_t **state) {
  if (!unit) return ERROR;
  if (state) {
    free(*state);
    *state = NULL;
  }
  return OK;
}

API(status_t, OF_STATE(Serialized, Size))(unit_t *unit, numbers_t *state, size_t *size) {
  if (!unit || !size) return ERROR;
  *size = sizeof *state;
  return OK;
}

API(status_t, OF_STATE(Serialize, ))(unit_t *unit, numbers_t *state, byte_t bytes[], size_t size) {
  const char *const name = TEXT(OF_STATE(Serialize, ));
  if (!unit || !bytes || size < sizeof *state || !is_own(state)) {
    return refuse_call(unit, name, "no state, or too few bytes");
  }
  memcpy(bytes, state, sizeof *state);
  return OK;
}

API(status_t, DESERIALIZE_STATE)
(unit_t *unit, const byte_t bytes[], size_t size, numbers_t **state) {
  const char *const name = TEXT(DESERIALIZE_STATE);
  numbers_t saved;
  if (!unit || !state) return ERROR;
  if (bytes && size == sizeof saved) memcpy(&saved, bytes, sizeof saved);
  if (!bytes || size != sizeof saved || !is_own(&saved)) {
    return refuse_call(unit, name, "no state of this unit");
  }
  return copied(unit, &saved, state, name);
}

/* --- features that the description does not offer --------------------------------------------- */

#define UNSUPPORTED(name, ...) \
  API(status_t, name)(unit_t *unit, __VA_ARGS__) { \
    return refuse_call(unit, TEXT(name), "not supported"); \
  }
#define NO_MODE(name) \
  API(status_t, name)(unit_t *unit) { return refuse_call(unit, TEXT(name), "not supported"); }

NO_MODE(EnterEventMode)
NO_MODE(EnterContinuousTimeMode)
UNSUPPORTED(CompletedIntegratorStep, flag_t no_earlier_state, flag_t *event, flag_t *terminate)
UNSUPPORTED(SetTime, double time)
UNSUPPORTED(SetContinuousStates, const double states[], size_t count)
UNSUPPORTED(GetContinuousStates, double values[], size_t count)
UNSUPPORTED(GetNominalsOfContinuousStates, double values[], size_t count)
UNSUPPORTED(GetEventIndicators, double values[], size_t count)

#define DERIVATIVE(name, ...) \
  UNSUPPORTED(name, const unsigned unknowns[], size_t n, const unsigned knowns[], size_t m, \
              const double seed[], __VA_ARGS__)
#define OF_REFERENCES(name, ...) \
  UNSUPPORTED(name, const unsigned references[], size_t count, __VA_ARGS__)
#if MODEL_FMI == 3
UNSUPPORTED(GetNumberOfVariableDependencies, unsigned reference, size_t *count)
UNSUPPORTED(GetVariableDependencies, unsigned dependent, size_t of_dependent[],
            unsigned independents[], size_t of_independents[], int kinds[], size_t count)
DERIVATIVE(GetDirectionalDerivative, size_t seeds, double sensitivity[], size_t sensitivities)
DERIVATIVE(GetAdjointDerivative, size_t seeds, double sensitivity[], size_t sensitivities)
OF_REFERENCES(GetOutputDerivatives, const int orders[], double values[], size_t room)
NO_MODE(EnterStepMode)
NO_MODE(EnterConfigurationMode)
NO_MODE(ExitConfigurationMode)
NO_MODE(EvaluateDiscreteStates)
UNSUPPORTED(UpdateDiscreteStates, bool *again, bool *terminate, bool *nominals, bool *values,
            bool *has_next, double *next)
OF_REFERENCES(GetIntervalDecimal, double intervals[], int qualifiers[])
OF_REFERENCES(GetIntervalFraction, uint64_t counters[], uint64_t resolutions[], int qualifiers[])
OF_REFERENCES(GetShiftDecimal, double shifts[])
OF_REFERENCES(GetShiftFraction, uint64_t counters[], uint64_t resolutions[])
OF_REFERENCES(SetIntervalDecimal, const double intervals[])
OF_REFERENCES(SetIntervalFraction, const uint64_t counters[], const uint64_t resolutions[])
OF_REFERENCES(SetShiftDecimal, const double shifts[])
OF_REFERENCES(SetShiftFraction, const uint64_t counters[], const uint64_t resolutions[])
UNSUPPORTED(GetContinuousStateDerivatives, double values[], size_t count)
UNSUPPORTED(GetNumberOfEventIndicators, size_t *count)
UNSUPPORTED(GetNumberOfContinuousStates, size_t *count)
UNSUPPORTED(ActivateModelPartition, unsigned clock, double time)
#else
typedef enum { STEP_STATUS, PENDING_STATUS, LAST_TIME, TERMINATED_STATUS } asked_t;

API(status_t, GetRealStatus)(unit_t *unit, asked_t kind, double *value) {
  if (!unit || !value) return ERROR;
  if (kind != LAST_TIME) return refuse_call(unit, TEXT(GetRealStatus), "not supported");
  *value = unit->now.time;
  return OK;
}

API(status_t, GetBooleanStatus)(unit_t *unit, asked_t kind, flag_t *value) {
  if (!unit || !value) return ERROR;
  if (kind != TERMINATED_STATUS) return refuse_call(unit, TEXT(GetBooleanStatus), "not supported");
  *value = 0;
  return OK;
}

/* Steps are never pending. */
UNSUPPORTED(GetStatus, asked_t kind, status_t *value)
UNSUPPORTED(GetIntegerStatus, asked_t kind, int *value)
UNSUPPORTED(GetStringStatus, asked_t kind, const char **value)
NO_MODE(CancelStep)
DERIVATIVE(GetDirectionalDerivative, double sensitivity[])
OF_REFERENCES(SetRealInputDerivatives, const int orders[], const double values[])
OF_REFERENCES(GetRealOutputDerivatives, const int orders[], double values[])
UNSUPPORTED(NewDiscreteStates, void *events)
UNSUPPORTED(GetDerivatives, double values[], size_t count)
#endif
