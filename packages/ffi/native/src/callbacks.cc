#include "callbacks.h"

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "environment.h"

namespace shoal {
namespace {

// C code carries a number as user data, never a pointer. A call after the callback was disposed, or after its
// environment ended, finds no entry for the number and does nothing.
struct Registry {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Mailbox>> mailboxes;
  uint64_t next = 1;
};

Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

// CUhostFn: void (*)(void* userData)
void HostFunction(void* user_data) { DeliverCallback(reinterpret_cast<uint64_t>(user_data), 0); }

// CUstreamCallback: void (*)(CUstream, CUresult, void* userData)
void StreamCallback(void*, int status, void* user_data) {
  DeliverCallback(reinterpret_cast<uint64_t>(user_data), status);
}

Napi::Value Register(const Napi::CallbackInfo& info) {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  const uint64_t id = registry.next++;
  registry.mailboxes[id] = Environment::Of(info.Env()).mailbox;
  return Napi::Number::New(info.Env(), static_cast<double>(id));
}

void Unregister(const Napi::CallbackInfo& info) {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.mailboxes.erase(static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value()));
}

}  // namespace

void DeliverCallback(uint64_t id, int status) {
  std::shared_ptr<Mailbox> mailbox;
  {
    Registry& registry = TheRegistry();
    std::lock_guard<std::mutex> lock(registry.mutex);
    auto found = registry.mailboxes.find(id);
    if (found == registry.mailboxes.end()) return;
    mailbox = found->second;
  }
  mailbox->Post([id, status](Napi::Env env) {
    Environment::Of(env).on_callback.Call(
        {Napi::Number::New(env, static_cast<double>(id)), Napi::Number::New(env, status)});
  });
}

void ForgetCallbacks(const std::shared_ptr<Mailbox>& mailbox) {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (auto entry = registry.mailboxes.begin(); entry != registry.mailboxes.end();) {
    entry = entry->second == mailbox ? registry.mailboxes.erase(entry) : std::next(entry);
  }
}

void DefineCallbacks(Napi::Env env, Napi::Object exports) {
  exports.Set("registerCallback", Napi::Function::New(env, Register, "registerCallback"));
  exports.Set("unregisterCallback", Napi::Function::New(env, Unregister, "unregisterCallback"));
  exports.Set("hostFunctionAddress", Napi::BigInt::New(env, reinterpret_cast<uint64_t>(&HostFunction)));
  exports.Set("streamCallbackAddress", Napi::BigInt::New(env, reinterpret_cast<uint64_t>(&StreamCallback)));
}

}  // namespace shoal
