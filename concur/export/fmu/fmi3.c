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

/* The unit is the first member of an instance, which may be missing. */
#define UNIT(instance) ((unit_t *)(instance))

static void *allocated(unit_t *unit, size_t size) { return malloc(size); }

static void freed(unit_t *unit, void *memory) { free(memory); }

static fmi3Status unsupported(fmi3Instance instance, const char *function) {
  return (fmi3Status)refuse_call(UNIT(instance), function, "not supported");
}

#define UNSUPPORTED(name, ...)                                      \
  API(fmi3Status, name)(fmi3Instance instance, __VA_ARGS__) {       \
    return unsupported(instance, #name);                            \
  }
#define NO_MODE(name) \
  API(fmi3Status, name)(fmi3Instance instance) { return unsupported(instance, #name); }

API(const char *, fmi3GetVersion)(void) { return "3.0"; }

API(fmi3Status, fmi3SetDebugLogging)
(fmi3Instance instance, fmi3Boolean on, size_t count, const fmi3String categories[]) {
  return (fmi3Status)unit_logging(UNIT(instance), on, count, categories, "", "fmi3SetDebugLogging");
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
  const char *const name = "fmi3EnterInitializationMode";
  if (unit_setup(UNIT(instance), start, has_stop, stop, name) != OK) return fmi3Error;
  return (fmi3Status)unit_enter(UNIT(instance), INSTANTIATED, INITIALIZING, name);
}

API(fmi3Status, fmi3ExitInitializationMode)(fmi3Instance instance) {
  return (fmi3Status)unit_start(UNIT(instance), "fmi3ExitInitializationMode");
}

API(fmi3Status, fmi3Terminate)(fmi3Instance instance) {
  return (fmi3Status)unit_enter(UNIT(instance), STEPPING, TERMINATED, "fmi3Terminate");
}

API(fmi3Status, fmi3Reset)(fmi3Instance instance) {
  return (fmi3Status)unit_reset(UNIT(instance));
}

API(fmi3Status, fmi3GetFloat64)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Float64 values[],
 size_t room) {
  return (fmi3Status)unit_get(UNIT(instance), references, count, 0, values, NULL, room,
                              "fmi3GetFloat64");
}

API(fmi3Status, fmi3GetInt32)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Int32 values[],
 size_t room) {
  return (fmi3Status)unit_get(UNIT(instance), references, count, 1, NULL, values, room,
                              "fmi3GetInt32");
}

API(fmi3Status, fmi3SetFloat64)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3Float64 values[], size_t room) {
  return (fmi3Status)unit_set(UNIT(instance), references, count, values, room, "fmi3SetFloat64");
}

/* No variable has these types, and an integer cannot be set. */
#define NONE(name, ...)                                                                        \
  API(fmi3Status, name)                                                                        \
  (fmi3Instance instance, const fmi3ValueReference references[], size_t count, __VA_ARGS__) {  \
    return instance && !count ? fmi3OK : unsupported(instance, #name);                         \
  }
#define NO_VALUES(type, get, set)             \
  NONE(get, type values[], size_t room)       \
  NONE(set, const type values[], size_t room)

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
NONE(fmi3SetInt32, const fmi3Int32 values[], size_t room)
NONE(fmi3GetBinary, size_t sizes[], fmi3Binary values[], size_t room)
NONE(fmi3SetBinary, const size_t sizes[], const fmi3Binary values[], size_t room)
NONE(fmi3GetClock, fmi3Clock values[])
NONE(fmi3SetClock, const fmi3Clock values[])

API(fmi3Status, fmi3DoStep)
(fmi3Instance instance, fmi3Float64 time, fmi3Float64 step, fmi3Boolean no_earlier_state,
 fmi3Boolean *events, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last) {
  const int status = unit_step(UNIT(instance), time, step, "fmi3DoStep");
  if (events) *events = false;
  if (terminate) *terminate = false;
  if (early) *early = false;
  if (last && instance) *last = UNIT(instance)->now.time;
  return (fmi3Status)status;
}

API(fmi3Status, fmi3GetFMUState)(fmi3Instance instance, fmi3FMUState *state) {
  return (fmi3Status)unit_save(UNIT(instance), state, "fmi3GetFMUState");
}

API(fmi3Status, fmi3SetFMUState)(fmi3Instance instance, fmi3FMUState state) {
  return (fmi3Status)unit_restore(UNIT(instance), state, "fmi3SetFMUState");
}

API(fmi3Status, fmi3FreeFMUState)(fmi3Instance instance, fmi3FMUState *state) {
  return (fmi3Status)unit_drop(UNIT(instance), state);
}

API(fmi3Status, fmi3SerializedFMUStateSize)
(fmi3Instance instance, fmi3FMUState state, size_t *size) {
  return (fmi3Status)unit_bytes_size(UNIT(instance), size);
}

API(fmi3Status, fmi3SerializeFMUState)
(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
  return (fmi3Status)unit_to_bytes(UNIT(instance), state, bytes, size, "fmi3SerializeFMUState");
}

API(fmi3Status, fmi3DeserializeFMUState)
(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
  return (fmi3Status)unit_of_bytes(UNIT(instance), bytes, size, state, "fmi3DeserializeFMUState");
}

/* Features that the description does not offer. */

UNSUPPORTED(fmi3GetNumberOfVariableDependencies, fmi3ValueReference reference, size_t *count)

UNSUPPORTED(fmi3GetVariableDependencies, fmi3ValueReference dependent, size_t of_dependent[],
            fmi3ValueReference independents[], size_t of_independents[], fmi3DependencyKind kinds[],
            size_t count)

UNSUPPORTED(fmi3GetDirectionalDerivative, const fmi3ValueReference unknowns[], size_t n_unknowns,
            const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t
            n_seed, fmi3Float64 sensitivity[], size_t n_sensitivity)

UNSUPPORTED(fmi3GetAdjointDerivative, const fmi3ValueReference unknowns[], size_t n_unknowns, const
            fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed,
            fmi3Float64 sensitivity[], size_t n_sensitivity)

UNSUPPORTED(fmi3GetOutputDerivatives, const fmi3ValueReference references[], size_t count, const
            fmi3Int32 orders[], fmi3Float64 values[], size_t room)

NO_MODE(fmi3EnterEventMode)
NO_MODE(fmi3EnterStepMode)
NO_MODE(fmi3EnterConfigurationMode)
NO_MODE(fmi3ExitConfigurationMode)
NO_MODE(fmi3EnterContinuousTimeMode)
NO_MODE(fmi3EvaluateDiscreteStates)

UNSUPPORTED(fmi3UpdateDiscreteStates, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean
            *nominals, fmi3Boolean *values, fmi3Boolean *has_next, fmi3Float64 *next)

UNSUPPORTED(fmi3GetIntervalDecimal, const fmi3ValueReference references[], size_t count, fmi3Float64
            intervals[], fmi3IntervalQualifier qualifiers[])

UNSUPPORTED(fmi3GetIntervalFraction, const fmi3ValueReference references[], size_t count, fmi3UInt64
            counters[], fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[])

UNSUPPORTED(fmi3GetShiftDecimal, const fmi3ValueReference references[], size_t count, fmi3Float64
            shifts[])

UNSUPPORTED(fmi3GetShiftFraction, const fmi3ValueReference references[], size_t count, fmi3UInt64
            counters[], fmi3UInt64 resolutions[])

UNSUPPORTED(fmi3SetIntervalDecimal, const fmi3ValueReference references[], size_t count, const
            fmi3Float64 intervals[])

UNSUPPORTED(fmi3SetIntervalFraction, const fmi3ValueReference references[], size_t count, const
            fmi3UInt64 counters[], const fmi3UInt64 resolutions[])

UNSUPPORTED(fmi3SetShiftDecimal, const fmi3ValueReference references[], size_t count, const
            fmi3Float64 shifts[])

UNSUPPORTED(fmi3SetShiftFraction, const fmi3ValueReference references[], size_t count, const
            fmi3UInt64 counters[], const fmi3UInt64 resolutions[])

UNSUPPORTED(fmi3CompletedIntegratorStep, fmi3Boolean no_earlier_state, fmi3Boolean *event,
            fmi3Boolean *terminate)

UNSUPPORTED(fmi3SetTime, fmi3Float64 time)

UNSUPPORTED(fmi3SetContinuousStates, const fmi3Float64 states[], size_t count)

UNSUPPORTED(fmi3GetContinuousStateDerivatives, fmi3Float64 values[], size_t count)
UNSUPPORTED(fmi3GetEventIndicators, fmi3Float64 values[], size_t count)
UNSUPPORTED(fmi3GetContinuousStates, fmi3Float64 values[], size_t count)
UNSUPPORTED(fmi3GetNominalsOfContinuousStates, fmi3Float64 values[], size_t count)

UNSUPPORTED(fmi3GetNumberOfEventIndicators, size_t *count)

UNSUPPORTED(fmi3GetNumberOfContinuousStates, size_t *count)

UNSUPPORTED(fmi3ActivateModelPartition, fmi3ValueReference clock, fmi3Float64 time)
