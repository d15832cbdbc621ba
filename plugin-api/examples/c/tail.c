/* tail.c - an engine in C: one file, one static table.
 *
 * A pass keeps the system prompt, the newest user message and the last messages, 20 unless the engine's section of config.yaml says
 * otherwise ("keep"). It opens no message: roles and indexes are enough.
 *
 *   cc -shared -fPIC -O2 -Wall -Wextra -I ../../include tail.c -o tail.so
 */
#include "hermes_engine.h"
#include <stdlib.h>

struct hermes_engine {
  hermes_state state;
  size_t keep;
};

static hermes_status tail_create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args,
                                 hermes_engine **out) {
  double keep = hermes_json_number(args->config, "keep", 20);
  hermes_engine *self;
  (void)host;
  if (!(keep >= 1 && keep <= 1000000)) {
    call->error(call, hermes_bytes_of("keep must be a number from 1 to 1000000; correct it in the engine's section of config.yaml"));
    return HERMES_ERR_INVALID;
  }
  self = (hermes_engine *)malloc(sizeof *self);
  if (self == NULL) {
    call->error(call, hermes_bytes_of("no memory for an instance"));
    return HERMES_ERR_FAILED;
  }
  hermes_state_init(&self->state, args->context_length);
  self->state.protect_first_n = 1;
  self->state.protect_last_n = (uint32_t)keep;
  self->keep = (size_t)keep;
  *out = self;
  return HERMES_OK;
}

static void tail_destroy(hermes_engine *self) { free(self); }

static hermes_status tail_state(const hermes_engine *self, hermes_state *out) { return hermes_state_show(&self->state, out); }

static hermes_status tail_update_model(hermes_engine *self, const hermes_call *call, const hermes_model_args *args) {
  (void)call;
  hermes_state_model(&self->state, 0.75, args);
  return HERMES_OK;
}

static hermes_status tail_update_from_response(hermes_engine *self, const hermes_call *call, const hermes_usage *usage) {
  (void)call;
  hermes_state_usage(&self->state, usage);
  return HERMES_OK;
}

static hermes_status tail_session_reset(hermes_engine *self, const hermes_call *call) {
  (void)call;
  hermes_state_reset(&self->state);
  return HERMES_OK;
}

static hermes_status tail_should_compress(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args,
                                          uint32_t *yes) {
  (void)call;
  *yes = hermes_state_over(&self->state, args->prompt_tokens);
  return HERMES_OK;
}

static uint32_t role(const hermes_messages *m, size_t i) { return hermes_message_at(m, i)->role; }

static size_t newest_user(const hermes_compress_args *args, size_t head) {
  const hermes_messages *m = args->messages;
  size_t i;
  if (args->incoming < m->count) return args->incoming;
  for (i = m->count; i > head; i--)
    if (role(m, i - 1) == HERMES_ROLE_USER) return i - 1;
  return m->count;
}

static hermes_status tail_compress(hermes_engine *self, const hermes_call *call, const hermes_compress_args *args) {
  const hermes_messages *m = args->messages;
  size_t head = m->count > 0 && role(m, 0) == HERMES_ROLE_SYSTEM ? 1 : 0;
  size_t user = newest_user(args, head);
  size_t start = m->count > head + self->keep ? m->count - self->keep : head;
  hermes_status status = HERMES_OK;

  if (user < start) { /* one long turn: its question, then whole groups of calls and results */
    while (start > user + 1 && role(m, start) == HERMES_ROLE_TOOL) start--;
  } else { /* the tail has to begin with a user message */
    while (start > head && role(m, start) != HERMES_ROLE_USER) start--;
  }
  if (head + (user < start ? 1 : 0) >= start) {
    call->error(call, hermes_bytes_of("nothing is older than the newest messages"));
    return HERMES_UNCHANGED;
  }

  if (head > 0) status = call->keep(call, 0, 0, head);
  if (status == HERMES_OK && user < start) status = call->keep(call, 0, user, 1);
  if (status == HERMES_OK) status = call->keep(call, 0, start, m->count - start);
  if (status == HERMES_OK) self->state.compression_count++;
  return status;
}

static const hermes_engine_vtable table = {
    sizeof(hermes_engine_vtable), 0,
    tail_create, tail_destroy, tail_state, tail_update_model, tail_update_from_response, tail_session_reset, tail_should_compress,
    tail_compress,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, /* no optional slot: the host skips them all */
};

static const hermes_module module = {
    sizeof(hermes_module), HERMES_ABI_MAJOR, HERMES_ABI_MINOR, 0, 0,
    HERMES_LITERAL("tail"), HERMES_LITERAL("1.0.0"), HERMES_LITERAL(""),
    &table, NULL,
};

HERMES_ENGINE_NAME("tail");
const hermes_module *hermes_context_engine_v1(void) { return &module; }
