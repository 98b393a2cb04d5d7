/* A libnvidia-ml.so.1 without a GPU: only the calls that are used, and every way that they fail.
 *
 * Its state is a text of key=value words, taken from $NVML_STUB at the start, from the file
 * $NVML_STUB_FILE whenever that changes, and from nvml_stub_set() in the same process. Words not
 * given keep their value. See `state` for the keys. The energy counter is the exact integral of
 * the power that the stub plays, so that counter and samples can be held against each other.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPUS 16
enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, NO_FUNCTION = 13, LOST = 15 };
enum { FIELD_POWER_NS = 74, FIELD_THERMAL_NS = 75, FIELD_AVERAGE = 185, FIELD_INSTANT = 186, FIELD_SW_THERMAL_NS = 269, FIELD_BRAKE_NS = 271 };

static struct {
    double gpus;           /* how many */
    double now_s;          /* a time that stands still until it is set again; < 0: the real clock */
    double high_w, low_w;  /* power: high for duty x period_s, then low; period_s 0: always high */
    double period_s, duty;
    double step_w;         /* GPU i draws i x step_w more */
    double gain;           /* of the power readings alone: 1000 is a wrong unit, 0 reads zeros */
    double energy_j;       /* >= 0: what the counter reads, instead of the integral */
    double counter;        /* 0: NotSupported */
    double counter_step_s; /* it is brought up to date this often */
    double counter_gain;
    double reset;          /* 1: the counter starts from 0 again, once */
    double fields;         /* 0: every power field NotSupported, as on old drivers */
    double instant;        /* 0: field 186 NotSupported */
    double module;         /* 1: fields only at module scope, as on GH200; 2: on odd GPUs alone */
    double usage;          /* 0: nvmlDeviceGetPowerUsage NotSupported, as on a vGPU */
    double ns;             /* 0: no throttle counters; 1: 74 and 269-271; 2: 74 and 75 alone */
    double cap_share, thermal_share; /* of the time, in those counters */
    double reasons;        /* bits of the throttle reasons */
    double events;         /* 0: the call's name of driver 535 is missing; -1: the old one too */
    double limit_w, mhz, celsius;
    double temperature_v;  /* 0: nvmlDeviceGetTemperatureV is missing, as before driver 560; -1: the old one too */
    double kinds;          /* 2: GPUs of two names; 3: of GA100 */
    double arch;           /* nvmlDeviceArchitecture_t; 0: the call is missing, as before driver 450 */
    double limit_step_w;   /* GPU i may draw i x limit_step_w more */
    double mig;            /* 1: MIG is on */
    double lost;           /* GPU that is lost, -1: none */
    double by_uuid;        /* 0: no GPU is found by its UUID */
    double denied;         /* 1: NoPermission for power */
    double init;           /* what nvmlInitWithFlags returns */
} state = {
    .gpus = 4, .now_s = -1, .high_w = 594, .duty = 0.5, .gain = 1, .energy_j = -1, .counter = 1,
    .counter_step_s = 0.02, .counter_gain = 1, .fields = 1, .instant = 1, .usage = 1, .ns = 1,
    .events = 1, .limit_w = 700, .mhz = 1500, .celsius = 55, .temperature_v = 1, .lost = -1,
    .by_uuid = 1, .arch = 9,
};

static const struct { const char *key; double *value; } keys[] = {
#define KEY(name) {#name, &state.name}
    KEY(gpus), KEY(now_s), KEY(high_w), KEY(low_w), KEY(period_s), KEY(duty), KEY(step_w),
    KEY(gain), KEY(energy_j), KEY(counter), KEY(counter_step_s), KEY(counter_gain), KEY(reset),
    KEY(fields), KEY(instant), KEY(module), KEY(usage), KEY(ns), KEY(cap_share),
    KEY(thermal_share), KEY(reasons), KEY(events), KEY(limit_w), KEY(mhz), KEY(celsius),
    KEY(temperature_v), KEY(kinds), KEY(mig), KEY(lost), KEY(by_uuid), KEY(denied), KEY(init), KEY(arch),
    KEY(limit_step_w),
};

static char last_file[4096];
static int begun;
static double since_s, base_j, base_cap_s, base_thermal_s; /* the counters when the rules last changed */

static double now(void) {
    struct timespec t;
    if (state.now_s >= 0) return state.now_s;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static double watts(double t) {
    if (state.period_s <= 0) return state.high_w;
    return fmod(t, state.period_s) < state.duty * state.period_s ? state.high_w : state.low_w;
}

static double integral(double t) { /* of watts, from 0 */
    double p = state.period_s, high_s, whole;
    if (p <= 0) return state.high_w * t;
    whole = floor(t / p);
    high_s = fmin(t - whole * p, state.duty * p);
    return whole * p * (state.duty * state.high_w + (1 - state.duty) * state.low_w) +
           high_s * state.high_w + (t - whole * p - high_s) * state.low_w;
}

static double counted_j(double t) {
    return base_j + (t > since_s ? integral(t) - integral(since_s) : 0);
}
static double timed_s(double base_s, double share, double t) {
    return base_s + (t > since_s ? share * (t - since_s) : 0);
}

static void rebase(double t) {
    base_j = counted_j(t);
    base_cap_s = timed_s(base_cap_s, state.cap_share, t);
    base_thermal_s = timed_s(base_thermal_s, state.thermal_share, t);
    since_s = t;
}

int nvml_stub_set(const char *text) {
    enum { n = sizeof keys / sizeof *keys };
    double values[n];
    char given[n] = {0}, copy[4096], *rest = copy, *word;
    double until_s = now();
    int rules = 0; /* something but the time is new */
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strtok_r(rest, " \n", &rest))) {
        char *equals = strchr(word, '=');
        size_t i;
        if (!equals) { fprintf(stderr, "nvml_stub: %s?\n", word); abort(); }
        *equals = 0;
        for (i = 0; i < n && strcmp(keys[i].key, word); i++) {}
        if (i == n) { fprintf(stderr, "nvml_stub: no key %s\n", word); abort(); }
        values[i] = atof(equals + 1);
        given[i] = 1;
    }
    for (size_t i = 0; i < n; i++) {
        if (given[i] && keys[i].value == &state.now_s) until_s = values[i];
        else if (given[i]) rules = 1;
    }
    if (rules) rebase(until_s); /* by the old rules up to here */
    for (size_t i = 0; i < n; i++)
        if (given[i]) *keys[i].value = values[i];
    if (state.reset) { base_j = 0; state.reset = 0; }
    return OK;
}

static void refresh(void) {
    const char *text = getenv("NVML_STUB"), *path = getenv("NVML_STUB_FILE");
    if (!begun) {
        begun = 1;
        if (text) nvml_stub_set(text);
        since_s = now();
        base_j = 1000;
    }
    if (path) {
        char found[sizeof last_file];
        FILE *file = fopen(path, "r");
        size_t n = file ? fread(found, 1, sizeof found - 1, file) : 0;
        if (file) fclose(file);
        found[n] = 0;
        if (n && strcmp(found, last_file)) { strcpy(last_file, found); nvml_stub_set(found); }
    }
}

/* A handle is the index plus 1: never null. */
static long index_of(void *device) { return (long)(intptr_t)device - 1; }

static int check(void *device) {
    refresh();
    if (index_of(device) < 0 || index_of(device) >= (long)state.gpus) return INVALID;
    return index_of(device) == (long)state.lost ? LOST : OK;
}

static int power_check(void *device) {
    int result = check(device);
    return result == OK && state.denied ? NO_PERMISSION : result;
}

static double gpu_mw(void *device, double base_w) {
    return (base_w + index_of(device) * state.step_w) * state.gain * 1000;
}

static double average_w(double t) { return integral(t) - integral(t - 1); } /* the last second */

#define CALL(name, ...) int name(__VA_ARGS__)
#define TRY(expression) do { int r = (expression); if (r != OK) return r; } while (0)

CALL(nvmlInitWithFlags, unsigned flags) { (void)flags; refresh(); return (int)state.init; }
CALL(nvmlShutdown, void) { return OK; }
const char *nvmlErrorString(int result) { (void)result; return "an error of the stub"; }

CALL(nvmlSystemGetDriverVersion, char *text, unsigned size) {
    snprintf(text, size, "595.91.07");
    return OK;
}
CALL(nvmlDeviceGetCount_v2, unsigned *count) { refresh(); *count = (unsigned)state.gpus; return OK; }
CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, void **device) {
    refresh();
    if (index >= (unsigned)state.gpus) return INVALID;
    *device = (void *)(intptr_t)(index + 1);
    return check(*device);
}
CALL(nvmlDeviceGetUUID, void *device, char *text, unsigned size) {
    TRY(check(device));
    snprintf(text, size, "GPU-00000000-0000-0000-0000-%012ld", index_of(device));
    return OK;
}
CALL(nvmlDeviceGetHandleByUUID, const char *uuid, void **device) {
    long index;
    refresh();
    if (!state.by_uuid || sscanf(uuid, "GPU-00000000-0000-0000-0000-%ld", &index) != 1)
        return NOT_FOUND;
    *device = (void *)(intptr_t)(index + 1);
    return check(*device) == INVALID ? NOT_FOUND : check(*device);
}
CALL(nvmlDeviceGetName, void *device, char *text, unsigned size) {
    TRY(check(device));
    if (state.kinds == 3) snprintf(text, size, "NVIDIA A100-SXM4-80GB");
    else snprintf(text, size, state.kinds == 2 && index_of(device) % 2 ? "NVIDIA H100" : "NVIDIA H200");
    return OK;
}
CALL(nvmlDeviceGetArchitecture, void *device, unsigned *arch) {
    TRY(check(device));
    if (!state.arch) return NO_FUNCTION;
    *arch = (unsigned)state.arch;
    return OK;
}
CALL(nvmlDeviceGetPowerUsage, void *device, unsigned *mw) {
    TRY(power_check(device));
    if (!state.usage) return NOT_SUPPORTED;
    *mw = (unsigned)lround(gpu_mw(device, average_w(now())));
    return OK;
}
CALL(nvmlDeviceGetTotalEnergyConsumption, void *device, unsigned long long *mj) {
    double t, joules;
    TRY(power_check(device));
    if (!state.counter) return NOT_SUPPORTED;
    t = now();
    if (state.counter_step_s > 0) t = floor(t / state.counter_step_s) * state.counter_step_s;
    joules = (state.energy_j >= 0 ? state.energy_j : counted_j(t)) + index_of(device) * state.step_w * t;
    *mj = (unsigned long long)llround(joules * state.counter_gain * 1000);
    return OK;
}

typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned valueType;
    int nvmlReturn;
    union { double d; unsigned u; unsigned long long ull; } value;
} Field;

static int one_field(void *device, Field *field) {
    double t = now();
    if (field->fieldId == FIELD_AVERAGE || field->fieldId == FIELD_INSTANT) {
        int instant = field->fieldId == FIELD_INSTANT;
        int module = state.module == 2 ? index_of(device) % 2 : (int)state.module;
        if (!state.fields || (instant && !state.instant) || field->scopeId != (unsigned)module)
            return NOT_SUPPORTED;
        field->valueType = 1;
        field->value.u = (unsigned)lround(gpu_mw(device, instant ? watts(t) : average_w(t)));
        return OK;
    }
    if (!state.ns || (state.ns == 2) != (field->fieldId == FIELD_THERMAL_NS)) {
        if (!state.ns || field->fieldId != FIELD_POWER_NS) return NOT_SUPPORTED;
    }
    field->valueType = 3;
    switch (field->fieldId) {
    case FIELD_POWER_NS: field->value.ull = (unsigned long long)(timed_s(base_cap_s, state.cap_share, t) * 1e9); return OK;
    case FIELD_THERMAL_NS:
    case FIELD_SW_THERMAL_NS: field->value.ull = 
        (unsigned long long)(timed_s(base_thermal_s, state.thermal_share, t) * 1e9);
        return OK;
    default:
        field->value.ull = 0;
        return field->fieldId > FIELD_SW_THERMAL_NS && field->fieldId <= FIELD_BRAKE_NS ? OK : INVALID;
    }
}
CALL(nvmlDeviceGetFieldValues, void *device, int count, Field *fields) {
    TRY(power_check(device));
    for (int i = 0; i < count; i++) {
        fields[i].value.ull = 0;
        fields[i].valueType = 1;
        fields[i].nvmlReturn = one_field(device, &fields[i]);
    }
    return OK; /* whatever became of the fields */
}

static int reasons(void *device, unsigned long long *bits) {
    TRY(check(device));
    *bits = (unsigned long long)state.reasons;
    return OK;
}
CALL(nvmlDeviceGetCurrentClocksEventReasons, void *device, unsigned long long *bits) {
    return state.events > 0 ? reasons(device, bits) : NO_FUNCTION;
}
CALL(nvmlDeviceGetCurrentClocksThrottleReasons, void *device, unsigned long long *bits) {
    return state.events >= 0 ? reasons(device, bits) : NO_FUNCTION;
}
CALL(nvmlDeviceGetEnforcedPowerLimit, void *device, unsigned *mw) {
    TRY(check(device));
    if (state.limit_w <= 0) return NOT_SUPPORTED;
    *mw = (unsigned)lround((state.limit_w + index_of(device) * state.limit_step_w) * 1000);
    return OK;
}
CALL(nvmlDeviceGetMigMode, void *device, unsigned *current, unsigned *pending) {
    TRY(check(device));
    if (state.mig < 0) return NOT_SUPPORTED;
    *current = *pending = state.mig > 0;
    return OK;
}
CALL(nvmlDeviceGetClockInfo, void *device, int type, unsigned *mhz) {
    TRY(check(device));
    (void)type;
    *mhz = (unsigned)state.mhz;
    return OK;
}
CALL(nvmlDeviceGetTemperature, void *device, int sensor, unsigned *celsius) {
    TRY(check(device));
    if (state.temperature_v < 0) return NO_FUNCTION;
    (void)sensor;
    *celsius = (unsigned)state.celsius;
    return OK;
}
typedef struct { unsigned version; int sensor, celsius; } Temperature;
CALL(nvmlDeviceGetTemperatureV, void *device, Temperature *reading) {
    TRY(check(device));
    if (state.temperature_v <= 0) return NO_FUNCTION;
    reading->celsius = (int)state.celsius;
    return OK;
}
