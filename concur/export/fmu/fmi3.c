/* FMI 3.0 for co-simulation around a unit. Types and functions are those of the standard,
   https://fmi-standard.org; calls of features that the description does not offer are rejected. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "unit.h"

#define FMI(name) fmi3##name
#define OF_STATE(before, after) before##FMUState##after
#define DESERIALIZE_STATE DeserializeFMUState

#if defined(FMI3_Export)
#define EXPORT FMI3_Export
#endif
/* A tool that links the code statically may define a prefix of the names. */
#if defined(FMI3_FUNCTION_PREFIX) && !defined(FMI3_OVERRIDE_FUNCTION_PREFIX)
#define PREFIX FMI3_FUNCTION_PREFIX
#endif

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

typedef fmi3Instance handle_t;
typedef fmi3Status status_t;
typedef fmi3Boolean flag_t;
typedef fmi3Byte byte_t;

#include "calls.h"

static void log_message(unit_t *unit, int status, const char *message) {
  const instance_t *instance = (const instance_t *)(const void *)unit;
  if (unit->logging && instance->log) {
    instance->log(instance->environment, (fmi3Status)status, categories_of_status[status], message);
  }
}

static void *allocated(unit_t *unit, size_t size) { return malloc(size); }

static void freed(unit_t *unit, void *memory) { free(memory); }

API(const char *, GetVersion)(void) { return "3.0"; }

API(fmi3Status, SetDebugLogging)
(fmi3Instance instance, fmi3Boolean on, size_t count, const fmi3String categories[]) {
  return (fmi3Status)unit_logging(UNIT(instance), on, count, categories, "", "fmi3SetDebugLogging");
}

API(fmi3Instance, InstantiateCoSimulation)
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

API(fmi3Instance, InstantiateModelExchange)
(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
 fmi3InstanceEnvironment environment, fmi3LogMessageCallback log) {
  if (log) log(environment, fmi3Error, "logStatusError", "This unit is for co-simulation only.");
  return NULL;
}

API(fmi3Instance, InstantiateScheduledExecution)
(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
 fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, fmi3ClockUpdateCallback update,
 fmi3LockPreemptionCallback lock, fmi3LockPreemptionCallback unlock) {
  if (log) log(environment, fmi3Error, "logStatusError", "This unit is for co-simulation only.");
  return NULL;
}

API(void, FreeInstance)(fmi3Instance instance) { free(instance); }

API(fmi3Status, EnterInitializationMode)
(fmi3Instance instance, fmi3Boolean has_tolerance, fmi3Float64 tolerance, fmi3Float64 start,
 fmi3Boolean has_stop, fmi3Float64 stop) {
  const char *const name = "fmi3EnterInitializationMode";
  if (unit_setup(UNIT(instance), start, has_stop, stop, name) != OK) return fmi3Error;
  return (fmi3Status)unit_enter(UNIT(instance), INSTANTIATED, INITIALIZING, name);
}

API(fmi3Status, GetFloat64)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Float64 values[],
 size_t room) {
  return (fmi3Status)unit_get(UNIT(instance), references, count, 0, values, NULL, room,
                              "fmi3GetFloat64");
}

API(fmi3Status, GetInt32)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Int32 values[],
 size_t room) {
  return (fmi3Status)unit_get(UNIT(instance), references, count, 1, NULL, values, room,
                              "fmi3GetInt32");
}

API(fmi3Status, SetFloat64)
(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
 const fmi3Float64 values[], size_t room) {
  return (fmi3Status)unit_set(UNIT(instance), references, count, values, room, "fmi3SetFloat64");
}

/* No variable has these types, and an integer cannot be set. */
#define NONE(name, ...)                                                                       \
  API(fmi3Status, name)                                                                       \
  (fmi3Instance instance, const fmi3ValueReference references[], size_t count, __VA_ARGS__) {  \
    return instance && !count ? fmi3OK : unsupported(instance, TEXT(name));                   \
  }
#define NO_VALUES(type, get, set)                                                             \
  NONE(get, type values[], size_t room)                                                       \
  NONE(set, const type values[], size_t room)

NO_VALUES(fmi3Float32, GetFloat32, SetFloat32)
NO_VALUES(fmi3Int8, GetInt8, SetInt8)
NO_VALUES(fmi3UInt8, GetUInt8, SetUInt8)
NO_VALUES(fmi3Int16, GetInt16, SetInt16)
NO_VALUES(fmi3UInt16, GetUInt16, SetUInt16)
NO_VALUES(fmi3UInt32, GetUInt32, SetUInt32)
NO_VALUES(fmi3Int64, GetInt64, SetInt64)
NO_VALUES(fmi3UInt64, GetUInt64, SetUInt64)
NO_VALUES(fmi3Boolean, GetBoolean, SetBoolean)
NO_VALUES(fmi3String, GetString, SetString)
NONE(SetInt32, const fmi3Int32 values[], size_t room)
NONE(GetBinary, size_t sizes[], fmi3Binary values[], size_t room)
NONE(SetBinary, const size_t sizes[], const fmi3Binary values[], size_t room)
NONE(GetClock, fmi3Clock values[])
NONE(SetClock, const fmi3Clock values[])

API(fmi3Status, DoStep)
(fmi3Instance instance, fmi3Float64 time, fmi3Float64 step, fmi3Boolean no_earlier_state,
 fmi3Boolean *events, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last) {
  const int status = unit_step(UNIT(instance), time, step, "fmi3DoStep");
  if (events) *events = false;
  if (terminate) *terminate = false;
  if (early) *early = false;
  if (last && instance) *last = UNIT(instance)->now.time;
  return (fmi3Status)status;
}

/* Features that the description does not offer. */

UNSUPPORTED(GetNumberOfVariableDependencies, fmi3ValueReference reference, size_t *count)
UNSUPPORTED(GetVariableDependencies, fmi3ValueReference dependent, size_t of_dependent[],
            fmi3ValueReference independents[], size_t of_independents[], fmi3DependencyKind kinds[],
            size_t count)
UNSUPPORTED(GetDirectionalDerivative, const fmi3ValueReference unknowns[], size_t n_unknowns,
            const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t
            n_seed, fmi3Float64 sensitivity[], size_t n_sensitivity)
UNSUPPORTED(GetAdjointDerivative, const fmi3ValueReference unknowns[], size_t n_unknowns, const
            fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed,
            fmi3Float64 sensitivity[], size_t n_sensitivity)
UNSUPPORTED(GetOutputDerivatives, const fmi3ValueReference references[], size_t count, const
            fmi3Int32 orders[], fmi3Float64 values[], size_t room)

NO_MODE(EnterStepMode)
NO_MODE(EnterConfigurationMode)
NO_MODE(ExitConfigurationMode)
NO_MODE(EvaluateDiscreteStates)
UNSUPPORTED(UpdateDiscreteStates, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean
            *nominals, fmi3Boolean *values, fmi3Boolean *has_next, fmi3Float64 *next)
UNSUPPORTED(GetIntervalDecimal, const fmi3ValueReference references[], size_t count, fmi3Float64
            intervals[], fmi3IntervalQualifier qualifiers[])
UNSUPPORTED(GetIntervalFraction, const fmi3ValueReference references[], size_t count, fmi3UInt64
            counters[], fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[])
UNSUPPORTED(GetShiftDecimal, const fmi3ValueReference references[], size_t count, fmi3Float64
            shifts[])
UNSUPPORTED(GetShiftFraction, const fmi3ValueReference references[], size_t count, fmi3UInt64
            counters[], fmi3UInt64 resolutions[])
UNSUPPORTED(SetIntervalDecimal, const fmi3ValueReference references[], size_t count, const
            fmi3Float64 intervals[])
UNSUPPORTED(SetIntervalFraction, const fmi3ValueReference references[], size_t count, const
            fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
UNSUPPORTED(SetShiftDecimal, const fmi3ValueReference references[], size_t count, const
            fmi3Float64 shifts[])
UNSUPPORTED(SetShiftFraction, const fmi3ValueReference references[], size_t count, const
            fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
UNSUPPORTED(GetContinuousStateDerivatives, fmi3Float64 values[], size_t count)
UNSUPPORTED(GetNumberOfEventIndicators, size_t *count)
UNSUPPORTED(GetNumberOfContinuousStates, size_t *count)
UNSUPPORTED(ActivateModelPartition, fmi3ValueReference clock, fmi3Float64 time)
