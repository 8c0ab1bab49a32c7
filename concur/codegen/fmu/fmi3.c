/* FMI 3.0 for co-simulation around a unit. Types and functions are those of the standard,
   https://fmi-standard.org; calls of features that the description does not offer are rejected. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "unit.h"

#if !defined(FMI3_Export)
#if defined(_WIN32)
#define FMI3_Export __declspec(dllexport)
#elif defined(__GNUC__)
#define FMI3_Export __attribute__((visibility("default")))
#else
#define FMI3_Export
#endif
#endif

/* A tool that links the code statically may define a prefix of the names. */
#if defined(FMI3_FUNCTION_PREFIX) && !defined(FMI3_OVERRIDE_FUNCTION_PREFIX)
#define JOINED(prefix, name) prefix##name
#define WITH_PREFIX(prefix, name) JOINED(prefix, name)
#define NAME(name) WITH_PREFIX(FMI3_FUNCTION_PREFIX, name)
#else
#define NAME(name) name
#endif
#define API(type, name) FMI3_Export type NAME(name)

typedef void *fmi3Instance, *fmi3InstanceEnvironment, *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef float fmi3Float32;
typedef double fmi3Float64;
typedef int8_t fmi3Int8;
typedef uint8_t fmi3UInt8;
typedef int16_t fmi3Int16;
typedef uint16_t fmi3UInt16;
typedef int32_t fmi3Int32;
typedef uint32_t fmi3UInt32;
typedef int64_t fmi3Int64;
typedef uint64_t fmi3UInt64;
typedef bool fmi3Boolean, fmi3Clock;
typedef const char *fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte *fmi3Binary;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum {
  fmi3Independent,
  fmi3Constant,
  fmi3Fixed,
  fmi3Tunable,
  fmi3Discrete,
  fmi3Dependent
} fmi3DependencyKind;
typedef enum {
  fmi3IntervalNotYetKnown,
  fmi3IntervalUnchanged,
  fmi3IntervalChanged
} fmi3IntervalQualifier;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String, fmi3String);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64, fmi3Boolean,
                                               fmi3Boolean, fmi3Boolean, fmi3Boolean,
                                               fmi3Boolean *, fmi3Float64 *);
typedef void (*fmi3ClockUpdateCallback)(fmi3InstanceEnvironment);
typedef void (*fmi3LockPreemptionCallback)(void);

typedef struct {
  unit_t unit;
  fmi3InstanceEnvironment environment;
  fmi3LogMessageCallback log;
} instance_t;

static void log_message(unit_t *unit, int status, const char *message) {
  static const char *const categories[] = {"", "logStatusWarning", "logStatusDiscard",
                                           "logStatusError"};
  const instance_t *instance = (const instance_t *)(const void *)unit;
  if (unit->logging && instance->log) {
    instance->log(instance->environment, (fmi3Status)status, categories[status], message);
  }
}

#define UNIT(instance) (&((instance_t *)(instance))->unit)

static fmi3Status unsupported(fmi3Instance instance, const char *function) {
  if (!instance) return fmi3Error;
  return (fmi3Status)refuse_call(UNIT(instance), function, "not supported");
}

API(const char *, fmi3GetVersion)(void) { return "3.0"; }

API(fmi3Status, fmi3SetDebugLogging)
(fmi3Instance instance, fmi3Boolean on, size_t count, const fmi3String categories[]) {
  size_t i;
  if (!instance) return fmi3Error;
  for (i = 0; i < count; ++i) {
    if (!categories || !categories[i] || strncmp(categories[i], "logStatus", 9) != 0) {
      return (fmi3Status)refuse(UNIT(instance), "fmi3SetDebugLogging: no such category");
    }
  }
  UNIT(instance)->logging = on;
  return fmi3OK;
}

API(fmi3Instance, fmi3InstantiateCoSimulation)
(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
 fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference required[], size_t count,
 fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
 fmi3IntermediateUpdateCallback update) {
  instance_t *instance;
  const char *wrong = NULL;
  if (!token || strcmp(token, MODEL_TOKEN) != 0) {
    wrong = "The instantiation token differs: binary and description do not match.";
  } else if (events || count) {
    wrong = "There is no event mode, and there are no intermediate variables.";
  }
  if (wrong) {
    if (log) log(environment, fmi3Error, "logStatusError", wrong);
    return NULL;
  }
  instance = (instance_t *)calloc(1, sizeof *instance);
  if (!instance) return NULL;
  instance->environment = environment;
  instance->log = log;
  instance->unit.logging = logging;
  unit_reset(&instance->unit);
  return instance;
}

API(fmi3Instance, fmi3InstantiateModelExchange)
(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
 fmi3InstanceEnvironment environment, fmi3LogMessageCallback log) {
  if (log) log(environment, fmi3Error, "logStatusError", "This unit is for co-simulation only.");
  return NULL;
}

API(fmi3Instance, fmi3InstantiateScheduledExecution)
(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
 fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, fmi3ClockUpdateCallback update,
 fmi3LockPreemptionCallback lock, fmi3LockPreemptionCallback unlock) {
  if (log) log(environment, fmi3Error, "logStatusError", "This unit is for co-simulation only.");
  return NULL;
}

API(void, fmi3FreeInstance)(fmi3Instance instance) { free(instance); }

API(fmi3Status, fmi3EnterInitializationMode)
(fmi3Instance instance, fmi3Boolean has_tolerance, fmi3Float64 tolerance, fmi3Float64 start,
 fmi3Boolean has_stop, fmi3Float64 stop) {
  if (!instance) return fmi3Error;
  if (!allowed(UNIT(instance), INSTANTIATED, "fmi3EnterInitializationMode")) return fmi3Error;
  if (unit_setup(UNIT(instance), start, has_stop, stop) != OK) return fmi3Error;
  UNIT(instance)->now.mode = INITIALIZING;
  return fmi3OK;
}

API(fmi3Status, fmi3ExitInitializationMode)(fmi3Instance instance) {
  if (!instance) return fmi3Error;
  if (!allowed(UNIT(instance), INITIALIZING, "fmi3ExitInitializationMode")) return fmi3Error;
  return (fmi3Status)unit_start(UNIT(instance));
}

API(fmi3Status, fmi3Terminate)(fmi3Instance instance) {
  if (!instance) return fmi3Error;
  if (!allowed(UNIT(instance), STEPPING, "fmi3Terminate")) return fmi3Error;
  UNIT(instance)->now.mode = TERMINATED;
  return fmi3OK;
}

API(fmi3Status, fmi3Reset)(fmi3Instance instance) {
  if (!instance) return fmi3Error;
  unit_reset(UNIT(instance));
  return fmi3OK;
}

API(fmi3Status, fmi3GetFloat64)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Float64 values[],
 size_t room) {
  if (!instance) return fmi3Error;
  return (fmi3Status)unit_get(UNIT(instance), references, count, 0, values, NULL, room,
                              "fmi3GetFloat64");
}

API(fmi3Status, fmi3GetInt32)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Int32 values[],
 size_t room) {
  if (!instance) return fmi3Error;
  return (fmi3Status)unit_get(UNIT(instance), references, count, 1, NULL, values, room,
                              "fmi3GetInt32");
}

API(fmi3Status, fmi3SetFloat64)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3Float64 values[], size_t room) {
  if (!instance) return fmi3Error;
  return (fmi3Status)unit_set(UNIT(instance), references, count, values, room, "fmi3SetFloat64");
}

/* No variable has these types. */
#define NO_VALUES(type, get, set)                                                                \
  API(fmi3Status, get)                                                                           \
  (fmi3Instance instance, const fmi3ValueReference references[], size_t count, type values[],    \
   size_t room) {                                                                                \
    return instance && !count ? fmi3OK : unsupported(instance, #get);                            \
  }                                                                                              \
  API(fmi3Status, set)                                                                           \
  (fmi3Instance instance, const fmi3ValueReference references[], size_t count,                   \
   const type values[], size_t room) {                                                           \
    return instance && !count ? fmi3OK : unsupported(instance, #set);                            \
  }

NO_VALUES(fmi3Float32, fmi3GetFloat32, fmi3SetFloat32)
NO_VALUES(fmi3Int8, fmi3GetInt8, fmi3SetInt8)
NO_VALUES(fmi3UInt8, fmi3GetUInt8, fmi3SetUInt8)
NO_VALUES(fmi3Int16, fmi3GetInt16, fmi3SetInt16)
NO_VALUES(fmi3UInt16, fmi3GetUInt16, fmi3SetUInt16)
NO_VALUES(fmi3UInt32, fmi3GetUInt32, fmi3SetUInt32)
NO_VALUES(fmi3Int64, fmi3GetInt64, fmi3SetInt64)
NO_VALUES(fmi3UInt64, fmi3GetUInt64, fmi3SetUInt64)
NO_VALUES(fmi3Boolean, fmi3GetBoolean, fmi3SetBoolean)
NO_VALUES(fmi3String, fmi3GetString, fmi3SetString)

API(fmi3Status, fmi3SetInt32)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3Int32 values[], size_t room) {
  return instance && !count ? fmi3OK : unsupported(instance, "fmi3SetInt32");
}

API(fmi3Status, fmi3GetBinary)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, size_t sizes[],
 fmi3Binary values[], size_t room) {
  return instance && !count ? fmi3OK : unsupported(instance, "fmi3GetBinary");
}

API(fmi3Status, fmi3SetBinary)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, const size_t sizes[],
 const fmi3Binary values[], size_t room) {
  return instance && !count ? fmi3OK : unsupported(instance, "fmi3SetBinary");
}

API(fmi3Status, fmi3GetClock)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Clock values[]) {
  return instance && !count ? fmi3OK : unsupported(instance, "fmi3GetClock");
}

API(fmi3Status, fmi3SetClock)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3Clock values[]) {
  return instance && !count ? fmi3OK : unsupported(instance, "fmi3SetClock");
}

API(fmi3Status, fmi3DoStep)
(fmi3Instance instance, fmi3Float64 time, fmi3Float64 step, fmi3Boolean no_earlier_state,
 fmi3Boolean *events, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last) {
  int status;
  if (!instance) return fmi3Error;
  status = unit_step(UNIT(instance), time, step, "fmi3DoStep");
  if (events) *events = false;
  if (terminate) *terminate = false;
  if (early) *early = false;
  if (last) *last = UNIT(instance)->now.time;
  return (fmi3Status)status;
}

API(fmi3Status, fmi3GetFMUState)(fmi3Instance instance, fmi3FMUState *state) {
  if (!instance || !state) return fmi3Error;
  if (!*state) *state = malloc(sizeof(numbers_t));
  if (!*state) return (fmi3Status)refuse(UNIT(instance), "fmi3GetFMUState: no memory");
  memcpy(*state, &UNIT(instance)->now, sizeof(numbers_t));
  return fmi3OK;
}

API(fmi3Status, fmi3SetFMUState)(fmi3Instance instance, fmi3FMUState state) {
  if (!instance) return fmi3Error;
  if (!unit_owns((const numbers_t *)state)) {
    return (fmi3Status)refuse(UNIT(instance), "fmi3SetFMUState: no state of this unit");
  }
  memcpy(&UNIT(instance)->now, state, sizeof(numbers_t));
  return fmi3OK;
}

API(fmi3Status, fmi3FreeFMUState)(fmi3Instance instance, fmi3FMUState *state) {
  if (!instance) return fmi3Error;
  if (!state) return fmi3OK;
  free(*state);
  *state = NULL;
  return fmi3OK;
}

API(fmi3Status, fmi3SerializedFMUStateSize)
(fmi3Instance instance, fmi3FMUState state, size_t *size) {
  if (!instance || !size) return fmi3Error;
  *size = sizeof(numbers_t);
  return fmi3OK;
}

API(fmi3Status, fmi3SerializeFMUState)
(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
  if (!instance) return fmi3Error;
  if (!bytes || size < sizeof(numbers_t) || !unit_owns((const numbers_t *)state)) {
    return (fmi3Status)refuse(UNIT(instance), "fmi3SerializeFMUState: no state, or too few bytes");
  }
  memcpy(bytes, state, sizeof(numbers_t));
  return fmi3OK;
}

API(fmi3Status, fmi3DeserializeFMUState)
(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
  numbers_t saved;
  if (!instance || !state) return fmi3Error;
  if (bytes && size == sizeof saved) memcpy(&saved, bytes, sizeof saved);
  if (!bytes || size != sizeof saved || !unit_owns(&saved)) {
    return (fmi3Status)refuse(UNIT(instance), "fmi3DeserializeFMUState: no state of this unit");
  }
  if (!*state) *state = malloc(sizeof saved);
  if (!*state) return (fmi3Status)refuse(UNIT(instance), "fmi3DeserializeFMUState: no memory");
  memcpy(*state, &saved, sizeof saved);
  return fmi3OK;
}

/* Features that the description does not offer. */

API(fmi3Status, fmi3GetNumberOfVariableDependencies)
(fmi3Instance instance, fmi3ValueReference reference, size_t *count) {
  return unsupported(instance, "fmi3GetNumberOfVariableDependencies");
}

API(fmi3Status, fmi3GetVariableDependencies)
(fmi3Instance instance, fmi3ValueReference dependent, size_t of_dependent[],
 fmi3ValueReference independents[], size_t of_independents[], fmi3DependencyKind kinds[],
 size_t count) {
  return unsupported(instance, "fmi3GetVariableDependencies");
}

API(fmi3Status, fmi3GetDirectionalDerivative)
(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t n_unknowns,
 const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed,
 fmi3Float64 sensitivity[], size_t n_sensitivity) {
  return unsupported(instance, "fmi3GetDirectionalDerivative");
}

API(fmi3Status, fmi3GetAdjointDerivative)
(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t n_unknowns,
 const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed,
 fmi3Float64 sensitivity[], size_t n_sensitivity) {
  return unsupported(instance, "fmi3GetAdjointDerivative");
}

API(fmi3Status, fmi3GetOutputDerivatives)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3Int32 orders[], fmi3Float64 values[], size_t room) {
  return unsupported(instance, "fmi3GetOutputDerivatives");
}

#define NO_MODE(name) \
  API(fmi3Status, name)(fmi3Instance instance) { return unsupported(instance, #name); }

NO_MODE(fmi3EnterEventMode)
NO_MODE(fmi3EnterStepMode)
NO_MODE(fmi3EnterConfigurationMode)
NO_MODE(fmi3ExitConfigurationMode)
NO_MODE(fmi3EnterContinuousTimeMode)
NO_MODE(fmi3EvaluateDiscreteStates)

API(fmi3Status, fmi3UpdateDiscreteStates)
(fmi3Instance instance, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
 fmi3Boolean *values, fmi3Boolean *has_next, fmi3Float64 *next) {
  return unsupported(instance, "fmi3UpdateDiscreteStates");
}

API(fmi3Status, fmi3GetIntervalDecimal)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[]) {
  return unsupported(instance, "fmi3GetIntervalDecimal");
}

API(fmi3Status, fmi3GetIntervalFraction)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3UInt64 counters[],
 fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[]) {
  return unsupported(instance, "fmi3GetIntervalFraction");
}

API(fmi3Status, fmi3GetShiftDecimal)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 fmi3Float64 shifts[]) {
  return unsupported(instance, "fmi3GetShiftDecimal");
}

API(fmi3Status, fmi3GetShiftFraction)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3UInt64 counters[],
 fmi3UInt64 resolutions[]) {
  return unsupported(instance, "fmi3GetShiftFraction");
}

API(fmi3Status, fmi3SetIntervalDecimal)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3Float64 intervals[]) {
  return unsupported(instance, "fmi3SetIntervalDecimal");
}

API(fmi3Status, fmi3SetIntervalFraction)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]) {
  return unsupported(instance, "fmi3SetIntervalFraction");
}

API(fmi3Status, fmi3SetShiftDecimal)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3Float64 shifts[]) {
  return unsupported(instance, "fmi3SetShiftDecimal");
}

API(fmi3Status, fmi3SetShiftFraction)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3UInt64 counters[], const fmi3UInt64 resolutions[]) {
  return unsupported(instance, "fmi3SetShiftFraction");
}

API(fmi3Status, fmi3CompletedIntegratorStep)
(fmi3Instance instance, fmi3Boolean no_earlier_state, fmi3Boolean *event, fmi3Boolean *terminate) {
  return unsupported(instance, "fmi3CompletedIntegratorStep");
}

API(fmi3Status, fmi3SetTime)(fmi3Instance instance, fmi3Float64 time) {
  return unsupported(instance, "fmi3SetTime");
}

API(fmi3Status, fmi3SetContinuousStates)
(fmi3Instance instance, const fmi3Float64 states[], size_t count) {
  return unsupported(instance, "fmi3SetContinuousStates");
}

#define NO_NUMBERS(name)                                                            \
  API(fmi3Status, name)(fmi3Instance instance, fmi3Float64 values[], size_t count) { \
    return unsupported(instance, #name);                                            \
  }

NO_NUMBERS(fmi3GetContinuousStateDerivatives)
NO_NUMBERS(fmi3GetEventIndicators)
NO_NUMBERS(fmi3GetContinuousStates)
NO_NUMBERS(fmi3GetNominalsOfContinuousStates)

API(fmi3Status, fmi3GetNumberOfEventIndicators)(fmi3Instance instance, size_t *count) {
  return unsupported(instance, "fmi3GetNumberOfEventIndicators");
}

API(fmi3Status, fmi3GetNumberOfContinuousStates)(fmi3Instance instance, size_t *count) {
  return unsupported(instance, "fmi3GetNumberOfContinuousStates");
}

API(fmi3Status, fmi3ActivateModelPartition)
(fmi3Instance instance, fmi3ValueReference clock, fmi3Float64 time) {
  return unsupported(instance, "fmi3ActivateModelPartition");
}
