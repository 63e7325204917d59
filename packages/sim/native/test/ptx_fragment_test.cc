// wmma, ldmatrix, stmatrix and movmatrix: moving matrix elements into registers and back.
#include "ptx_products.h"

using namespace matrices;

namespace {

struct Large {
  std::string load, multiply, store;  // type names, as in wmma
  int m, n, k;
  Element a, c, d;
  int registersA, registersB, registersC, registersD;
  bool isBits = false;
};

std::string wmmaKernel(const Large& each, size_t index, bool isLeftColumns, bool isRightColumns, bool isSumColumns,
                       bool isShared) {
  const std::string shape = ".m" + std::to_string(each.m) + "n" + std::to_string(each.n) + "k" + std::to_string(each.k);
  const std::string left = isLeftColumns ? ".col" : ".row", right = isRightColumns ? ".col" : ".row",
                    sum = isSumColumns ? ".col" : ".row";
  const std::string reg = each.a.bits == 64 ? ".b64" : ".b32", space = isShared ? ".shared" : ".global";
  std::string text =
      ".visible .entry k" + std::to_string(index) +
      "(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc)\n{\n.shared .align 128 .b8 box[4096];\n";
  text += ".reg " + reg + " %d<" + std::to_string(each.registersD) + ">, %a<" + std::to_string(each.registersA) +
          ">, %b<" + std::to_string(each.registersB) + ">, %c<" + std::to_string(each.registersC) + ">;\n";
  text += ".reg .b64 %at, %o, %s; .reg .b32 %x, %y, %w, %i; .reg .pred %p;\n";
  const std::string type = each.a.name;
  auto load = [&](const std::string& which, const std::string& layout, const std::string& element,
                  const std::string& registers, const std::string& stride) {
    text += "ld.param.u64 %at, [p" + which + "];\n";
    if (isShared) {
      // Every lane copies its part to shared memory.
      text +=
          "mov.u64 %s, box; mov.u32 %x, %tid.x; mul.wide.u32 %o, %x, 4; add.u64 %at, %at, %o; add.u64 %o, %s, %o; "
          "mov.u32 %i, 0;\nL" +
          which + std::to_string(index) + ":\n";
      text +=
          "ld.global.b32 %w, [%at]; st.shared.b32 [%o], %w; add.u64 %at, %at, 128; add.u64 %o, %o, 128; add.u32 %i, "
          "%i, 1; setp.lt.u32 %p, %i, 32; @%p bra L" +
          which + std::to_string(index) + ";\nbar.sync 0;\n";
      text += "mov.u64 %at, %s;\n";
    }
    text += "wmma.load." + which + ".sync.aligned" + layout + shape + space + "." + element + " " + registers +
            ", [%at], " + stride + ";\nbar.sync 0;\n";
  };
  const std::string strideA = std::to_string((isLeftColumns ? each.m : each.k) + (each.a.bits == 1 ? 128 : 32)),
                    strideB = std::to_string((isRightColumns ? each.k : each.n) + (each.a.bits == 1 ? 128 : 32));
  const std::string strideC = std::to_string((isSumColumns ? each.m : each.n) + 8);
  load("a", left, type, list("a", each.registersA), strideA);
  load("b", right, type, list("b", each.registersB), strideB);
  load("c", sum, each.c.name, list("c", each.registersC), strideC);
  text += "wmma.mma" + std::string(each.isBits ? ".xor.popc" : "") + ".sync.aligned" + left + right + shape +
          each.multiply + " " + list("d", each.registersD) + ", " + list("a", each.registersA) + ", " +
          list("b", each.registersB) + ", " + list("c", each.registersC) + ";\n";
  text += "ld.param.u64 %at, [pd];\nwmma.store.d.sync.aligned" + sum + shape + ".global." + each.d.name + " [%at], " +
          list("d", each.registersD) + ", " + strideC + ";\nret;\n}\n";
  return text;
}

}  // namespace

TEST(products_of_fragments_in_memory) {
  check::Primary primary;
  std::vector<Large> all;
  const Element f64{"f64", 64, 11, 52};
  struct Shape {
    int m, n, a, b;  // numbers of registers of A and B, with 16-bit elements
  };
  for (const Shape& shape : {Shape{16, 16, 4, 4}, Shape{8, 32, 2, 8}, Shape{32, 8, 8, 2}}) {
    for (const auto& [d, c] :
         std::vector<std::pair<Element, Element>>{{kF32, kF32}, {kF16, kF16}, {kF32, kF16}, {kF16, kF32}}) {
      all.push_back({"f16", std::string(".") + d.name + "." + c.name, "", shape.m, shape.n, 16, kF16, c, d, 8, 8,
                     c.bits / 4, d.bits / 4});
    }
    all.push_back({"bf16", ".f32.bf16.bf16.f32", "", shape.m, shape.n, 16, kBf16, kF32, kF32, shape.a, shape.b, 8, 8});
    for (const Element& type : {kS8, kU8}) {
      const std::string name = type.name;
      all.push_back({name, ".s32." + name + "." + name + ".s32", "", shape.m, shape.n, 16, type, kS32, kS32,
                     shape.a / 2, shape.b / 2, 8, 8});
    }
  }
  all.push_back({"tf32", ".f32.tf32.tf32.f32", "", 16, 16, 8, kTf32, kF32, kF32, 4, 4, 8, 8});
  all.push_back({"f64", ".f64.f64.f64.f64", "", 8, 8, 4, f64, f64, f64, 1, 1, 2, 2});
  all.push_back({"s4", ".s32.s4.s4.s32", "", 8, 8, 32, kS4, kS32, kS32, 1, 1, 2, 2});
  all.push_back({"u4", ".s32.u4.u4.s32.satfinite", "", 8, 8, 32, kU4, kS32, kS32, 1, 1, 2, 2});
  all.push_back({"b1", ".s32.b1.b1.s32", "", 8, 8, 128, kB1, kS32, kS32, 1, 1, 2, 2, true});
  struct Variant {
    size_t which;
    bool isLeftColumns, isRightColumns, isSumColumns, isShared;
  };
  std::vector<Variant> variants;
  std::string text = kHead;
  for (size_t which = 0; which < all.size(); ++which) {
    for (int bits = 0; bits < 16; ++bits) {
      const Variant made{which, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
      if (all[which].a.bits < 8 && (made.isLeftColumns || !made.isRightColumns)) continue;
      text += wmmaKernel(all[which], variants.size(), made.isLeftColumns, made.isRightColumns, made.isSumColumns,
                         made.isShared);
      variants.push_back(made);
    }
  }
  CUmodule module = cases::load(text);
  std::mt19937 random(5);
  CUdeviceptr memory[4];
  for (auto& each : memory) each = check::memory(8192);
  for (size_t index = 0; index < variants.size(); ++index) {
    const Variant& variant = variants[index];
    const Large& each = all[variant.which];
    std::vector<uint32_t> words[3];
    for (int at = 0; at < 3; ++at) {
      words[at].resize(2048);
      // Small integers, so that the order of additions does not matter.
      for (size_t word = 0; word < 2048; ++word) {
        const Element& type = at == 2 ? each.c : each.a;
        const int small = static_cast<int>(random() % 15) - 7;
        const float single = static_cast<float>(small);
        uint32_t bits = static_cast<uint32_t>(random());
        if (type.bits == 32 && type.exponentBits != 0) memcpy(&bits, &single, 4);
        if (type.bits == 64) bits = word % 2 == 0 ? 0 : static_cast<uint32_t>(cases::bitsF64(small) >> 32);
        if (type.bits == 16) {
          const uint64_t halves = halfOf(small) | halfOf(static_cast<int>(random() % 15) - 7) << 16;
          bits = type.exponentBits == 5 ? static_cast<uint32_t>(halves)
                                        : (static_cast<uint32_t>(cases::bitsF32(single)) >> 16) * 0x10001;
        }
        if (type.bits == 32 && type.exponentBits == 0) bits = static_cast<uint32_t>(small);
        words[at][word] = bits;
      }
      OK(cuMemcpyHtoD_v2(memory[at + 1], words[at].data(), 8192));
    }
    OK(cuMemsetD8_v2(memory[0], 0, 8192));
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module, ("k" + std::to_string(index)).c_str()));
    void* parameters[] = {&memory[0], &memory[1], &memory[2], &memory[3]};
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    OK(cuCtxSynchronize());
    std::vector<uint32_t> out(2048);
    OK(cuMemcpyDtoH_v2(out.data(), memory[0], 8192));
    auto element = [&](const std::vector<uint32_t>& from, const Element& type, int at) {
      if (type.bits == 64)
        return cases::toF64(from[static_cast<size_t>(2 * at)] |
                            static_cast<uint64_t>(from[static_cast<size_t>(2 * at + 1)]) << 32);
      return type.value(elementOf(from, 0, type.bits, at));
    };
    const int extra = each.a.bits == 1 ? 128 : 32;
    for (int row = 0; row < each.m; ++row) {
      for (int column = 0; column < each.n; ++column) {
        const int inSum = variant.isSumColumns ? column * (each.m + 8) + row : row * (each.n + 8) + column;
        double want = element(words[2], each.c, inSum);
        for (int i = 0; i < each.k; ++i) {
          const double x = element(words[0], each.a,
                                   variant.isLeftColumns ? i * (each.m + extra) + row : row * (each.k + extra) + i);
          const double y = element(
              words[1], each.a, variant.isRightColumns ? column * (each.k + extra) + i : i * (each.n + extra) + column);
          want += each.isBits ? static_cast<double>(x != y) : x * y;
        }
        const double got = element(out, each.d, inSum);
        if (got == want) continue;
        char line[200];
        snprintf(line, sizeof line, "%s m%dn%dk%d %s, variant %d%d%d%d, row %d, column %d: got %g, want %g",
                 each.load.c_str(), each.m, each.n, each.k, each.multiply.c_str(), variant.isLeftColumns,
                 variant.isRightColumns, variant.isSumColumns, variant.isShared, row, column, got, want);
        throw check::Failure(line);
      }
    }
  }
  for (auto each : memory) OK(cuMemFree_v2(each));
  OK(cuModuleUnload(module));
}

TEST(rows_to_lanes_and_back) {
  check::Primary primary;
  std::string text = kHead;
  // Loads matrices from shared memory with row addresses in a lane-chosen order, and stores them, transposed or not.
  for (const int count : {1, 2, 4}) {
    for (const bool isTransposed : {false, true}) {
      for (const bool isGeneric : {false, true}) {
        const std::string tail = std::string(".m8n8.x") + std::to_string(count) + (isTransposed ? ".trans" : "") +
                                 (isGeneric ? "" : ".shared") + ".b16";
        const std::string name = std::to_string(count) + (isTransposed ? "t" : "n") + (isGeneric ? "g" : "s");
        text += ".visible .entry move" + name +
                "(.param .u64 po, .param .u64 pi)\n{\n.shared .align 16 .b8 box[512], other[512];\n.reg .b64 %at, %o, "
                "%s, %t; .reg .b32 %x, %y, %w, %r<4>;\n";
        text +=
            "mov.u32 %x, %tid.x; mul.wide.u32 %o, %x, 16; ld.param.u64 %at, [pi]; add.u64 %at, %at, %o; mov.u64 %s, "
            "box; add.u64 %s, %s, %o;\n";
        text +=
            "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%at]; st.shared.v4.b32 [%s], {%r0, %r1, %r2, %r3}; bar.sync 0;\n";
        text +=
            "mul.lo.u32 %y, %x, 5; and.b32 %y, %y, 31; mul.wide.u32 %o, %y, 16; mov.u64 %s, box; add.u64 %s, %s, %o; "
            "mov.u64 %t, other; add.u64 %t, %t, %o;\n";
        if (isGeneric) text += "cvta.shared.u64 %s, %s; cvta.shared.u64 %t, %t;\n";
        text += "ldmatrix.sync.aligned" + tail + " " + list("r", count) + ", [%s];\nstmatrix.sync.aligned" + tail +
                " [%t], " + list("r", count) + ";\nbar.sync 0;\n";
        text +=
            "mul.wide.u32 %o, %x, 16; mov.u64 %s, other; add.u64 %s, %s, %o; ld.param.u64 %at, [po]; add.u64 %at, %at, "
            "%o;\n";
        for (int index = 0; index < count; ++index)
          text += "st.global.b32 [%at+" + std::to_string(4 * index) + "], %r" + std::to_string(index) + ";\n";
        text +=
            "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%s]; st.global.v4.b32 [%at+512], {%r0, %r1, %r2, %r3};\nret;\n}\n";
      }
    }
  }
  text +=
      ".visible .entry turn(.param .u64 po, .param .u64 pi)\n{\n.reg .b64 %at, %o; .reg .b32 %x, %r; mov.u32 %x, "
      "%tid.x; mul.wide.u32 %o, %x, 4; ld.param.u64 %at, [pi]; add.u64 %at, %at, %o;\n";
  text +=
      "ld.global.b32 %r, [%at]; movmatrix.sync.aligned.m8n8.trans.b16 %r, %r; ld.param.u64 %at, [po]; add.u64 %at, "
      "%at, %o; st.global.b32 [%at], %r;\nret;\n}\n";
  CUmodule module = cases::load(text);
  std::vector<uint16_t> in(256), out(512);
  for (size_t at = 0; at < in.size(); ++at) in[at] = static_cast<uint16_t>(at * 7919 + 13);
  CUdeviceptr from = check::memory(512), to = check::memory(1024);
  OK(cuMemcpyHtoD_v2(from, in.data(), 512));
  auto go = [&](const std::string& name) {
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module, name.c_str()));
    OK(cuMemsetD8_v2(to, 0, 1024));
    void* parameters[] = {&to, &from};
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(out.data(), to, 1024));
  };
  for (const size_t count : {1u, 2u, 4u}) {
    for (const bool isTransposed : {false, true}) {
      for (const bool isGeneric : {false, true}) {
        go("move" + std::to_string(count) + (isTransposed ? "t" : "n") + (isGeneric ? "g" : "s"));
        for (size_t lane = 0; lane < 32; ++lane) {
          for (size_t matrix = 0; matrix < count; ++matrix) {
            for (size_t part = 0; part < 2; ++part) {
              size_t row = lane / 4, column = 2 * (lane % 4) + part;
              if (isTransposed) std::swap(row, column);
              EQUAL(out[lane * 8 + matrix * 2 + part], in[(matrix * 8 + row) * 5 % 32 * 8 + column]);
            }
          }
        }
        // The stored elements are where they were loaded from.
        for (size_t row = 0; row < 8 * count; ++row) {
          for (size_t column = 0; column < 8; ++column)
            EQUAL(out[256 + row * 5 % 32 * 8 + column], in[row * 5 % 32 * 8 + column]);
        }
      }
    }
  }
  go("turn");
  for (size_t row = 0; row < 8; ++row) {
    for (size_t column = 0; column < 8; ++column) EQUAL(out[row * 8 + column], in[column * 8 + row]);
  }
  OK(cuMemFree_v2(from));
  OK(cuMemFree_v2(to));
  OK(cuModuleUnload(module));
}
