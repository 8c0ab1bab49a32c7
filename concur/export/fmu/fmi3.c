/* FMI 3.0 for co-simulation around a unit. Functions are those of the standard,
   https://fmi-standard.org, with the types that its names stand for; calls of features that the
   description does not offer are rejected. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "unit.h"

#define FMI(name) fmi3##name
#define OF_STATE(before, after) before##FMUState##after
#define DESERIALIZE_STATE DeserializeFMUState
#define ROOM , size_t room
#define LENGTH room

#if defined(FMI3_Export)
#define EXPORT FMI3_Export
#endif
/* A tool that links the code statically may define a prefix of the names. */
#if defined(FMI3_FUNCTION_PREFIX) && !defined(FMI3_OVERRIDE_FUNCTION_PREFIX)
#define PREFIX FMI3_FUNCTION_PREFIX
#endif

typedef bool flag_t;
typedef uint8_t byte_t;
typedef const byte_t *binary_t;
typedef void (*log_t)(void *, status_t, const char *, const char *);
typedef void (*call_t)(void); /* a callback that is never called */

typedef struct {
  unit_t unit;
  void *environment;
  log_t log;
} instance_t;

#include "calls.h"

static void log_message(unit_t *unit, status_t status, const char *message) {
  const instance_t *instance = (const instance_t *)(const void *)unit;
  if (unit->logging && instance->log) {
    instance->log(instance->environment, status, categories_of_status[status], message);
  }
}

static void *allocated(unit_t *unit, size_t size) { return malloc(size); }

static void freed(unit_t *unit, void *memory) { free(memory); }

API(const char *, GetVersion)(void) { return "3.0"; }

API(status_t, SetDebugLogging)
(void *instance, flag_t on, size_t count, const char *const categories[]) {
  return unit_logging(UNIT(instance), on, count, categories, "", TEXT(SetDebugLogging));
}

static void *refused(void *environment, log_t log, const char *why) {
  if (log) log(environment, ERROR, "logStatusError", why);
  return NULL;
}

API(void *, InstantiateCoSimulation)
(const char *name, const char *token, const char *resources, flag_t visible, flag_t logging,
 flag_t events, flag_t early, const unsigned required[], size_t count, void *environment, log_t log,
 call_t update) {
  instance_t *instance;
  if (!token || strcmp(token, MODEL_TOKEN) != 0) {
    return refused(environment, log,
                   "The instantiation token differs: binary and description do not match.");
  }
  if (events || count) {
    return refused(environment, log,
                   "There is no event mode, and there are no intermediate variables.");
  }
  instance = (instance_t *)calloc(1, sizeof *instance);
  if (!instance) return NULL;
  instance->environment = environment;
  instance->log = log;
  instance->unit.logging = logging;
  unit_reset(&instance->unit);
  return instance;
}

#define ONLY_CO_SIMULATION "This unit is for co-simulation only."

API(void *, InstantiateModelExchange)
(const char *name, const char *token, const char *resources, flag_t visible, flag_t logging,
 void *environment, log_t log) {
  return refused(environment, log, ONLY_CO_SIMULATION);
}

API(void *, InstantiateScheduledExecution)
(const char *name, const char *token, const char *resources, flag_t visible, flag_t logging,
 void *environment, log_t log, call_t update, call_t lock, call_t unlock) {
  return refused(environment, log, ONLY_CO_SIMULATION);
}

API(void, FreeInstance)(void *instance) { free(instance); }

API(status_t, EnterInitializationMode)
(void *instance, flag_t has_tolerance, double tolerance, double start, flag_t has_stop,
 double stop) {
  const char *const name = TEXT(EnterInitializationMode);
  if (unit_setup(UNIT(instance), start, has_stop, stop, name) != OK) return ERROR;
  return unit_enter(UNIT(instance), INSTANTIATED, INITIALIZING, name);
}

GET(GetFloat64, double, 0)
GET(GetInt32, int32_t, 1)
SET(SetFloat64, double)

#define NO_VALUES(type, name) \
  NONE(Get##name, type values[] ROOM) \
  NONE(Set##name, const type values[] ROOM)

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
NONE(GetBinary, size_t sizes[], binary_t values[] ROOM)
NONE(SetBinary, const size_t sizes[], const binary_t values[] ROOM)
NONE(GetClock, bool values[])
NONE(SetClock, const bool values[])

API(status_t, DoStep)
(void *instance, double time, double step, flag_t no_earlier_state, flag_t *events,
 flag_t *terminate, flag_t *early, double *last) {
  const status_t status = unit_step(UNIT(instance), time, step, TEXT(DoStep));
  if (events) *events = false;
  if (terminate) *terminate = false;
  if (early) *early = false;
  if (last && instance) *last = UNIT(instance)->now.time;
  return status;
}

/* Features that the description does not offer. */

UNSUPPORTED(GetNumberOfVariableDependencies, unsigned reference, size_t *count)
UNSUPPORTED(GetVariableDependencies, unsigned dependent, size_t of_dependent[],
            unsigned independents[], size_t of_independents[], int kinds[], size_t count)
#define DERIVATIVE(name) \
  UNSUPPORTED(name, const unsigned unknowns[], size_t n, const unsigned knowns[], size_t m, \
              const double seed[], size_t seeds, double sensitivity[], size_t sensitivities)
DERIVATIVE(GetDirectionalDerivative)
DERIVATIVE(GetAdjointDerivative)
UNSUPPORTED(GetOutputDerivatives, const unsigned references[], size_t count, const int orders[],
            double values[], size_t room)

NO_MODE(EnterStepMode)
NO_MODE(EnterConfigurationMode)
NO_MODE(ExitConfigurationMode)
NO_MODE(EvaluateDiscreteStates)
UNSUPPORTED(UpdateDiscreteStates, bool *again, bool *terminate, bool *nominals, bool *values,
            bool *has_next, double *next)
#define CLOCKS(name, ...) UNSUPPORTED(name, const unsigned references[], size_t count, __VA_ARGS__)
CLOCKS(GetIntervalDecimal, double intervals[], int qualifiers[])
CLOCKS(GetIntervalFraction, uint64_t counters[], uint64_t resolutions[], int qualifiers[])
CLOCKS(GetShiftDecimal, double shifts[])
CLOCKS(GetShiftFraction, uint64_t counters[], uint64_t resolutions[])
CLOCKS(SetIntervalDecimal, const double intervals[])
CLOCKS(SetIntervalFraction, const uint64_t counters[], const uint64_t resolutions[])
CLOCKS(SetShiftDecimal, const double shifts[])
CLOCKS(SetShiftFraction, const uint64_t counters[], const uint64_t resolutions[])
UNSUPPORTED(GetContinuousStateDerivatives, double values[], size_t count)
UNSUPPORTED(GetNumberOfEventIndicators, size_t *count)
UNSUPPORTED(GetNumberOfContinuousStates, size_t *count)
UNSUPPORTED(ActivateModelPartition, unsigned clock, double time)
