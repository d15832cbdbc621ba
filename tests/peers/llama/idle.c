/* An engine that does nothing: the requests are what the host alone would send. */
#include "hermes_helpers.h"
#include <stdlib.h>

struct hermes_engine { hermes_state state; };

static hermes_status idle_create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args,
                                 hermes_engine **out) {
  hermes_engine *self = (hermes_engine *)malloc(sizeof *self);
  (void)host; (void)call;
  if (self == NULL) return HERMES_ERR_FAILED;
  hermes_state_init(&self->state, args->context_length);
  *out = self;
  return HERMES_OK;
}

static void idle_destroy(hermes_engine *self) { free(self); }

static hermes_status idle_state(const hermes_engine *self, hermes_state *out) { return hermes_state_show(&self->state, out); }

static hermes_status idle_model(hermes_engine *self, const hermes_call *call, const hermes_model_args *args) {
  (void)call;
  hermes_state_model(&self->state, 0.75, args);
  return HERMES_OK;
}

static hermes_status idle_usage(hermes_engine *self, const hermes_call *call, const hermes_usage *usage) {
  (void)call;
  hermes_state_usage(&self->state, usage);
  return HERMES_OK;
}

static hermes_status idle_reset(hermes_engine *self, const hermes_call *call) {
  (void)call;
  hermes_state_reset(&self->state);
  return HERMES_OK;
}

static hermes_status idle_should(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes) {
  (void)self; (void)call; (void)args;
  *yes = 0;
  return HERMES_OK;
}

static hermes_status idle_compress(hermes_engine *self, const hermes_call *call, const hermes_compress_args *args) {
  (void)self; (void)args;
  call->error(call, hermes_bytes_of("this engine does nothing"));
  return HERMES_UNCHANGED;
}

static const hermes_engine_vtable table = {
    sizeof(hermes_engine_vtable), 0,
    idle_create, idle_destroy, idle_state, idle_model, idle_usage, idle_reset, idle_should, idle_compress,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
};

static const hermes_module module = {
    sizeof(hermes_module), HERMES_ABI_MAJOR, HERMES_ABI_MINOR, 0, 0,
    HERMES_LITERAL("idle"), HERMES_LITERAL("1.0.0"), HERMES_LITERAL(""),
    &table, NULL,
};

HERMES_ENGINE_NAME("idle");
const hermes_module *hermes_context_engine_v1(void) { return &module; }
