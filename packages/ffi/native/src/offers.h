// Texts that one thread leaves for another thread of this process, under a key that cannot be guessed.
#pragma once

#include <napi.h>

namespace shoal {

struct Environment;

void DefineOffers(Napi::Env env, Napi::Object exports);
// Removes the offers of a thread that ends.
void WithdrawOffers(Environment& environment);

}  // namespace shoal
