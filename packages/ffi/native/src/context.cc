#include "context.h"

#include <utility>

#include "environment.h"

namespace shoal {

std::atomic<GetCurrent> get_current_context{nullptr};

namespace {

using SetCurrent = int (*)(uint64_t);

std::atomic<SetCurrent> set_current{nullptr};

// Returns 1 if the context changed, 0 if it was current already, and the negated library code if the switch failed.
int Enter(uint64_t context, CurrentContext current) {
  if (current.status != 0) return -current.status;
  if (current.context == context) return 0;
  SetCurrent set = set_current.load(std::memory_order_acquire);
  const int status = set == nullptr ? kNotInitialized : set(context);
  return status == 0 ? 1 : -status;
}

napi_value EnterContext(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  uint64_t* block = static_cast<Environment*>(data)->block;
  const CurrentContext current = AskCurrentContext();
  const int outcome = Enter(block[kContextSlot], current);
  block[kContextSlot] = current.context;
  napi_value value = nullptr;
  napi_create_int32(env, outcome, &value);
  return value;
}

napi_value LeaveContext(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  const uint64_t previous = std::exchange(static_cast<Environment*>(data)->block[kContextSlot], 0);
  SetCurrent set = set_current.load(std::memory_order_acquire);
  napi_value value = nullptr;
  napi_create_int32(env, set == nullptr ? kNotInitialized : set(previous), &value);
  return value;
}

void SetContextFunctions(const Napi::CallbackInfo& info) {
  bool lossless = false;
  get_current_context.store(reinterpret_cast<GetCurrent>(info[0].As<Napi::BigInt>().Uint64Value(&lossless)),
                            std::memory_order_release);
  set_current.store(reinterpret_cast<SetCurrent>(info[1].As<Napi::BigInt>().Uint64Value(&lossless)),
                    std::memory_order_release);
}

}  // namespace

ContextScope::ContextScope(uint64_t context, CurrentContext current) : previous_(current.context) {
  const int outcome = Enter(context, current);
  changed_ = outcome == 1;
  if (outcome < 0) status_ = -outcome;
}

ContextScope::~ContextScope() {
  if (!changed_) return;
  SetCurrent set = set_current.load(std::memory_order_acquire);
  // The caller's context may have been destroyed in the meantime. In that case, no context is current afterwards.
  if (set(previous_) != 0) set(0);
}

void DefineContext(Napi::Env env, Napi::Object exports) {
  exports.Set("setContextFunctions", Napi::Function::New(env, SetContextFunctions, "setContextFunctions"));
  napi_value function = nullptr;
  if (napi_create_function(env, "enterContext", NAPI_AUTO_LENGTH, EnterContext, &Environment::Of(env), &function) ==
      napi_ok) {
    exports.Set("enterContext", Napi::Value(env, function));
  }
  if (napi_create_function(env, "leaveContext", NAPI_AUTO_LENGTH, LeaveContext, &Environment::Of(env), &function) ==
      napi_ok) {
    exports.Set("leaveContext", Napi::Value(env, function));
  }
}

}  // namespace shoal
