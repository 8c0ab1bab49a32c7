/* Calls that all versions of FMI have, around a unit. The file of a version defines an instance;
   `FMI(name)`, the name of a function; and ROOM, the parameter for the number of values, which is
   LENGTH. Calls of features that the description does not offer are rejected. */

#if !defined(EXPORT)
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif
#endif

#define JOINED(prefix, name) prefix##name
#define WITH_PREFIX(prefix, name) JOINED(prefix, name)
#if defined(PREFIX)
#define NAME(name) WITH_PREFIX(PREFIX, name)
#else
#define NAME(name) name
#endif
#define API(type, name) EXPORT type NAME(FMI(name))
#define QUOTED(name) #name
#define TEXT_OF(name) QUOTED(name)
#define TEXT(name) TEXT_OF(FMI(name))

/* The unit is the first member of an instance, which may be missing. */
#define UNIT(instance) ((unit_t *)(instance))

static status_t unsupported(void *instance, const char *function) {
  return refuse_call(UNIT(instance), function, "not supported");
}

#define UNSUPPORTED(name, ...) \
  API(status_t, name)(void *instance, __VA_ARGS__) { return unsupported(instance, TEXT(name)); }
#define NO_MODE(name) \
  API(status_t, name)(void *instance) { return unsupported(instance, TEXT(name)); }

#define GET(name, type, integer) \
  API(status_t, name)(void *instance, const unsigned references[], size_t count, type values[] ROOM) { \
    return unit_get(UNIT(instance), references, count, integer, values, LENGTH, TEXT(name)); \
  }
#define SET(name, type) \
  API(status_t, name)(void *instance, const unsigned references[], size_t count, const type values[] ROOM) { \
    return unit_set(UNIT(instance), references, count, values, LENGTH, TEXT(name)); \
  }
/* No variable has this type, or it cannot be set. */
#define NONE(name, ...) \
  API(status_t, name)(void *instance, const unsigned references[], size_t count, __VA_ARGS__) { \
    return instance && !count ? OK : unsupported(instance, TEXT(name)); \
  }

API(status_t, ExitInitializationMode)(void *instance) {
  return unit_start(UNIT(instance), TEXT(ExitInitializationMode));
}

API(status_t, Terminate)(void *instance) {
  return unit_enter(UNIT(instance), STEPPING, TERMINATED, TEXT(Terminate));
}

API(status_t, Reset)(void *instance) { return unit_reset(UNIT(instance)); }

/* Saved states: the numbers of an instance, as they are or as bytes. */
static int is_own(const numbers_t *saved) {
  return saved && memcmp(saved->token, MODEL_TOKEN, sizeof MODEL_TOKEN) == 0;
}

static status_t copied(void *instance, const numbers_t *saved, void **state, const char *name) {
  if (!*state) *state = allocated(UNIT(instance), sizeof *saved);
  if (!*state) return refuse_call(UNIT(instance), name, "no memory");
  memcpy(*state, saved, sizeof *saved);
  return OK;
}

API(status_t, OF_STATE(Get, ))(void *instance, void **state) {
  if (!instance || !state) return ERROR;
  return copied(instance, &UNIT(instance)->now, state, TEXT(OF_STATE(Get, )));
}

API(status_t, OF_STATE(Set, ))(void *instance, void *state) {
  if (!instance || !is_own((const numbers_t *)state)) {
    return refuse_call(UNIT(instance), TEXT(OF_STATE(Set, )), "no state of this unit");
  }
  memcpy(&UNIT(instance)->now, state, sizeof(numbers_t));
  return OK;
}

API(status_t, OF_STATE(Free, ))(void *instance, void **state) {
  if (!instance) return ERROR;
  if (state) {
    freed(UNIT(instance), *state);
    *state = NULL;
  }
  return OK;
}

API(status_t, OF_STATE(Serialized, Size))(void *instance, void *state, size_t *size) {
  if (!instance || !size) return ERROR;
  *size = sizeof(numbers_t);
  return OK;
}

API(status_t, OF_STATE(Serialize, ))(void *instance, void *state, byte_t bytes[], size_t size) {
  const char *const name = TEXT(OF_STATE(Serialize, ));
  if (!instance || !bytes || size < sizeof(numbers_t) || !is_own((const numbers_t *)state)) {
    return refuse_call(UNIT(instance), name, "no state, or too few bytes");
  }
  memcpy(bytes, state, sizeof(numbers_t));
  return OK;
}

API(status_t, DESERIALIZE_STATE)(void *instance, const byte_t bytes[], size_t size, void **state) {
  const char *const name = TEXT(DESERIALIZE_STATE);
  numbers_t saved;
  if (!instance || !state) return ERROR;
  if (bytes && size == sizeof saved) memcpy(&saved, bytes, sizeof saved);
  if (!bytes || size != sizeof saved || !is_own(&saved)) {
    return refuse_call(UNIT(instance), name, "no state of this unit");
  }
  return copied(instance, &saved, state, name);
}

/* Model exchange, and outputs as polynomials of the time. */

NO_MODE(EnterEventMode)
NO_MODE(EnterContinuousTimeMode)
UNSUPPORTED(CompletedIntegratorStep, flag_t no_earlier_state, flag_t *event, flag_t *terminate)
UNSUPPORTED(SetTime, double time)
UNSUPPORTED(SetContinuousStates, const double states[], size_t count)
UNSUPPORTED(GetContinuousStates, double values[], size_t count)
UNSUPPORTED(GetNominalsOfContinuousStates, double values[], size_t count)
UNSUPPORTED(GetEventIndicators, double values[], size_t count)
