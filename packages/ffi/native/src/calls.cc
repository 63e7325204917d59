#include "calls.h"

#include <cstring>
#include <utility>

#include "context.h"

namespace shoal {
namespace {

// Every integer or pointer argument is one 8-byte word on x86-64 System V, AArch64 and Win64, and a callee ignores the
// words it has no parameter for, so a few widths serve every signature.
template <typename R, size_t... I>
inline R CallWords(void* function, const uint64_t* words, std::index_sequence<I...>) {
  using Function = R (*)(decltype(static_cast<uint64_t>(I))...);
  return reinterpret_cast<Function>(function)(words[I]...);
}

template <typename R, int N>
inline R CallWidth(void* function, const uint64_t* words) {
  return CallWords<R>(function, words, std::make_index_sequence<N>{});
}

template <int N>
napi_value CallNow(napi_env env, BoundCall* call) {
  uint64_t* block = call->environment->block;
  napi_value value = nullptr;
  switch (call->result) {
    case Result::kInt32:
      napi_create_int32(env, CallWidth<int32_t, N>(call->function, block), &value);
      return value;
    case Result::kUint32:
      napi_create_uint32(env, CallWidth<uint32_t, N>(call->function, block), &value);
      return value;
    case Result::kVoid:
      CallWidth<void, N>(call->function, block);
      return nullptr;
    case Result::kWord: {
      const uint64_t word = CallWidth<uint64_t, N>(call->function, block);
      block[kResultSlot] = word;
      return nullptr;
    }
    case Result::kFloat:
      napi_create_double(env, CallWidth<float, N>(call->function, block), &value);
      return value;
    case Result::kDouble:
      napi_create_double(env, CallWidth<double, N>(call->function, block), &value);
      return value;
  }
  return nullptr;
}

napi_value Record(napi_env env, BoundCall* call) {
  const uint64_t context = std::exchange(call->environment->block[kContextSlot], 0);
  RecordedCall recorded{call->function, call->slots, call->result, context, {}};
  std::memcpy(recorded.arguments, call->environment->block, sizeof(uint64_t) * static_cast<size_t>(call->slots));
  call->environment->recording->calls.push_back(recorded);
  napi_value zero = nullptr;
  napi_create_int32(env, 0, &zero);
  return zero;
}

// The block named a context for this one call: it is current during the call, and the caller's is again afterwards.
template <int N>
__attribute__((noinline)) napi_value CallInContext(napi_env env, BoundCall* call) {
  ContextScope scope(std::exchange(call->environment->block[kContextSlot], 0));
  if (scope.status() == 0) return CallNow<N>(env, call);
  napi_value status = nullptr;
  napi_create_int32(env, scope.status(), &status);
  return status;
}

template <int N>
napi_value Trampoline(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  auto* call = static_cast<BoundCall*>(data);
  if (__builtin_expect(call->environment->recording != nullptr, 0)) return Record(env, call);
  if (call->environment->block[kContextSlot] != 0) return CallInContext<N>(env, call);
  return CallNow<N>(env, call);
}

template <int N>
int64_t InvokeWidth(const RecordedCall& call) {
  switch (call.result) {
    case Result::kInt32:
      return CallWidth<int32_t, N>(call.function, call.arguments);
    case Result::kUint32:
      return CallWidth<uint32_t, N>(call.function, call.arguments);
    default:
      CallWidth<void, N>(call.function, call.arguments);
      return 0;
  }
}

napi_callback TrampolineFor(int slots) {
  if (slots <= 6) return Trampoline<6>;
  if (slots <= 12) return Trampoline<12>;
  if (slots <= 16) return Trampoline<16>;
  return Trampoline<kSlots>;
}

// bind(address, slots, result, name) → function without parameters
Napi::Value Bind(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  bool lossless = false;
  const uint64_t address = info[0].As<Napi::BigInt>().Uint64Value(&lossless);
  const int slots = info[1].As<Napi::Number>().Int32Value();
  const int result = info[2].As<Napi::Number>().Int32Value();
  if (address == 0 || slots < 0 || slots >= kSlots || result < 0 || result > static_cast<int>(Result::kDouble)) {
    throw Napi::RangeError::New(env, "bind: no function, or a signature outside of the argument block");
  }
  Environment& environment = Environment::Of(env);
  environment.calls.push_back(std::make_unique<BoundCall>(
      BoundCall{reinterpret_cast<void*>(address), &environment, slots, static_cast<Result>(result)}));
  const std::string name = info[3].As<Napi::String>().Utf8Value();
  napi_value function = nullptr;
  if (napi_create_function(env, name.c_str(), name.size(), TrampolineFor(slots), environment.calls.back().get(), &function) != napi_ok) {
    throw Napi::Error::New(env, "bind: Node could not create the function");
  }
  return Napi::Value(env, function);
}

// putAddress(view, slot): the address of a view's first byte, straight into the block.
napi_value PutAddress(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2] = {nullptr, nullptr};
  void* data = nullptr;
  napi_get_cb_info(env, info, &count, arguments, nullptr, &data);
  auto* environment = static_cast<Environment*>(data);
  uint32_t slot = 0;
  napi_get_value_uint32(env, arguments[1], &slot);
  void* address = nullptr;
  size_t length = 0;
  if (slot >= kSlots) return nullptr;
  if (napi_get_typedarray_info(env, arguments[0], nullptr, &length, &address, nullptr, nullptr) != napi_ok &&
      napi_get_dataview_info(env, arguments[0], &length, &address, nullptr, nullptr) != napi_ok &&
      napi_get_arraybuffer_info(env, arguments[0], &address, &length) != napi_ok) {
    napi_throw_type_error(env, nullptr, "expected an ArrayBuffer, a typed array or a DataView");
    return nullptr;
  }
  environment->block[slot] = reinterpret_cast<uint64_t>(address);
  return nullptr;
}

int64_t InvokeNow(const RecordedCall& call) {
  if (call.slots <= 6) return InvokeWidth<6>(call);
  if (call.slots <= 12) return InvokeWidth<12>(call);
  if (call.slots <= 16) return InvokeWidth<16>(call);
  return InvokeWidth<kSlots>(call);
}

}  // namespace

int64_t Invoke(const RecordedCall& call) {
  if (call.context == 0) return InvokeNow(call);
  ContextScope scope(call.context);
  return scope.status() == 0 ? InvokeNow(call) : scope.status();
}

void DefineCalls(Napi::Env env, Napi::Object exports) {
  exports.Set("bind", Napi::Function::New(env, Bind, "bind"));
  napi_value function = nullptr;
  if (napi_create_function(env, "putAddress", NAPI_AUTO_LENGTH, PutAddress, &Environment::Of(env), &function) == napi_ok) {
    exports.Set("putAddress", Napi::Value(env, function));
  }
}

}  // namespace shoal
