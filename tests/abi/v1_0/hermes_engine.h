/* hermes_engine.h - the border between a host and a compiled context engine, ABI 1.0.
 *
 * A context engine decides what a model sees of a conversation that has outgrown the model's window. It is a shared library; one
 * user names one engine in config.yaml, and the host runs one instance of it for each conversation.
 *
 * This file is the specification: what it does not promise, nobody may rely on. It needs nothing but a C99, C11 or C++11 compiler
 * for a 64-bit target. The life of an engine:
 *
 *   1. The host finds the library, reads hermes_engine_name out of the file, and calls hermes_context_engine_v1() for the module.
 *   2. create(TEMPLATE) makes the registered instance, which serves no conversation. Each conversation gets its own from it: by
 *      clone() where the engine has that slot, else by create(AGENT).
 *   3. update_model() gives it the model and its window; session_start() a session.
 *   4. Each turn: preflight?, then per model call select_context?, update_from_response, should_compress and, when that says yes,
 *      compress; the outcome of a pass in pass_result?; at the end turn_complete?. ("?": only if the slot exists.)
 *   5. session_end() when the session is over; session_reset() and session_start() again for the next one; destroy() at the end.
 *
 * THREADS  Each function carries a tag.
 *   [entry]   Any thread, any number of times. Must always answer the same, and starts nothing: no thread, no file, no allocation
 *             that matters. (hermes_plugin_register_v1 alone is called once.)
 *   [serial]  Any thread, and another one next time; but never two calls at once on one instance, and never re-entered: no host
 *             function calls an engine. Do not keep anything in thread-local storage. Two instances may be inside the same code at
 *             once, so whatever instances share (statics, a database) must be thread-safe.
 *   [any]     Any thread, any number at once, threads of the engine's own too, from the start of create() until destroy() returns.
 *   [call]    Only while the slot call it belongs to has not returned, one thread at a time.
 *
 * MEMORY  No ownership ever crosses, so there is nothing to free on either side.
 *   What the host passes can be read until the slot call returns, however late that is: a call that the host has given up keeps
 *   its arguments. Keep no pointer afterwards; copy. What an engine passes to a host function is copied before that function
 *   returns. What a module points to is static and never changes.
 *   A pointer argument is not NULL unless its comment says so.
 *
 * STRUCTS  The side that fills a struct sets struct_size, and all reserved fields to zero. A reader treats a field that does not lie
 *   inside struct_size as absent, which means zero; HERMES_HAS() in hermes_helpers.h asks. For an `out` struct the caller sets struct_size, and the
 *   callee writes no field beyond it. A reader ignores flag bits and reserved fields that it does not know.
 *
 * SLOTS  A slot exists if it lies inside the vtable's struct_size and is not NULL. An absent optional slot means "nothing to do
 *   here" and costs nothing: do not fill a slot with a function that does nothing. The host copies module and vtable once, at load.
 *
 * STATUS  HERMES_OK is success, and so is any other value that the slot's comment names. Every other value, known or not, is
 *   failure; give call->error() the reason first. A failure costs only that call: a request goes out as it was, a transcript stays
 *   as it is, a tool answers with a JSON error. An engine that fails three times in a row is replaced for the rest of the session.
 *
 * TEXT  Bytes are UTF-8 with a length; they are not NUL-terminated, and may hold NUL. Bytes that are no UTF-8 are ERR_INVALID.
 *
 * LEAVING  No exception, panic, longjmp or thread exit may cross this border, in either direction. (C++: hermes_engine.hpp catches.)
 *   An engine leaves stdout, stderr, signals, the working directory and the environment alone, and never ends the process.
 *
 * COMPATIBILITY  What keeps an engine that was built today working for as long as this number is 1:
 *   1. What is released stays: every name, type, size, offset, number, default, owner, thread tag, NULL rule and meaning in here.
 *   2. Growth happens at the end of size-prefixed structs and of hermes_message (hence stride), and in reserved fields and flag
 *      bits, where zero keeps meaning what it means today. Each such step raises the minor number.
 *   3. New behaviour is a new slot, or a table behind extension("hermes.<group>/<revision>"), never a new meaning of an old one. A
 *      new number in an old field comes only from the side that can know that the other side understands it.
 *   4. An engine that cannot do without something newer says so in min_host_minor, and an older host refuses it, naming both
 *      numbers. Any other pair of minors with the same major works together. Only these two numbers decide: no compiler, commit,
 *      build profile or package version does.
 *   5. Another major has other entry symbols. A library may export the entries of several majors side by side.
 *
 * Refined against the draft of this border: outcome BLOCKED of a turn (a blocked turn and a failed one are different ends).
 */
#ifndef HERMES_ENGINE_H
#define HERMES_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#  error "context engines are 64-bit only in ABI major 1"
#endif

#if defined(__cplusplus)
#  define HERMES_ASSERT(name, cond) static_assert(cond, #name)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#  define HERMES_ASSERT(name, cond) _Static_assert(cond, #name)
#else
#  define HERMES_ASSERT(name, cond) typedef char hermes_assert_##name[(cond) ? 1 : -1]
#endif

#if defined(_WIN32)
#  define HERMES_EXPORT __declspec(dllexport)
#else
#  define HERMES_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HERMES_ABI_MAJOR 1u
#define HERMES_ABI_MINOR 0u
#define HERMES_NONE UINT32_MAX /* an index that points at nothing */

/* ---- status ------------------------------------------------------------------------------------------------------------------ */

typedef int32_t hermes_status;
#define HERMES_OK 0
#define HERMES_UNCHANGED 1          /* compress, select_context: leave the list as it is; anything emitted is dropped */
#define HERMES_MORE 2               /* idle: call me again */
#define HERMES_ERR_FAILED (-1)      /* it did not work; the instance is fine */
#define HERMES_ERR_PANIC (-2)       /* a panic or exception was caught; the instance is dead, only destroy() follows; it is replaced */
#define HERMES_ERR_CANCELLED (-3)   /* stopped because the call was cancelled */
#define HERMES_ERR_INVALID (-4)     /* an argument breaks the rules of this file */
#define HERMES_ERR_UNSUPPORTED (-5) /* not offered */
#define HERMES_ERR_LIMIT (-6)       /* too much of something */
#define HERMES_ERR_UNAVAILABLE (-7) /* create: nothing is broken, but not here (no key, no database); shown as the reason */

/* ---- what travels ------------------------------------------------------------------------------------------------------------ */

typedef struct hermes_engine hermes_engine; /* an instance; the plugin's own business: define it as you like */
typedef struct hermes_host hermes_host;
typedef struct hermes_call hermes_call;

typedef struct hermes_bytes { /* borrowed */
  const uint8_t *ptr;         /* may be NULL only when len is 0 */
  size_t len;
} hermes_bytes;

#define HERMES_ROLE_OTHER 0u
#define HERMES_ROLE_SYSTEM 1u
#define HERMES_ROLE_USER 2u
#define HERMES_ROLE_ASSISTANT 3u
#define HERMES_ROLE_TOOL 4u

#define HERMES_MSG_TOOL_CALLS 1u /* an assistant message that calls tools */
#define HERMES_MSG_MULTIMODAL 2u /* the content is a list of parts */
#define HERMES_MSG_SUMMARY 4u    /* an engine made it */
#define HERMES_MSG_ABSORBED 8u   /* its identity names messages that were folded into it */
#define HERMES_MSG_SYNTHETIC 16u /* the host made it; no person's words */

/* One message. Most engines decide by the numbers and never parse the JSON. Key what you remember by uid, never by index or text:
   one uid with another version is a newer wording of the same message, and the same uid may occur twice (the later is current). */
typedef struct hermes_message {
  hermes_bytes json;     /* strict JSON of the message, in OpenAI's shape, without the four identity keys */
  hermes_bytes identity; /* JSON object of the identity keys that it has (message_uid, ...), or empty */
  hermes_bytes uid;      /* message_uid, or empty: no identity yet, which is no fault */
  uint64_t version;      /* XXH3-64 (seed 0) of json: the same text has the same version on every host of major 1 */
  uint32_t role;         /* HERMES_ROLE_* */
  uint32_t flags;        /* HERMES_MSG_* */
  uint32_t tokens;       /* the host's estimate, identity not counted */
  uint32_t caller;       /* tool result: index of the assistant message that it answers; else HERMES_NONE */
} hermes_message;

typedef struct hermes_messages { /* read-only; walk it with hermes_message_at(): elements may be longer than you know them */
  const hermes_message *items;   /* may be NULL only when count is 0 */
  size_t count, stride;
} hermes_messages;

/* ---- one call of a slot ------------------------------------------------------------------------------------------------------ */

/* The budget of a call is what the host waits for. After it, `cancelled` is true, everything emitted is void and write, keep and
   push answer ERR_CANCELLED; a little later the host goes on without the call. Return then, soon: nothing else enters the
   instance meanwhile, and a library whose calls do not come back is taken out. */
struct hermes_call {
  uint32_t struct_size, reserved;
  uint64_t call_id;        /* for logs */
  uint64_t budget_ms;      /* left when the call began; 0 = no limit */
  hermes_bytes session_id; /* empty before session_start */

  /* [any] while the call runs. Not 0: give up, return ERR_CANCELLED. Cheap; ask often. */
  uint32_t (*cancelled)(const hermes_call *call);
  /* [any] while the call runs. Says that work goes on, and extends the deadline, up to a ceiling. total 0 = not known. */
  void (*progress)(const hermes_call *call, uint64_t done, uint64_t total);
  /* [call] Appends to the text that is shown if the slot fails; 4 KiB are kept, the rest is ERR_LIMIT. */
  hermes_status (*error)(const hermes_call *call, hermes_bytes text);
  /* [call] Appends to the text result of the slot, where its comment names one. Else ERR_UNSUPPORTED. */
  hermes_status (*write)(const hermes_call *call, hermes_bytes part);
  /* [call] compress, select_context: emits count of the host's own messages, from index first of the list with that number on.
     They stay the same objects, byte for byte and with their identity. ERR_INVALID, and the whole result is refused, for a range
     that is not there, and for an order that is not allowed: compress has list 0 = args->messages, and its indexes increase
     strictly over all its keeps; select_context has list 0 = request and 1 = conversation, and no message twice. */
  hermes_status (*keep)(const hermes_call *call, uint32_t list, size_t first, size_t count);
  /* [call] compress, select_context: emits one message of the engine's own, a JSON object with a role. It may carry identity keys:
     with the uid of a message in the lists it is that message, edited; without one it is a new message. */
  hermes_status (*push)(const hermes_call *call, hermes_bytes json);
};

/* ---- what the host offers ---------------------------------------------------------------------------------------------------- */

typedef struct hermes_complete_args {
  uint32_t struct_size, reserved;
  hermes_bytes request;    /* {"messages":[...],"max_tokens"?:n,"purpose":"..."} */
  uint64_t timeout_ms;     /* 0 = the host's own limit */
  const hermes_call *call; /* the call that it serves: cancels with it, counts as its progress. NULL from a thread of the engine's own */
  void *user;              /* handed back to both functions */
  void (*on_text)(void *user, hermes_bytes part);   /* may be NULL; parts of the text as they arrive, on the calling thread */
  void (*on_result)(void *user, hermes_bytes json); /* once, on the calling thread, before complete() returns:
       {"text","finish_reason","model","usage"} or {"error":{"class","message","retry_after_ms"?}}, where class is one of
       auth, quota, network, overload, context, empty, truncated, cancelled, other; take an unknown one for other */
} hermes_complete_args;

struct hermes_host { /* one per instance; lives until its destroy() has returned */
  uint32_t struct_size;
  uint16_t abi_major, abi_minor;
  hermes_bytes name, version;
  uint32_t log_level, reserved; /* 1 error, 2 warning, 3 information, 4 debugging, 5 trace: skip the formatting above it */

  /* [any] One line for the host's log. */
  void (*log)(const hermes_host *host, uint32_t level, hermes_bytes message);
  /* [any] The tokens of a text, counted as the host counts them. */
  uint64_t (*count_tokens)(const hermes_host *host, hermes_bytes text);
  /* [any] Asks a model, blocks, and gives the answer to on_result: OK if it was a text. It spends the user's money: the pointer is
     NULL unless the user has granted "llm" to this engine, so have a way without it. */
  hermes_status (*complete)(const hermes_host *host, const hermes_complete_args *args);
  /* [any] The table of a later minor, "hermes.<group>/<revision>", or NULL. */
  const void *(*extension)(const hermes_host *host, const char *id);
};

/* ---- arguments of the slots -------------------------------------------------------------------------------------------------- */

#define HERMES_FOR_TEMPLATE 0u /* the registered instance */
#define HERMES_FOR_AGENT 1u    /* the instance of one conversation */
#define HERMES_FOR_PROBE 2u    /* a trial: data_dir is a scratch folder, complete is NULL, config is {} */
typedef struct hermes_create_args {
  uint32_t struct_size, purpose;
  hermes_bytes config;     /* JSON of the engine's own section of config.yaml, unchecked, or {} */
  hermes_bytes data_dir;   /* exists, private to the user, shared by all instances of this engine */
  hermes_bytes plugin_dir; /* where plugin.yaml lies; the loaded file may be a copy elsewhere */
  uint64_t context_length; /* 0 = not known yet */
} hermes_create_args;

typedef struct hermes_usage { /* of one model call, or of a turn; -1 = the provider did not say */
  uint32_t struct_size, reserved;
  int64_t prompt_tokens, completion_tokens, total_tokens;
  int64_t input_tokens;       /* of the prompt: neither read from a cache nor written to one */
  int64_t output_tokens;
  int64_t cache_read_tokens, cache_write_tokens, reasoning_tokens;
  hermes_bytes json;          /* as the provider sent it */
} hermes_usage;

typedef struct hermes_model_args { /* never holds a key or password */
  uint32_t struct_size, reserved;
  hermes_bytes model, provider, base_url, api_mode; /* empty = not known */
  uint64_t context_length;        /* the full window; 0 = not known */
  uint64_t max_output_tokens;     /* 0 = not known */
  uint64_t helper_context_length; /* window of the model behind complete; 0 = none */
  double threshold_percent;       /* compression.model_thresholds resolved for this model, 0..1; 0 = no match: the engine's own */
  hermes_bytes model_thresholds;  /* the whole map, JSON; complete in the first call already */
} hermes_model_args;

#define HERMES_STATE_QUIET 1u     /* no routine status lines for automatic passes */
typedef struct hermes_state {     /* out */
  uint32_t struct_size, flags;
  int64_t last_prompt_tokens, last_completion_tokens, last_total_tokens; /* 0 = none yet, -1 = real usage is awaited after a pass */
  uint64_t threshold_tokens;      /* where compression triggers */
  uint64_t context_length;        /* the full window; 0 = not known */
  uint64_t compression_count;     /* how many times compress has compacted */
  double threshold_percent;
  uint32_t protect_first_n, protect_last_n;
} hermes_state;

typedef struct hermes_decide_args {
  uint32_t struct_size, reserved;
  int64_t prompt_tokens;           /* -1 = unknown */
  const hermes_messages *messages; /* preflight: the transcript; should_compress: NULL */
} hermes_decide_args;

#define HERMES_START_NEW 0u
#define HERMES_START_RESUME 1u      /* a stored session goes on */
#define HERMES_START_BRANCH 2u      /* a copy goes its own way */
#define HERMES_START_REWIND 3u      /* set back to an earlier message */
#define HERMES_START_COMPRESSION 4u /* a pass was committed */
#define HERMES_START_DELEGATE 5u    /* a sub-agent's session */
#define HERMES_START_RECOVER 6u     /* a fresh instance takes over after ERR_PANIC */
#define HERMES_START_CARRY_OVER 1u  /* flag: take over what you know of old_session_id */
typedef struct hermes_session_args { /* of session call->session_id; ids may be empty */
  uint32_t struct_size;
  uint32_t reason;                   /* HERMES_START_*; 0 in session_end */
  uint32_t flags, reserved;
  hermes_bytes old_session_id;       /* the one it follows; equal to the new one when a pass was committed in place */
  hermes_bytes parent_session_id, root_session_id; /* root: the same for a whole lineage */
  hermes_bytes platform, conversation_id, hermes_home;
  hermes_bytes last_pass_id;         /* newest committed pass of this session: what was prepared under it holds, all else is void */
  const hermes_messages *messages;   /* session_start: live transcript; session_end: the final one; may be NULL */
} hermes_session_args;

#define HERMES_TRIGGER_PREFLIGHT 0u /* at the start of a turn */
#define HERMES_TRIGGER_TOOLS 1u     /* after a round of tools */
#define HERMES_TRIGGER_OVERFLOW 2u  /* the provider refused the request as too long */
#define HERMES_TRIGGER_IDLE 3u
#define HERMES_TRIGGER_MANUAL 4u    /* the user asked for it; focus may say about what */
#define HERMES_TRIGGER_PRUNE 5u     /* only shorten old tool results */
#define HERMES_COMPRESS_FORCE 1u    /* flag: past any back-off of the engine's own */
typedef struct hermes_compress_args {
  uint32_t struct_size, trigger, flags;
  uint32_t incoming;               /* index of the newest user message, or HERMES_NONE */
  const hermes_messages *messages; /* a private snapshot */
  int64_t current_tokens;          /* of the whole request; -1 = unknown */
  uint64_t target_tokens;          /* get below this; 0 = the engine's choice */
  hermes_bytes focus;              /* may be empty */
  hermes_bytes memory_context;     /* may be empty */
  hermes_bytes pass_id;            /* comes back in pass_result */
} hermes_compress_args;

#define HERMES_PASS_DISCARDED 0u /* refused, timed out, or lost; as if it had not been */
#define HERMES_PASS_COMMITTED 1u
typedef struct hermes_pass_args {
  uint32_t struct_size, outcome;
  hermes_bytes pass_id, reason;    /* reason: why discarded, or empty */
  const hermes_messages *messages; /* committed: the new transcript with every uid; else NULL */
} hermes_pass_args;

typedef struct hermes_select_args {
  uint32_t struct_size;
  uint32_t attempt;                    /* 0, then 1, 2, ... on retries of one request */
  const hermes_messages *request;      /* what is about to be sent, in its wire form */
  const hermes_messages *conversation; /* the transcript; may be NULL */
  uint32_t incoming, reserved;         /* index in request of the turn's user message, or HERMES_NONE */
  uint64_t budget_tokens;              /* the window; 0 = unknown */
  uint64_t fixed_tokens;               /* tool schemas and other overhead inside the budget */
} hermes_select_args;

#define HERMES_TURN_OK 0u
#define HERMES_TURN_INTERRUPTED 1u /* by the user */
#define HERMES_TURN_FAILED 2u      /* by an error */
#define HERMES_TURN_BLOCKED 3u     /* by a content policy */
typedef struct hermes_turn_args {
  uint32_t struct_size, outcome, api_calls, reserved;
  const hermes_messages *messages; /* the finalised transcript */
  const hermes_usage *usage;       /* of the turn; NULL: no response was reached */
  hermes_bytes turn_id;
} hermes_turn_args;

typedef struct hermes_tool_args {
  uint32_t struct_size, reserved;
  hermes_bytes name;
  hermes_bytes arguments;          /* as the model wrote them, which need not be valid JSON */
  hermes_bytes tool_call_id;       /* the provider's; repeats are normal */
  const hermes_messages *messages; /* the transcript; may be NULL */
} hermes_tool_args;

typedef struct hermes_command_args {
  uint32_t struct_size, reserved;
  hermes_bytes argv; /* JSON array of strings */
} hermes_command_args;

/* ---- the slots, all [serial] ------------------------------------------------------------------------------------------------- */

typedef struct hermes_engine_vtable {
  uint32_t struct_size, reserved;

  /* Required. They read or change the engine's own state, so the host cannot stand in for them; the functions of
     hermes_helpers.h are the usual bodies. A missing one is named, and the engine refused. */

  /* Makes an instance and stores it in *out (on failure: leave *out alone). `host` may be kept until destroy. ERR_UNAVAILABLE: not
     here, and why. [serial] on the new instance, which nobody else knows yet. */
  hermes_status (*create)(const hermes_host *host, const hermes_call *call, const hermes_create_args *args, hermes_engine **out);
  /* Ends an instance: exactly once, never during a call, also after ERR_PANIC. Join your threads and flush first. */
  void (*destroy)(hermes_engine *self);
  /* Shows the state. After each call into the instance; must not wait for anything. */
  hermes_status (*state)(const hermes_engine *self, hermes_state *out);
  /* The model or its window, before anything else and at every switch. Recompute the threshold from it. */
  hermes_status (*update_model)(hermes_engine *self, const hermes_call *call, const hermes_model_args *args);
  /* After each model call of the conversation. Sets the three last_* counters. */
  hermes_status (*update_from_response)(hermes_engine *self, const hermes_call *call, const hermes_usage *usage);
  /* Between session_end and session_start of a fresh session. Per-session state and counters go; model, window, threshold and shared
     back ends stay. */
  hermes_status (*session_reset)(hermes_engine *self, const hermes_call *call);
  /* Every turn. *yes is 0 when it is called; not 0 asks for a pass. write(): why not, if something other than the size forbids it. */
  hermes_status (*should_compress)(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes);
  /* A pass: emit the shorter list with keep and push, in order. It must be a valid request, hold the system prompt and the newest
     user message, and not be larger than what it replaces; else it is refused. UNCHANGED: nothing to do, error() says why. Publish
     nothing from in here: the pass counts only once pass_result, or a later last_pass_id, says that it was committed. */
  hermes_status (*compress)(hermes_engine *self, const hermes_call *call, const hermes_compress_args *args);

  /* Optional: NULL costs nothing. */

  /* The instance of one conversation, from the registered one, which must stay untouched. Back ends may be shared, counters and
     budget may not. NULL: create() again. [serial] on source and on the new one. A failure: that conversation is served without you. */
  hermes_status (*clone)(const hermes_engine *source, const hermes_host *host, const hermes_call *call, hermes_engine **out);
  /* A session begins, goes on, is rewound, or was compacted; args->reason says which. Call it yours: call->session_id. */
  hermes_status (*session_start)(hermes_engine *self, const hermes_call *call, const hermes_session_args *args);
  /* A session is over: once, with its final messages; not after every turn. */
  hermes_status (*session_end)(hermes_engine *self, const hermes_call *call, const hermes_session_args *args);
  /* Once for each compress() that returned OK: what became of it. The moment to publish what was prepared. */
  hermes_status (*pass_result)(hermes_engine *self, const hermes_call *call, const hermes_pass_args *args);
  /* Before a turn's first model call: a cheap look. *yes as in should_compress: asks for one pass. */
  hermes_status (*preflight)(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes);
  /* Before each provider request, retries too: emit the messages for this one request. UNCHANGED: send it as it is. The transcript is
     never touched. Use it only to replace what enters a request, and stay stable: each change costs the provider's prompt cache
     from the first different message on. Merely watching is no use for it (see turn_complete). */
  hermes_status (*select_context)(hermes_engine *self, const hermes_call *call, const hermes_select_args *args);
  /* Once at the end of each turn, however it ended. Its status changes nothing for the turn. */
  hermes_status (*turn_complete)(hermes_engine *self, const hermes_call *call, const hermes_turn_args *args);
  /* write(): JSON array of {"name","description","parameters"}. When an instance is made, and when the tool list is refreshed. */
  hermes_status (*tool_schemas)(hermes_engine *self, const hermes_call *call);
  /* The model calls one of these tools. write(): JSON. An unknown name: write {"error":"..."}. */
  hermes_status (*tool_call)(hermes_engine *self, const hermes_call *call, const hermes_tool_args *args);
  /* write(): JSON object of further figures for a person; the usual ones the host takes from state. */
  hermes_status (*status)(hermes_engine *self, const hermes_call *call);
  /* A command of the user's to the engine. write(): text for a person. */
  hermes_status (*command)(hermes_engine *self, const hermes_call *call, const hermes_command_args *args);
  /* Between turns, again and again while it answers MORE; OK ends it until the next turn has ended. Cancelled when a turn begins. */
  hermes_status (*idle)(hermes_engine *self, const hermes_call *call);
} hermes_engine_vtable;

/* ---- what a library exports -------------------------------------------------------------------------------------------------- */

#define HERMES_MODULE_UNWINDS 1u /* panics and exceptions can be caught inside */
typedef struct hermes_module {   /* static, and never changes */
  uint32_t struct_size;
  uint16_t abi_major, abi_minor; /* HERMES_ABI_MAJOR, HERMES_ABI_MINOR: of the header that it was built with */
  uint32_t flags;                /* HERMES_MODULE_* */
  uint32_t min_host_minor;       /* 0 unless nothing works without something newer */
  hermes_bytes name;             /* what the user writes under context.engine */
  hermes_bytes version, build;   /* for people; may be empty */
  const hermes_engine_vtable *engine;
  const void *(*extension)(const char *id); /* [entry] the table of a later minor, or NULL; may be NULL itself */
} hermes_module;

/* [entry] A directory engine: the folder of plugin.yaml in plugins/context_engine/ or $HERMES_HOME/plugins/. Never NULL. */
HERMES_EXPORT const hermes_module *hermes_context_engine_v1(void);

/* Optional: the engine's name as data, so that a host can tell it without running the file. Equal to the module's. Write
   HERMES_ENGINE_NAME("lcm"); once, outside of any function. */
HERMES_EXPORT extern const char hermes_engine_name[];
#define HERMES_ENGINE_NAME(text) const char hermes_engine_name[] = text

/* The general plugin entry, register(ctx). A library exports this, the entry above, or both; then the one above serves for a
   directory engine. */
typedef struct hermes_registrar hermes_registrar;
struct hermes_registrar { /* valid during hermes_plugin_register_v1 */
  uint32_t struct_size;
  uint16_t abi_major, abi_minor;
  const hermes_host *host;   /* lives as long as the process */
  hermes_create_args create; /* for an instance that the plugin makes itself */
  /* [call] instance NULL: the host makes it with module->engine->create. Given: it is the template, the host destroys it, and without
     a clone slot no conversation gets it. ERR_UNSUPPORTED: another engine is registered already, and stays; the host has warned,
     and the instance is still yours. */
  hermes_status (*register_context_engine)(const hermes_registrar *ctx, const hermes_module *module, hermes_engine *instance);
  const void *(*extension)(const hermes_registrar *ctx, const char *id); /* [call] hooks, tools, ... of later minors, or NULL */
};
HERMES_EXPORT hermes_status hermes_plugin_register_v1(const hermes_registrar *ctx); /* [entry], but once */

/* ---- the shape, frozen ------------------------------------------------------------------------------------------------------- */

#define HERMES_SHAPE(type, size, last, offset) \
  HERMES_ASSERT(size_of_##type, sizeof(type) == (size)); \
  HERMES_ASSERT(last_of_##type, offsetof(type, last) == (offset))
HERMES_SHAPE(hermes_bytes, 16, len, 8);
HERMES_SHAPE(hermes_message, 72, caller, 68);
HERMES_SHAPE(hermes_messages, 24, stride, 16);
HERMES_SHAPE(hermes_call, 88, push, 80);
HERMES_SHAPE(hermes_complete_args, 64, on_result, 56);
HERMES_SHAPE(hermes_host, 80, extension, 72);
HERMES_SHAPE(hermes_create_args, 64, context_length, 56);
HERMES_SHAPE(hermes_usage, 88, json, 72);
HERMES_SHAPE(hermes_model_args, 120, model_thresholds, 104);
HERMES_SHAPE(hermes_state, 72, protect_last_n, 68);
HERMES_SHAPE(hermes_decide_args, 24, messages, 16);
HERMES_SHAPE(hermes_session_args, 136, messages, 128);
HERMES_SHAPE(hermes_compress_args, 88, pass_id, 72);
HERMES_SHAPE(hermes_pass_args, 48, messages, 40);
HERMES_SHAPE(hermes_select_args, 48, fixed_tokens, 40);
HERMES_SHAPE(hermes_turn_args, 48, turn_id, 32);
HERMES_SHAPE(hermes_tool_args, 64, messages, 56);
HERMES_SHAPE(hermes_command_args, 24, argv, 8);
HERMES_SHAPE(hermes_engine_vtable, 168, idle, 160);
HERMES_SHAPE(hermes_module, 80, extension, 72);
HERMES_SHAPE(hermes_registrar, 96, extension, 88);

#ifdef __cplusplus
}
#endif
#include "hermes_helpers.h" /* for authors; no part of the border */
#endif
