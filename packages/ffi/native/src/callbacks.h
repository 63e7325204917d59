// C callbacks that any thread may call; they reach JavaScript later, on its own thread.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>

#include "mailbox.h"

namespace shoal {

// Calls a registered callback, from any thread; nothing happens when it has been forgotten.
void DeliverCallback(uint64_t id, int status);

void DefineCallbacks(Napi::Env env, Napi::Object exports);

// Forgets every callback of an environment that ends; C may still call them, to no effect.
void ForgetCallbacks(const std::shared_ptr<Mailbox>& mailbox);

}  // namespace shoal
