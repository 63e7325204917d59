#include "collected.h"

#include "environment.h"

namespace shoal {
namespace {

// adjustExternalMemory(bytes): JavaScript objects hold this many more bytes outside the JavaScript heap. Returns the
// new total.
Napi::Value AdjustExternalMemory(const Napi::CallbackInfo& info) {
  const int64_t total =
      Napi::MemoryManagement::AdjustExternalMemory(info.Env(), info[0].As<Napi::Number>().Int64Value());
  return Napi::Number::New(info.Env(), static_cast<double>(total));
}

// watchObject(id, object): takeCollected() returns the id after the collector has freed the object.
void WatchObject(const Napi::CallbackInfo& info) {
  Environment::Of(info.Env()).watched[info[0].As<Napi::Number>().Int64Value()] = Napi::Weak(info[1].As<Napi::Object>());
}

void ForgetObject(const Napi::CallbackInfo& info) {
  Environment::Of(info.Env()).watched.erase(info[0].As<Napi::Number>().Int64Value());
}

// takeCollected(): the ids of collected objects, each id once. Unlike a FinalizationRegistry, this needs no turn of the
// event loop.
Napi::Value TakeCollected(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto& watched = Environment::Of(env).watched;
  Napi::Array gone = Napi::Array::New(env);
  uint32_t count = 0;
  for (auto at = watched.begin(); at != watched.end();) {
    Napi::HandleScope scope(env);
    if (!at->second.Value().IsEmpty()) {
      ++at;
      continue;
    }
    gone[count++] = Napi::Number::New(env, static_cast<double>(at->first));
    at = watched.erase(at);
  }
  return gone;
}

}  // namespace

void DefineCollected(Napi::Env env, Napi::Object exports) {
  exports.Set("adjustExternalMemory", Napi::Function::New(env, AdjustExternalMemory, "adjustExternalMemory"));
  exports.Set("watchObject", Napi::Function::New(env, WatchObject, "watchObject"));
  exports.Set("forgetObject", Napi::Function::New(env, ForgetObject, "forgetObject"));
  exports.Set("takeCollected", Napi::Function::New(env, TakeCollected, "takeCollected"));
}

}  // namespace shoal
