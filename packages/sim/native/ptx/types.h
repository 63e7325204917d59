// PTX's types and state spaces.
#pragma once

#include <cstdint>
#include <string_view>

namespace shoal::ptx {

enum class Type : uint8_t {
  none,
  pred,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  b8,
  b16,
  b32,
  b64,
  b128,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64,
  u16x2,
  s16x2,
  f32x2,
  e4m3x2,
  e5m2x2,
  e4m3,
  e5m2,
  s4,
  u4,
  b1,
  e2m1x2,
  e2m3x2,
  e3m2x2,
  ue8m0x2,
  texref,
  samplerref,
  surfref,
};

enum class Space : uint8_t { generic, global, constant, shared, cluster, local, param, kernelParam };

// 0 for types without a size, such as predicates.
constexpr unsigned bytesOf(Type type) {
  switch (type) {
    case Type::u8:
    case Type::s8:
    case Type::b8:
    case Type::e4m3:
    case Type::e5m2:
    case Type::e2m1x2: return 1;
    case Type::u16:
    case Type::s16:
    case Type::b16:
    case Type::f16:
    case Type::bf16:
    case Type::e4m3x2:
    case Type::e5m2x2:
    case Type::e2m3x2:
    case Type::e3m2x2:
    case Type::ue8m0x2: return 2;
    case Type::u32:
    case Type::s32:
    case Type::b32:
    case Type::f32:
    case Type::tf32:
    case Type::f16x2:
    case Type::bf16x2:
    case Type::u16x2:
    case Type::s16x2: return 4;
    case Type::u64:
    case Type::s64:
    case Type::b64:
    case Type::f64:
    case Type::f32x2: return 8;
    case Type::texref:
    case Type::samplerref:
    case Type::surfref: return 8;
    case Type::b128: return 16;
    default: return 0;
  }
}

constexpr bool isSigned(Type type) {
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}
constexpr bool isUnsigned(Type type) { return type >= Type::u8 && type <= Type::u64; }
constexpr bool isInteger(Type type) { return type >= Type::u8 && type <= Type::s64; }
constexpr bool isBits(Type type) { return type >= Type::b8 && type <= Type::b128; }
constexpr bool isFloat(Type type) {
  return type == Type::f16 || type == Type::bf16 || type == Type::f32 || type == Type::f64;
}
constexpr bool isPacked(Type type) {
  return type == Type::f16x2 || type == Type::bf16x2 || type == Type::u16x2 || type == Type::s16x2;
}

// Finds a type by its word, such as ".u32". Returns Type::none for other words.
Type typeNamed(std::string_view word);

// Windows of generic addresses. Host and device memory never has addresses in them.
constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
constexpr uint64_t kLocalWindow = uint64_t{2} << 56;
constexpr uint64_t kParamWindow = uint64_t{3} << 56;
constexpr uint64_t kCodeWindow = uint64_t{4} << 56;  // addresses of functions
constexpr uint64_t kWindowMask = ~uint64_t{0} << 56;
constexpr unsigned kRankShift = 24;  // the rank in the cluster plus one, in a shared address; 0: this block

}  // namespace shoal::ptx
