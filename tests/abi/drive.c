/* drive.c - a host of one page, linked with the engine that it drives, to see what an engine does through the header alone.
 *
 *   drive compress CONFIG ROLES   one pass; ROLES has a letter a message: s system, u user, a assistant, c assistant with calls, t tool
 *   drive slots CONFIG            calls each slot once, and prints its status and error text
 */
#include "hermes_engine.h"
#include <stdio.h>
#include <stdlib.h>

#define MOST 64

typedef struct driver {
  hermes_call call; /* first, so that a call is its driver */
  char error[256];
  size_t written, kept[MOST], kept_count, shown;
} driver;

static driver *of(const hermes_call *call) { return (driver *)(uintptr_t)call; }

static uint32_t cancelled(const hermes_call *call) { return of(call)->written > 1000000; }
static void progress(const hermes_call *call, uint64_t done, uint64_t total) {
  (void)call;
  (void)done;
  (void)total;
}
static hermes_status error(const hermes_call *call, hermes_bytes text) {
  size_t used = strlen(of(call)->error), room = sizeof of(call)->error - 1 - used;
  if (text.len > 0) memcpy(of(call)->error + used, text.ptr, text.len < room ? text.len : room);
  return HERMES_OK;
}
static hermes_status write_part(const hermes_call *call, hermes_bytes part) {
  of(call)->written += part.len;
  return HERMES_OK;
}
static hermes_status keep(const hermes_call *call, uint32_t list, size_t first, size_t count) {
  driver *d = of(call);
  size_t i;
  if (list != 0 || first > d->shown || count > d->shown - first) return HERMES_ERR_INVALID;
  for (i = 0; i < count; i++) {
    if (d->kept_count > 0 && d->kept[d->kept_count - 1] >= first + i) return HERMES_ERR_INVALID;
    d->kept[d->kept_count++] = first + i;
  }
  return HERMES_OK;
}
static hermes_status push(const hermes_call *call, hermes_bytes json) {
  (void)call;
  (void)json;
  return HERMES_OK;
}

static void begin(driver *d, size_t shown) {
  memset(d, 0, sizeof *d);
  d->shown = shown;
  d->call.struct_size = (uint32_t)sizeof d->call;
  d->call.session_id = hermes_bytes_of("session");
  d->call.cancelled = cancelled;
  d->call.progress = progress;
  d->call.error = error;
  d->call.write = write_part;
  d->call.keep = keep;
  d->call.push = push;
}

static size_t read_roles(const char *roles, hermes_message *items, uint32_t *incoming) {
  size_t n;
  for (n = 0; roles[n] != 0 && n < MOST; n++) {
    memset(&items[n], 0, sizeof items[n]);
    items[n].json = hermes_bytes_of("{}");
    items[n].caller = HERMES_NONE;
    items[n].role = roles[n] == 's'   ? HERMES_ROLE_SYSTEM
                    : roles[n] == 'u' ? HERMES_ROLE_USER
                    : roles[n] == 't' ? HERMES_ROLE_TOOL
                                      : HERMES_ROLE_ASSISTANT;
    if (roles[n] == 'c') items[n].flags = HERMES_MSG_TOOL_CALLS;
    if (roles[n] == 'u') *incoming = (uint32_t)n;
  }
  return n;
}

#define SHOW(slot, run)                                                         \
  begin(&d, 0);                                                                 \
  if (HERMES_CAN(hermes_engine_vtable, table, slot)) {                          \
    status = (run);                                                             \
    printf("%s %d %s\n", #slot, (int)status, d.error);                          \
  } else {                                                                      \
    printf("%s absent\n", #slot);                                               \
  }
#define SIZED(type, name) \
  type name;              \
  memset(&name, 0, sizeof name); \
  name.struct_size = (uint32_t)sizeof name

int main(int count, char **words) {
  const hermes_module *module = hermes_context_engine_v1();
  const hermes_engine_vtable *table = module->engine;
  hermes_engine *self = NULL, *copy = NULL;
  hermes_message items[MOST];
  hermes_messages list;
  hermes_status status;
  uint32_t yes = 0, incoming = HERMES_NONE;
  size_t i;
  driver d;
  SIZED(hermes_host, host);
  SIZED(hermes_create_args, create);
  SIZED(hermes_model_args, model);
  SIZED(hermes_usage, usage);
  SIZED(hermes_decide_args, decide);
  SIZED(hermes_compress_args, compress);
  SIZED(hermes_session_args, session);
  SIZED(hermes_pass_args, pass);
  SIZED(hermes_select_args, select);
  SIZED(hermes_turn_args, turn);
  SIZED(hermes_tool_args, tool);
  SIZED(hermes_command_args, command);
  SIZED(hermes_state, state);

  if (count < 3) return 2;
  list.count = read_roles(count > 3 ? words[3] : "su", items, &incoming);
  list.items = items;
  list.stride = sizeof items[0];
  create.config = hermes_bytes_of(words[2]);
  create.context_length = 200000;
  model.context_length = 100000;
  model.model_thresholds = hermes_bytes_of("{}");
  usage.prompt_tokens = 80000;
  usage.total_tokens = usage.completion_tokens = -1;
  decide.prompt_tokens = 80000;
  compress.messages = select.request = select.conversation = turn.messages = &list;
  compress.incoming = select.incoming = incoming;
  command.argv = hermes_bytes_of("[]");

  if (strcmp(hermes_engine_name, "") == 0 || module->name.len != strlen(hermes_engine_name) ||
      memcmp(module->name.ptr, hermes_engine_name, module->name.len) != 0)
    return 3;
  SHOW(create, table->create(&host, &d.call, &create, &self))
  if (self == NULL) return 0;
  if (strcmp(words[1], "compress") == 0) {
    begin(&d, list.count);
    status = table->compress(self, &d.call, &compress);
    printf("compress %d %s\nkept", (int)status, d.error);
    for (i = 0; i < d.kept_count; i++) printf(" %u", (unsigned)d.kept[i]);
    printf("\n");
  } else {
    SHOW(update_model, table->update_model(self, &d.call, &model))
    SHOW(update_from_response, table->update_from_response(self, &d.call, &usage))
    SHOW(should_compress, table->should_compress(self, &d.call, &decide, &yes))
    SHOW(state, table->state(self, &state))
    printf("asks %u, prompt %d, threshold %u of %u\n", (unsigned)yes, (int)state.last_prompt_tokens,
           (unsigned)state.threshold_tokens, (unsigned)state.context_length);
    SHOW(clone, table->clone(self, &host, &d.call, &copy))
    if (copy != NULL) table->destroy(copy);
    SHOW(session_start, table->session_start(self, &d.call, &session))
    SHOW(preflight, table->preflight(self, &d.call, &decide, &yes))
    SHOW(select_context, table->select_context(self, &d.call, &select))
    SHOW(compress, (d.shown = list.count, table->compress(self, &d.call, &compress)))
    SHOW(pass_result, table->pass_result(self, &d.call, &pass))
    SHOW(turn_complete, table->turn_complete(self, &d.call, &turn))
    SHOW(tool_schemas, table->tool_schemas(self, &d.call))
    SHOW(tool_call, table->tool_call(self, &d.call, &tool))
    SHOW(status, table->status(self, &d.call))
    SHOW(command, table->command(self, &d.call, &command))
    SHOW(idle, table->idle(self, &d.call))
    SHOW(session_end, table->session_end(self, &d.call, &session))
    SHOW(session_reset, table->session_reset(self, &d.call))
  }
  table->destroy(self);
  return 0;
}
