// What one thread leaves for another thread of this process under a key that nobody guesses.
#pragma once

#include <napi.h>

namespace shoal {

struct Environment;

void DefineOffers(Napi::Env env, Napi::Object exports);
// Forgets the offers of a thread that ends.
void WithdrawOffers(Environment& environment);

}  // namespace shoal
