/* misfit.c - an engine that breaks one rule of loading on command.
 *
 * Without a -D it is a whole engine that works. Each -D breaks one thing; what it is stands beside it. How slots misbehave once
 * the engine is loaded is another file's business.
 *
 *   -DNO_ENTRY -DENTRY_IS_DATA -DOTHER_ENTRY          the entry point
 *   -DNULL_MODULE -DMAJOR=2 -DMINOR=1 -DMIN_HOST_MINOR=7 -DMODULE_SIZE=8 -DTABLE_SIZE=40 -DNULL_TABLE -DNULL_SLOT=compress -DGROWN
 *   -DNAME=\"x\" -DMODULE_NAME=\"y\" -DNO_NAME        the name as data, the name in the module
 *   -DUNDEFINED -DNEEDS_NOTHERE -DNEEDS_GLIBC         what nothing provides
 *   -DCONSTRUCTOR=exit(3)                             code that runs while the library is opened
 *   -DON_CREATE=abort() -DON_STATE=... -DON_DESTROY=... -DAT_EXIT=...
 *   -DREGISTER (+ REGISTER_ENTRY_TOO, REGISTER_TWICE, REGISTER_INSTANCE, REGISTER_NOTHING, REGISTER_FAILS, REGISTER_BAD)
 */
#include "hermes_engine.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef NAME
#define NAME "misfit"
#endif
#ifndef MODULE_NAME
#define MODULE_NAME NAME
#endif
#ifndef MAJOR
#define MAJOR HERMES_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR HERMES_ABI_MINOR
#endif
#ifndef MIN_HOST_MINOR
#define MIN_HOST_MINOR 0
#endif
#ifndef VERSION
#define VERSION "1.2.3"
#endif

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void misfit_constructor(void) { CONSTRUCTOR; }
#endif

#ifdef UNDEFINED
int misfit_missing_function(void);
#endif
#ifdef NEEDS_NOTHERE
int nothere(void);
#endif
#ifdef NEEDS_GLIBC
__asm__(".symver misfit_future,misfit_future@GLIBC_2.99");
int misfit_future(void);
#endif
#ifdef SIBLING
int SIBLING(void);
#endif

struct hermes_engine {
  hermes_state state;
};

#ifdef LEFTOVERS
/* What makes unloading dangerous: per-thread data with a destructor of ours, and a thread that outlives every call. */
static pthread_key_t leftover_key;
static pthread_once_t leftover_once = PTHREAD_ONCE_INIT;
static void leftover_destroy(void *data) { memset(data, 0xee, 16); free(data); }
static void *leftover_thread(void *unused) { sleep(5); return unused; }
static void leftover_start(void) {
  pthread_t thread;
  pthread_key_create(&leftover_key, leftover_destroy);
  if (pthread_create(&thread, NULL, leftover_thread, NULL) == 0) pthread_detach(thread);
}
static void leftovers(void) {
  pthread_once(&leftover_once, leftover_start);
  if (pthread_getspecific(leftover_key) == NULL) pthread_setspecific(leftover_key, malloc(16));
}
#else
static void leftovers(void) {}
#endif

static hermes_status misfit_create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args, hermes_engine **out) {
  hermes_engine *self;
  (void)host;
  (void)call;
#ifdef ON_CREATE
  ON_CREATE;
#endif
  leftovers();
  self = (hermes_engine *)calloc(1, sizeof *self);
  if (self == NULL) return HERMES_ERR_FAILED;
  hermes_state_init(&self->state, args->context_length);
  *out = self;
  return HERMES_OK;
}

static void misfit_destroy(hermes_engine *self) {
#ifdef ON_DESTROY
  ON_DESTROY;
#endif
  free(self);
}

static hermes_status misfit_state(const hermes_engine *self, hermes_state *out) {
#ifdef ON_STATE
  ON_STATE;
#endif
  leftovers();
  return hermes_state_show(&self->state, out);
}

static hermes_status misfit_update_model(hermes_engine *self, const hermes_call *call, const hermes_model_args *args) {
  (void)call;
  hermes_state_model(&self->state, 0.75, args);
  return HERMES_OK;
}

static hermes_status misfit_update_from_response(hermes_engine *self, const hermes_call *call, const hermes_usage *usage) {
  (void)call;
  hermes_state_usage(&self->state, usage);
  return HERMES_OK;
}

static hermes_status misfit_session_reset(hermes_engine *self, const hermes_call *call) {
  (void)call;
  hermes_state_reset(&self->state);
  return HERMES_OK;
}

static hermes_status misfit_should_compress(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes) {
  (void)call;
  *yes = hermes_state_over(&self->state, args->prompt_tokens);
  return HERMES_OK;
}

static hermes_status misfit_compress(hermes_engine *self, const hermes_call *call, const hermes_compress_args *args) {
#ifdef UNDEFINED
  misfit_missing_function();
#endif
#ifdef NEEDS_NOTHERE
  nothere();
#endif
#ifdef NEEDS_GLIBC
  misfit_future();
#endif
#ifdef SIBLING
  SIBLING();
#endif
  leftovers();
  self->state.compression_count += 1;
  return call->keep(call, 0, 0, args->messages->count);
}

/* A table that a later minor has grown: the host must never look beyond what it knows. */
typedef struct grown_table {
  hermes_engine_vtable known;
  void (*later[8])(void);
} grown_table;

static void later_slot(void) { abort(); }

static grown_table table = {
    {
        sizeof(hermes_engine_vtable), 0,
        misfit_create, misfit_destroy, misfit_state, misfit_update_model, misfit_update_from_response, misfit_session_reset,
        misfit_should_compress, misfit_compress,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    },
    {later_slot, later_slot, later_slot, later_slot, later_slot, later_slot, later_slot, later_slot},
};

static hermes_module module = {
    sizeof(hermes_module), MAJOR, MINOR, 0, MIN_HOST_MINOR,
    HERMES_LITERAL(MODULE_NAME), HERMES_LITERAL(VERSION), HERMES_LITERAL("misfit " MODULE_NAME),
    &table.known, NULL,
};

static const hermes_module *misfit_module(void) {
#ifdef GROWN
  table.known.struct_size = sizeof table;
#endif
#ifdef TABLE_SIZE
  table.known.struct_size = TABLE_SIZE;
#endif
#ifdef MODULE_SIZE
  module.struct_size = MODULE_SIZE;
#endif
#ifdef NULL_SLOT
  table.known.NULL_SLOT = NULL;
#endif
#ifdef NULL_TABLE
  module.engine = NULL;
#endif
#ifdef NULL_MODULE
  return NULL;
#else
  return &module;
#endif
}

#ifdef AT_EXIT
__attribute__((destructor)) static void misfit_at_exit(void) { AT_EXIT; }
#endif

#ifndef NO_NAME
HERMES_ENGINE_NAME(NAME);
#endif

#if defined(ENTRY_IS_DATA)
HERMES_EXPORT extern const int entry_data __asm__("hermes_context_engine_v1");
const int entry_data = 7;
#elif defined(OTHER_ENTRY)
HERMES_EXPORT const hermes_module *hermes_context_engine_v2(void);
const hermes_module *hermes_context_engine_v2(void) { return misfit_module(); }
#elif !defined(NO_ENTRY) && (!defined(REGISTER) || defined(REGISTER_ENTRY_TOO))
const hermes_module *hermes_context_engine_v1(void) { return misfit_module(); }
#endif

#ifdef REGISTER
hermes_status hermes_plugin_register_v1(const hermes_registrar *ctx) {
  hermes_engine *instance = NULL;
  const hermes_module *made = misfit_module();
  hermes_status status;
#ifdef REGISTER_NOTHING
  (void)ctx; (void)instance; (void)made; (void)status;
  return HERMES_OK;
#else
#ifdef REGISTER_FAILS
  return HERMES_ERR_FAILED;
#endif
#ifdef REGISTER_BAD
  made = NULL;
#endif
#ifdef REGISTER_INSTANCE
  status = misfit_create(ctx->host, NULL, &ctx->create, &instance);
  if (status != HERMES_OK) return status;
#endif
  status = ctx->register_context_engine(ctx, made, instance);
#ifdef REGISTER_TWICE
  {
    static hermes_module second;
    second = module;
    second.name = hermes_bytes_of("second");
    if (ctx->register_context_engine(ctx, &second, NULL) != HERMES_ERR_UNSUPPORTED) abort();
  }
#endif
  return status;
#endif
}
#endif
