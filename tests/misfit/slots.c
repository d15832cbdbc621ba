/* An engine that behaves, except in the one slot and the one way that its settings name: {"slot": "...", "does": "..."}.
 *
 * Settings come as JSON; this file looks for the two keys and reads no more of it. Each instance has its own, taken from create;
 * a clone has those of its source. What a misbehaviour saw of the host's answers it writes to the host's log.
 *
 * Compiled again with SLOTS_WITHOUT_CLONE, SLOTS_OLD (a table that ends after `compress`, by an author who knew no more),
 * or SLOTS_NEW (a table with slots that no host knows yet).
 */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#include "hermes_helpers.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(SLOTS_OLD)
#  define NAME "misfit-old"
#elif defined(SLOTS_NEW)
#  define NAME "misfit-new"
#elif defined(SLOTS_WITHOUT_CLONE)
#  define NAME "misfit-without-clone"
#else
#  define NAME "misfit"
#endif

struct hermes_engine {
  hermes_state state;
  const hermes_host *host;
  char slot[32], does[32];
  unsigned calls;           /* of any slot */
  unsigned missed;          /* calls of the slot that misbehaves */
  hermes_engine *shared;    /* what a clone slot gave before */
};

static void say(const hermes_host *host, const char *text) {
  if (HERMES_CAN(hermes_host, host, log)) host->log(host, 2, hermes_bytes_of(text));
}

static void nap(unsigned ms) {
  struct timespec t;
  t.tv_sec = (time_t)(ms / 1000);
  t.tv_nsec = (long)(ms % 1000) * 1000000L;
  nanosleep(&t, NULL);
}

/* The value of "key":"..." in a flat object, or empty. */
static void setting(hermes_bytes config, const char *key, char *out, size_t room) {
  size_t n = strlen(key), i, j = 0;
  out[0] = 0;
  for (i = 0; i + n + 4 <= config.len; i++) {
    const char *at = (const char *)config.ptr + i;
    if (at[0] == '"' && memcmp(at + 1, key, n) == 0 && at[n + 1] == '"' && at[n + 2] == ':' && at[n + 3] == '"') {
      for (i += n + 4; i < config.len && config.ptr[i] != '"' && j + 1 < room; i++) out[j++] = (char)config.ptr[i];
      break;
    }
  }
  out[j] = 0;
}

static int is(const hermes_engine *self, const char *does) { return strcmp(self->does, does) == 0; }

/* Whether it is this slot that misbehaves. */
static int here(hermes_engine *self, const char *slot) {
  self->calls++;
  if (strcmp(self->slot, slot) != 0) return 0;
  self->missed++;
  return 1;
}

static hermes_status tell(const hermes_call *call, const char *text) { return call->error(call, hermes_bytes_of(text)); }
static hermes_status put(const hermes_call *call, const char *json) { return call->push(call, hermes_bytes_of(json)); }

/* A host function has answered; what it was goes to the log. */
static void note(hermes_engine *self, const char *what, hermes_status status) {
  char line[96];
  snprintf(line, sizeof line, "%s answered %d", what, (int)status);
  say(self->host, line);
}

/* Misbehaviours that any slot can have. 1: `*out` is what the slot returns. */
static int misbehave(hermes_engine *self, const hermes_call *call, hermes_status *out) {
  if (is(self, "fail")) { tell(call, "boom"); *out = HERMES_ERR_FAILED; return 1; }
  if (is(self, "fail once")) { if (self->missed > 1) return 0; tell(call, "boom"); *out = HERMES_ERR_FAILED; return 1; }
  if (is(self, "fail silently")) { *out = HERMES_ERR_FAILED; return 1; }
  if (is(self, "panic")) { tell(call, "a panic was caught"); *out = HERMES_ERR_PANIC; return 1; }
  if (is(self, "panic once")) { /* once for all instances that share the settings */
    static unsigned panics;
    if (panics++ > 0) return 0;
    tell(call, "a panic was caught"); *out = HERMES_ERR_PANIC; return 1;
  }
  if (is(self, "unknown status")) { *out = 77; return 1; }
  if (is(self, "unknown error")) { *out = -77; return 1; }
  if (is(self, "unchanged")) { tell(call, "nothing to do here"); *out = HERMES_UNCHANGED; return 1; }
  if (is(self, "cancelled")) { *out = HERMES_ERR_CANCELLED; return 1; }
  if (is(self, "error not utf-8")) {
    static const uint8_t bad[] = { 'b', 0xff, 'd' };
    hermes_bytes b; b.ptr = bad; b.len = sizeof bad;
    note(self, "error", call->error(call, b));
    *out = HERMES_ERR_FAILED; return 1;
  }
  if (is(self, "long error")) {
    unsigned i;
    hermes_status last = HERMES_OK;
    for (i = 0; i < 1000; i++) last = tell(call, "0123456789");
    note(self, "error", last);
    *out = HERMES_ERR_FAILED; return 1;
  }
  if (is(self, "sleep")) { nap(1500); *out = HERMES_OK; return 1; }
  if (is(self, "sleep, then write")) {
    nap(1500);
    note(self, "late cancelled", (hermes_status)call->cancelled(call));
    note(self, "late keep", call->keep(call, 0, 0, 1));
    note(self, "late push", put(call, "{\"role\":\"user\",\"content\":\"late\"}"));
    note(self, "late write", call->write(call, hermes_bytes_of("late")));
    tell(call, "late");
    self->state.compression_count += 100;
    *out = HERMES_OK; return 1;
  }
  if (is(self, "stop when cancelled")) {
    unsigned i;
    for (i = 0; i < 500 && !call->cancelled(call); i++) { nap(5); }
    *out = HERMES_ERR_CANCELLED; return 1;
  }
  if (is(self, "progress")) { /* twice the budget, never silent for all of it */
    unsigned i;
    for (i = 0; i < 24; i++) { nap(50); call->progress(call, i + 1, 24); }
    return 0;
  }
  if (is(self, "wrong sink")) {
    note(self, "write", call->write(call, hermes_bytes_of("x")));
    note(self, "keep", call->keep(call, 0, 0, 1));
    note(self, "push", put(call, "{\"role\":\"user\",\"content\":\"x\"}"));
    return 0;
  }
  return 0;
}

/* The usual slot: misbehaves if asked to, else is fine. */
static hermes_status plain(hermes_engine *self, const hermes_call *call, const char *slot) {
  hermes_status out = HERMES_OK;
  if (here(self, slot) && misbehave(self, call, &out)) return out;
  return HERMES_OK;
}

static void set_up(hermes_engine *self, const hermes_host *host) {
  self->host = host;
  self->calls = self->missed = 0;
  self->shared = NULL;
}

/* What create is promised. NULL, or what is wrong. */
static const char *check_create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args) {
  if (host->struct_size < sizeof(hermes_host) || host->abi_major != HERMES_ABI_MAJOR) return "host table";
  if (host->name.len == 0 || host->version.len == 0) return "host name";
  if (host->complete != NULL) return "complete was not granted";
  if (host->extension(host, "hermes.none/1") != NULL) return "extension";
  {
    /* In a trial, in another process, it is an estimate. */
    uint64_t tokens = host->count_tokens(host, hermes_bytes_of("one two three"));
    if (args->purpose == HERMES_FOR_AGENT ? tokens != 3 : tokens == 0) return "count_tokens";
  }
  if (call->struct_size < sizeof(hermes_call) || call->session_id.len != 0 || call->cancelled(call)) return "call";
  if (args->struct_size < sizeof(hermes_create_args) || args->purpose > HERMES_FOR_PROBE) return "arguments";
  if (args->config.len < 2 || args->config.ptr[0] != '{') return "config";
  if (args->data_dir.len == 0 || args->plugin_dir.len == 0) return "folders";
  return NULL;
}

static hermes_status create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args, hermes_engine **out) {
  hermes_status status = HERMES_OK;
  const char *wrong = check_create(host, call, args);
  hermes_engine *self = (hermes_engine *)calloc(1, sizeof *self);
  if (wrong) { tell(call, wrong); free(self); return HERMES_ERR_INVALID; }
  if (!self) return HERMES_ERR_LIMIT;
  set_up(self, host);
  hermes_state_init(&self->state, args->context_length);
  setting(args->config, "slot", self->slot, sizeof self->slot);
  setting(args->config, "does", self->does, sizeof self->does);
  if (here(self, args->purpose == HERMES_FOR_AGENT ? "create for agent" : "create")) {
    if (is(self, "null")) { free(self); return HERMES_OK; }
    if (is(self, "exit")) exit(3);
    if (is(self, "sleep for ever")) for (;;) nap(1000);
    if (is(self, "unavailable")) { tell(call, "no key"); free(self); return HERMES_ERR_UNAVAILABLE; }
    if (misbehave(self, call, &status) && status != HERMES_OK) { free(self); return status; }
  }
  *out = self;
  return HERMES_OK;
}

static void destroy(hermes_engine *self) {
  if (here(self, "destroy") && is(self, "sleep")) nap(1500);
  say(self->host, "destroyed");
  free(self);
}

static hermes_status state(const hermes_engine *self, hermes_state *out) {
  if (strcmp(self->slot, "state") == 0) {
    if (is(self, "small")) { /* an author who knew nothing behind context_length */
      uint32_t theirs = out->struct_size;
      memcpy(out, &self->state, offsetof(hermes_state, compression_count));
      out->struct_size = theirs;
      return HERMES_OK;
    }
    if (is(self, "not a number")) { out->threshold_percent = 0.0 / (out->struct_size > 0 ? 0.0 : 1.0); return HERMES_OK; }
    if (is(self, "fail")) return HERMES_ERR_FAILED;
    if (is(self, "unknown status")) return 77;
    if (is(self, "sleep") && self->calls > 1) { nap(1500); return HERMES_OK; }
  }
  return hermes_state_show(&self->state, out);
}

static hermes_status update_model(hermes_engine *self, const hermes_call *call, const hermes_model_args *args) {
  hermes_status status = plain(self, call, "update_model");
  if (status == HERMES_OK) { hermes_state_model(&self->state, 0.75, args); say(self->host, "update_model"); }
  return status;
}
static hermes_status update_from_response(hermes_engine *self, const hermes_call *call, const hermes_usage *usage) {
  hermes_status status = plain(self, call, "update_from_response");
  if (status == HERMES_OK) { hermes_state_usage(&self->state, usage); say(self->host, "update_from_response"); }
  return status;
}
static hermes_status session_reset(hermes_engine *self, const hermes_call *call) {
  hermes_status status = plain(self, call, "session_reset");
  if (status == HERMES_OK) { hermes_state_reset(&self->state); say(self->host, "session_reset"); }
  return status;
}

static hermes_status should_compress(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes) {
  hermes_status status = HERMES_OK;
  if (here(self, "should_compress")) {
    if (is(self, "block")) { call->write(call, hermes_bytes_of("cooldown:30")); return HERMES_OK; }
    *yes = 7; /* whatever comes next, a failure means no */
    if (misbehave(self, call, &status)) return status;
  }
  *yes = hermes_state_over(&self->state, args->prompt_tokens);
  return HERMES_OK;
}

/* Emits wrongly. 1: `*out` is what the slot returns. */
static int emit(hermes_engine *self, const hermes_call *call, const hermes_messages *list, hermes_status *out) {
  static const uint8_t bad[] = { '{', '"', 'r', 0xff, '"', ':', '1', '}' };
  static char mib[1 << 20];
  hermes_bytes b;
  unsigned i;
  *out = HERMES_OK;
  if (is(self, "nothing")) return 1;
  if (is(self, "invalid utf-8")) { b.ptr = bad; b.len = sizeof bad; note(self, "push", call->push(call, b)); return 1; }
  if (is(self, "null push")) { b.ptr = NULL; b.len = 9; note(self, "push", call->push(call, b)); return 1; }
  if (is(self, "garbage")) { note(self, "push", put(call, "{not json")); return 1; }
  if (is(self, "a list")) { note(self, "push", put(call, "[1]")); return 1; }
  if (is(self, "nothing in it")) { note(self, "push", put(call, "")); return 1; }
  if (is(self, "bad range")) { note(self, "keep", call->keep(call, 0, list->count, 1)); return 1; }
  if (is(self, "huge range")) { note(self, "keep", call->keep(call, 0, 1, SIZE_MAX)); return 1; }
  if (is(self, "backwards")) {
    note(self, "keep", call->keep(call, 0, 1, 1));
    note(self, "keep", call->keep(call, 0, 0, 1));
    return 1;
  }
  if (is(self, "twice")) {
    note(self, "keep", call->keep(call, 0, 0, 1));
    note(self, "keep", call->keep(call, 0, 0, 1));
    return 1;
  }
  if (is(self, "unknown list")) { note(self, "keep", call->keep(call, 7, 0, 1)); return 1; }
  if (is(self, "good after bad")) {
    note(self, "keep", call->keep(call, 7, 0, 1));
    note(self, "keep", call->keep(call, 0, 0, list->count));
    return 1;
  }
  if (is(self, "foreign uid twice")) {
    put(call, "{\"role\":\"user\",\"content\":\"one\",\"message_uid\":\"feedfeedfeedfeedfeedfeedfeedfeed\"}");
    put(call, "{\"role\":\"user\",\"content\":\"two\",\"message_uid\":\"feedfeedfeedfeedfeedfeedfeedfeed\"}");
    return 1;
  }
  if (is(self, "huge output")) {
    memset(mib, 'x', sizeof mib);
    memcpy(mib, "{\"role\":\"user\",\"content\":\"", 26);
    memcpy(mib + sizeof mib - 2, "\"}", 2);
    b.ptr = (const uint8_t *)mib; b.len = sizeof mib;
    for (i = 0; i < 100; i++) *out = call->push(call, b);
    note(self, "push", *out);
    *out = HERMES_OK; return 1;
  }
  if (is(self, "echo")) { /* the host's own messages, pushed as copies */
    size_t k;
    for (k = 0; k < list->count; k++) call->push(call, hermes_message_at(list, k)->json);
    return 1;
  }
  if (is(self, "failure after half")) { call->keep(call, 0, 0, 1); tell(call, "boom"); *out = HERMES_ERR_FAILED; return 1; }
  return misbehave(self, call, out);
}

static hermes_status compress(hermes_engine *self, const hermes_call *call, const hermes_compress_args *args) {
  hermes_status status = HERMES_OK;
  if (here(self, "compress") && emit(self, call, args->messages, &status)) return status;
  if (HERMES_HAS(hermes_compress_args, args, focus) && args->focus.len > 0) {
    char line[64];
    snprintf(line, sizeof line, "focus of %zu bytes", args->focus.len);
    say(self->host, line);
  }
  self->state.compression_count++;
  return call->keep(call, 0, 0, args->messages->count);
}

#if !defined(SLOTS_WITHOUT_CLONE)
static hermes_status clone(const hermes_engine *source, const hermes_host *host, const hermes_call *call, hermes_engine **out) {
  hermes_engine *self;
  hermes_status status = HERMES_OK;
  if (strcmp(source->slot, "clone") == 0) {
    hermes_engine *shadow = (hermes_engine *)source; /* only to count its calls */
    shadow->missed++;
    if (is(source, "null")) return HERMES_OK;
    if (is(source, "same")) { *out = shadow; return HERMES_OK; }
    if (is(source, "sibling") && shadow->shared) { *out = shadow->shared; return HERMES_OK; }
    if (misbehave(shadow, call, &status) && status != HERMES_OK) return status;
  }
  self = (hermes_engine *)malloc(sizeof *self);
  if (!self) return HERMES_ERR_LIMIT;
  *self = *source;
  set_up(self, host);
  if (strcmp(source->slot, "clone") == 0 && is(source, "sibling")) ((hermes_engine *)source)->shared = self;
  *out = self;
  return HERMES_OK;
}
#endif

static hermes_status session_start(hermes_engine *self, const hermes_call *call, const hermes_session_args *args) {
  char line[64];
  snprintf(line, sizeof line, "session_start %.*s reason %u", (int)call->session_id.len, (const char *)call->session_id.ptr, args->reason);
  say(self->host, line);
  return plain(self, call, "session_start");
}
static hermes_status session_end(hermes_engine *self, const hermes_call *call, const hermes_session_args *args) {
  (void)args;
  say(self->host, "session_end");
  return plain(self, call, "session_end");
}
static hermes_status pass_result(hermes_engine *self, const hermes_call *call, const hermes_pass_args *args) {
  char line[160];
  snprintf(line, sizeof line, "pass %.*s %s: %.*s", (int)args->pass_id.len, (const char *)args->pass_id.ptr,
           args->outcome == HERMES_PASS_COMMITTED ? "committed" : "discarded", (int)args->reason.len, (const char *)args->reason.ptr);
  say(self->host, line);
  return plain(self, call, "pass_result");
}
static hermes_status preflight(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes) {
  hermes_status status = HERMES_OK;
  *yes = 1;
  if (here(self, "preflight") && misbehave(self, call, &status)) return status;
  *yes = args->messages != NULL && args->messages->count > 100;
  return HERMES_OK;
}
static hermes_status select_context(hermes_engine *self, const hermes_call *call, const hermes_select_args *args) {
  hermes_status status = HERMES_OK;
  if (here(self, "select_context") && emit(self, call, args->request, &status)) return status;
  return call->keep(call, 0, 0, args->request->count);
}
static hermes_status turn_complete(hermes_engine *self, const hermes_call *call, const hermes_turn_args *args) {
  (void)args;
  return plain(self, call, "turn_complete");
}

/* Writes wrongly, else what is given. */
static hermes_status write_out(hermes_engine *self, const hermes_call *call, const char *slot, const char *text) {
  static const uint8_t bad[] = { '"', 0xff, '"' };
  static char mib[1 << 20];
  hermes_status status = HERMES_OK;
  hermes_bytes b;
  unsigned i;
  if (here(self, slot)) {
    if (is(self, "invalid utf-8")) { b.ptr = bad; b.len = sizeof bad; note(self, "write", call->write(call, b)); return HERMES_OK; }
    if (is(self, "garbage")) { call->write(call, hermes_bytes_of("{not json")); return HERMES_OK; }
    if (is(self, "a number")) { call->write(call, hermes_bytes_of("42")); return HERMES_OK; }
    if (is(self, "nothing")) return HERMES_OK;
    if (is(self, "huge output")) {
      memset(mib, ' ', sizeof mib);
      b.ptr = (const uint8_t *)mib; b.len = sizeof mib;
      for (i = 0; i < 100; i++) status = call->write(call, b);
      note(self, "write", status);
      return HERMES_OK;
    }
    if (misbehave(self, call, &status)) return status;
  }
  return call->write(call, hermes_bytes_of(text));
}
static hermes_status tool_schemas(hermes_engine *self, const hermes_call *call) {
  return write_out(self, call, "tool_schemas", "[{\"name\":\"misfit_tool\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}}]");
}
static hermes_status tool_call(hermes_engine *self, const hermes_call *call, const hermes_tool_args *args) {
  (void)args;
  return write_out(self, call, "tool_call", "{\"ok\":true}");
}
static hermes_status status(hermes_engine *self, const hermes_call *call) {
  char text[64];
  snprintf(text, sizeof text, "{\"calls\":%u}", self->calls);
  return write_out(self, call, "status", text);
}
static hermes_status command(hermes_engine *self, const hermes_call *call, const hermes_command_args *args) {
  (void)args;
  return write_out(self, call, "command", "at your command");
}
static hermes_status idle(hermes_engine *self, const hermes_call *call) {
  if (strcmp(self->slot, "idle") == 0 && is(self, "more")) return self->missed++ < 2 ? HERMES_MORE : HERMES_OK;
  return plain(self, call, "idle");
}

typedef struct newer_vtable {
  hermes_engine_vtable known;
  void (*unknown[4])(void);
} newer_vtable;

static const newer_vtable table = {
  {
#if defined(SLOTS_OLD)
    (uint32_t)offsetof(hermes_engine_vtable, clone), 0,
#elif defined(SLOTS_NEW)
    (uint32_t)sizeof(newer_vtable), 0,
#else
    (uint32_t)sizeof(hermes_engine_vtable), 0,
#endif
    create, destroy, state, update_model, update_from_response, session_reset, should_compress, compress,
#if defined(SLOTS_WITHOUT_CLONE)
    NULL,
#else
    clone,
#endif
    session_start, session_end, pass_result, preflight, select_context, turn_complete,
    tool_schemas, tool_call, status, command, idle,
  },
  { abort, abort, abort, abort },
};

static const hermes_module module = {
#if defined(SLOTS_NEW)
  (uint32_t)sizeof(hermes_module), HERMES_ABI_MAJOR, HERMES_ABI_MINOR + 9,
#else
  (uint32_t)sizeof(hermes_module), HERMES_ABI_MAJOR, HERMES_ABI_MINOR,
#endif
  HERMES_MODULE_UNWINDS, 0, HERMES_LITERAL(NAME), HERMES_LITERAL("1.0"), HERMES_LITERAL("misfit"),
  &table.known, NULL,
};

HERMES_ENGINE_NAME(NAME);
const hermes_module *hermes_context_engine_v1(void) { return &module; }
