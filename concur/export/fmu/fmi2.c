/* FMI 2.0 for co-simulation around a unit. Types and functions are those of the standard,
   https://fmi-standard.org; calls of features that the description does not offer are rejected. */

#include <stdlib.h>

#include "unit.h"

#define FMI(name) fmi2##name
#define OF_STATE(before, after) before##FMUstate##after
#define DESERIALIZE_STATE DeSerializeFMUstate

#if defined(FMI2_Export)
#define EXPORT FMI2_Export
#endif
/* A tool that links the code statically may define a prefix of the names. */
#if defined(FMI2_FUNCTION_PREFIX) && !defined(FMI2_OVERRIDE_FUNCTION_PREFIX)
#define PREFIX FMI2_FUNCTION_PREFIX
#endif

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

typedef fmi2Component handle_t;
typedef fmi2Status status_t;
typedef fmi2Boolean flag_t;
typedef fmi2Byte byte_t;

#include "calls.h"

static void log_message(unit_t *unit, int status, const char *message) {
  const instance_t *instance = (const instance_t *)(const void *)unit;
  if (unit->logging && instance->callbacks.logger) {
    /* Some environments ignore the arguments after the format. */
    instance->callbacks.logger(instance->callbacks.componentEnvironment, instance->name,
                               (fmi2Status)status, categories_of_status[status],
                               strchr(message, '%') ? "%s" : message, message);
  }
}

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

API(const char *, GetTypesPlatform)(void) { return "default"; }

API(const char *, GetVersion)(void) { return "2.0"; }

API(fmi2Status, SetDebugLogging)
(fmi2Component component, fmi2Boolean on, size_t count, const fmi2String categories[]) {
  return (fmi2Status)unit_logging(UNIT(component), on != 0, count, categories, "logAll",
                                  "fmi2SetDebugLogging");
}

API(fmi2Component, Instantiate)
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

API(void, FreeInstance)(fmi2Component component) {
  fmi2CallbackFunctions callbacks;
  if (!component) return;
  callbacks = ((instance_t *)component)->callbacks;
  freed_by(&callbacks, component);
}

API(fmi2Status, SetupExperiment)
(fmi2Component component, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
 fmi2Boolean has_stop, fmi2Real stop) {
  return (fmi2Status)unit_setup(UNIT(component), start, has_stop != 0, stop, "fmi2SetupExperiment");
}

API(fmi2Status, EnterInitializationMode)(fmi2Component component) {
  return (fmi2Status)unit_enter(UNIT(component), INSTANTIATED, INITIALIZING,
                                "fmi2EnterInitializationMode");
}

/* In FMI 2.0 every number is a separate variable. */

API(fmi2Status, GetReal)
(fmi2Component component, const fmi2ValueReference references[], size_t count, fmi2Real values[]) {
  return (fmi2Status)unit_get(UNIT(component), references, count, 0, values, NULL, count,
                              "fmi2GetReal");
}

API(fmi2Status, GetInteger)
(fmi2Component component, const fmi2ValueReference references[], size_t count,
 fmi2Integer values[]) {
  return (fmi2Status)unit_get(UNIT(component), references, count, 1, NULL, values, count,
                              "fmi2GetInteger");
}

API(fmi2Status, SetReal)
(fmi2Component component, const fmi2ValueReference references[], size_t count,
 const fmi2Real values[]) {
  return (fmi2Status)unit_set(UNIT(component), references, count, values, count, "fmi2SetReal");
}

#define NO_VALUES(type, name)                                                                 \
  API(fmi2Status, name)                                                                       \
  (fmi2Component component, const fmi2ValueReference references[], size_t count,              \
   type values[]) {                                                                           \
    return component && !count ? fmi2OK : unsupported(component, TEXT(name));                 \
  }

NO_VALUES(fmi2Boolean, GetBoolean)
NO_VALUES(fmi2String, GetString)
NO_VALUES(const fmi2Integer, SetInteger)
NO_VALUES(const fmi2Boolean, SetBoolean)
NO_VALUES(const fmi2String, SetString)

API(fmi2Status, DoStep)
(fmi2Component component, fmi2Real time, fmi2Real step, fmi2Boolean no_earlier_state) {
  return (fmi2Status)unit_step(UNIT(component), time, step, "fmi2DoStep");
}

NO_MODE(CancelStep)

API(fmi2Status, GetRealStatus)
(fmi2Component component, const fmi2StatusKind kind, fmi2Real *value) {
  if (!component || !value) return fmi2Error;
  if (kind != fmi2LastSuccessfulTime) return unsupported(component, "fmi2GetRealStatus");
  *value = UNIT(component)->now.time;
  return fmi2OK;
}

API(fmi2Status, GetBooleanStatus)
(fmi2Component component, const fmi2StatusKind kind, fmi2Boolean *value) {
  if (!component || !value) return fmi2Error;
  if (kind != fmi2Terminated) return unsupported(component, "fmi2GetBooleanStatus");
  *value = 0;
  return fmi2OK;
}

/* Steps are never pending. */

UNSUPPORTED(GetStatus, const fmi2StatusKind kind, fmi2Status *value)
UNSUPPORTED(GetIntegerStatus, const fmi2StatusKind kind, fmi2Integer *value)
UNSUPPORTED(GetStringStatus, const fmi2StatusKind kind, fmi2String *value)

/* Features that the description does not offer. */

UNSUPPORTED(GetDirectionalDerivative, const fmi2ValueReference unknowns[], size_t n_unknowns,
            const fmi2ValueReference knowns[], size_t n_knowns, const fmi2Real seed[], fmi2Real
            sensitivity[])
UNSUPPORTED(SetRealInputDerivatives, const fmi2ValueReference references[], size_t count, const
            fmi2Integer orders[], const fmi2Real values[])
UNSUPPORTED(GetRealOutputDerivatives, const fmi2ValueReference references[], size_t count, const
            fmi2Integer orders[], fmi2Real values[])
UNSUPPORTED(NewDiscreteStates, fmi2EventInfo *events)
UNSUPPORTED(GetDerivatives, fmi2Real values[], size_t count)
