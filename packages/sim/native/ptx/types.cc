#include "types.h"

#include <unordered_map>

namespace shoal::ptx {

Type typeNamed(std::string_view word) {
  static const std::unordered_map<std::string_view, Type> types = {
      {".pred", Type::pred},
      {".u8", Type::u8},
      {".u16", Type::u16},
      {".u32", Type::u32},
      {".u64", Type::u64},
      {".s8", Type::s8},
      {".s16", Type::s16},
      {".s32", Type::s32},
      {".s64", Type::s64},
      {".b8", Type::b8},
      {".b16", Type::b16},
      {".b32", Type::b32},
      {".b64", Type::b64},
      {".b128", Type::b128},
      {".f16", Type::f16},
      {".f16x2", Type::f16x2},
      {".bf16", Type::bf16},
      {".bf16x2", Type::bf16x2},
      {".tf32", Type::tf32},
      {".f32", Type::f32},
      {".f64", Type::f64},
      {".u16x2", Type::u16x2},
      {".s16x2", Type::s16x2},
      {".f32x2", Type::f32x2},
      {".e4m3x2", Type::e4m3x2},
      {".e5m2x2", Type::e5m2x2},
      {".e4m3", Type::e4m3},
      {".e5m2", Type::e5m2},
      {".s4", Type::s4},
      {".u4", Type::u4},
      {".b1", Type::b1},
      {".e2m1x2", Type::e2m1x2},
      {".e2m3x2", Type::e2m3x2},
      {".e3m2x2", Type::e3m2x2},
      {".ue8m0x2", Type::ue8m0x2},
      {".texref", Type::texref},
      {".samplerref", Type::samplerref},
      {".surfref", Type::surfref},
  };
  auto found = types.find(word);
  return found == types.end() ? Type::none : found->second;
}

}  // namespace shoal::ptx
