/* FMI 2.0 for co-simulation around a unit. Functions are those of the standard,
   https://fmi-standard.org, with the types that its names stand for; calls of features that the
   description does not offer are rejected. */

#include <stdlib.h>

#include "unit.h"

#define FMI(name) fmi2##name
#define OF_STATE(before, after) before##FMUstate##after
#define DESERIALIZE_STATE DeSerializeFMUstate
#define ROOM
#define LENGTH count

#if defined(FMI2_Export)
#define EXPORT FMI2_Export
#endif
/* A tool that links the code statically may define a prefix of the names. */
#if defined(FMI2_FUNCTION_PREFIX) && !defined(FMI2_OVERRIDE_FUNCTION_PREFIX)
#define PREFIX FMI2_FUNCTION_PREFIX
#endif

typedef int flag_t;
typedef char byte_t;
typedef enum { MODEL_EXCHANGE, CO_SIMULATION } kind_t;
typedef enum { STEP_STATUS, PENDING_STATUS, LAST_TIME, TERMINATED_STATUS } asked_t;
typedef struct {
  void (*logger)(void *, const char *, status_t, const char *, const char *, ...);
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
  void (*step_finished)(void *, status_t);
  void *environment;
} callbacks_t;

typedef struct {
  unit_t unit;
  callbacks_t callbacks;
  char name[256];
} instance_t;

#include "calls.h"

static void log_message(unit_t *unit, status_t status, const char *message) {
  const instance_t *instance = (const instance_t *)(const void *)unit;
  if (unit->logging && instance->callbacks.logger) {
    /* Some environments ignore the arguments after the format. */
    instance->callbacks.logger(instance->callbacks.environment, instance->name, status,
                               categories_of_status[status], strchr(message, '%') ? "%s" : message,
                               message);
  }
}

/* Use the memory functions of the environment if it offers them. */
static void *allocated_by(const callbacks_t *callbacks, size_t size) {
  return callbacks->allocate ? callbacks->allocate(1, size) : calloc(1, size);
}

static void freed_by(const callbacks_t *callbacks, void *memory) {
  if (!memory) return;
  if (!callbacks->allocate) free(memory);
  else if (callbacks->release) callbacks->release(memory);
}

static void *allocated(unit_t *unit, size_t size) {
  return allocated_by(&((instance_t *)(void *)unit)->callbacks, size);
}

static void freed(unit_t *unit, void *memory) {
  freed_by(&((instance_t *)(void *)unit)->callbacks, memory);
}

API(const char *, GetTypesPlatform)(void) { return "default"; }

API(const char *, GetVersion)(void) { return "2.0"; }

API(status_t, SetDebugLogging)
(void *component, flag_t on, size_t count, const char *const categories[]) {
  return unit_logging(UNIT(component), on, count, categories, "logAll", TEXT(SetDebugLogging));
}

API(void *, Instantiate)
(const char *name, kind_t kind, const char *guid, const char *resources,
 const callbacks_t *callbacks, flag_t visible, flag_t logging) {
  instance_t *instance;
  const char *wrong = NULL;
  if (!callbacks) return NULL;
  if (kind != CO_SIMULATION) {
    wrong = "This unit is for co-simulation only.";
  } else if (!guid || strcmp(guid, MODEL_TOKEN) != 0) {
    wrong = "The GUID differs: binary and description do not match.";
  }
  if (wrong) {
    if (callbacks->logger) {
      callbacks->logger(callbacks->environment, name ? name : "", ERROR, "logStatusError", wrong);
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

API(void, FreeInstance)(void *component) {
  callbacks_t callbacks;
  if (!component) return;
  callbacks = ((instance_t *)component)->callbacks;
  freed_by(&callbacks, component);
}

API(status_t, SetupExperiment)
(void *component, flag_t has_tolerance, double tolerance, double start, flag_t has_stop,
 double stop) {
  return unit_setup(UNIT(component), start, has_stop, stop, TEXT(SetupExperiment));
}

API(status_t, EnterInitializationMode)(void *component) {
  return unit_enter(UNIT(component), INSTANTIATED, INITIALIZING, TEXT(EnterInitializationMode));
}

/* In FMI 2.0 every number is a separate variable. */

GET(GetReal, double, 0)
GET(GetInteger, int, 1)
SET(SetReal, double)
NONE(GetBoolean, int values[])
NONE(GetString, const char *values[])
NONE(SetInteger, const int values[])
NONE(SetBoolean, const int values[])
NONE(SetString, const char *const values[])

API(status_t, DoStep)(void *component, double time, double step, flag_t no_earlier_state) {
  return unit_step(UNIT(component), time, step, TEXT(DoStep));
}

NO_MODE(CancelStep)

API(status_t, GetRealStatus)(void *component, asked_t kind, double *value) {
  if (!component || !value) return ERROR;
  if (kind != LAST_TIME) return unsupported(component, TEXT(GetRealStatus));
  *value = UNIT(component)->now.time;
  return OK;
}

API(status_t, GetBooleanStatus)(void *component, asked_t kind, flag_t *value) {
  if (!component || !value) return ERROR;
  if (kind != TERMINATED_STATUS) return unsupported(component, TEXT(GetBooleanStatus));
  *value = 0;
  return OK;
}

/* Steps are never pending. */

UNSUPPORTED(GetStatus, asked_t kind, status_t *value)
UNSUPPORTED(GetIntegerStatus, asked_t kind, int *value)
UNSUPPORTED(GetStringStatus, asked_t kind, const char **value)

/* Features that the description does not offer. */

UNSUPPORTED(GetDirectionalDerivative, const unsigned unknowns[], size_t n, const unsigned knowns[],
            size_t m, const double seed[], double sensitivity[])
UNSUPPORTED(SetRealInputDerivatives, const unsigned references[], size_t count, const int orders[],
            const double values[])
UNSUPPORTED(GetRealOutputDerivatives, const unsigned references[], size_t count, const int orders[],
            double values[])
UNSUPPORTED(NewDiscreteStates, void *events)
UNSUPPORTED(GetDerivatives, double values[], size_t count)
