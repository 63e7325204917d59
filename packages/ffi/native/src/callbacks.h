// C callbacks that any thread may call. They reach JavaScript later, on the JavaScript thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>

#include "mailbox.h"

namespace shoal {

// Calls a registered callback, from any thread. Does nothing if the callback was forgotten.
void DeliverCallback(uint64_t id, int status);

void DefineCallbacks(Napi::Env env, Napi::Object exports);

// Forgets all callbacks of an environment that ends. C code may still call them, without effect.
void ForgetCallbacks(const std::shared_ptr<Mailbox>& mailbox);

}  // namespace shoal
