/* The step model of tokenwatt_site/method (step_model.py, scheduler.py, step_cost.py, disturbance.py)
 * once more, for benchmarks that play months of server time. It does the same in the same order of
 * operations, so that its times are those of the Python model; a test holds it to that. Draws come
 * from outside: standard normals and unit exponentials of Python's own generators.
 *
 * Beyond it: two schedulers that the twin of a search lacks (shortest job first, prefix cache).
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE (-1)
#define BUCKETS 65536 /* over the longest answer, a power of two */
#define ADMIT_SHARE 0.98

enum { DONE = 0, MORE_DRAWS = 1, NO_MEMORY = 2 };

typedef struct {
    double bandwidth_bytes_s, fixed_s, sequence_s, dense_bytes, expert_bytes, experts,
        experts_per_token, kv_bytes, prefill_token_s, prefill_attention_s, decode_token_s;
    double idle_w, limit_w, memory_w, compute_w;
    double noise_sd, noise_tau_s, stalls_per_s, stall_s, drift_speed, drift_after_s;
    int64_t budget_tokens, max_sequences, kv_capacity_tokens, exclusive_prefill, shortest_first;
} Shape;

typedef struct {
    double arrival_s, first_s;
    double last_s, before_s; /* last token and the one before, those of the batch once it has left */
    int64_t prompt, output, cached, kept, prefilled, joined, due;
    int next, prev;   /* in the queue or among the decoding, oldest first */
    int bnext, bprev; /* among those that finish at the same step */
    int decoding;
} Request;

typedef struct {
    int head, tail;
} List;

typedef struct {
    Shape shape;
    double t_s, decoded_s, decoded_before_s; /* now; ends of the last two steps that decoded */
    double log_noise, redrawn_s, every_s, stall_at_s, slowness, until_s;
    const double *normals, *exponentials;
    int64_t normals_n, exponentials_n, normals_i, exponentials_i;
    Request *requests;
    int64_t n, arrived, ended;
    int64_t streams; /* of a client that sends when another request has ended; 0: as scheduled */
    List queue, batch;
    int64_t decoding, entering, kv, reserved, steps, preemptions;
    int prefilling;
    int *buckets;
    double *weights_s; /* by tokens in the step, NAN: not computed yet */
    int64_t weights_n;
} Server;

/* lists */

static void push_back(Server *s, List *list, int i) {
    Request *r = s->requests + i;
    r->next = NONE, r->prev = list->tail;
    if (list->tail == NONE) list->head = i;
    else s->requests[list->tail].next = i;
    list->tail = i;
}

static void push_front(Server *s, List *list, int i) {
    Request *r = s->requests + i;
    r->prev = NONE, r->next = list->head;
    if (list->head == NONE) list->tail = i;
    else s->requests[list->head].prev = i;
    list->head = i;
}

static void unlink_request(Server *s, List *list, int i) {
    Request *r = s->requests + i;
    if (r->prev == NONE) list->head = r->next;
    else s->requests[r->prev].next = r->next;
    if (r->next == NONE) list->tail = r->prev;
    else s->requests[r->next].prev = r->prev;
}

/* disturbance.py */

static double next_stall_s(Server *s, double t_s) {
    if (!s->shape.stalls_per_s) return INFINITY;
    return t_s + s->exponentials[s->exponentials_i++] / s->shape.stalls_per_s;
}

static void renew(Server *s, double t_s) {
    const Shape *p = &s->shape;
    if (p->noise_sd && t_s > s->redrawn_s) {
        double rho = exp((s->redrawn_s - t_s) / p->noise_tau_s);
        double spread = p->noise_sd * sqrt(1 - rho * rho);
        s->log_noise = rho * s->log_noise + s->normals[s->normals_i++] * spread;
        s->redrawn_s = t_s;
    }
    int drifted = t_s >= p->drift_after_s;
    s->slowness = exp(s->log_noise) / (drifted ? p->drift_speed : 1.0);
    s->until_s = fmin(t_s + s->every_s, drifted ? INFINITY : p->drift_after_s);
}

static double pause_s(Server *s, double t_s) {
    double total_s = 0.0;
    while (s->stall_at_s <= t_s) {
        total_s += s->exponentials[s->exponentials_i++] / (1 / s->shape.stall_s);
        s->stall_at_s = next_stall_s(s, s->stall_at_s);
    }
    return total_s;
}

/* scheduler.py */

static int64_t held(const Server *s) { return s->kv + s->reserved; }

static void leave(Server *s, int i) {
    Request *r = s->requests + i;
    int *bucket = s->buckets + (r->due & (BUCKETS - 1));
    if (r->bprev == NONE) *bucket = r->bnext;
    else s->requests[r->bprev].bnext = r->bnext;
    if (r->bnext != NONE) s->requests[r->bnext].bprev = r->bprev;
    if (s->steps > r->joined) {
        r->before_s = s->steps > r->joined + 1 ? s->decoded_before_s : r->last_s;
        r->last_s = s->decoded_s;
    }
    r->kept += s->steps - r->joined;
    s->kv -= r->prompt + r->kept;
    s->decoding--;
    r->decoding = 0;
    unlink_request(s, &s->batch, i);
}

static void preempt(Server *s) {
    int i = s->prefilling;
    if (i != NONE) {
        s->prefilling = NONE;
        s->reserved -= s->requests[i].prompt + s->requests[i].kept;
    } else {
        i = s->batch.tail;
        leave(s, i);
    }
    push_front(s, &s->queue, i);
    s->preemptions++;
}

static int shortest(const Server *s) {
    int best = s->queue.head;
    for (int i = best; i != NONE; i = s->requests[i].next) {
        const Request *a = s->requests + i, *b = s->requests + best;
        if (a->prompt + a->output < b->prompt + b->output) best = i;
    }
    return best;
}

static int admit(Server *s) {
    const Shape *p = &s->shape;
    if (s->queue.head == NONE) return NONE;
    if (s->decoding + s->entering + (s->prefilling != NONE) >= p->max_sequences) return NONE;
    int i = p->shortest_first ? shortest(s) : s->queue.head;
    Request *r = s->requests + i;
    int64_t context = r->prompt + r->kept;
    if (held(s) + context > ADMIT_SHARE * p->kv_capacity_tokens) return NONE;
    r->prefilled = r->cached < context ? r->cached : context - 1;
    s->reserved += context;
    unlink_request(s, &s->queue, i);
    return i;
}

static void join(Server *s, int i) {
    Request *r = s->requests + i;
    push_back(s, &s->batch, i);
    r->decoding = 1;
    s->decoding++;
    s->kv += r->prompt + r->kept;
    r->joined = s->steps;
    r->due = s->steps + r->output - r->kept;
    int *bucket = s->buckets + (r->due & (BUCKETS - 1));
    r->bnext = *bucket, r->bprev = NONE;
    if (*bucket != NONE) s->requests[*bucket].bprev = i;
    *bucket = i;
}

/* step_cost.py */

static double weights_read_s(Server *s, int64_t tokens) {
    if (isnan(s->weights_s[tokens])) {
        const Shape *p = &s->shape;
        double unread = pow(1 - p->experts_per_token / p->experts, (double)tokens);
        double bytes = p->dense_bytes + p->expert_bytes * (1 - unread);
        s->weights_s[tokens] = bytes / p->bandwidth_bytes_s;
    }
    return s->weights_s[tokens];
}

static double duration_s(Server *s, int64_t decoding, int64_t prefill, double attended) {
    const Shape *p = &s->shape;
    double kv_s = p->kv_bytes / p->bandwidth_bytes_s;
    double weights_s = weights_read_s(s, decoding + prefill);
    double compute_s = p->prefill_token_s * prefill + p->prefill_attention_s * attended +
                       p->decode_token_s * decoding;
    double base_s = p->fixed_s + p->sequence_s * decoding + weights_s + compute_s;
    double base_j = p->memory_w * weights_s + p->compute_w * compute_s;
    double kv_j = p->memory_w * kv_s;
    double headroom_w = p->limit_w - p->idle_w;
    double kv = decoding ? (double)s->kv : 0.0;
    double dt_s = (base_s + kv_s * kv) * s->slowness;
    double dynamic_j = base_j + kv_j * kv;
    return dynamic_j > headroom_w * dt_s ? dynamic_j / headroom_w : dt_s;
}

/* step_model.py */

static void decode(Server *s, int64_t decoding) {
    s->steps++;
    s->kv += decoding;
    s->decoded_before_s = s->decoded_s;
    s->decoded_s = s->t_s;
    int *bucket = s->buckets + (s->steps & (BUCKETS - 1));
    while (*bucket != NONE) {
        leave(s, *bucket);
        s->ended++;
    }
}

static void gain_first(Server *s, int i) {
    Request *r = s->requests + i;
    s->reserved -= r->prompt + r->kept;
    r->kept++;
    if (isinf(r->first_s)) r->first_s = s->t_s;
    r->before_s = r->last_s, r->last_s = s->t_s;
    if (r->kept < r->output) join(s, i);
    else s->ended++;
}

static void step(Server *s) {
    const Shape *p = &s->shape;
    while (held(s) > p->kv_capacity_tokens) preempt(s);
    int64_t decoding = s->decoding, room = p->budget_tokens - decoding, prefill = 0;
    double attended = 0.0;
    int first = NONE, last = NONE, i; /* prompts that this step completes, linked by bnext */
    while (room > 0 && (i = s->prefilling != NONE ? s->prefilling : admit(s)) != NONE) {
        Request *r = s->requests + i;
        int64_t left = r->prompt + r->kept - r->prefilled;
        int64_t chunk = room < left ? room : left;
        attended += chunk * (r->prefilled + chunk / 2.0);
        prefill += chunk;
        r->prefilled += chunk;
        room -= chunk;
        s->prefilling = i;
        if (chunk == left) {
            s->prefilling = NONE;
            s->entering++;
            r->bnext = NONE;
            if (last == NONE) first = i;
            else s->requests[last].bnext = i;
            last = i;
        }
    }
    if (prefill && p->exclusive_prefill) decoding = 0;
    if (s->t_s >= s->until_s) renew(s, s->t_s);
    double begin_s = s->t_s + pause_s(s, s->t_s);
    s->t_s = begin_s + duration_s(s, decoding, prefill, attended);
    if (decoding) decode(s, decoding);
    while (first != NONE) {
        i = first;
        first = s->requests[i].bnext;
        gain_first(s, i);
    }
    s->entering = 0;
}

static void take_arrivals(Server *s) {
    while (s->arrived < s->n && s->requests[s->arrived].arrival_s <= s->t_s) {
        if (s->streams) {
            if (s->arrived - s->ended >= s->streams) return;
            s->requests[s->arrived].arrival_s = s->t_s;
        }
        push_back(s, &s->queue, (int)s->arrived++);
    }
}

/* what Python calls */

void server_free(Server *s) {
    if (!s) return;
    free(s->requests), free(s->buckets), free(s->weights_s), free(s);
}

static void forget(Server *s) {
    s->n = s->arrived = s->ended = s->streams = 0;
    s->queue = s->batch = (List){NONE, NONE};
    s->decoding = s->entering = s->kv = s->reserved = 0;
    s->prefilling = NONE;
    memset(s->buckets, 0xff, BUCKETS * sizeof(int));
}

void server_draws(Server *s, const double *normals, int64_t normals_n, const double *exponentials,
                  int64_t exponentials_n) {
    s->normals = normals, s->normals_n = normals_n;
    s->exponentials = exponentials, s->exponentials_n = exponentials_n;
}

Server *server_new(const Shape *shape, const double *normals, int64_t normals_n,
                   const double *exponentials, int64_t exponentials_n) {
    Server *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->shape = *shape;
    int64_t tokens = shape->budget_tokens + shape->max_sequences + 1;
    s->weights_n = tokens;
    s->weights_s = malloc(tokens * sizeof(double));
    s->buckets = malloc(BUCKETS * sizeof(int));
    if (!s->weights_s || !s->buckets) {
        server_free(s);
        return NULL;
    }
    for (int64_t i = 0; i < tokens; i++) s->weights_s[i] = NAN;
    server_draws(s, normals, normals_n, exponentials, exponentials_n);
    forget(s);
    s->log_noise = s->normals[s->normals_i++] * shape->noise_sd;
    s->every_s = shape->noise_sd ? shape->noise_tau_s / 50 : INFINITY;
    s->stall_at_s = next_stall_s(s, 0.0);
    renew(s, 0.0);
    return s;
}

double server_now(const Server *s) { return s->t_s; }

int64_t server_preemptions(const Server *s) { return s->preemptions; }

void server_idle_to(Server *s, double t_s) {
    if (t_s <= s->t_s) return;
    s->t_s = t_s;
    if (s->stall_at_s <= t_s) s->stall_at_s = next_stall_s(s, t_s);
}

/* Drop every request, and take new ones in the order of their arrival. */
int server_load(Server *s, int64_t n, const double *arrival_s, const int64_t *prompt,
                const int64_t *output, const int64_t *cached) {
    forget(s);
    free(s->requests);
    s->requests = calloc(n ? n : 1, sizeof(Request));
    if (!s->requests) return NO_MEMORY;
    s->n = n;
    for (int64_t i = 0; i < n; i++) {
        Request *r = s->requests + i;
        r->arrival_s = arrival_s[i], r->first_s = r->last_s = r->before_s = INFINITY;
        r->prompt = prompt[i], r->output = output[i], r->cached = cached ? cached[i] : 0;
    }
    return DONE;
}

/* Send the requests that are loaded by so many streams: each its next one when its last has ended. */
void server_stream(Server *s, int64_t streams) { s->streams = streams; }

void server_sent(const Server *s, double *sent_s) {
    for (int64_t i = 0; i < s->n; i++) sent_s[i] = i < s->arrived ? s->requests[i].arrival_s : INFINITY;
}

/* Take steps while they begin before until_s and there is anything to do. */
int server_run(Server *s, double until_s) {
    const Shape *p = &s->shape;
    while (s->t_s < until_s) {
        if (p->noise_sd && s->normals_i >= s->normals_n) return MORE_DRAWS;
        if (p->stalls_per_s && s->exponentials_i + 64 > s->exponentials_n) return MORE_DRAWS;
        take_arrivals(s);
        if (s->queue.head == NONE && !s->decoding && s->prefilling == NONE) {
            if (s->arrived == s->n || s->requests[s->arrived].arrival_s >= until_s) return DONE;
            server_idle_to(s, s->requests[s->arrived].arrival_s);
            take_arrivals(s);
        }
        step(s);
    }
    return DONE;
}

/* What a client has seen by look_s, at most a step ago: a token that comes later isn't there yet. */
void server_look(const Server *s, double look_s, double *first_s, double *last_s, int64_t *tokens) {
    for (int64_t i = 0; i < s->n; i++) {
        const Request *r = s->requests + i;
        int64_t batch = r->decoding ? s->steps - r->joined : 0; /* decoded since it joined */
        double last = batch ? s->decoded_s : r->last_s;
        double before = batch > 1 ? s->decoded_before_s : batch ? r->last_s : r->before_s;
        int late = last > look_s; /* so is that of a request without a token */
        int seen = r->first_s <= look_s;
        tokens[i] = seen ? r->kept + batch - late : 0;
        first_s[i] = seen ? r->first_s : INFINITY;
        last_s[i] = seen ? (late ? before : last) : INFINITY;
    }
}
