#include <napi.h>

#include "callbacks.h"
#include "calls.h"
#include "collected.h"
#include "context.h"
#include "descriptors.h"
#include "dlpack.h"
#include "environment.h"
#include "exit.h"
#include "hostcopy.h"
#include "library.h"
#include "memory.h"
#include "offers.h"
#include "offthread.h"
#include "signals.h"
#include "waiter.h"

namespace shoal {
namespace {

// Runs before Node destroys the environment. Afterwards no native thread can reach its JavaScript.
void End(Environment* environment) {
  ForgetWaits(environment->mailbox);
  ForgetCallbacks(environment->mailbox);
  environment->mailbox->Close();
  if (ProcessIsEnding()) return;
  for (const auto& [number, recording] : environment->at_end) Make(*recording, 0);
  CloseDescriptors(*environment);
  WithdrawOffers(*environment);
}

// initialize(block, { wait, callback, job })
void Initialize(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Environment& environment = Environment::Of(env);
  if (environment.block != nullptr)
    throw Napi::Error::New(env, "another copy of @shoal/ffi on this thread uses this file");
  auto block = info[0].As<Napi::ArrayBuffer>();
  if (block.ByteLength() != kBlockWords * sizeof(uint64_t))
    throw Napi::RangeError::New(env, "the argument block has another size than the addon's");
  environment.block = static_cast<uint64_t*>(block.Data());
  environment.block_buffer = Napi::Persistent(block);
  auto handlers = info[1].As<Napi::Object>();
  environment.on_wait = Napi::Persistent(handlers.Get("wait").As<Napi::Function>());
  environment.on_callback = Napi::Persistent(handlers.Get("callback").As<Napi::Function>());
  environment.on_job = Napi::Persistent(handlers.Get("job").As<Napi::Function>());
}

// hold() and unhold() count the reasons to keep the event loop alive.
void Hold(const Napi::CallbackInfo& info) { Environment::Of(info.Env()).mailbox->Hold(); }
void Unhold(const Napi::CallbackInfo& info) { Environment::Of(info.Env()).mailbox->Release(); }

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  auto* environment = new Environment;
  env.SetInstanceData<Environment>(environment);
  environment->mailbox->Open(env);
  env.AddCleanupHook(End, environment);
  exports.Set("initialize", Napi::Function::New(env, Initialize, "initialize"));
  exports.Set("hold", Napi::Function::New(env, Hold, "hold"));
  exports.Set("unhold", Napi::Function::New(env, Unhold, "unhold"));
  DefineCalls(env, exports);
  DefineContext(env, exports);
  DefineMemory(env, exports);
  DefineLibrary(env, exports);
  DefineOffThread(env, exports);
  DefineCollected(env, exports);
  DefineWaiter(env, exports);
  DefineCallbacks(env, exports);
  DefineDescriptors(env, exports);
  DefineOffers(env, exports);
  DefineHostCopy(env, exports);
  DefineDLPack(env, exports);
  DefineSignals(env, exports);
  DefineExit(env, exports);
  return exports;
}

}  // namespace
}  // namespace shoal

using shoal::Init;
NODE_API_MODULE(shoal_ffi, Init)
