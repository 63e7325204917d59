#include "library.h"

#include <dlfcn.h>
#ifdef __linux__
#include <link.h>
#endif

#include <cstdint>
#include <string>

namespace shoal {
namespace {

std::string LoaderError() {
  const char* message = dlerror();
  return message == nullptr ? "the loader gave no reason" : message;
}

std::string PathOf(void* handle) {
#ifdef __linux__
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr) return map->l_name;
#endif
  return "";
}

// open(name, onlyIfLoaded) → { handle, path } or the loader's error text
Napi::Value Open(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const std::string name = info[0].As<Napi::String>();
  int flags = RTLD_LAZY | RTLD_LOCAL;
  if (info[1].As<Napi::Boolean>()) flags |= RTLD_NOLOAD;
  void* handle = dlopen(name.c_str(), flags);
  if (handle == nullptr) return Napi::String::New(env, LoaderError());
  Napi::Object result = Napi::Object::New(env);
  result.Set("handle", Napi::BigInt::New(env, reinterpret_cast<uint64_t>(handle)));
  result.Set("path", Napi::String::New(env, PathOf(handle)));
  return result;
}

// symbol(handle, name) → the address, or 0n if the library does not have the symbol
Napi::Value Symbol(const Napi::CallbackInfo& info) {
  bool lossless = false;
  void* handle = reinterpret_cast<void*>(info[0].As<Napi::BigInt>().Uint64Value(&lossless));
  const std::string name = info[1].As<Napi::String>();
  return Napi::BigInt::New(info.Env(), reinterpret_cast<uint64_t>(dlsym(handle, name.c_str())));
}

}  // namespace

void DefineLibrary(Napi::Env env, Napi::Object exports) {
  exports.Set("open", Napi::Function::New(env, Open, "open"));
  exports.Set("symbol", Napi::Function::New(env, Symbol, "symbol"));
}

}  // namespace shoal
