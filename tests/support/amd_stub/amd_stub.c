/* A libamd_smi.so without a GPU: the calls that are used, behind AMD's own Python package.
 *
 * Its state is a text of key=value words, taken from $AMD_STUB at amdsmi_init and from
 * amd_stub_set(). What the package looks up beside is generated and answers NOT_SUPPORTED.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, INVAL = 1, NOT_SUPPORTED = 2, NO_PERM = 10, NOT_FOUND = 31, INIT_AMD_GPUS = 2 };

static struct {
    double gpus;        /* how many */
    double now_s;       /* a time that stands still until it is set again; < 0: the real clock */
    double model;       /* 300: current power; 250: two dies a board, average power */
    double partitions;  /* of each MI300 */
    double power_w, step_w; /* board of GPU i draws i x step_w more */
    double fill;        /* what a power field without a value holds */
    double counter;     /* 0: no energy counter */
    double frozen;      /* 1: the energy counter stands still */
    double gain;        /* of the power alone */
    double cap_share, thermal_share; /* of the time */
    double step_s;      /* metrics are brought up to date this often */
    double metrics;     /* 0: no gpu_metrics; 1: without residencies, as on MI200; 2: with */
    double limit_w;
    double lost;        /* GPU that is lost, -1: none */
    double denied;      /* 1: no permission for power and energy */
    double kinds;       /* 2: GPUs of two names */
    double init;        /* what amdsmi_init returns */
} state = {
    .gpus = 4, .now_s = -1, .model = 300, .partitions = 1, .power_w = 600, .fill = 0xFFFF,
    .counter = 1, .gain = 1, .metrics = 2, .limit_w = 750, .lost = -1,
};

static const struct { const char *key; double *value; } keys[] = {
#define KEY(name) {#name, &state.name}
    KEY(gpus), KEY(now_s), KEY(model), KEY(partitions), KEY(power_w), KEY(step_w), KEY(fill),
    KEY(counter), KEY(frozen), KEY(gain), KEY(cap_share), KEY(thermal_share), KEY(step_s),
    KEY(metrics), KEY(limit_w), KEY(lost), KEY(denied), KEY(kinds), KEY(init),
};

static double now(void) {
    struct timespec t;
    if (state.now_s >= 0) return state.now_s;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int amd_stub_set(const char *text) {
    char copy[4096], *rest = copy, *word;
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strtok_r(rest, " \n", &rest))) {
        char *equals = strchr(word, '=');
        size_t i, n = sizeof keys / sizeof *keys;
        if (!equals) { fprintf(stderr, "amd_stub: %s?\n", word); abort(); }
        *equals = 0;
        for (i = 0; i < n && strcmp(keys[i].key, word); i++) {}
        if (i == n) { fprintf(stderr, "amd_stub: no key %s\n", word); abort(); }
        *keys[i].value = atof(equals + 1);
    }
    return OK;
}

static long index_of(void *gpu) { return (long)(intptr_t)gpu - 1; }
static int check(void *gpu) {
    if (index_of(gpu) < 0 || index_of(gpu) >= (long)state.gpus) return INVAL;
    return index_of(gpu) == (long)state.lost ? NOT_FOUND : OK;
}
static int follows(void *gpu) { /* a die or partition that tells no power */
    long dies = state.model == 250 ? 2 : (long)state.partitions;
    return index_of(gpu) % dies != 0;
}
static double watts(void *gpu) { return state.power_w + index_of(gpu) * state.step_w; }
#define TRY(expression) do { int r = (expression); if (r != OK) return r; } while (0)

int amdsmi_init(uint64_t flags) {
    const char *text = getenv("AMD_STUB");
    if (flags != INIT_AMD_GPUS) return INVAL;
    if (text) amd_stub_set(text);
    return (int)state.init;
}
int amdsmi_shut_down(void) { return OK; }
int amdsmi_get_socket_handles(uint32_t *count, void **sockets) {
    if (sockets) for (uint32_t i = 0; i < *count; i++) sockets[i] = (void *)(intptr_t)(i + 1);
    *count = (uint32_t)state.gpus;
    return OK;
}
int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **gpus) {
    *count = 1;
    if (gpus) *gpus = socket;
    return OK;
}
int amdsmi_get_gpu_device_uuid(void *gpu, uint32_t *size, char *text) {
    TRY(check(gpu));
    snprintf(text, *size, "%08lxff-74a1-0000-1000-00000000000", index_of(gpu));
    return OK;
}

typedef struct {
    char market_name[256];
    uint32_t vendor_id;
    char vendor_name[256];
    uint32_t subvendor_id;
    uint64_t device_id;
    uint32_t rev_id;
    char asic_serial[256];
} Asic;
int amdsmi_get_gpu_asic_info(void *gpu, Asic *asic) {
    TRY(check(gpu));
    snprintf(asic->market_name, 256, state.model == 250 ? "AMD Instinct MI250X"
             : state.kinds == 2 && index_of(gpu) % 2 ? "AMD Instinct MI325X" : "AMD Instinct MI300X OAM");
    snprintf(asic->asic_serial, 256, "%lX", 0xA000 + index_of(gpu));
    return OK;
}
typedef struct { char version[256], date[256], name[256]; } Driver;
int amdsmi_get_gpu_driver_info(void *gpu, Driver *driver) {
    TRY(check(gpu));
    snprintf(driver->version, 256, "6.16.6");
    return OK;
}
typedef struct { uint64_t kfd_id; uint32_t node_id, partition; } Kfd;
int amdsmi_get_gpu_kfd_info(void *gpu, Kfd *kfd) {
    TRY(check(gpu));
    kfd->partition = state.model == 250 ? 0 : (uint32_t)(index_of(gpu) % (long)state.partitions);
    return OK;
}
typedef struct { uint64_t power_cap; } Cap;
int amdsmi_get_power_cap_info(void *gpu, uint32_t sensor, Cap *cap) {
    TRY(check(gpu));
    if (sensor || follows(gpu)) return NOT_SUPPORTED;
    cap->power_cap = (uint64_t)(state.limit_w * 1e6);
    return OK;
}

typedef struct { uint64_t socket; uint32_t current, average; } Power;
int amdsmi_get_power_info(void *gpu, Power *power) {
    uint32_t value, none = (uint32_t)state.fill;
    TRY(check(gpu));
    if (state.denied) return NO_PERM;
    value = follows(gpu) ? none : (uint32_t)lround(watts(gpu) * state.gain);
    power->current = state.model == 250 ? none : value;
    power->average = state.model == 250 ? value : none;
    return OK;
}
int amdsmi_get_energy_count(void *gpu, uint64_t *count, float *resolution, uint64_t *timestamp) {
    TRY(check(gpu));
    if (state.denied) return NO_PERM;
    if (!state.counter) return NOT_SUPPORTED;
    *resolution = 15.3f;
    *timestamp = (uint64_t)(now() * 1e9);
    *count = follows(gpu) ? 0 : (uint64_t)(watts(gpu) * (state.frozen ? 1000 : now()) / 15.3e-6);
    return OK;
}

typedef struct { /* gpu_metrics, up to what is used */
    uint16_t size; uint8_t format, content;
    uint16_t edge, hotspot, mem, vr[3], activity[3], average_power;
    uint64_t energy, clock_counter;
    uint16_t average_clocks[7], gfxclk, clocks[6];
    uint32_t throttle_status;
    uint16_t fan, link_width, link_speed;
    uint32_t gfx_acc, mem_acc;
    uint16_t hbm[4];
    uint64_t firmware_timestamp;
    uint16_t voltage[3];
    uint64_t independent_status;
    uint16_t power, vcn[4];
    uint32_t lock;
    uint16_t xgmi[2];
    uint64_t pcie[5], xgmi_data[16];
    uint16_t gfxclks[8], socclks[4], vclk0s[4], dclk0s[4], jpeg[32];
    uint32_t naks[2];
    uint64_t steps, prochot, ppt, socket_thm, vr_thm, hbm_thm;
} Metrics;
int amdsmi_get_gpu_metrics_info(void *gpu, Metrics *metrics) {
    double t = now();
    TRY(check(gpu));
    if (!state.metrics) return NOT_SUPPORTED;
    if (state.step_s > 0) t = floor(t / state.step_s) * state.step_s;
    memset(metrics, 0xFF, sizeof *metrics);
    metrics->hotspot = 61;
    if (state.model == 250) metrics->gfxclk = 1700;
    else for (int i = 0; i < 8; i++) metrics->gfxclks[i] = (uint16_t)(2000 + 10 * i);
    if (state.metrics < 2) return OK;
    metrics->steps = (uint64_t)llround(t * 1000);
    metrics->ppt = (uint64_t)llround(t * 1000 * state.cap_share);
    metrics->socket_thm = (uint64_t)llround(t * 1000 * state.thermal_share);
    metrics->prochot = metrics->vr_thm = metrics->hbm_thm = 0;
    return OK;
}
