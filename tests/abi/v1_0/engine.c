/* engine.c - frozen-v1-0: an engine built against the header as it was at ABI 1.0, and never against a newer one.
 *
 * Every later host has to load and run it. It fills required slots and some optional ones, so that both kinds are met; a pass keeps
 * the system prompt and all from the newest user message on.
 */
#include "hermes_engine.h"
#include <stdlib.h>

struct hermes_engine {
  const hermes_host *host;
  hermes_state state;
  uint64_t turns;
};

static hermes_status make(const hermes_host *host, const hermes_call *call, uint64_t context_length, hermes_engine **out) {
  hermes_engine *self = (hermes_engine *)calloc(1, sizeof *self);
  if (self == NULL) {
    call->error(call, hermes_bytes_of("no memory for an instance"));
    return HERMES_ERR_FAILED;
  }
  self->host = host;
  hermes_state_init(&self->state, context_length);
  *out = self;
  return HERMES_OK;
}

static hermes_status frozen_create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args,
                                   hermes_engine **out) {
  return make(host, call, args->context_length, out);
}

static hermes_status frozen_clone(const hermes_engine *source, const hermes_host *host, const hermes_call *call,
                                  hermes_engine **out) {
  hermes_status status = make(host, call, 0, out);
  if (status == HERMES_OK) (*out)->state = source->state;
  return status;
}

static void frozen_destroy(hermes_engine *self) { free(self); }

static hermes_status frozen_state(const hermes_engine *self, hermes_state *out) { return hermes_state_show(&self->state, out); }

static hermes_status frozen_update_model(hermes_engine *self, const hermes_call *call, const hermes_model_args *args) {
  (void)call;
  hermes_state_model(&self->state, 0.75, args);
  return HERMES_OK;
}

static hermes_status frozen_update_from_response(hermes_engine *self, const hermes_call *call, const hermes_usage *usage) {
  (void)call;
  hermes_state_usage(&self->state, usage);
  return HERMES_OK;
}

static hermes_status frozen_session_reset(hermes_engine *self, const hermes_call *call) {
  (void)call;
  hermes_state_reset(&self->state);
  self->turns = 0;
  return HERMES_OK;
}

static hermes_status frozen_should_compress(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args,
                                            uint32_t *yes) {
  (void)call;
  *yes = hermes_state_over(&self->state, args->prompt_tokens);
  return HERMES_OK;
}

static hermes_status frozen_compress(hermes_engine *self, const hermes_call *call, const hermes_compress_args *args) {
  const hermes_messages *m = args->messages;
  size_t head = m->count > 0 && hermes_message_at(m, 0)->role == HERMES_ROLE_SYSTEM ? 1 : 0;
  hermes_status status = HERMES_OK;
  if (args->incoming >= m->count || args->incoming <= head) {
    call->error(call, hermes_bytes_of("nothing is older than the newest user message"));
    return HERMES_UNCHANGED;
  }
  if (head > 0) status = call->keep(call, 0, 0, head);
  if (status == HERMES_OK) status = call->keep(call, 0, args->incoming, m->count - args->incoming);
  if (status == HERMES_OK) self->state.compression_count++;
  return status;
}

/* Counts what is in the list by walking it, as an engine of this age would. */
static hermes_status frozen_turn_complete(hermes_engine *self, const hermes_call *call, const hermes_turn_args *args) {
  uint64_t tokens = 0;
  size_t i;
  (void)call;
  for (i = 0; i < args->messages->count; i++) tokens += hermes_message_at(args->messages, i)->tokens;
  self->turns += tokens < UINT64_MAX;
  if (HERMES_CAN(hermes_host, self->host, log) && self->host->log_level >= 4)
    self->host->log(self->host, 4, hermes_bytes_of("frozen-v1-0 has seen a turn"));
  return HERMES_OK;
}

static hermes_status frozen_status(hermes_engine *self, const hermes_call *call) {
  return call->write(call, hermes_bytes_of(self->turns > 0 ? "{\"seen_turns\":true}" : "{\"seen_turns\":false}"));
}

static const hermes_engine_vtable table = {
    sizeof(hermes_engine_vtable), 0,
    frozen_create, frozen_destroy, frozen_state, frozen_update_model, frozen_update_from_response, frozen_session_reset,
    frozen_should_compress, frozen_compress,
    frozen_clone, NULL, NULL, NULL, NULL, NULL, frozen_turn_complete, NULL, NULL, frozen_status, NULL, NULL,
};

static const hermes_module module = {
    sizeof(hermes_module), HERMES_ABI_MAJOR, HERMES_ABI_MINOR, 0, 0,
    HERMES_LITERAL("frozen-v1-0"), HERMES_LITERAL("1.0.0"), HERMES_LITERAL(""),
    &table, NULL,
};

HERMES_ENGINE_NAME("frozen-v1-0");
const hermes_module *hermes_context_engine_v1(void) { return &module; }
