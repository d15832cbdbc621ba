/* wrong.c - an engine whose results are wrong in the way that -DON_COMPRESS=... and -DON_SELECT=... name. */
#include "hermes_engine.h"
#include <stdio.h>
#include <stdlib.h>

struct hermes_engine {
  hermes_state state;
};

static hermes_status fine(const hermes_call *call, const hermes_messages *m) {
  (void)call;
  (void)m;
  return HERMES_UNCHANGED;
}
static hermes_status empty(const hermes_call *call, const hermes_messages *m) {
  (void)call;
  (void)m;
  return HERMES_OK;
}
static hermes_status garbage(const hermes_call *call, const hermes_messages *m) {
  (void)m;
  call->push(call, hermes_bytes_of("{not json"));
  return HERMES_OK;
}
static hermes_status bad_range(const hermes_call *call, const hermes_messages *m) {
  call->keep(call, 0, m->count, 1);
  return HERMES_OK;
}
static hermes_status half(const hermes_call *call, const hermes_messages *m) {
  (void)m;
  call->keep(call, 0, 0, 1);
  call->error(call, hermes_bytes_of("boom"));
  return HERMES_ERR_FAILED;
}
static hermes_status chatty(const hermes_call *call, const hermes_messages *m) {
  puts("chatty was here");
  fflush(stdout);
  return fine(call, m);
}
static hermes_status leaving(const hermes_call *call, const hermes_messages *m) {
  (void)call;
  (void)m;
  exit(0);
}
/* A result that answers nothing, alone. */
static hermes_status orphan(const hermes_call *call, const hermes_messages *m) {
  (void)m;
  return call->push(call, hermes_bytes_of("{\"role\":\"tool\",\"tool_call_id\":\"none\",\"content\":\"x\"}"));
}
/* Two messages under one uid, side by side. */
static hermes_status twins(const hermes_call *call, const hermes_messages *m) {
  (void)m;
  call->push(call, hermes_bytes_of("{\"role\":\"user\",\"content\":\"one\",\"message_uid\":\"twin\"}"));
  call->push(call, hermes_bytes_of("{\"role\":\"user\",\"content\":\"two\",\"message_uid\":\"twin\"}"));
  return HERMES_OK;
}

static hermes_status wrong_create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args,
                                  hermes_engine **out) {
  (void)host;
  (void)call;
  *out = (hermes_engine *)malloc(sizeof **out);
  if (*out == NULL) return HERMES_ERR_FAILED;
  hermes_state_init(&(*out)->state, args->context_length);
  return HERMES_OK;
}
static void wrong_destroy(hermes_engine *self) { free(self); }
static hermes_status wrong_state(const hermes_engine *self, hermes_state *out) { return hermes_state_show(&self->state, out); }
static hermes_status wrong_model(hermes_engine *self, const hermes_call *call, const hermes_model_args *args) {
  (void)call;
  hermes_state_model(&self->state, 0.75, args);
  return HERMES_OK;
}
static hermes_status wrong_usage(hermes_engine *self, const hermes_call *call, const hermes_usage *usage) {
  (void)call;
  hermes_state_usage(&self->state, usage);
  return HERMES_OK;
}
static hermes_status wrong_reset(hermes_engine *self, const hermes_call *call) {
  (void)call;
  hermes_state_reset(&self->state);
  return HERMES_OK;
}
static hermes_status wrong_should(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes) {
  (void)call;
  *yes = hermes_state_over(&self->state, args->prompt_tokens);
  return HERMES_OK;
}
static hermes_status wrong_compress(hermes_engine *self, const hermes_call *call, const hermes_compress_args *args) {
  (void)self;
  return ON_COMPRESS(call, args->messages);
}
static hermes_status wrong_select(hermes_engine *self, const hermes_call *call, const hermes_select_args *args) {
  (void)self;
  return ON_SELECT(call, args->request);
}

/* What this build does not use. */
typedef hermes_status (*behaviour)(const hermes_call *, const hermes_messages *);
extern const behaviour wrong_behaviours[];
const behaviour wrong_behaviours[] = {fine, empty, garbage, bad_range, half, twins};

static const hermes_engine_vtable table = {
    sizeof(hermes_engine_vtable), 0,
    wrong_create, wrong_destroy, wrong_state, wrong_model, wrong_usage, wrong_reset, wrong_should, wrong_compress,
    NULL, NULL, NULL, NULL, NULL, wrong_select, NULL, NULL, NULL, NULL, NULL, NULL,
};

static const hermes_module module = {
    sizeof(hermes_module), HERMES_ABI_MAJOR, HERMES_ABI_MINOR, 0, 0,
    HERMES_LITERAL("wrong"), HERMES_LITERAL("1.0.0"), HERMES_LITERAL(""),
    &table, NULL,
};

HERMES_ENGINE_NAME("wrong");
const hermes_module *hermes_context_engine_v1(void) { return &module; }
