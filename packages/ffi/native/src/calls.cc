#include "calls.h"

#include <cstring>
#include <string>
#include <utility>

#include "context.h"

namespace shoal {
namespace {

// On x86-64 System V and AArch64, every integer or pointer argument is one 8-byte word. A callee ignores words that it
// has no parameter for, so a few widths serve every signature. Floating-point arguments are passed in separate
// registers, which are filled in order and independently of the words.
template <typename R, size_t... I>
inline R CallWords(void* function, const uint64_t* words, std::index_sequence<I...>) {
  using Function = R (*)(decltype(static_cast<uint64_t>(I))...);
  return reinterpret_cast<Function>(function)(words[I]...);
}

// A double only carries bits here: it is loaded into a register and never used for arithmetic.
template <typename R, size_t... I>
inline R CallWithFloats(void* function, const uint64_t* words, const uint64_t* floats, std::index_sequence<I...>) {
  static_assert(kFloats == 8);
  using Function =
      R (*)(double, double, double, double, double, double, double, double, decltype(static_cast<uint64_t>(I))...);
  double f[kFloats];
  std::memcpy(f, floats, sizeof f);
  return reinterpret_cast<Function>(function)(f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], words[I]...);
}

template <typename R, int N, bool F>
inline R CallWidth(void* function, const uint64_t* words, const uint64_t* floats) {
  if constexpr (F) return CallWithFloats<R>(function, words, floats, std::make_index_sequence<N>{});
  return CallWords<R>(function, words, std::make_index_sequence<N>{});
}

// Structures of up to 16 bytes are returned in two registers. Larger structures are written to an address that the
// caller passes in a hidden first argument or in a separate register. The compiler knows which, and only needs a type
// that is large enough.
struct Pair {
  uint64_t words[2];
};
struct Structure {
  uint64_t words[kStructureWords];
};

// Calls the function and stores the bits of its result. Anything but a structure goes to the low bits of result[0].
template <int N, bool F>
void CallInto(void* function, const Signature& signature, const uint64_t* words, const uint64_t* floats,
              uint64_t* result) {
  switch (signature.result) {
    case Result::kVoid: CallWidth<void, N, F>(function, words, floats); return;
    case Result::kFloat:
    case Result::kDouble: {
      const double value = CallWidth<double, N, F>(function, words, floats);
      std::memcpy(result, &value, sizeof value);
      return;
    }
    case Result::kStructure: {
      if (signature.result_bytes <= static_cast<int>(sizeof(Pair))) {
        const Pair pair = CallWidth<Pair, N, F>(function, words, floats);
        std::memcpy(result, &pair, static_cast<size_t>(signature.result_bytes));
      } else {
        const Structure structure = CallWidth<Structure, N, F>(function, words, floats);
        std::memcpy(result, &structure, static_cast<size_t>(signature.result_bytes));
      }
      return;
    }
    default: *result = CallWidth<uint64_t, N, F>(function, words, floats);
  }
}

// C leaves the upper bits of a small result undefined.
napi_value NumberOf(napi_env env, Result kind, uint64_t word) {
  napi_value value = nullptr;
  switch (kind) {
    case Result::kInt32: napi_create_int32(env, static_cast<int32_t>(word), &value); break;
    case Result::kUint32: napi_create_uint32(env, static_cast<uint32_t>(word), &value); break;
    case Result::kInt8: napi_create_int32(env, static_cast<int8_t>(word), &value); break;
    case Result::kUint8: napi_create_uint32(env, static_cast<uint8_t>(word), &value); break;
    case Result::kInt16: napi_create_int32(env, static_cast<int16_t>(word), &value); break;
    case Result::kUint16: napi_create_uint32(env, static_cast<uint16_t>(word), &value); break;
    case Result::kBool: napi_create_uint32(env, static_cast<uint8_t>(word) != 0 ? 1 : 0, &value); break;
    case Result::kFloat: {
      float number;
      std::memcpy(&number, &word, sizeof number);
      napi_create_double(env, number, &value);
      break;
    }
    case Result::kDouble: {
      double number;
      std::memcpy(&number, &word, sizeof number);
      napi_create_double(env, number, &value);
      break;
    }
    default: break;
  }
  return value;
}

bool IsStatus(Result kind) { return kind == Result::kInt32 || kind == Result::kUint32; }

template <int N, bool F>
__attribute__((noinline)) napi_value CallForOtherResult(napi_env env, BoundCall* call) {
  uint64_t* block = call->environment->block;
  const Result kind = call->signature.result;
  uint64_t* result = block + (kind == Result::kStructure ? kStructureSlot : kResultSlot);
  CallInto<N, F>(call->function, call->signature, block, block + kFloatSlot, result);
  if (kind == Result::kFloat) *result &= 0xffffffff;
  // JavaScript reads floating-point results from the block, which costs less than creating a number here.
  if (kind == Result::kFloat || kind == Result::kDouble) return nullptr;
  return NumberOf(env, kind, *result);
}

// Handles the most common result types. Other types go to a separate function, so that they do not slow these down.
template <int N, bool F>
inline napi_value CallNow(napi_env env, BoundCall* call) {
  const uint64_t* block = call->environment->block;
  napi_value value = nullptr;
  switch (call->signature.result) {
    case Result::kInt32:
      napi_create_int32(env, CallWidth<int32_t, N, F>(call->function, block, block + kFloatSlot), &value);
      return value;
    case Result::kUint32:
      napi_create_uint32(env, CallWidth<uint32_t, N, F>(call->function, block, block + kFloatSlot), &value);
      return value;
    case Result::kVoid: CallWidth<void, N, F>(call->function, block, block + kFloatSlot); return nullptr;
    default: return CallForOtherResult<N, F>(env, call);
  }
}

napi_value Record(napi_env env, BoundCall* call) {
  uint64_t* block = call->environment->block;
  const Signature& signature = call->signature;
  RecordedCall recorded{call->function, signature, std::exchange(block[kContextSlot], 0), {}, {}};
  std::memcpy(recorded.arguments, block, sizeof(uint64_t) * static_cast<size_t>(signature.slots));
  std::memcpy(recorded.floats, block + kFloatSlot, sizeof(uint64_t) * static_cast<size_t>(signature.floats));
  call->environment->recording->calls.push_back(recorded);
  // The call has not run yet. Clear the slots so that the result of an earlier call cannot pass for its result.
  block[kResultSlot] = 0;
  std::memset(block + kStructureSlot, 0, sizeof(uint64_t) * kStructureWords);
  napi_value zero = nullptr;
  napi_create_int32(env, 0, &zero);
  return zero;
}

// The block names a context for this call, and another context is current. Switches to the named context for the call
// and restores the caller's context afterwards.
template <int N, bool F>
__attribute__((noinline)) napi_value CallInContext(napi_env env, BoundCall* call, uint64_t context,
                                                   CurrentContext current) {
  ContextScope scope(context, current);
  if (scope.status() == 0) return CallNow<N, F>(env, call);
  if (!IsStatus(call->signature.result)) {
    // The function does not return a status, so the failure has to be an exception.
    const std::string message = "the context could not be made current: status " + std::to_string(scope.status());
    napi_throw_error(env, "SHOAL_CONTEXT", message.c_str());
    return nullptr;
  }
  napi_value status = nullptr;
  napi_create_int32(env, scope.status(), &status);
  return status;
}

template <int N, bool F>
napi_value Trampoline(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  auto* call = static_cast<BoundCall*>(data);
  if (__builtin_expect(call->environment->recording != nullptr, 0)) return Record(env, call);
  const uint64_t context = std::exchange(call->environment->block[kContextSlot], 0);
  if (context != 0) {
    const CurrentContext current = AskCurrentContext();
    if (current.status != 0 || current.context != context) return CallInContext<N, F>(env, call, context, current);
  }
  return CallNow<N, F>(env, call);
}

napi_callback TrampolineFor(const Signature& signature) {
  const int slots = signature.slots;
  if (signature.floats > 0) {
    if (slots <= 6) return Trampoline<6, true>;
    if (slots <= 12) return Trampoline<12, true>;
    return Trampoline<kSlots, true>;
  }
  if (slots <= 6) return Trampoline<6, false>;
  if (slots <= 12) return Trampoline<12, false>;
  if (slots <= 16) return Trampoline<16, false>;
  return Trampoline<kSlots, false>;
}

void InvokeNow(const RecordedCall& call, uint64_t* result) {
  const int slots = call.signature.slots;
  if (slots <= 6) return CallInto<6, true>(call.function, call.signature, call.arguments, call.floats, result);
  if (slots <= 12) return CallInto<12, true>(call.function, call.signature, call.arguments, call.floats, result);
  CallInto<kSlots, true>(call.function, call.signature, call.arguments, call.floats, result);
}

// bind(address, slots, floats, result, resultBytes, name) → function without parameters
Napi::Value Bind(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  bool lossless = false;
  const uint64_t address = info[0].As<Napi::BigInt>().Uint64Value(&lossless);
  const int slots = info[1].As<Napi::Number>().Int32Value();
  const int floats = info[2].As<Napi::Number>().Int32Value();
  const int result = info[3].As<Napi::Number>().Int32Value();
  const int result_bytes = info[4].As<Napi::Number>().Int32Value();
  const bool is_known = result >= 0 && result <= static_cast<int>(Result::kStructure);
  const bool returns_structure = result == static_cast<int>(Result::kStructure);
  const int room = returns_structure ? kStructureWords * static_cast<int>(sizeof(uint64_t)) : 0;
  if (address == 0 || slots < 0 || slots >= kSlots || floats < 0 || floats > kFloats || !is_known ||
      result_bytes < (returns_structure ? 1 : 0) || result_bytes > room) {
    throw Napi::RangeError::New(env, "bind: no function, or a signature outside of the argument block");
  }
  Environment& environment = Environment::Of(env);
  const Signature signature{slots, floats, static_cast<Result>(result), result_bytes};
  environment.calls.push_back(
      std::make_unique<BoundCall>(BoundCall{reinterpret_cast<void*>(address), &environment, signature}));
  const std::string name = info[5].As<Napi::String>().Utf8Value();
  napi_value function = nullptr;
  if (napi_create_function(env, name.c_str(), name.size(), TrampolineFor(signature), environment.calls.back().get(),
                           &function) != napi_ok) {
    throw Napi::Error::New(env, "bind: Node could not create the function");
  }
  return Napi::Value(env, function);
}

// putAddress(view, slot): stores the address of the view's first byte directly in the block.
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

}  // namespace

int64_t CallResult::Status() const {
  if (kind == Result::kInt32) return static_cast<int32_t>(word);
  return kind == Result::kUint32 ? static_cast<uint32_t>(word) : 0;
}

Napi::Value CallResult::ToValue(Napi::Env env) const {
  switch (kind) {
    case Result::kVoid: return env.Undefined();
    case Result::kWord: return Napi::BigInt::New(env, word);
    case Result::kSignedWord: return Napi::BigInt::New(env, static_cast<int64_t>(word));
    case Result::kStructure: {
      auto bytes = Napi::Uint8Array::New(env, static_cast<size_t>(structure_bytes));
      std::memcpy(bytes.Data(), structure.data(), static_cast<size_t>(structure_bytes));
      return bytes;
    }
    case Result::kBool: return Napi::Boolean::New(env, static_cast<uint8_t>(word) != 0);
    default: return Napi::Value(env, NumberOf(env, kind, word));
  }
}

int Invoke(const RecordedCall& call, CallResult* result) {
  result->kind = call.signature.result;
  uint64_t* target = &result->word;
  if (result->kind == Result::kStructure) {
    result->structure_bytes = call.signature.result_bytes;
    result->structure.resize((static_cast<size_t>(call.signature.result_bytes) + 7) / 8);
    target = result->structure.data();
  }
  if (call.context == 0) {
    InvokeNow(call, target);
    return 0;
  }
  ContextScope scope(call.context);
  if (scope.status() == 0) InvokeNow(call, target);
  else if (IsStatus(result->kind)) result->word = static_cast<uint64_t>(scope.status());
  return scope.status();
}

int64_t Make(const Recording& recording, int64_t ignored) {
  int64_t first = 0;
  for (const RecordedCall& call : recording.calls) {
    CallResult result;
    const int context_status = Invoke(call, &result);
    const int64_t status = context_status != 0 ? context_status : result.Status();
    if (first == 0 && status != ignored) first = status;
  }
  return first;
}

void DefineCalls(Napi::Env env, Napi::Object exports) {
  exports.Set("bind", Napi::Function::New(env, Bind, "bind"));
  napi_value function = nullptr;
  if (napi_create_function(env, "putAddress", NAPI_AUTO_LENGTH, PutAddress, &Environment::Of(env), &function) ==
      napi_ok) {
    exports.Set("putAddress", Napi::Value(env, function));
  }
}

}  // namespace shoal
