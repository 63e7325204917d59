// One native thread that polls for the completion of GPU work and reports it to JavaScript.
#pragma once

#include <napi.h>

#include <memory>

#include "mailbox.h"

namespace shoal {

void DefineWaiter(Napi::Env env, Napi::Object exports);

// Drops every wait of an environment that ends.
void ForgetWaits(const std::shared_ptr<Mailbox>& mailbox);

}  // namespace shoal
