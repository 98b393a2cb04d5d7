/* The twin of tokenwatt_site/method/twin_player.py once more, with the same operations in the same
 * order, so that its times are those of the one in Python; a test holds it to that.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    double fixed_s, sequence_s, root_s, prefill_s, token_s, square_s;
    int64_t budget_tokens, max_sequences;
} Twin;

typedef struct {
    int64_t *keys, n; /* a binary heap: finishing step times requests plus the request */
} Heap;

static void heap_push(Heap *h, int64_t key) {
    int64_t i = h->n++;
    while (i && h->keys[(i - 1) / 2] > key) {
        h->keys[i] = h->keys[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->keys[i] = key;
}

static int64_t heap_pop(Heap *h) {
    int64_t top = h->keys[0], key = h->keys[--h->n], i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= h->n) break;
        if (child + 1 < h->n && h->keys[child + 1] < h->keys[child]) child++;
        if (h->keys[child] >= key) break;
        h->keys[i] = h->keys[child];
        i = child;
    }
    h->keys[i] = key;
    return top;
}

typedef struct {
    const Twin *p;
    const double *arrival_s;
    const int64_t *inputs, *outputs;
    double *first_s, *last_s;
    int64_t *tokens, n, head, done;
    double until_s;
    Heap heap;
} Play;

static double twin_decode_s(const Play *s, int64_t sequences) {
    double b = (double)sequences;
    return s->p->fixed_s + s->p->sequence_s * b + s->p->root_s * sqrt(b);
}

static void twin_finish(Play *s, int64_t count, double t_s) {
    int64_t end = (count + 1) * s->n;
    while (s->heap.n && s->heap.keys[0] < end) {
        int64_t i = heap_pop(&s->heap) % s->n;
        s->tokens[i] = s->outputs[i];
        s->last_s[i] = t_s;
    }
}

static double twin_prefill(Play *s, double t_s, int64_t count) {
    const Twin *p = s->p;
    int64_t head = s->head, done = s->done, running = s->heap.n, tokens = 0;
    int64_t room = p->budget_tokens - running, places = p->max_sequences - running;
    double square = 0.0;
    while (head < s->n && s->arrival_s[head] <= t_s && head - s->head < places && room > 0) {
        int64_t left = s->inputs[head] - done;
        int64_t chunk = left < room ? left : room;
        tokens += chunk;
        square += chunk * (done + 0.5 * chunk);
        room -= chunk;
        if (chunk < left) {
            done += chunk;
            break;
        }
        head++, done = 0;
    }
    double dt_s = twin_decode_s(s, running);
    if (tokens) dt_s += p->prefill_s + p->token_s * tokens + p->square_s * square;
    double end_s = t_s + dt_s;
    if (end_s <= s->until_s) {
        twin_finish(s, count + 1, end_s);
        for (int64_t i = s->head; i < head; i++) {
            s->first_s[i] = end_s;
            if (s->outputs[i] == 1) s->tokens[i] = 1, s->last_s[i] = end_s;
            else heap_push(&s->heap, (count + s->outputs[i]) * s->n + i);
        }
        s->head = head, s->done = done;
    }
    return end_s;
}

static void twin_steps(Play *s, double *end_s, int64_t *steps_taken) {
    double t_s = 0.0;
    int64_t count = 0;
    for (;;) {
        double next_s = s->head < s->n ? s->arrival_s[s->head] : INFINITY;
        if (!s->heap.n && next_s > t_s) {
            if (next_s >= s->until_s) break;
            t_s = next_s;
        }
        int64_t running = s->heap.n;
        if (next_s <= t_s && running < s->p->max_sequences) {
            double to_s = twin_prefill(s, t_s, count);
            if (to_s > s->until_s) break;
            t_s = to_s;
            count++;
            continue;
        }
        double dt_s = twin_decode_s(s, running);
        int64_t steps = s->heap.keys[0] / s->n - count;
        if (running < s->p->max_sequences && next_s < t_s + steps * dt_s) {
            steps = (int64_t)ceil((next_s - t_s) / dt_s);
            if (steps < 1) steps = 1;
        }
        if (t_s + steps * dt_s > s->until_s) {
            steps = (int64_t)((s->until_s - t_s) / dt_s);
            t_s += steps * dt_s;
            count += steps;
            break;
        }
        t_s += steps * dt_s;
        count += steps;
        twin_finish(s, count, t_s);
    }
    *end_s = t_s, *steps_taken = count;
}

int twin_play(const Twin *twin, int64_t n, const double *arrival_s, const int64_t *inputs,
              const int64_t *outputs, double until_s, double *first_s, double *last_s,
              int64_t *tokens) {
    Play s = {.p = twin, .arrival_s = arrival_s, .inputs = inputs, .outputs = outputs,
              .first_s = first_s, .last_s = last_s, .tokens = tokens, .n = n, .until_s = until_s};
    s.heap.keys = malloc((n ? n : 1) * sizeof(int64_t));
    if (!s.heap.keys) return 1;
    for (int64_t i = 0; i < n; i++) first_s[i] = last_s[i] = INFINITY, tokens[i] = 0;
    double t_s;
    int64_t count;
    twin_steps(&s, &t_s, &count);
    for (int64_t k = 0; k < s.heap.n; k++) {
        int64_t i = s.heap.keys[k] % n;
        tokens[i] = outputs[i] - (s.heap.keys[k] / n - count);
        last_s[i] = t_s;
    }
    free(s.heap.keys);
    return 0;
}

/* Limits.played of twin_scores.py: TTFT where ttft is set, else TPOT, over its limit. */
void twin_scores(int64_t n, int ttft, double limit_s, double look_s, const double *arrival_s,
                 const double *first_s, const double *last_s, const int64_t *tokens,
                 double *scores) {
    for (int64_t i = 0; i < n; i++) {
        if (ttft) scores[i] = ((look_s < first_s[i] ? look_s : first_s[i]) - arrival_s[i]) / limit_s;
        else if (tokens[i] > 1) scores[i] = (last_s[i] - first_s[i]) / (double)(tokens[i] - 1) / limit_s;
        else scores[i] = 0.0;
    }
}

/* The sums of nnls.py: row by row, products of all columns, those of the rows' last one included. */
void products(int64_t n, int64_t width, const double *rows, double *sums) {
    for (int64_t i = 0; i < width * width; i++) sums[i] = 0.0;
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < width; i++)
            for (int64_t j = 0; j < width; j++)
                sums[i * width + j] += rows[k * width + i] * rows[k * width + j];
}

void scaled(int64_t n, double factor, const double *values, double *results) {
    for (int64_t i = 0; i < n; i++) results[i] = factor * values[i];
}

double total(int64_t n, const double *values) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += values[i];
    return sum;
}

/* Keep the values that are at least a bound, in their order; return how many. */
int64_t at_least(int64_t n, const double *values, double bound, double *kept) {
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        kept[m] = values[i];
        m += values[i] >= bound;
    }
    return m;
}

int64_t count_over(int64_t n, const double *values, double limit) {
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) m += values[i] > limit;
    return m;
}
