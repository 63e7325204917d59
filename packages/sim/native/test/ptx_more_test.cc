// Rarely used instruction forms: predicates of lop3, vector atomics, ranks of addresses; and the choice of the
// lane-loop build.
#include <algorithm>
#include <fstream>

#include "../ptx/processor.h"
#include "ptx_floats.h"

using namespace cases;

TEST(words_of_parts_and_predicates) {
  std::vector<Case> all;
  for (const bool isAnd : {false, true}) {
    const std::string op = isAnd ? "lop3.and.b32" : "lop3.or.b32";
    auto value = [](uint64_t a, uint64_t b, uint64_t c) { return ((a & b) | (~a & c)) & 0xffffffff; };  // table 0xca
    all.push_back({"setp.gt.u32 %p, %b, %c; " + op +
                       " %d|%q, %a, %b, %c, 0xca, %p; selp.u32 %x, 0x5a5a5a5a, 0, %q; xor.b32 %d, %d, %x;",
                   "b32",
                   "b32",
                   "b32",
                   "b32",
                   [=](uint64_t a, uint64_t b, uint64_t c) {
                     const bool p = b > c, is = value(a, b, c) != 0;
                     return value(a, b, c) ^ ((isAnd ? is && p : is || p) ? 0x5a5a5a5a : 0);
                   },
                   {}});
    all.push_back(
        {"setp.gt.u32 %p, %b, %c; mov.b32 %d, 7; " + op + " _|%p, %a, %b, %c, 0xca, !%p; @%p add.u32 %d, %d, 1;",
         "b32",
         "b32",
         "b32",
         "b32",
         [=](uint64_t a, uint64_t b, uint64_t c) {
           const bool p = !(b > c), is = value(a, b, c) != 0;
           return uint64_t{7} + ((isAnd ? is && p : is || p) ? 1 : 0);
         },
         {}});
  }
  all.push_back({"{ .reg .b8 %w<4>; mov.b32 {%w0, %w1, %w2, %w3}, %a; mov.b32 %d, {%w3, %w0, %w2, %w1}; }",
                 "b32",
                 "b32",
                 "b32",
                 "b32",
                 [](uint64_t a, uint64_t, uint64_t) {
                   return (a >> 24) | (a & 255) << 8 | (a & 0xff0000) | (a >> 8 & 255) << 24;
                 },
                 {}});
  all.push_back({"{ .reg .b8 %w<2>; mov.b16 {%w0, %w1}, %a; mov.b16 %d, {%w1, %w0}; }",
                 "b16",
                 "b16",
                 "b32",
                 "b32",
                 [](uint64_t a, uint64_t, uint64_t) { return (a >> 8 & 255) | (a & 255) << 8; },
                 {}});
  all.push_back(
      {"{ .reg .v4 .u16 %v; .reg .v2 .b32 %w; mov.b64 %v, %a; mov.b64 {%w.x, %w.y}, %a; cvt.u32.u16 %x, %v.z; add.u32 "
       "%d, %w.y, %x; cvt.u32.u16 %x, %v.g; add.u32 %d, %d, %x; }",
       "b32",
       "b64",
       "b32",
       "b32",
       [](uint64_t a, uint64_t, uint64_t) { return (a >> 32) + (a >> 32 & 0xffff) + (a >> 16 & 0xffff); },
       {}});
  all.push_back({"createpolicy.fractional.L2::evict_last.b64 %low, 0.5; add.u64 %d, %a, 1;",
                 "b64",
                 "b64",
                 "b64",
                 "b64",
                 [](uint64_t a, uint64_t, uint64_t) { return a + 1; },
                 {}});
  run(all);
}

TEST(extremes_of_a_warp) {
  check::softwareOnly("redux of f32 is for sm_100a");
  check::Primary primary;
  const std::string forms[] = {"min", "max", "min.abs", "max.abs", "min.NaN", "max.abs.NaN"};
  std::string text = ".version 8.6\n.target sm_100a\n.address_size 64\n";
  for (size_t index = 0; index < 6; ++index) {
    text += ".visible .entry k" + std::to_string(index) +
            "(.param .u64 po, .param .u64 pi)\n{\n.reg .b64 %t, %o; .reg .b32 %x, %m; .reg .f32 %f; .reg .pred "
            "%p;\nmov.u32 %x, %ctaid.x; mad.lo.u32 %x, %x, 32, 0; mov.u32 %m, %tid.x; add.u32 %x, %x, %m; mul.wide.u32 "
            "%o, %x, 4;\n";
    text +=
        "ld.param.u64 %t, [pi]; add.u64 %t, %t, %o; ld.global.f32 %f, [%t]; setp.lt.u32 %p, %m, 11; selp.b32 %m, "
        "0x7ff, 0xfffff800, %p;\n";
    text += "redux.sync." + forms[index] +
            ".f32 %f, %f, %m;\nld.param.u64 %t, [po]; add.u64 %t, %t, %o; st.global.f32 [%t], %f;\nret;\n}\n";
  }
  CUmodule module = cases::load(text);
  const auto operands = cases::operands(9);
  std::vector<uint32_t> in(kCount), out(kCount);
  for (size_t at = 0; at < in.size(); ++at) in[at] = static_cast<uint32_t>(operands[at]);
  CUdeviceptr from = check::memory(kCount * 4), to = check::memory(kCount * 4);
  OK(cuMemcpyHtoD_v2(from, in.data(), kCount * 4));
  for (size_t index = 0; index < 6; ++index) {
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module, ("k" + std::to_string(index)).c_str()));
    void* parameters[] = {&to, &from};
    OK(cuLaunchKernel(function, kCount / 32, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(out.data(), to, kCount * 4));
    const bool isMaximum = forms[index].substr(0, 3) == "max",
               isAbsolute = forms[index].find("abs") != std::string::npos,
               isNanPassed = forms[index].find("NaN") != std::string::npos;
    for (size_t start = 0; start < kCount; start += 32) {
      for (const auto& [first, last] : {std::pair<size_t, size_t>{0, 11}, {11, 32}}) {
        std::vector<uint32_t> numbers;
        bool hasNan = false;
        for (size_t lane = first; lane < last; ++lane) {
          const uint32_t bits = isAbsolute ? in[start + lane] & 0x7fffffff : in[start + lane];
          if (std::isnan(toF32(bits))) hasNan = true;
          else numbers.push_back(bits);
        }
        auto isLess = [](uint32_t a, uint32_t b) {
          return toF32(a) < toF32(b) || (toF32(a) == toF32(b) && a >> 31 > b >> 31);
        };
        uint32_t want = 0x7fffffff;
        if (!numbers.empty() && !(hasNan && isNanPassed))
          want = isMaximum ? *std::max_element(numbers.begin(), numbers.end(), isLess)
                           : *std::min_element(numbers.begin(), numbers.end(), isLess);
        for (size_t lane = first; lane < last; ++lane) {
          if (out[start + lane] != want)
            throw check::Failure(forms[index] + ": another value, at " + std::to_string(start + lane));
        }
      }
    }
  }
  OK(cuMemFree_v2(from));
  OK(cuMemFree_v2(to));
  OK(cuModuleUnload(module));
}

TEST(atomics_of_vectors_and_of_128_bits) {
  check::Primary primary;
  const std::string text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry sums(.param .u64 p)
{
.reg .b64 %t; .reg .f32 %f<8>; .reg .b16 %h<8>; .reg .b32 %r<8>;
ld.param.u64 %t, [p];
mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;
red.global.add.v4.f32 [%t], {%f0, %f1, %f2, %f3};
atom.global.v2.f32.add {%f1, %f0}, [%t+16], {%f0, %f1};
mov.b16 %h0, 0x3c00; mov.b16 %h1, 0x4000; mov.b16 %h2, 0x4200; mov.b16 %h3, 0xbc00;
red.global.v8.f16.add.noftz [%t+32], {%h0, %h1, %h2, %h3, %h0, %h1, %h2, %h3};
atom.global.v4.bf16.max.noftz {%h4, %h5, %h6, %h7}, [%t+48], {%h0, %h1, %h2, %h3};
mov.b32 %r0, 0x3c004000; mov.b32 %r1, 0xbc00c000;
red.global.v2.f16x2.min.noftz [%t+64], {%r0, %r1};
ret;
}
.visible .entry wide(.param .u64 p, .param .align 16 .b8 add[16])
{
.shared .align 16 .b8 box[16];
.reg .b64 %t, %u, %a, %b, %low, %high; .reg .b128 %q<4>; .reg .b32 %x; .reg .pred %p, %z;
ld.param.u64 %t, [p]; ld.param.v2.u64 {%a, %b}, [add];
AGAIN:
ld.relaxed.gpu.global.b128 %q0, [%t];
mov.b128 {%low, %high}, %q0;
add.u64 %low, %low, %a; add.u64 %high, %high, %b;
mov.b128 %q1, {%low, %high};
atom.relaxed.gpu.global.cas.b128 %q2, [%t], %q0, %q1;
mov.b128 {%low, %high}, %q2;
mov.b128 {%u, %a}, %q0;
setp.eq.u64 %p, %low, %u;
ld.param.v2.u64 {%a, %b}, [add];
@!%p bra AGAIN;
mov.u32 %x, %tid.x; setp.eq.u32 %z, %x, 0;
@!%z ret;
mov.b128 %q3, {%a, %b};
atom.shared.exch.b128 %q2, [box], %q3;
atom.shared.exch.b128 %q1, [box], %q2;
st.global.b128 [%t+16], %q1;
ret;
}
)";
  CUmodule module = cases::load(text);
  CUdeviceptr memory = check::memory(256);
  OK(cuMemsetD8_v2(memory, 0, 256));
  CUfunction function = nullptr;
  OK(cuModuleGetFunction(&function, module, "sums"));
  void* parameters[] = {&memory};
  OK(cuLaunchKernel(function, 3, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  OK(cuCtxSynchronize());
  std::vector<uint32_t> out(64);
  OK(cuMemcpyDtoH_v2(out.data(), memory, 256));
  for (int at = 0; at < 4; ++at) EQUAL(toF32(out[static_cast<size_t>(at)]), 192.0f * static_cast<float>(at + 1));
  EQUAL(toF32(out[4]), 192.0f);
  EQUAL(toF32(out[5]), 384.0f);
  for (size_t at = 0; at < 8; ++at) {
    const double want[] = {192, 384, 576, -192};
    EQUAL(kHalf.value(out[8 + at / 2] >> at % 2 * 16 & 0xffff), want[at % 4]);
  }
  EQUAL(out[12], 0x40003c00u);
  EQUAL(out[13], 0x00004200u);
  EQUAL(out[16], 0x00000000u);
  EQUAL(out[17], 0xbc00c000u);
  OK(cuMemsetD8_v2(memory, 0, 256));
  OK(cuModuleGetFunction(&function, module, "wide"));
  uint64_t add[2] = {3, uint64_t{1} << 40};
  void* two[] = {&memory, add};
  OK(cuLaunchKernel(function, 20, 1, 1, 96, 1, 1, 0, nullptr, two, nullptr));
  OK(cuCtxSynchronize());
  OK(cuMemcpyDtoH_v2(out.data(), memory, 256));
  EQUAL(out[0] | static_cast<uint64_t>(out[1]) << 32, uint64_t{3 * 1920});
  EQUAL(out[2] | static_cast<uint64_t>(out[3]) << 32, uint64_t{1920} << 40);
  EQUAL(out[4] | static_cast<uint64_t>(out[5]) << 32, uint64_t{3});
  EQUAL(out[6] | static_cast<uint64_t>(out[7]) << 32, uint64_t{1} << 40);
  OK(cuMemFree_v2(memory));
  OK(cuModuleUnload(module));
}

TEST(ranks_of_addresses) {
  check::Primary primary;
  CUmodule module = cases::load(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) .reqnctapercluster 4, 1, 1
{
.shared .align 4 .b8 box[4];
.reg .b64 %t, %o, %g; .reg .b32 %x, %c, %a, %r<4>;
mov.u32 %c, %cluster_ctarank; mov.u32 %a, box; mov.u64 %g, box; cvta.shared.u64 %g, %g;
getctarank.shared::cluster.u32 %r0, %a;
add.u32 %x, %c, 1; and.b32 %x, %x, 3; mapa.shared::cluster.u32 %a, %a, %x;
getctarank.shared::cluster.u32 %r1, %a;
getctarank.u64 %r2, %g;
mapa.u64 %g, %g, 2;
getctarank.u64 %r3, %g;
ld.param.u64 %t, [p]; mov.u32 %x, %ctaid.x; mul.wide.u32 %o, %x, 16; add.u64 %t, %t, %o;
st.global.v4.u32 [%t], {%r0, %r1, %r2, %r3};
ret;
}
)");
  CUdeviceptr memory = check::memory(128);
  CUfunction function = nullptr;
  OK(cuModuleGetFunction(&function, module, "k"));
  void* parameters[] = {&memory};
  OK(cuLaunchKernel(function, 8, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  OK(cuCtxSynchronize());
  uint32_t out[32];
  OK(cuMemcpyDtoH_v2(out, memory, 128));
  for (uint32_t block = 0; block < 8; ++block) {
    EQUAL(out[block * 4], block % 4);
    EQUAL(out[block * 4 + 1], (block + 1) % 4);
    EQUAL(out[block * 4 + 2], block % 4);
    EQUAL(out[block * 4 + 3], 2u);
  }
  OK(cuMemFree_v2(memory));
  OK(cuModuleUnload(module));
}

TEST(instructions_have_as_many_operands_as_they_take) {
  check::Primary primary;
  const auto status = [](const std::string& instruction) {
    return cases::tryLoad(
               ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %a<6>; .reg .pred "
               "%p<3>;\n" +
               instruction + ";\nret;\n}\n")
        .status;
  };
  for (const char* all : {"and.b32 %a0, %a1, %a2",
                          "not.b32 %a0, %a1",
                          "xor.pred %p0, %p1, %p2",
                          "cnot.b32 %a0, %a1",
                          "add.u32 %a0, %a1, %a2",
                          "mul.lo.u32 %a0, %a1, %a2",
                          "mad.lo.u32 %a0, %a1, %a2, %a3",
                          "neg.s32 %a0, %a1",
                          "abs.s32 %a0, %a1",
                          "min.u32 %a0, %a1, %a2",
                          "shl.b32 %a0, %a1, %a2",
                          "popc.b32 %a0, %a1",
                          "brev.b32 %a0, %a1",
                          "bfe.u32 %a0, %a1, %a2, %a3",
                          "bfi.b32 %a0, %a1, %a2, %a3, %a4",
                          "prmt.b32 %a0, %a1, %a2, %a3",
                          "lop3.b32 %a0, %a1, %a2, %a3, 7",
                          "shf.l.wrap.b32 %a0, %a1, %a2, %a3",
                          "selp.b32 %a0, %a1, %a2, %p0",
                          "mov.b32 %a0, %a1",
                          "cvt.u32.s32 %a0, %a1"}) {
    const std::string text = all;
    const std::string more = text + (text.find("pred") == std::string::npos ? ", %a5" : ", %p0"),
                      less = text.substr(0, text.rfind(','));
    if (status(text) != CUDA_SUCCESS) throw check::Failure(text + ": not loaded");
    if (status(more) != CUDA_ERROR_INVALID_PTX) throw check::Failure(more + ": loaded");
    if (status(less) != CUDA_ERROR_INVALID_PTX) throw check::Failure(less + ": loaded");
  }
}

#if defined(__x86_64__)
TEST(loops_are_chosen_by_what_the_system_tells_of_the_processor) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && line.rfind("flags", 0) != 0) {
  }
  if (line.empty()) throw check::Skip("/proc/cpuinfo has no flags");
  const auto hasAll = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) {
      return (line + ' ').find(std::string(" ") + name + ' ') != std::string::npos;
    });
  };
  const bool has3 = hasAll({"avx2", "fma", "f16c", "bmi1", "bmi2", "popcnt"});
  const bool has4 = has3 && hasAll({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"});
  EQUAL(shoal::ptx::levelOf(shoal::ptx::thisProcessor()), has4 ? 4 : has3 ? 3 : 0);
}

TEST(each_instruction_that_the_loops_use_is_asked_for) {
  using shoal::ptx::levelOf;
  using shoal::ptx::Processor;
  // The feature bits of the processor manual: those that level 3 requires, and the additional ones of level 4.
  const unsigned features[] = {12, 23, 28, 29}, extended[] = {3, 5, 8}, extended512[] = {16, 17, 28, 30, 31},
                 saved[] = {1, 2}, saved512[] = {5, 6, 7};
  Processor third{};
  for (const unsigned bit : features) third.features |= 1u << bit;
  for (const unsigned bit : extended) third.extended |= 1u << bit;
  for (const unsigned bit : saved) third.saved |= 1u << bit;
  Processor fourth = third;
  for (const unsigned bit : extended512) fourth.extended |= 1u << bit;
  for (const unsigned bit : saved512) fourth.saved |= 1u << bit;
  EQUAL(levelOf({}), 0);
  EQUAL(levelOf(third), 3);
  EQUAL(levelOf(fourth), 4);
  const auto without = [](unsigned Processor::* word, unsigned bit) {
    Processor all{~0u, ~0u, ~0u};
    all.*word &= ~(1u << bit);
    return levelOf(all);
  };
  for (const unsigned bit : features) EQUAL(without(&Processor::features, bit), 0);
  for (const unsigned bit : extended) EQUAL(without(&Processor::extended, bit), 0);
  for (const unsigned bit : saved) EQUAL(without(&Processor::saved, bit), 0);
  for (const unsigned bit : extended512) EQUAL(without(&Processor::extended, bit), 3);
  for (const unsigned bit : saved512) EQUAL(without(&Processor::saved, bit), 3);
}
#endif
