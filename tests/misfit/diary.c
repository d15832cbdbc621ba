/* diary.c - an engine that writes down what it is told, and can be told to be slow.
 *
 * One JSON object a line in the file that DIARY names. DIARY_SLOW=<slot> makes that slot sleep for two minutes, whatever the host says
 * (should_compress, select_context, turn_complete, compress, session_end, idle). DIARY_KEEP: select_context
 * keeps a message that is not there, and gives up. Compiled with DIARY_HALF_TOOLS it offers a tool and has no slot to carry it out.
 */
#include "hermes_engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct hermes_engine {
  hermes_state state;
};

static void slow(const char *slot) {
  const char *which = getenv("DIARY_SLOW");
  if (which != NULL && strcmp(which, slot) == 0) {
    int i;
    for (i = 0; i < 1200; i++) usleep(100000);
  }
}

static void part(FILE *f, hermes_bytes b) {
  if (b.len > 0) fwrite(b.ptr, 1, b.len, f);
}

static void note(const char *what, const hermes_call *call, const hermes_messages *m, uint32_t reason, hermes_bytes more) {
  const char *path = getenv("DIARY");
  FILE *f = path != NULL ? fopen(path, "a") : NULL;
  size_t i, without = 0;
  if (f == NULL) return;
  fprintf(f, "{\"what\":\"%s\",\"reason\":%u,\"session\":\"", what, reason);
  part(f, call->session_id);
  fprintf(f, "\",\"more\":");
  if (more.len > 0) part(f, more); else fprintf(f, "null");
  fprintf(f, ",\"messages\":[");
  for (i = 0; m != NULL && i < m->count; i++) {
    const hermes_message *item = hermes_message_at(m, i);
    if (i > 0) fprintf(f, ",");
    part(f, item->json);
    if (item->uid.len == 0) without++;
  }
  fprintf(f, "],\"without_uid\":%zu}\n", without);
  fclose(f);
}

static const hermes_bytes NOTHING = {NULL, 0};

static hermes_status d_create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args, hermes_engine **out) {
  hermes_engine *self = (hermes_engine *)calloc(1, sizeof *self);
  (void)host; (void)call;
  if (self == NULL) return HERMES_ERR_FAILED;
  hermes_state_init(&self->state, args->context_length);
  *out = self;
  return HERMES_OK;
}
static void d_destroy(hermes_engine *self) { free(self); }
static hermes_status d_state(const hermes_engine *self, hermes_state *out) { return hermes_state_show(&self->state, out); }
static hermes_status d_model(hermes_engine *self, const hermes_call *call, const hermes_model_args *args) {
  note("model", call, NULL, 0, NOTHING);
  hermes_state_model(&self->state, 0.75, args);
  return HERMES_OK;
}
static hermes_status d_usage(hermes_engine *self, const hermes_call *call, const hermes_usage *usage) {
  (void)call;
  hermes_state_usage(&self->state, usage);
  return HERMES_OK;
}
static hermes_status d_reset(hermes_engine *self, const hermes_call *call) {
  note("reset", call, NULL, 0, NOTHING);
  hermes_state_reset(&self->state);
  return HERMES_OK;
}
static hermes_status d_should(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes) {
  note("should", call, NULL, 0, NOTHING);
  slow("should_compress");
  *yes = hermes_state_over(&self->state, args->prompt_tokens);
  return HERMES_OK;
}
static hermes_status d_compress(hermes_engine *self, const hermes_call *call, const hermes_compress_args *args) {
  (void)self;
  note("compress", call, args->messages, args->trigger, NOTHING);
  slow("compress");
  call->error(call, hermes_bytes_of("a diary leaves nothing out"));
  return HERMES_UNCHANGED;
}
static hermes_status d_start(hermes_engine *self, const hermes_call *call, const hermes_session_args *args) {
  (void)self;
  note("start", call, args->messages, args->reason, NOTHING);
  return HERMES_OK;
}
static hermes_status d_end(hermes_engine *self, const hermes_call *call, const hermes_session_args *args) {
  (void)self;
  slow("session_end");
  note("end", call, args->messages, args->reason, NOTHING);
  return HERMES_OK;
}
static hermes_status d_select(hermes_engine *self, const hermes_call *call, const hermes_select_args *args) {
  (void)self; (void)args;
  note("select", call, NULL, 0, NOTHING);
  slow("select_context");
  if (getenv("DIARY_KEEP") != NULL) {
    hermes_status status = call->keep(call, 0, 4000, 3);
    if (status != HERMES_OK) return status;
  }
  return HERMES_UNCHANGED;
}
static hermes_status d_turn(hermes_engine *self, const hermes_call *call, const hermes_turn_args *args) {
  (void)self;
  note("turn", call, NULL, args->outcome, NOTHING);
  slow("turn_complete");
  return HERMES_OK;
}
static hermes_status d_command(hermes_engine *self, const hermes_call *call, const hermes_command_args *args) {
  (void)self;
  note("command", call, NULL, 0, args->argv);
  call->write(call, hermes_bytes_of("the diary was told "));
  return call->write(call, args->argv);
}
static hermes_status d_idle(hermes_engine *self, const hermes_call *call) {
  (void)self;
  note("idle", call, NULL, 0, NOTHING);
  slow("idle");
  return HERMES_OK;
}

#ifdef DIARY_HALF_TOOLS
static hermes_status d_schemas(hermes_engine *self, const hermes_call *call) {
  (void)self;
  return call->write(call, hermes_bytes_of("[{\"name\":\"diary_read\"}]"));
}
#else
#  define d_schemas NULL
#endif

static const hermes_engine_vtable table = {
    sizeof(hermes_engine_vtable), 0,
    d_create, d_destroy, d_state, d_model, d_usage, d_reset, d_should, d_compress,
    NULL, d_start, d_end, NULL, NULL, d_select, d_turn, d_schemas, NULL, NULL, d_command, d_idle,
};
static const hermes_module module = {
    sizeof(hermes_module), HERMES_ABI_MAJOR, HERMES_ABI_MINOR, 0, 0,
    HERMES_LITERAL("diary"), HERMES_LITERAL("1.0.0"), HERMES_LITERAL(""),
    &table, NULL,
};
HERMES_ENGINE_NAME("diary");
const hermes_module *hermes_context_engine_v1(void) { return &module; }
