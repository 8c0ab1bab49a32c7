/* FMI 2.0 for co-simulation around a unit. Types and functions are those of the standard,
   https://fmi-standard.org; calls of features that the description does not offer are rejected. */

#include <stdlib.h>

#include "unit.h"

#if !defined(FMI2_Export)
#if defined(_WIN32)
#define FMI2_Export __declspec(dllexport)
#elif defined(__GNUC__)
#define FMI2_Export __attribute__((visibility("default")))
#else
#define FMI2_Export
#endif
#endif

/* A tool that links the code statically may define a prefix of the names. */
#if defined(FMI2_FUNCTION_PREFIX) && !defined(FMI2_OVERRIDE_FUNCTION_PREFIX)
#define JOINED(prefix, name) prefix##name
#define WITH_PREFIX(prefix, name) JOINED(prefix, name)
#define NAME(name) WITH_PREFIX(FMI2_FUNCTION_PREFIX, name)
#else
#define NAME(name) name
#endif
#define API(type, name) FMI2_Export type NAME(name)

typedef void *fmi2Component, *fmi2ComponentEnvironment, *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer, fmi2Boolean;
typedef const char *fmi2String;
typedef char fmi2Byte;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum {
  fmi2DoStepStatus,
  fmi2PendingStatus,
  fmi2LastSuccessfulTime,
  fmi2Terminated
} fmi2StatusKind;
typedef struct {
  void (*logger)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
  void *(*allocateMemory)(size_t, size_t);
  void (*freeMemory)(void *);
  void (*stepFinished)(fmi2ComponentEnvironment, fmi2Status);
  fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;
typedef struct {
  fmi2Boolean newDiscreteStatesNeeded, terminateSimulation, nominalsOfContinuousStatesChanged,
      valuesOfContinuousStatesChanged, nextEventTimeDefined;
  fmi2Real nextEventTime;
} fmi2EventInfo;

typedef struct {
  unit_t unit;
  fmi2CallbackFunctions callbacks;
  char name[256];
} instance_t;

static void log_message(unit_t *unit, int status, const char *message) {
  static const char *const categories[] = {"", "logStatusWarning", "logStatusDiscard",
                                           "logStatusError"};
  const instance_t *instance = (const instance_t *)(const void *)unit;
  if (unit->logging && instance->callbacks.logger) {
    /* Some environments ignore the arguments after the format. */
    instance->callbacks.logger(instance->callbacks.componentEnvironment, instance->name,
                               (fmi2Status)status, categories[status],
                               strchr(message, '%') ? "%s" : message, message);
  }
}

/* The unit is the first member of an instance, which may be missing. */
#define UNIT(component) ((unit_t *)(component))

/* Use the memory functions of the environment if it offers them. */
static void *allocated_by(const fmi2CallbackFunctions *callbacks, size_t size) {
  return callbacks->allocateMemory ? callbacks->allocateMemory(1, size) : calloc(1, size);
}

static void freed_by(const fmi2CallbackFunctions *callbacks, void *memory) {
  if (!memory) return;
  if (callbacks->allocateMemory) {
    if (callbacks->freeMemory) callbacks->freeMemory(memory);
  } else {
    free(memory);
  }
}

static void *allocated(unit_t *unit, size_t size) {
  return allocated_by(&((instance_t *)(void *)unit)->callbacks, size);
}

static void freed(unit_t *unit, void *memory) {
  freed_by(&((instance_t *)(void *)unit)->callbacks, memory);
}

static fmi2Status unsupported(fmi2Component component, const char *function) {
  return (fmi2Status)refuse_call(UNIT(component), function, "not supported");
}

#define UNSUPPORTED(name, ...)                                        \
  API(fmi2Status, name)(fmi2Component component, __VA_ARGS__) {       \
    return unsupported(component, #name);                             \
  }
#define NO_MODE(name) \
  API(fmi2Status, name)(fmi2Component component) { return unsupported(component, #name); }

API(const char *, fmi2GetTypesPlatform)(void) { return "default"; }

API(const char *, fmi2GetVersion)(void) { return "2.0"; }

API(fmi2Status, fmi2SetDebugLogging)
(fmi2Component component, fmi2Boolean on, size_t count, const fmi2String categories[]) {
  return (fmi2Status)unit_logging(UNIT(component), on != 0, count, categories, "logAll",
                                  "fmi2SetDebugLogging");
}

API(fmi2Component, fmi2Instantiate)
(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
 const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
  instance_t *instance;
  const char *wrong = NULL;
  if (!callbacks) return NULL;
  if (type != fmi2CoSimulation) {
    wrong = "This unit is for co-simulation only.";
  } else if (!guid || strcmp(guid, MODEL_TOKEN) != 0) {
    wrong = "The GUID differs: binary and description do not match.";
  }
  if (wrong) {
    if (callbacks->logger) {
      callbacks->logger(callbacks->componentEnvironment, name ? name : "", fmi2Error,
                        "logStatusError", wrong);
    }
    return NULL;
  }
  instance = (instance_t *)allocated_by(callbacks, sizeof *instance);
  if (!instance) return NULL;
  instance->callbacks = *callbacks;
  instance->unit.logging = logging != 0;
  snprintf(instance->name, sizeof instance->name, "%s", name ? name : "");
  unit_reset(&instance->unit);
  return instance;
}

API(void, fmi2FreeInstance)(fmi2Component component) {
  fmi2CallbackFunctions callbacks;
  if (!component) return;
  callbacks = ((instance_t *)component)->callbacks;
  freed_by(&callbacks, component);
}

API(fmi2Status, fmi2SetupExperiment)
(fmi2Component component, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
 fmi2Boolean has_stop, fmi2Real stop) {
  return (fmi2Status)unit_setup(UNIT(component), start, has_stop != 0, stop, "fmi2SetupExperiment");
}

API(fmi2Status, fmi2EnterInitializationMode)(fmi2Component component) {
  return (fmi2Status)unit_enter(UNIT(component), INSTANTIATED, INITIALIZING,
                                "fmi2EnterInitializationMode");
}

API(fmi2Status, fmi2ExitInitializationMode)(fmi2Component component) {
  return (fmi2Status)unit_start(UNIT(component), "fmi2ExitInitializationMode");
}

API(fmi2Status, fmi2Terminate)(fmi2Component component) {
  return (fmi2Status)unit_enter(UNIT(component), STEPPING, TERMINATED, "fmi2Terminate");
}

API(fmi2Status, fmi2Reset)(fmi2Component component) {
  return (fmi2Status)unit_reset(UNIT(component));
}

/* In FMI 2.0 every number is a separate variable. */

API(fmi2Status, fmi2GetReal)
(fmi2Component component, const fmi2ValueReference references[], size_t count, fmi2Real values[]) {
  return (fmi2Status)unit_get(UNIT(component), references, count, 0, values, NULL, count,
                              "fmi2GetReal");
}

API(fmi2Status, fmi2GetInteger)
(fmi2Component component, const fmi2ValueReference references[], size_t count,
 fmi2Integer values[]) {
  return (fmi2Status)unit_get(UNIT(component), references, count, 1, NULL, values, count,
                              "fmi2GetInteger");
}

API(fmi2Status, fmi2SetReal)
(fmi2Component component, const fmi2ValueReference references[], size_t count,
 const fmi2Real values[]) {
  return (fmi2Status)unit_set(UNIT(component), references, count, values, count, "fmi2SetReal");
}

#define NO_VALUES(type, name)                                                           \
  API(fmi2Status, name)                                                                 \
  (fmi2Component component, const fmi2ValueReference references[], size_t count,        \
   type values[]) {                                                                     \
    return component && !count ? fmi2OK : unsupported(component, #name);                \
  }

NO_VALUES(fmi2Boolean, fmi2GetBoolean)
NO_VALUES(fmi2String, fmi2GetString)
NO_VALUES(const fmi2Integer, fmi2SetInteger)
NO_VALUES(const fmi2Boolean, fmi2SetBoolean)
NO_VALUES(const fmi2String, fmi2SetString)

API(fmi2Status, fmi2DoStep)
(fmi2Component component, fmi2Real time, fmi2Real step, fmi2Boolean no_earlier_state) {
  return (fmi2Status)unit_step(UNIT(component), time, step, "fmi2DoStep");
}

NO_MODE(fmi2CancelStep)

API(fmi2Status, fmi2GetRealStatus)
(fmi2Component component, const fmi2StatusKind kind, fmi2Real *value) {
  if (!component || !value) return fmi2Error;
  if (kind != fmi2LastSuccessfulTime) return unsupported(component, "fmi2GetRealStatus");
  *value = UNIT(component)->now.time;
  return fmi2OK;
}

API(fmi2Status, fmi2GetBooleanStatus)
(fmi2Component component, const fmi2StatusKind kind, fmi2Boolean *value) {
  if (!component || !value) return fmi2Error;
  if (kind != fmi2Terminated) return unsupported(component, "fmi2GetBooleanStatus");
  *value = 0;
  return fmi2OK;
}

/* Steps are never pending. */

UNSUPPORTED(fmi2GetStatus, const fmi2StatusKind kind, fmi2Status *value)

UNSUPPORTED(fmi2GetIntegerStatus, const fmi2StatusKind kind, fmi2Integer *value)

UNSUPPORTED(fmi2GetStringStatus, const fmi2StatusKind kind, fmi2String *value)

API(fmi2Status, fmi2GetFMUstate)(fmi2Component component, fmi2FMUstate *state) {
  return (fmi2Status)unit_save(UNIT(component), state, "fmi2GetFMUstate");
}

API(fmi2Status, fmi2SetFMUstate)(fmi2Component component, fmi2FMUstate state) {
  return (fmi2Status)unit_restore(UNIT(component), state, "fmi2SetFMUstate");
}

API(fmi2Status, fmi2FreeFMUstate)(fmi2Component component, fmi2FMUstate *state) {
  return (fmi2Status)unit_drop(UNIT(component), state);
}

API(fmi2Status, fmi2SerializedFMUstateSize)
(fmi2Component component, fmi2FMUstate state, size_t *size) {
  return (fmi2Status)unit_bytes_size(UNIT(component), size);
}

API(fmi2Status, fmi2SerializeFMUstate)
(fmi2Component component, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
  return (fmi2Status)unit_to_bytes(UNIT(component), state, bytes, size, "fmi2SerializeFMUstate");
}

API(fmi2Status, fmi2DeSerializeFMUstate)
(fmi2Component component, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
  return (fmi2Status)unit_of_bytes(UNIT(component), bytes, size, state, "fmi2DeSerializeFMUstate");
}

/* Features that the description does not offer. */

UNSUPPORTED(fmi2GetDirectionalDerivative, const fmi2ValueReference unknowns[], size_t n_unknowns,
            const fmi2ValueReference knowns[], size_t n_knowns, const fmi2Real seed[], fmi2Real
            sensitivity[])

UNSUPPORTED(fmi2SetRealInputDerivatives, const fmi2ValueReference references[], size_t count, const
            fmi2Integer orders[], const fmi2Real values[])

UNSUPPORTED(fmi2GetRealOutputDerivatives, const fmi2ValueReference references[], size_t count, const
            fmi2Integer orders[], fmi2Real values[])

NO_MODE(fmi2EnterEventMode)

UNSUPPORTED(fmi2NewDiscreteStates, fmi2EventInfo *events)

NO_MODE(fmi2EnterContinuousTimeMode)

UNSUPPORTED(fmi2CompletedIntegratorStep, fmi2Boolean no_earlier_state, fmi2Boolean *event,
            fmi2Boolean *terminate)

UNSUPPORTED(fmi2SetTime, fmi2Real time)

UNSUPPORTED(fmi2SetContinuousStates, const fmi2Real states[], size_t count)

UNSUPPORTED(fmi2GetDerivatives, fmi2Real values[], size_t count)
UNSUPPORTED(fmi2GetEventIndicators, fmi2Real values[], size_t count)
UNSUPPORTED(fmi2GetContinuousStates, fmi2Real values[], size_t count)
UNSUPPORTED(fmi2GetNominalsOfContinuousStates, fmi2Real values[], size_t count)
