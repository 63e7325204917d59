#include "offers.h"

#include <map>
#include <mutex>
#include <string>

#include "environment.h"

namespace shoal {
namespace {

// One table for all threads of the process. Other processes cannot write to it, so an entry proves that its text comes
// from this process.
struct Offers {
  std::mutex mutex;
  std::map<std::string, std::string> texts;
};

Offers& All() {
  static Offers* all = new Offers;  // never destroyed: threads may outlive static objects
  return *all;
}

// putOffer(key, text): another thread may take the text once, as long as this thread lives.
void PutOffer(const Napi::CallbackInfo& info) {
  auto key = info[0].As<Napi::String>().Utf8Value();
  std::lock_guard<std::mutex> lock(All().mutex);
  All().texts[key] = info[1].As<Napi::String>().Utf8Value();
  Environment::Of(info.Env()).offers.insert(std::move(key));
}

// takeOffer(key): removes the text from the table and returns it; undefined if the key has no text.
Napi::Value TakeOffer(const Napi::CallbackInfo& info) {
  std::string text;
  {
    std::lock_guard<std::mutex> lock(All().mutex);
    auto found = All().texts.find(info[0].As<Napi::String>().Utf8Value());
    if (found == All().texts.end()) return info.Env().Undefined();
    text = std::move(found->second);
    All().texts.erase(found);
  }
  return Napi::String::New(info.Env(), text);
}

// dropOffer(key): for the thread that put the offer; idempotent.
void DropOffer(const Napi::CallbackInfo& info) {
  auto key = info[0].As<Napi::String>().Utf8Value();
  std::lock_guard<std::mutex> lock(All().mutex);
  All().texts.erase(key);
  Environment::Of(info.Env()).offers.erase(key);
}

}  // namespace

void DefineOffers(Napi::Env env, Napi::Object exports) {
  exports.Set("putOffer", Napi::Function::New(env, PutOffer, "putOffer"));
  exports.Set("takeOffer", Napi::Function::New(env, TakeOffer, "takeOffer"));
  exports.Set("dropOffer", Napi::Function::New(env, DropOffer, "dropOffer"));
}

void WithdrawOffers(Environment& environment) {
  std::lock_guard<std::mutex> lock(All().mutex);
  for (const std::string& key : environment.offers) All().texts.erase(key);
}

}  // namespace shoal
