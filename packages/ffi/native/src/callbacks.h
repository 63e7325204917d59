// C callbacks that any thread may call; they reach JavaScript later, on its own thread.
#pragma once

#include <napi.h>

#include <memory>

#include "mailbox.h"

namespace shoal {

void DefineCallbacks(Napi::Env env, Napi::Object exports);

// Forgets every callback of an environment that ends; C may still call them, to no effect.
void ForgetCallbacks(const std::shared_ptr<Mailbox>& mailbox);

}  // namespace shoal
