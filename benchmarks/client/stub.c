/* An OpenAI-compatible server whose times are exact and logged: the truth that clients are held to.
 *
 *   gcc -O2 -o stub stub.c && ./stub TTFT_US ITL_US
 *
 * Prints its port. Streams max_tokens tokens (max_completion_tokens in chat), the first TTFT_US after
 * the request was read, then one every ITL_US. GET /log gives one line a finished request, in ns of
 * CLOCK_MONOTONIC: read, first token written, last token written, worst lateness of a token, tokens;
 * and forgets them. One thread; a core of it carries about 50,000 tokens a second.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 512, FIRE_AT_ONCE = 256, FIRST_SIZE = 8192, KEPT_BACK = 1 << 22 };

typedef struct connection {
  struct connection *next; /* in a queue */
  int fd, chat, usage, close_after, gone;
  long total, sent; /* tokens; sent < total while a request streams */
  int64_t due, read, first, last, late;
  char *in;
  size_t in_size, in_length;
  char *out; /* what the socket didn't take */
  size_t out_length, out_from;
} connection;

typedef struct {
  connection *head, *tail;
} queue;

typedef struct {
  int64_t read, first, last, late;
  long tokens;
} entry;

static int poller;
static int64_t ttft, itl;
static queue waiting, streaming; /* both in the order of their due times */
static entry *entries;
static size_t entries_length, entries_size;
static const char *token[2], *head_token[2], *last_token[2];

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void push(queue *q, connection *c) {
  c->next = NULL;
  if (q->tail) q->tail->next = c;
  else q->head = c;
  q->tail = c;
}

static connection *pop(queue *q) {
  connection *c = q->head;
  q->head = c->next;
  if (!q->head) q->tail = NULL;
  return c;
}

static void drop(connection *c) {
  close(c->fd);
  free(c->in);
  free(c->out);
  free(c);
}

static void put(connection *c, const char *bytes, size_t length) {
  if (!c->out_length) {
    ssize_t n = write(c->fd, bytes, length);
    if (n == (ssize_t)length) return;
    if (n < 0) {
      if (errno != EAGAIN) {
        c->gone = 1;
        return;
      }
      n = 0;
    }
    bytes += n;
    length -= n;
  }
  if (c->out_length + length > KEPT_BACK) {
    c->gone = 1;
    return;
  }
  c->out = realloc(c->out, c->out_length + length);
  memcpy(c->out + c->out_length, bytes, length);
  c->out_length += length;
  struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e);
}

static void flush(connection *c) {
  ssize_t n = write(c->fd, c->out + c->out_from, c->out_length - c->out_from);
  if (n > 0) c->out_from += n;
  if (c->out_from < c->out_length) return;
  c->out_from = c->out_length = 0;
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e);
}

static const char *chunk(const char *event) {
  char *out = malloc(strlen(event) + 32);
  sprintf(out, "%zx\r\n%s\r\n", strlen(event), event);
  return out;
}

static void make_events(void) {
  const char *text =
      "data: {\"id\":\"cmpl-1f3870be274f6c49b3e31a0c6728957f\",\"object\":\"text_completion\","
      "\"created\":1796000000,\"model\":\"stub\",\"choices\":[{\"index\":0,\"text\":\" word\","
      "\"logprobs\":null,\"finish_reason\":%s}],\"usage\":null}\n\n";
  const char *chat =
      "data: {\"id\":\"chatcmpl-1f3870be274f6c49b3e31a0c6728957f\","
      "\"object\":\"chat.completion.chunk\",\"created\":1796000000,\"model\":\"stub\","
      "\"choices\":[{\"index\":0,\"delta\":{%s\"content\":\" word\"},\"logprobs\":null,"
      "\"finish_reason\":%s}],\"usage\":null}\n\n";
  const char *role = "\"role\":\"assistant\",";
  char event[1024];
  sprintf(event, text, "null");
  token[0] = head_token[0] = chunk(event);
  sprintf(event, text, "\"length\"");
  last_token[0] = chunk(event);
  sprintf(event, chat, "", "null");
  token[1] = chunk(event);
  sprintf(event, chat, role, "null");
  head_token[1] = chunk(event);
  sprintf(event, chat, "", "\"length\"");
  last_token[1] = chunk(event);
}

static void note(const connection *c) {
  if (entries_length == entries_size) {
    entries_size = entries_size ? 2 * entries_size : 4096;
    entries = realloc(entries, entries_size * sizeof *entries);
  }
  entries[entries_length++] = (entry){c->read, c->first, c->last, c->late, c->total};
}

static void answer(connection *c);

/* Write the token that is due. */
static void fire(connection *c) {
  if (c->gone) {
    drop(c);
    return;
  }
  char out[3072];
  size_t length = 0;
  int64_t at = now();
  if (at - c->due > c->late) c->late = at - c->due;
  if (!c->sent) {
    c->first = at;
    length += sprintf(out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                           "transfer-encoding: chunked\r\n\r\n");
  }
  int last = c->sent + 1 == c->total;
  const char *event = last ? last_token[c->chat] : c->sent ? token[c->chat] : head_token[c->chat];
  length += sprintf(out + length, "%s", event);
  c->sent++;
  if (!last) {
    put(c, out, length);
    c->due += itl;
    push(&streaming, c);
    return;
  }
  c->last = at;
  if (c->usage) {
    char usage[512];
    sprintf(usage,
            "data: {\"id\":\"%scmpl-1f3870be274f6c49b3e31a0c6728957f\",\"object\":\"%s\","
            "\"created\":1796000000,\"model\":\"stub\",\"choices\":[],\"usage\":{\"prompt_tokens\":16,"
            "\"completion_tokens\":%ld,\"total_tokens\":%ld}}\n\n",
            c->chat ? "chat" : "", c->chat ? "chat.completion.chunk" : "text_completion", c->total,
            16 + c->total);
    length += sprintf(out + length, "%zx\r\n%s\r\n", strlen(usage), usage);
  }
  length += sprintf(out + length, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
  put(c, out, length);
  note(c);
  if (c->close_after) shutdown(c->fd, SHUT_WR);
  if (c->gone) drop(c);
  else answer(c);
}

static void page(connection *c, const char *type, const char *body, size_t length) {
  char head[256];
  int n = sprintf(head, "HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %zu\r\n\r\n", type,
                  length);
  put(c, head, n);
  put(c, body, length);
}

static void log_page(connection *c) {
  char *body = malloc(entries_length * 128 + 1);
  size_t n = 0;
  for (size_t i = 0; i < entries_length; i++) {
    const entry *e = &entries[i];
    n += sprintf(body + n, "%ld %ld %ld %ld %ld\n", (long)e->read, (long)e->first, (long)e->last,
                 (long)e->late, e->tokens);
  }
  entries_length = 0;
  page(c, "text/plain", body, n);
  free(body);
}

static long number_after(const char *text, const char *key) {
  const char *at = strstr(text, key);
  return at ? atol(at + strlen(key) + strspn(at + strlen(key), " :\"")) : 0;
}

static void take(connection *c, const char *head, const char *body) {
  if (strncmp(head, "POST ", 5)) {
    static const char models[] =
        "{\"object\":\"list\",\"data\":[{\"id\":\"stub\",\"object\":\"model\",\"created\":1,"
        "\"owned_by\":\"stub\",\"max_model_len\":131072}]}";
    if (!strncmp(head, "GET /log", 8)) log_page(c);
    else page(c, "application/json", models, sizeof models - 1);
    return;
  }
  c->chat = strncmp(head + 5, "/v1/chat", 8) == 0;
  c->total = number_after(body, "\"max_tokens\"");
  if (!c->total) c->total = number_after(body, "\"max_completion_tokens\"");
  if (!c->total) c->total = 16;
  c->usage = strstr(body, "\"include_usage\"") != NULL;
  const char *stream = strstr(body, "\"stream\"");
  if (!stream || stream[8 + strspn(stream + 8, " :")] != 't') { /* a question whether it is there */
    char text[512];
    int n = sprintf(text,
                    "{\"id\":\"x\",\"object\":\"%s\",\"created\":1,\"model\":\"stub\",\"choices\":[{"
                    "\"index\":0,\"text\":\" word\",\"message\":{\"role\":\"assistant\",\"content\":"
                    "\" word\"},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":16,"
                    "\"completion_tokens\":%ld,\"total_tokens\":%ld}}",
                    c->chat ? "chat.completion" : "text_completion", c->total, 16 + c->total);
    c->total = c->sent = 0;
    page(c, "application/json", text, n);
    return;
  }
  const char *closing = strcasestr(head, "\r\nconnection: close");
  c->close_after = closing && closing < body;
  c->sent = 0;
  c->late = 0;
  c->read = now();
  c->due = c->read + ttft;
  push(&waiting, c);
}

/* Answer the requests that lie whole in the buffer; one that streams is the last for now. */
static void answer(connection *c) {
  while (c->sent == c->total && c->in_length) {
    c->in[c->in_length] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end) return;
    size_t head = end + 4 - c->in, body = 0;
    char *length = strcasestr(c->in, "\r\ncontent-length:");
    if (length && length < end) body = strtoul(length + 17, NULL, 10);
    char *chunked = strcasestr(c->in, "\r\ntransfer-encoding: chunked");
    if (chunked && chunked < end) {
      char *last = memmem(c->in + head, c->in_length - head, "0\r\n\r\n", 5);
      if (!last) return;
      body = last + 5 - (c->in + head);
    }
    if (c->in_length < head + body) return;
    char after = c->in[head + body];
    c->in[head + body] = 0;
    take(c, c->in, c->in + head);
    c->in[head + body] = after;
    c->in_length -= head + body;
    memmove(c->in, c->in + head + body, c->in_length);
  }
}

static void receive(connection *c) {
  for (;;) {
    if (c->in_size - c->in_length < FIRST_SIZE / 2) {
      c->in_size *= 2;
      c->in = realloc(c->in, c->in_size + 1);
    }
    ssize_t n = read(c->fd, c->in + c->in_length, c->in_size - c->in_length);
    if (n > 0) {
      c->in_length += n;
      continue;
    }
    if (n < 0 && errno == EAGAIN) break;
    c->gone = 1;
    epoll_ctl(poller, EPOLL_CTL_DEL, c->fd, NULL);
    if (c->sent == c->total) drop(c); /* else where its next token is due */
    return;
  }
  answer(c);
}

static void welcome(int listener) {
  int fd, one = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->in_size = FIRST_SIZE;
    c->in = malloc(c->in_size + 1);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
  }
}

static queue *next_due(void) {
  if (!waiting.head) return streaming.head ? &streaming : NULL;
  if (!streaming.head) return &waiting;
  return waiting.head->due < streaming.head->due ? &waiting : &streaming;
}

int main(int count, char **words) {
  if (count != 3) return fprintf(stderr, "usage: stub TTFT_US ITL_US\n"), 2;
  ttft = 1000LL * atol(words[1]);
  itl = 1000LL * atol(words[2]);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_TIMERSLACK, 1);
  make_events();
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (bind(listener, (void *)&address, length) || listen(listener, 4096)) return perror("bind"), 1;
  getsockname(listener, (void *)&address, &length);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  poller = epoll_create1(0);
  struct epoll_event listening = {.events = EPOLLIN}, events[EVENTS];
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &listening);
  for (;;) {
    queue *q;
    for (int i = 0; i < FIRE_AT_ONCE && (q = next_due()) && q->head->due <= now(); i++)
      fire(pop(q));
    struct timespec left, *until = NULL;
    if ((q = next_due())) {
      int64_t ns = q->head->due - now();
      if (ns < 0) ns = 0;
      left = (struct timespec){ns / 1000000000LL, ns % 1000000000LL};
      until = &left;
    }
    int n = epoll_pwait2(poller, events, EVENTS, until, NULL);
    for (int i = 0; i < n; i++) {
      connection *c = events[i].data.ptr;
      if (!c) {
        welcome(listener);
        continue;
      }
      if (events[i].events & EPOLLOUT && c->out_length) flush(c);
      if (events[i].events & ~EPOLLOUT) receive(c);
    }
  }
}
