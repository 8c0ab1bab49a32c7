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

#define UNIT(component) (&((instance_t *)(component))->unit)

/* Use the memory functions of the environment if it offers them. */
static void *allocated(const fmi2CallbackFunctions *callbacks, size_t size) {
  return callbacks->allocateMemory ? callbacks->allocateMemory(1, size) : calloc(1, size);
}

static void freed(const fmi2CallbackFunctions *callbacks, void *memory) {
  if (!memory) return;
  if (callbacks->allocateMemory) {
    if (callbacks->freeMemory) callbacks->freeMemory(memory);
  } else {
    free(memory);
  }
}

static fmi2Status unsupported(fmi2Component component, const char *function) {
  if (!component) return fmi2Error;
  return (fmi2Status)refuse_call(UNIT(component), function, "not supported");
}

API(const char *, fmi2GetTypesPlatform)(void) { return "default"; }

API(const char *, fmi2GetVersion)(void) { return "2.0"; }

API(fmi2Status, fmi2SetDebugLogging)
(fmi2Component component, fmi2Boolean on, size_t count, const fmi2String categories[]) {
  size_t i;
  if (!component) return fmi2Error;
  for (i = 0; i < count; ++i) {
    if (!categories || !categories[i] ||
        (strncmp(categories[i], "logStatus", 9) != 0 && strcmp(categories[i], "logAll") != 0)) {
      return (fmi2Status)refuse(UNIT(component), "fmi2SetDebugLogging: no such category");
    }
  }
  UNIT(component)->logging = on != 0;
  return fmi2OK;
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
  instance = (instance_t *)allocated(callbacks, sizeof *instance);
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
  freed(&callbacks, component);
}

API(fmi2Status, fmi2SetupExperiment)
(fmi2Component component, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
 fmi2Boolean has_stop, fmi2Real stop) {
  if (!component) return fmi2Error;
  if (!allowed(UNIT(component), INSTANTIATED, "fmi2SetupExperiment")) return fmi2Error;
  return (fmi2Status)unit_setup(UNIT(component), start, has_stop != 0, stop);
}

API(fmi2Status, fmi2EnterInitializationMode)(fmi2Component component) {
  if (!component) return fmi2Error;
  if (!allowed(UNIT(component), INSTANTIATED, "fmi2EnterInitializationMode")) return fmi2Error;
  UNIT(component)->now.mode = INITIALIZING;
  return fmi2OK;
}

API(fmi2Status, fmi2ExitInitializationMode)(fmi2Component component) {
  if (!component) return fmi2Error;
  if (!allowed(UNIT(component), INITIALIZING, "fmi2ExitInitializationMode")) return fmi2Error;
  return (fmi2Status)unit_start(UNIT(component));
}

API(fmi2Status, fmi2Terminate)(fmi2Component component) {
  if (!component) return fmi2Error;
  if (!allowed(UNIT(component), STEPPING, "fmi2Terminate")) return fmi2Error;
  UNIT(component)->now.mode = TERMINATED;
  return fmi2OK;
}

API(fmi2Status, fmi2Reset)(fmi2Component component) {
  if (!component) return fmi2Error;
  unit_reset(UNIT(component));
  return fmi2OK;
}

/* In FMI 2.0 every number is a separate variable. */

API(fmi2Status, fmi2GetReal)
(fmi2Component component, const fmi2ValueReference references[], size_t count, fmi2Real values[]) {
  if (!component) return fmi2Error;
  return (fmi2Status)unit_get(UNIT(component), references, count, 0, values, NULL, count,
                              "fmi2GetReal");
}

API(fmi2Status, fmi2GetInteger)
(fmi2Component component, const fmi2ValueReference references[], size_t count,
 fmi2Integer values[]) {
  if (!component) return fmi2Error;
  return (fmi2Status)unit_get(UNIT(component), references, count, 1, NULL, values, count,
                              "fmi2GetInteger");
}

API(fmi2Status, fmi2SetReal)
(fmi2Component component, const fmi2ValueReference references[], size_t count,
 const fmi2Real values[]) {
  if (!component) return fmi2Error;
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
  if (!component) return fmi2Error;
  return (fmi2Status)unit_step(UNIT(component), time, step, "fmi2DoStep");
}

API(fmi2Status, fmi2CancelStep)(fmi2Component component) {
  return unsupported(component, "fmi2CancelStep");
}

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

API(fmi2Status, fmi2GetStatus)
(fmi2Component component, const fmi2StatusKind kind, fmi2Status *value) {
  return unsupported(component, "fmi2GetStatus");
}

API(fmi2Status, fmi2GetIntegerStatus)
(fmi2Component component, const fmi2StatusKind kind, fmi2Integer *value) {
  return unsupported(component, "fmi2GetIntegerStatus");
}

API(fmi2Status, fmi2GetStringStatus)
(fmi2Component component, const fmi2StatusKind kind, fmi2String *value) {
  return unsupported(component, "fmi2GetStringStatus");
}

API(fmi2Status, fmi2GetFMUstate)(fmi2Component component, fmi2FMUstate *state) {
  if (!component || !state) return fmi2Error;
  if (!*state) *state = allocated(&((instance_t *)component)->callbacks, sizeof(numbers_t));
  if (!*state) return (fmi2Status)refuse(UNIT(component), "fmi2GetFMUstate: no memory");
  memcpy(*state, &UNIT(component)->now, sizeof(numbers_t));
  return fmi2OK;
}

API(fmi2Status, fmi2SetFMUstate)(fmi2Component component, fmi2FMUstate state) {
  if (!component) return fmi2Error;
  if (!unit_owns((const numbers_t *)state)) {
    return (fmi2Status)refuse(UNIT(component), "fmi2SetFMUstate: no state of this unit");
  }
  memcpy(&UNIT(component)->now, state, sizeof(numbers_t));
  return fmi2OK;
}

API(fmi2Status, fmi2FreeFMUstate)(fmi2Component component, fmi2FMUstate *state) {
  if (!component) return fmi2Error;
  if (!state) return fmi2OK;
  freed(&((instance_t *)component)->callbacks, *state);
  *state = NULL;
  return fmi2OK;
}

API(fmi2Status, fmi2SerializedFMUstateSize)
(fmi2Component component, fmi2FMUstate state, size_t *size) {
  if (!component || !size) return fmi2Error;
  *size = sizeof(numbers_t);
  return fmi2OK;
}

API(fmi2Status, fmi2SerializeFMUstate)
(fmi2Component component, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
  if (!component) return fmi2Error;
  if (!bytes || size < sizeof(numbers_t) || !unit_owns((const numbers_t *)state)) {
    return (fmi2Status)refuse(UNIT(component), "fmi2SerializeFMUstate: no state, or too few bytes");
  }
  memcpy(bytes, state, sizeof(numbers_t));
  return fmi2OK;
}

API(fmi2Status, fmi2DeSerializeFMUstate)
(fmi2Component component, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
  numbers_t saved;
  if (!component || !state) return fmi2Error;
  if (bytes && size == sizeof saved) memcpy(&saved, bytes, sizeof saved);
  if (!bytes || size != sizeof saved || !unit_owns(&saved)) {
    return (fmi2Status)refuse(UNIT(component), "fmi2DeSerializeFMUstate: no state of this unit");
  }
  if (!*state) *state = allocated(&((instance_t *)component)->callbacks, sizeof saved);
  if (!*state) return (fmi2Status)refuse(UNIT(component), "fmi2DeSerializeFMUstate: no memory");
  memcpy(*state, &saved, sizeof saved);
  return fmi2OK;
}

/* Features that the description does not offer. */

API(fmi2Status, fmi2GetDirectionalDerivative)
(fmi2Component component, const fmi2ValueReference unknowns[], size_t n_unknowns,
 const fmi2ValueReference knowns[], size_t n_knowns, const fmi2Real seed[],
 fmi2Real sensitivity[]) {
  return unsupported(component, "fmi2GetDirectionalDerivative");
}

API(fmi2Status, fmi2SetRealInputDerivatives)
(fmi2Component component, const fmi2ValueReference references[], size_t count,
 const fmi2Integer orders[], const fmi2Real values[]) {
  return unsupported(component, "fmi2SetRealInputDerivatives");
}

API(fmi2Status, fmi2GetRealOutputDerivatives)
(fmi2Component component, const fmi2ValueReference references[], size_t count,
 const fmi2Integer orders[], fmi2Real values[]) {
  return unsupported(component, "fmi2GetRealOutputDerivatives");
}

API(fmi2Status, fmi2EnterEventMode)(fmi2Component component) {
  return unsupported(component, "fmi2EnterEventMode");
}

API(fmi2Status, fmi2NewDiscreteStates)(fmi2Component component, fmi2EventInfo *events) {
  return unsupported(component, "fmi2NewDiscreteStates");
}

API(fmi2Status, fmi2EnterContinuousTimeMode)(fmi2Component component) {
  return unsupported(component, "fmi2EnterContinuousTimeMode");
}

API(fmi2Status, fmi2CompletedIntegratorStep)
(fmi2Component component, fmi2Boolean no_earlier_state, fmi2Boolean *event,
 fmi2Boolean *terminate) {
  return unsupported(component, "fmi2CompletedIntegratorStep");
}

API(fmi2Status, fmi2SetTime)(fmi2Component component, fmi2Real time) {
  return unsupported(component, "fmi2SetTime");
}

API(fmi2Status, fmi2SetContinuousStates)
(fmi2Component component, const fmi2Real states[], size_t count) {
  return unsupported(component, "fmi2SetContinuousStates");
}

#define NO_NUMBERS(name)                                                             \
  API(fmi2Status, name)(fmi2Component component, fmi2Real values[], size_t count) {  \
    return unsupported(component, #name);                                            \
  }

NO_NUMBERS(fmi2GetDerivatives)
NO_NUMBERS(fmi2GetEventIndicators)
NO_NUMBERS(fmi2GetContinuousStates)
NO_NUMBERS(fmi2GetNominalsOfContinuousStates)
