/* hermes_engine.hpp - an engine as a C++11 class. Every exception ends here, never in the host.
 *
 * Derive from hermes::Engine (or write its four methods yourself), add what you need, and export the class once:
 *
 *   class Window : public hermes::Engine {
 *    public:
 *     explicit Window(const hermes_host *host, const hermes_create_args &args) : hermes::Engine(args) { (void)host; }
 *     bool should_compress(const hermes_call *call, const hermes_decide_args &args);
 *     hermes_status compress(const hermes_call *call, const hermes_compress_args &args);
 *   };
 *   HERMES_CXX_ENGINE(Window, "window", "1.0.0")
 *
 * Methods are named after the slots, and take (call, args) as the slots do, args by reference. A class that lacks a required method
 * does not compile. A slot of an optional method that the class does not have is NULL and costs nothing; a method of that name with
 * other arguments does not compile, rather than being silently left out. The class must not be `final`.
 *
 *   returns bool: should_compress, preflight     returns a new instance (new T): clone(host, call) const
 *   returns hermes_status: all others            state(hermes_state &) const
 *
 * throw hermes::Failure("why")  the call fails and says why; the instance goes on. Failure(status, "why") chooses the status.
 * any other exception           the call fails with ERR_PANIC and its what(); the class is not entered again, only destroyed.
 *
 * Arguments arrive whole: a field that an older host does not know is zero. Exceptions must be enabled.
 */
#ifndef HERMES_ENGINE_HPP
#define HERMES_ENGINE_HPP

#include "hermes_engine.h"
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace hermes {

inline hermes_bytes bytes(const std::string &text) {
  hermes_bytes b = {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
  return b;
}
inline std::string text(hermes_bytes b) {
  return b.len == 0 ? std::string() : std::string(reinterpret_cast<const char *>(b.ptr), b.len);
}

/* A failure that the instance survives. */
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string &why) : std::runtime_error(why), status_(HERMES_ERR_FAILED) {}
  Failure(hermes_status status, const std::string &why) : std::runtime_error(why), status_(status) {}
  hermes_status status() const noexcept { return status_; }

 private:
  hermes_status status_;
};

/* The usual bodies of the required slots. */
class Engine {
 public:
  explicit Engine(const hermes_create_args &args, double own_percent = 0.75) : own_percent_(own_percent) {
    hermes_state_init(&state_, args.context_length);
    state_.threshold_percent = own_percent;
    state_.threshold_tokens = static_cast<uint64_t>(static_cast<double>(args.context_length) * own_percent);
  }
  hermes_status state(hermes_state &out) const { return hermes_state_show(&state_, &out); }
  hermes_status update_model(const hermes_call *, const hermes_model_args &args) {
    hermes_state_model(&state_, own_percent_, &args);
    return HERMES_OK;
  }
  hermes_status update_from_response(const hermes_call *, const hermes_usage &usage) {
    hermes_state_usage(&state_, &usage);
    return HERMES_OK;
  }
  hermes_status session_reset(const hermes_call *) {
    hermes_state_reset(&state_);
    return HERMES_OK;
  }

 protected:
  hermes_state state_;
  double own_percent_;
};

namespace detail {

/* What the host holds: the object, and whether an exception has ended it. */
template <class T>
struct Box {
  std::unique_ptr<T> value;
  bool dead;
};
template <class T>
Box<T> *box(hermes_engine *self) {
  return reinterpret_cast<Box<T> *>(self);
}
template <class T>
const Box<T> *box(const hermes_engine *self) {
  return reinterpret_cast<const Box<T> *>(self);
}

inline void report(const hermes_call *call, const char *why) {
  if (call != nullptr && call->error != nullptr) call->error(call, hermes_bytes_of(why));
}

/* The barrier: runs `body`, and turns whatever leaves it into a status. */
template <class Body>
hermes_status guard(bool *dead, const hermes_call *call, Body body) {
  if (dead != nullptr && *dead) {
    report(call, "this instance has ended with an exception before");
    return HERMES_ERR_PANIC;
  }
  try {
    return body();
  } catch (const Failure &failure) {
    report(call, failure.what());
    return failure.status();
  } catch (const std::exception &exception) {
    report(call, exception.what());
  } catch (...) {
    report(call, "an exception that is no std::exception");
  }
  if (dead != nullptr) *dead = true;
  return HERMES_ERR_PANIC;
}

/* A copy of a struct that may be shorter than we know it; what it lacks is zero. */
template <class A>
A whole(const A *given) {
  A copy;
  std::memset(static_cast<void *>(&copy), 0, sizeof copy);
  if (given != nullptr) {
    std::memcpy(static_cast<void *>(&copy), given, given->struct_size < sizeof copy ? given->struct_size : sizeof copy);
  }
  return copy;
}

template <class T>
hermes_status adopt(std::unique_ptr<T> value, hermes_engine **out) {
  if (!value) throw Failure("no instance was made");
  std::unique_ptr<Box<T>> made(new Box<T>{std::move(value), false});
  *out = reinterpret_cast<hermes_engine *>(made.release());
  return HERMES_OK;
}

template <class T>
hermes_status create(const hermes_host *host, const hermes_call *call, const hermes_create_args *args, hermes_engine **out) {
  return guard(nullptr, call, [&] {
    const hermes_create_args given = whole(args);
    return adopt<T>(std::unique_ptr<T>(new T(host, given)), out);
  });
}
template <class T>
void destroy(hermes_engine *self) {
  guard(nullptr, nullptr, [&] {
    delete box<T>(self);
    return hermes_status(HERMES_OK);
  });
}
template <class T>
hermes_status state(const hermes_engine *self, hermes_state *out) {
  bool dead = box<T>(self)->dead;
  return guard(&dead, nullptr, [&] { return static_cast<const T &>(*box<T>(self)->value).state(*out); });
}

/* Required methods are called outright: a missing one is a compile error that names it. */
template <class T>
hermes_status session_reset(hermes_engine *self, const hermes_call *call) {
  return guard(&box<T>(self)->dead, call, [&]() -> hermes_status { return box<T>(self)->value->session_reset(call); });
}
template <class T>
hermes_status should_compress(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes) {
  return guard(&box<T>(self)->dead, call, [&]() -> hermes_status {
    *yes = box<T>(self)->value->should_compress(call, whole(args)) ? 1u : 0u;
    return HERMES_OK;
  });
}
#define HERMES_DETAIL_REQUIRED(slot, Args)                                                                          \
  template <class T>                                                                                                \
  hermes_status slot(hermes_engine *self, const hermes_call *call, const Args *args) {                              \
    return guard(&box<T>(self)->dead, call, [&]() -> hermes_status { return box<T>(self)->value->slot(call, whole(args)); }); \
  }
HERMES_DETAIL_REQUIRED(update_model, hermes_model_args)
HERMES_DETAIL_REQUIRED(update_from_response, hermes_usage)
HERMES_DETAIL_REQUIRED(compress, hermes_compress_args)
#undef HERMES_DETAIL_REQUIRED

/* Optional methods. `named`: the class has a member of that name (looking it up beside another one is ambiguous). `fits`: it can be
   called as the slot calls it. */
#define HERMES_DETAIL_FIND(slot, Self, ...)                                                                         \
  struct slot##_name { int slot; };                                                                                 \
  template <class T>                                                                                                \
  struct slot##_both : T, slot##_name {};                                                                           \
  template <class T>                                                                                                \
  struct slot##_find {                                                                                              \
    template <class U>                                                                                              \
    static std::false_type name(decltype(&U::slot) *);                                                              \
    template <class U>                                                                                              \
    static std::true_type name(...);                                                                                \
    template <class U>                                                                                              \
    static std::true_type call(decltype(std::declval<Self>().slot(__VA_ARGS__)) *);                                 \
    template <class U>                                                                                              \
    static std::false_type call(...);                                                                               \
    static constexpr bool named = decltype(name<slot##_both<T>>(nullptr))::value;                                   \
    static constexpr bool fits = decltype(call<T>(nullptr))::value;                                                 \
    static_assert(fits || !named, "the engine has a member named " #slot " that cannot be called as that slot");    \
  };
#define HERMES_DETAIL_PICK(slot, Pointer)                                                                           \
  template <class T, bool = slot##_find<T>::fits>                                                                   \
  struct slot##_pick {                                                                                              \
    static constexpr Pointer pointer() { return nullptr; }                                                          \
  };                                                                                                                \
  template <class T>                                                                                                \
  struct slot##_pick<T, true> {                                                                                     \
    static constexpr Pointer pointer() { return &slot##_slot<T>; }                                                  \
  };
#define HERMES_DETAIL_WITH(slot, Args)                                                                              \
  HERMES_DETAIL_FIND(slot, U &, std::declval<const hermes_call *>(), std::declval<const Args &>())                  \
  template <class T>                                                                                                \
  hermes_status slot##_slot(hermes_engine *self, const hermes_call *call, const Args *args) {                       \
    return guard(&box<T>(self)->dead, call, [&]() -> hermes_status { return box<T>(self)->value->slot(call, whole(args)); }); \
  }                                                                                                                 \
  HERMES_DETAIL_PICK(slot, decltype(hermes_engine_vtable::slot))
#define HERMES_DETAIL_BARE(slot)                                                                                    \
  HERMES_DETAIL_FIND(slot, U &, std::declval<const hermes_call *>())                                                \
  template <class T>                                                                                                \
  hermes_status slot##_slot(hermes_engine *self, const hermes_call *call) {                                         \
    return guard(&box<T>(self)->dead, call, [&]() -> hermes_status { return box<T>(self)->value->slot(call); });    \
  }                                                                                                                 \
  HERMES_DETAIL_PICK(slot, decltype(hermes_engine_vtable::slot))

HERMES_DETAIL_WITH(session_start, hermes_session_args)
HERMES_DETAIL_WITH(session_end, hermes_session_args)
HERMES_DETAIL_WITH(pass_result, hermes_pass_args)
HERMES_DETAIL_WITH(select_context, hermes_select_args)
HERMES_DETAIL_WITH(turn_complete, hermes_turn_args)
HERMES_DETAIL_WITH(tool_call, hermes_tool_args)
HERMES_DETAIL_WITH(command, hermes_command_args)
HERMES_DETAIL_BARE(tool_schemas)
HERMES_DETAIL_BARE(status)
HERMES_DETAIL_BARE(idle)

HERMES_DETAIL_FIND(preflight, U &, std::declval<const hermes_call *>(), std::declval<const hermes_decide_args &>())
template <class T>
hermes_status preflight_slot(hermes_engine *self, const hermes_call *call, const hermes_decide_args *args, uint32_t *yes) {
  return guard(&box<T>(self)->dead, call, [&]() -> hermes_status {
    *yes = box<T>(self)->value->preflight(call, whole(args)) ? 1u : 0u;
    return HERMES_OK;
  });
}
HERMES_DETAIL_PICK(preflight, decltype(hermes_engine_vtable::preflight))

HERMES_DETAIL_FIND(clone, const U &, std::declval<const hermes_host *>(), std::declval<const hermes_call *>())
template <class T>
hermes_status clone_slot(const hermes_engine *source, const hermes_host *host, const hermes_call *call, hermes_engine **out) {
  bool dead = box<T>(source)->dead;
  return guard(&dead, call, [&] {
    return adopt<T>(std::unique_ptr<T>(static_cast<const T &>(*box<T>(source)->value).clone(host, call)), out);
  });
}
HERMES_DETAIL_PICK(clone, decltype(hermes_engine_vtable::clone))

#undef HERMES_DETAIL_WITH
#undef HERMES_DETAIL_BARE
#undef HERMES_DETAIL_FIND
#undef HERMES_DETAIL_PICK

} /* namespace detail */

/* The table of a class. */
template <class T>
constexpr hermes_engine_vtable vtable() {
  return hermes_engine_vtable{
      sizeof(hermes_engine_vtable), 0,
      &detail::create<T>, &detail::destroy<T>, &detail::state<T>, &detail::update_model<T>, &detail::update_from_response<T>,
      &detail::session_reset<T>, &detail::should_compress<T>, &detail::compress<T>,
      detail::clone_pick<T>::pointer(), detail::session_start_pick<T>::pointer(), detail::session_end_pick<T>::pointer(),
      detail::pass_result_pick<T>::pointer(), detail::preflight_pick<T>::pointer(), detail::select_context_pick<T>::pointer(),
      detail::turn_complete_pick<T>::pointer(), detail::tool_schemas_pick<T>::pointer(), detail::tool_call_pick<T>::pointer(),
      detail::status_pick<T>::pointer(), detail::command_pick<T>::pointer(), detail::idle_pick<T>::pointer()};
}

} /* namespace hermes */

/* Exports the class as a directory engine. Once in a library, outside of any namespace. */
#define HERMES_CXX_ENGINE(T, name, version)                                                                         \
  HERMES_ENGINE_NAME(name);                                                                                         \
  const hermes_module *hermes_context_engine_v1(void) {                                                             \
    static constexpr hermes_engine_vtable table = hermes::vtable<T>();                                                 \
    static const hermes_module module = {sizeof(hermes_module), HERMES_ABI_MAJOR, HERMES_ABI_MINOR, HERMES_MODULE_UNWINDS, 0, \
                                         HERMES_LITERAL(name), HERMES_LITERAL(version), HERMES_LITERAL(""), &table, nullptr}; \
    return &module;                                                                                                 \
  }
#endif
