// throws.cpp - an engine in C++ that throws where its settings say, and works otherwise.
//
//   {"throw_in": "compress", "as": "exception"}    any slot, or "create"; as: exception (default), failure, number
//
// It shows that nothing leaves hermes_engine.hpp but a status and a text. A pass keeps the system prompt and all from the newest
// user message on.
//
//   c++ -std=c++11 -shared -fPIC -O2 -Wall -Wextra -I ../../include throws.cpp -o throws.so
#include "hermes_engine.hpp"

namespace {

// The text under a key of a flat JSON object, or nothing. Enough for the settings of this example.
std::string setting(const std::string &json, const std::string &key) {
  std::size_t at = json.find('"' + key + '"');
  if (at == std::string::npos) return std::string();
  at = json.find(':', at);
  const std::size_t open = at == std::string::npos ? at : json.find('"', at);
  const std::size_t close = open == std::string::npos ? open : json.find('"', open + 1);
  return close == std::string::npos ? std::string() : json.substr(open + 1, close - open - 1);
}

class Throws : public hermes::Engine {
 public:
  Throws(const hermes_host *, const hermes_create_args &args)
      : hermes::Engine(args), where_(setting(hermes::text(args.config), "throw_in")), as_(setting(hermes::text(args.config), "as")) {
    reach("create");
  }

  hermes_status state(hermes_state &out) const {
    reach("state");
    return hermes::Engine::state(out);
  }
  hermes_status update_model(const hermes_call *call, const hermes_model_args &args) {
    reach("update_model");
    return hermes::Engine::update_model(call, args);
  }
  hermes_status update_from_response(const hermes_call *call, const hermes_usage &usage) {
    reach("update_from_response");
    return hermes::Engine::update_from_response(call, usage);
  }
  hermes_status session_reset(const hermes_call *call) {
    reach("session_reset");
    return hermes::Engine::session_reset(call);
  }
  bool should_compress(const hermes_call *, const hermes_decide_args &args) {
    reach("should_compress");
    return hermes_state_over(&state_, args.prompt_tokens) != 0;
  }
  hermes_status compress(const hermes_call *call, const hermes_compress_args &args) {
    const hermes_messages *m = args.messages;
    const std::size_t head = m->count > 0 && hermes_message_at(m, 0)->role == HERMES_ROLE_SYSTEM ? 1 : 0;
    hermes_status status = head > 0 ? call->keep(call, 0, 0, head) : HERMES_OK;
    reach("compress");  // in the middle of its result, of which the host must use nothing
    if (args.incoming >= m->count || args.incoming <= head) return HERMES_UNCHANGED;
    if (status == HERMES_OK) status = call->keep(call, 0, args.incoming, m->count - args.incoming);
    if (status == HERMES_OK) state_.compression_count++;
    return status;
  }

  Throws *clone(const hermes_host *, const hermes_call *) const {
    reach("clone");
    return new Throws(*this);
  }
  hermes_status session_start(const hermes_call *, const hermes_session_args &) { return reach("session_start"); }
  hermes_status session_end(const hermes_call *, const hermes_session_args &) { return reach("session_end"); }
  hermes_status pass_result(const hermes_call *, const hermes_pass_args &) { return reach("pass_result"); }
  bool preflight(const hermes_call *, const hermes_decide_args &) {
    reach("preflight");
    return false;
  }
  hermes_status select_context(const hermes_call *, const hermes_select_args &) {
    reach("select_context");
    return HERMES_UNCHANGED;
  }
  hermes_status turn_complete(const hermes_call *, const hermes_turn_args &) { return reach("turn_complete"); }
  hermes_status tool_schemas(const hermes_call *call) {
    reach("tool_schemas");
    return call->write(call, hermes_bytes_of("[{\"name\":\"throws_where\",\"description\":\"Says where this engine throws.\","
                                             "\"parameters\":{\"type\":\"object\",\"properties\":{}}}]"));
  }
  hermes_status tool_call(const hermes_call *call, const hermes_tool_args &args) {
    reach("tool_call");
    if (hermes::text(args.name) != "throws_where") return call->write(call, hermes_bytes_of("{\"error\":\"no such tool\"}"));
    return call->write(call, hermes_bytes_of(where_.empty() ? "{\"throws\":false}" : "{\"throws\":true}"));
  }
  hermes_status status(const hermes_call *call) {
    reach("status");
    return call->write(call, hermes_bytes_of(where_.empty() ? "{\"throws\":false}" : "{\"throws\":true}"));
  }
  hermes_status command(const hermes_call *call, const hermes_command_args &) {
    reach("command");
    return call->write(call, hermes::bytes("throws in: " + (where_.empty() ? "no slot" : where_)));
  }
  hermes_status idle(const hermes_call *) { return reach("idle"); }

 private:
  hermes_status reach(const char *slot) const {
    if (where_ != slot) return HERMES_OK;
    const std::string why = std::string("thrown in ") + slot;
    if (as_ == "number") throw 42;
    if (as_ == "failure") throw hermes::Failure(why);
    throw std::runtime_error(why);
  }

  std::string where_, as_;
};

}  // namespace

HERMES_CXX_ENGINE(Throws, "throws", "1.0.0")
