/* Calls an FMI 3.0 unit at random, in every mode, with right and wrong arguments. Compiled with
   sanitizers, which end it where memory is misused. */

#include "fmi.c"

static unsigned long long seed = 12345;

static unsigned any(unsigned n) {
  seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(seed >> 33) % n;
}

static void count(void *environment, status_t status, const char *category,
                  const char *message) {
  if (!category || !message || !strlen(message)) abort();
  ++*(long *)environment;
}

static status_t through_bytes(unit_t *unit, numbers_t **state) {
  status_t status = OK;
  byte_t *bytes;
  size_t size = 0;
  if (!*state) return OK;
  fmi3SerializedFMUStateSize(unit, *state, &size);
  bytes = malloc(size);
  status = fmi3SerializeFMUState(unit, *state, bytes, size);
  if (any(2)) bytes[any(sizeof MODEL_TOKEN - 1)] ^= 1;
  if (status == OK) status = fmi3DeserializeFMUState(unit, bytes, size, state);
  free(bytes);
  return status;
}

int main(void) {
  long messages = 0, calls = 0, steps = 0;
  int round, call;
  for (round = 0; round < 200; ++round) {
    unit_t *unit = fmi3InstantiateCoSimulation("unit", MODEL_TOKEN, NULL, false, true, false,
                                                    false, NULL, 0, &messages, count, NULL);
    numbers_t *state = NULL;
    double time = 0;
    if (!unit) return 1;
    for (call = 0; call < 200; ++call) {
      unsigned references[2];
      bool flags[3];
      status_t status = OK;
      const size_t number = 1 + any(2);
      size_t size = 0, k;
      double *values;
      int32_t *integers;
      for (k = 0; k < number; ++k) {
        references[k] = any(MODEL_VARIABLES + 1);
        size += references[k] < MODEL_VARIABLES ? model_variables[references[k]].size : 1;
      }
      if (!any(10)) size = any(5);
      /* Of exact size, so that what goes beyond is seen. */
      values = malloc(size * sizeof *values);
      integers = malloc(size * sizeof *integers);
      for (k = 0; k < size; ++k) {
        values[k] = any(30) ? any(2000) / 1000.0 - 1 : any(2) ? NAN : 1e308;
      }
      switch (any(16)) {
        case 0: status = fmi3EnterInitializationMode(unit, false, 0, time, false, 0); break;
        case 1: status = fmi3ExitInitializationMode(unit); break;
        case 2:
        case 3:
        case 4: status = fmi3SetFloat64(unit, references, number, values, size); break;
        case 5:
        case 6: status = fmi3GetFloat64(unit, references, number, values, size); break;
        case 7: status = fmi3GetInt32(unit, references, number, integers, size); break;
        case 8:
        case 9:
        case 10:
          status = fmi3DoStep(unit, time, 0.01 * any(4), true, flags, flags + 1, flags + 2, &time);
          steps += status == OK;
          break;
        case 11: if (!any(6)) status = fmi3Reset(unit); break;
        case 12: status = fmi3GetFMUState(unit, &state); break;
        case 13: if (state) status = fmi3SetFMUState(unit, state); break;
        case 14: status = through_bytes(unit, &state); break;
        default: if (!any(8)) status = fmi3Terminate(unit);
      }
      calls += status == OK;
      free(values);
      free(integers);
    }
    fmi3FreeFMUState(unit, &state);
    fmi3FreeInstance(unit);
  }
  printf("%ld %ld %ld\n", messages, calls, steps);
  return 0;
}
