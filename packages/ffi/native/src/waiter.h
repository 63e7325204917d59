// One native thread that watches for the end of GPU work and tells JavaScript.
#pragma once

#include <napi.h>

#include <memory>

#include "mailbox.h"

namespace shoal {

void DefineWaiter(Napi::Env env, Napi::Object exports);

// Drops every wait of an environment that ends.
void ForgetWaits(const std::shared_ptr<Mailbox>& mailbox);

}  // namespace shoal
