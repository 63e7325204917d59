// Asynchronous copies and mbarrier, against references of their own.
#include <sys/wait.h>

#include <map>

#include "ptx_cases.h"

namespace {

const std::string kHead = ".version 8.6\n.target sm_90\n.address_size 64\n";

CUresult launch(CUmodule module, const char* name, unsigned blocks, unsigned threads, std::vector<void*> parameters) {
  CUfunction function = nullptr;
  OK(cuModuleGetFunction(&function, module, name));
  OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters.data(), nullptr));
  return cuCtxSynchronize();
}

template <class T>
std::vector<T> read(CUdeviceptr from, size_t count) {
  std::vector<T> out(count);
  OK(cuMemcpyDtoH_v2(out.data(), from, count * sizeof(T)));
  return out;
}

}  // namespace

TEST(copies_of_every_size) {
  check::Primary primary;
  // Each thread copies `bytes`, of which the source has so many as the thread's number, or all, or none.
  struct Copy {
    std::string instruction;
    unsigned bytes;
    std::function<unsigned(unsigned thread)> given;
  };
  std::vector<Copy> all;
  for (const unsigned bytes : {4u, 8u, 16u}) {
    const std::string size = std::to_string(bytes);
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ";", bytes, [=](unsigned) { return bytes; }});
    all.push_back({"cp.async.ca.shared::cta.global.L2::128B [%s+0], [%g+0], " + size + ", " + size + ";", bytes,
                   [=](unsigned) { return bytes; }});
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ", %n;", bytes,
                   [=](unsigned thread) { return thread % (bytes + 1); }});
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ", 1;", bytes, [](unsigned) { return 1u; }});
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ", %p;", bytes,
                   [=](unsigned thread) { return thread % 3 == 0 ? 0 : bytes; }});
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ", !%p;", bytes,
                   [=](unsigned thread) { return thread % 3 != 0 ? 0 : bytes; }});
  }
  all.push_back({"cp.async.cg.shared.global [%s], [%g], 16;", 16, [](unsigned) { return 16u; }});
  all.push_back(
      {"cp.async.cg.shared.global.L2::256B [%s], [%g], 16, %n;", 16, [](unsigned thread) { return thread % 17; }});
  // The guard leaves what is there.
  all.push_back({"@%p cp.async.cg.shared.global [%s], [%g], 16;", 16,
                 [](unsigned thread) { return thread % 3 == 0 ? 16u : 99u; }});
  std::string text = kHead;
  for (size_t index = 0; index < all.size(); ++index) {
    const unsigned bytes = all[index].bytes;
    text += ".visible .entry k" + std::to_string(index) +
            "(.param .u64 po, .param .u64 pi)\n{\n.shared .align 16 .b8 box[1536];\n.reg .b64 %g, %o, %t; .reg .b32 "
            "%s, %x, %n, %r<4>; .reg .pred %p;\n";
    text +=
        "mov.u32 %x, %tid.x; mad.lo.u32 %s, %x, 16, 0; mul.wide.u32 %o, %x, 16; mov.u32 %n, box; add.u32 %s, %s, %n; "
        "rem.u32 %n, %x, 3; setp.eq.u32 %p, %n, 0; rem.u32 %n, %x, " +
        std::to_string(bytes + 1) + ";\n";
    text +=
        "ld.param.u64 %g, [pi]; add.u64 %g, %g, %o; st.shared.v4.b32 [%s], {0x11111111, 0x11111111, 0x11111111, "
        "0x11111111}; bar.sync 0;\n" +
        all[index].instruction + "\ncp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all; bar.sync 0;\n";
    text +=
        "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%s]; ld.param.u64 %t, [po]; add.u64 %t, %t, %o; st.global.v4.b32 "
        "[%t], {%r0, %r1, %r2, %r3};\nret;\n}\n";
  }
  CUmodule module = cases::load(text);
  std::vector<uint8_t> in(96 * 16);
  for (size_t at = 0; at < in.size(); ++at) in[at] = static_cast<uint8_t>(at * 31 + at / 256);
  CUdeviceptr from = check::memory(in.size()), to = check::memory(in.size());
  OK(cuMemcpyHtoD_v2(from, in.data(), in.size()));
  for (size_t index = 0; index < all.size(); ++index) {
    OK(launch(module, ("k" + std::to_string(index)).c_str(), 1, 96, {&to, &from}));
    const auto out = read<uint8_t>(to, in.size());
    for (unsigned thread = 0; thread < 96; ++thread) {
      const unsigned given = all[index].given(thread);
      for (unsigned at = 0; at < 16; ++at) {
        const uint8_t want = at >= all[index].bytes || given == 99 ? 0x11 : at < given ? in[thread * 16 + at] : 0;
        if (out[thread * 16 + at] != want)
          throw check::Failure(all[index].instruction + ": thread " + std::to_string(thread) + ", byte " +
                               std::to_string(at));
      }
    }
  }
  OK(cuMemFree_v2(from));
  OK(cuMemFree_v2(to));
  OK(cuModuleUnload(module));
}

namespace {

// What a barrier does, as the instruction set says it.
struct Model {
  int64_t pending = 0, expected = 0, bytes = 0;
  int phase = 0;
  void settle() {
    if (pending != 0 || bytes != 0) return;
    pending = expected;
    ++phase;
  }
};

}  // namespace

TEST(barriers_count_as_their_model) {
  check::Primary primary;
  std::mt19937 random(17);
  constexpr int kKernels = 60, kSteps = 120;
  std::string text = kHead;
  std::vector<std::vector<uint32_t>> wanted;
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    text += ".visible .entry k" + std::to_string(kernel) +
            "(.param .u64 po)\n{\n.shared .align 8 .b64 bar;\n.reg .b64 %t, %a, %st, %old; .reg .b32 %r; .reg .pred "
            "%p;\nld.param.u64 %t, [po]; mov.u64 %a, bar; mov.u64 %old, 0;\n";
    const bool isGeneric = kernel % 3 == 0;
    if (isGeneric) text += "cvta.shared.u64 %a, %a;\n";
    const std::string space = isGeneric ? "" : kernel % 3 == 1 ? ".shared" : ".shared::cta";
    std::vector<uint32_t> want;
    Model model;
    auto write = [&](const std::string& reg, uint32_t value) {
      text += "st.global.u32 [%t+" + std::to_string(4 * want.size()) + "], " + reg + ";\n";
      want.push_back(value);
    };
    auto number = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1; };
    auto isEnded = [&](const std::string& instruction, bool is) {
      text += instruction + " selp.u32 %r, 1, 0, %p;\n";
      write("%r", is ? 1 : 0);
    };
    const int64_t most = kernel % 5 == 0 ? 1048575 : 12;
    model.pending = model.expected = number(most);
    text += "mbarrier.init" + space + ".b64 [%a], " + std::to_string(model.expected) + ";\n";
    int tokenPhase = -1;
    for (int step = 0; step < kSteps && model.expected > 0; ++step) {
      switch (random() % 8) {
        case 0:
        case 1: {
          const int64_t count = number(model.pending);
          const bool isDrop = random() % 8 == 0 && model.expected > count;
          text += std::string(isDrop              ? "mbarrier.arrive_drop"
                              : random() % 2 == 0 ? "mbarrier.arrive.release.cta"
                                                  : "mbarrier.arrive") +
                  space + ".b64 %st, [%a], " + std::to_string(count) + ";\nmbarrier.pending_count.b64 %r, %st;\n";
          write("%r", static_cast<uint32_t>(model.pending));
          tokenPhase = model.phase;
          model.pending -= count;
          if (isDrop) model.expected -= count;
          break;
        }
        case 2: {
          // The last one would end the phase, which this must not.
          if (model.pending < 2) continue;
          const int64_t count = number(model.pending - 1);
          text += "mbarrier.arrive.noComplete" + space + ".b64 %st, [%a], " + std::to_string(count) + ";\n";
          tokenPhase = model.phase;
          model.pending -= count;
          break;
        }
        case 3: {
          const int64_t bytes = number(model.bytes > 500000 ? 1 : 4096);
          if (random() % 2 == 0) {
            text += "mbarrier.expect_tx.relaxed.cta" +
                    (space.empty()        ? std::string()
                     : space == ".shared" ? ".shared::cta"
                                          : space) +
                    ".b64 [%a], " + std::to_string(bytes) + ";\n";
            model.bytes += bytes;
          } else {
            text += "mbarrier.arrive.expect_tx" + space + ".b64 %st, [%a], " + std::to_string(bytes) + ";\n";
            tokenPhase = model.phase;
            model.bytes += bytes;
            model.pending -= 1;
          }
          break;
        }
        case 4:
        case 5:
          if (model.bytes == 0) continue;
          {
            const int64_t bytes = random() % 2 == 0 ? model.bytes : number(model.bytes);
            text += "mbarrier.complete_tx.relaxed.cta" +
                    (space.empty()        ? std::string()
                     : space == ".shared" ? ".shared::cta"
                                          : space) +
                    ".b64 [%a], " + std::to_string(bytes) + ";\n";
            model.bytes -= bytes;
          }
          break;
        case 6:
          text += "mbarrier.test_wait.parity" + space + ".b64 %p, [%a], 0;\n";
          isEnded("", model.phase % 2 != 0);
          text += "mbarrier.try_wait.parity" + space + ".b64 %p, [%a], 1" + (random() % 2 == 0 ? ", 100" : "") + ";\n";
          if (model.phase % 2 != 0) text.resize(text.rfind("mbarrier.try_wait"));  // it would wait
          else isEnded("", true);
          break;
        default:
          if (tokenPhase < 0 || (tokenPhase != model.phase && tokenPhase + 1 != model.phase)) continue;
          text += "mbarrier.test_wait" + space + ".b64 %p, [%a], %st;\n";
          isEnded("", tokenPhase != model.phase);
      }
      if (model.pending == 0 && model.bytes != 0 && random() % 2 == 0) {
        text += "mbarrier.complete_tx.relaxed.cta" +
                (space.empty()        ? std::string()
                 : space == ".shared" ? ".shared::cta"
                                      : space) +
                ".b64 [%a], " + std::to_string(model.bytes) + ";\n";
        model.bytes = 0;
      }
      model.settle();
      if (model.pending == 0) {
        // Nobody may arrive before the bytes have come.
        text += "mbarrier.complete_tx.relaxed.cta" +
                (space.empty()        ? std::string()
                 : space == ".shared" ? ".shared::cta"
                                      : space) +
                ".b64 [%a], " + std::to_string(model.bytes) + ";\n";
        model.bytes = 0;
        model.settle();
      }
    }
    text += "mbarrier.inval" + space + ".b64 [%a];\nret;\n}\n";
    wanted.push_back(std::move(want));
  }
  CUmodule module = cases::load(text);
  CUdeviceptr out = check::memory(4 * 4 * kSteps);
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    OK(launch(module, ("k" + std::to_string(kernel)).c_str(), 1, 1, {&out}));
    const auto got = read<uint32_t>(out, wanted[static_cast<size_t>(kernel)].size());
    for (size_t at = 0; at < got.size(); ++at) {
      if (got[at] != wanted[static_cast<size_t>(kernel)][at]) {
        throw check::Failure("kernel " + std::to_string(kernel) + ", result " + std::to_string(at) + ": got " +
                             std::to_string(got[at]) + ", want " +
                             std::to_string(wanted[static_cast<size_t>(kernel)][at]));
      }
    }
  }
  OK(cuMemFree_v2(out));
  OK(cuModuleUnload(module));
}

TEST(copies_arrive_when_they_are_done) {
  check::Primary primary;
  // Each thread copies for another one, and arrives when its copies have come: as one of those expected, or beside
  // them.
  std::string text = kHead;
  const std::vector<std::string> spaces = {"", ".shared", ".shared::cta"};
  for (size_t index = 0; index < 6; ++index) {
    const std::string space = spaces[index % 3];
    const bool isExpected = index < 3;
    text += ".visible .entry k" + std::to_string(index) +
            "(.param .u64 po, .param .u64 pi)\n{\n.shared .align 8 .b64 bar;\n.shared .align 16 .b8 box[1536];\n.reg "
            ".b64 %t, %o, %g, %a; .reg .b32 %x, %n, %s, %v<4>; .reg .pred %p;\n";
    text += "mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, 0; mov.u64 %a, bar;\n" +
            std::string(space.empty() ? "cvta.shared.u64 %a, %a;\n" : "");
    text += "@%p mbarrier.init" + space +
            ".b64 [%a], 96;\nbar.sync 0;\nmul.wide.u32 %o, %x, 16; ld.param.u64 %g, [pi]; add.u64 %g, %g, %o; mov.u32 "
            "%s, box; mad.lo.u32 %s, %x, 16, %s;\n";
    text +=
        "cp.async.ca.shared.global [%s], [%g], 8; cp.async.ca.shared.global [%s+8], [%g+8], "
        "8;\ncp.async.mbarrier.arrive" +
        std::string(isExpected ? ".noinc" : "") + space + ".b64 [%a];\n";
    if (!isExpected) text += "mbarrier.arrive" + space + ".b64 _, [%a];\n";
    text += "WAIT:\nmbarrier.try_wait.parity" + space + ".b64 %p, [%a], 0;\n@!%p bra WAIT;\n";
    text +=
        "sub.u32 %n, 95, %x; mov.u32 %s, box; mad.lo.u32 %s, %n, 16, %s; ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%s]; "
        "ld.param.u64 %t, [po]; add.u64 %t, %t, %o; st.global.v4.b32 [%t], {%v0, %v1, %v2, %v3};\nret;\n}\n";
  }
  CUmodule module = cases::load(text);
  std::mt19937 random(31);
  std::vector<uint32_t> in(96 * 4);
  CUdeviceptr from = check::memory(1536), to = check::memory(1536);
  for (int kernel = 0; kernel < 6; ++kernel) {
    for (uint32_t& value : in) value = random();
    OK(cuMemcpyHtoD_v2(from, in.data(), 1536));
    OK(cuMemsetD8_v2(to, 0, 1536));
    OK(launch(module, ("k" + std::to_string(kernel)).c_str(), 1, 96, {&to, &from}));
    const auto out = read<uint32_t>(to, 96 * 4);
    for (size_t at = 0; at < out.size(); ++at) {
      if (out[at] != in[(95 - at / 4) * 4 + at % 4])
        throw check::Failure("kernel " + std::to_string(kernel) + ", word " + std::to_string(at));
    }
  }
  OK(cuMemFree_v2(from));
  OK(cuMemFree_v2(to));
  OK(cuModuleUnload(module));
}

TEST(warps_wait_for_warps) {
  check::Primary primary;
  // Warps pass a number on, each waiting for the one before it at a barrier of its own, for many rounds; with a lane
  // that arrives for the others of its warp.
  const std::string text = kHead + R"(.visible .entry ring(.param .u64 po)
{
.shared .align 8 .b64 bars[8];
.shared .u32 box;
.reg .b64 %t, %o, %st; .reg .b32 %x, %w, %l, %a, %b, %n, %i, %q; .reg .pred %p, %q0, %q1;
mov.u32 %x, %tid.x; shr.u32 %w, %x, 5; and.b32 %l, %x, 31; mov.u32 %a, bars; mad.lo.u32 %a, %w, 8, %a;
add.u32 %n, %w, 1; and.b32 %n, %n, 7; mov.u32 %b, bars; mad.lo.u32 %b, %n, 8, %b;
setp.eq.u32 %q0, %l, 5;
@%q0 mbarrier.init.shared.b64 [%a], 1;
setp.eq.u32 %q1, %x, 0;
@%q1 st.shared.u32 [box], 0;
bar.sync 0;
@%q1 mbarrier.arrive.shared.b64 _, [%a];
mov.u32 %i, 0;
ROUND:
and.b32 %q, %i, 1;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p, [%a], %q;
@!%p bra WAIT;
@!%q0 bra NEXT;
ld.volatile.shared.u32 %n, [box];
mad.lo.u32 %n, %n, 3, %w;
and.b32 %n, %n, 0xffff;
st.volatile.shared.u32 [box], %n;
mbarrier.arrive.release.cta.shared::cta.b64 _, [%b];
NEXT:
bar.warp.sync 0xffffffff;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 40;
@%p bra ROUND;
bar.sync 0;
ld.param.u64 %t, [po]; ld.shared.u32 %n, [box];
@%q1 st.global.u32 [%t], %n;
ret;
}
)";
  CUmodule module = cases::load(text);
  CUdeviceptr out = check::memory(4);
  OK(launch(module, "ring", 3, 256, {&out}));
  uint32_t want = 0;
  for (int round = 0; round < 40; ++round) {
    for (uint32_t warp = 0; warp < 8; ++warp) want = (want * 3 + warp) & 0xffff;
  }
  EQUAL(read<uint32_t>(out, 1)[0], want);
  OK(cuMemFree_v2(out));
  OK(cuModuleUnload(module));
}

namespace {

double halfValue(uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 0x3ff);
  const double size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}
double bf16Value(uint64_t bits) { return static_cast<double>(cases::toF32((bits & 0xffff) << 16)); }
// The nearest of 16 bits, by looking at all.
uint64_t nearest(double v, double (*value)(uint64_t), uint64_t infinity) {
  if (std::isnan(v)) return 0x7fff;
  const uint64_t sign = std::signbit(v) ? 0x8000 : 0;
  uint64_t low = 0, high = infinity;
  while (low < high) {
    const uint64_t middle = (low + high + 1) / 2;
    if (value(middle) <= std::fabs(v)) low = middle;
    else high = middle - 1;
  }
  if (low == infinity) return sign | low;
  const double above = low + 1 == infinity ? std::ldexp(1.0, infinity == 0x7c00 ? 16 : 128) : value(low + 1),
               up = above - std::fabs(v), down = std::fabs(v) - value(low);
  return sign | (down > up || (down == up && low % 2 == 1) ? low + 1 : low);
}
uint64_t half(double v) { return nearest(v, halfValue, 0x7c00); }
uint64_t bf16Of(double v) { return nearest(v, bf16Value, 0x7f80); }
double lesser(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? y : x;
  return x < y || (x == y && std::signbit(x)) ? x : y;
}

}  // namespace

TEST(bulk_copies_and_remote_stores) {
  check::Primary primary;
  std::string text = kHead;
  // Two blocks of a cluster. Thread 0 of block 0 gets numbers from memory for both (or each for itself), which both add
  // to what lies in memory.
  struct Reduction {
    const char* name;
    const char* type;
    std::function<uint64_t(uint64_t, uint64_t)> of;
    unsigned bytes;
  };
  const std::vector<Reduction> reductions = {
      {"add", "u32", [](uint64_t a, uint64_t b) { return a + b; }, 4},
      {"add", "s32", [](uint64_t a, uint64_t b) { return a + b; }, 4},
      {"add", "u64", [](uint64_t a, uint64_t b) { return a + b; }, 8},
      {"min", "u32", [](uint64_t a, uint64_t b) { return a < b ? a : b; }, 4},
      {"max", "u32", [](uint64_t a, uint64_t b) { return a > b ? a : b; }, 4},
      {"min", "s32", [](uint64_t a, uint64_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? a : b; },
       4},
      {"max", "s32", [](uint64_t a, uint64_t b) { return static_cast<int32_t>(a) > static_cast<int32_t>(b) ? a : b; },
       4},
      {"min", "s64", [](uint64_t a, uint64_t b) { return static_cast<int64_t>(a) < static_cast<int64_t>(b) ? a : b; },
       8},
      {"max", "u64", [](uint64_t a, uint64_t b) { return a > b ? a : b; }, 8},
      {"inc", "u32", [](uint64_t a, uint64_t b) { return a >= b ? 0 : a + 1; }, 4},
      {"dec", "u32", [](uint64_t a, uint64_t b) { return a == 0 || a > b ? b : a - 1; }, 4},
      {"and", "b32", [](uint64_t a, uint64_t b) { return a & b; }, 4},
      {"or", "b32", [](uint64_t a, uint64_t b) { return a | b; }, 4},
      {"xor", "b64", [](uint64_t a, uint64_t b) { return a ^ b; }, 8},
      {"add", "f32", [](uint64_t a, uint64_t b) { return cases::bitsF32(cases::toF32(a) + cases::toF32(b)); }, 4},
      {"add", "f64", [](uint64_t a, uint64_t b) { return cases::bitsF64(cases::toF64(a) + cases::toF64(b)); }, 8},
      {"add.noftz", "f16", [](uint64_t a, uint64_t b) { return half(halfValue(a) + halfValue(b)); }, 2},
      {"add.noftz", "bf16", [](uint64_t a, uint64_t b) { return bf16Of(bf16Value(a) + bf16Value(b)); }, 2},
      {"min", "f16", [](uint64_t a, uint64_t b) { return half(lesser(halfValue(a), halfValue(b))); }, 2},
      {"max", "bf16", [](uint64_t a, uint64_t b) { return bf16Of(-lesser(-bf16Value(a), -bf16Value(b))); }, 2}};
  for (const bool isMulticast : {false, true}) {
    for (size_t index = 0; index < reductions.size(); ++index) {
      text += ".visible .entry k" + std::to_string(index) + (isMulticast ? "m" : "s") +
              "(.param .u64 po, .param .u64 pi) .reqnctapercluster 2, 1, 1\n{\n.shared .align 128 .b8 "
              "box[512];\n.shared .align 8 .b64 bar;\n";
      text +=
          ".reg .b64 %t, %g, %o; .reg .b32 %x, %c, %r; .reg .b16 %h; .reg .pred %p, %z, %first;\nmov.u32 %x, %tid.x; "
          "setp.eq.u32 %z, %x, 0; mov.u32 %c, %cluster_ctarank; setp.eq.u32 %first, %c, 0;\n";
      text +=
          "@%z mbarrier.init.shared.b64 [bar], 1;\n@%z mbarrier.arrive.expect_tx.shared.b64 _, [bar], "
          "512;\nfence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
      text +=
          "ld.param.u64 %g, [pi]; ld.param.u64 %t, [po]; mov.u16 %h, 3; mul.wide.u32 %o, %c, 512; add.u64 %t, %t, "
          "%o;\n";
      text += isMulticast
                  ? "and.pred %z, %z, %first;\n@%z "
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [box], [%g], "
                    "512, [bar], %h;\n"
                  : "@%z cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%g], 512, [bar];\n";
      text += "setp.eq.u32 %z, %x, 0;\nW:\nmbarrier.try_wait.parity.shared.b64 %p, [bar], 0;\n@!%p bra W;\n";
      text += std::string("@%z cp.reduce.async.bulk.global.shared::cta.bulk_group.") + reductions[index].name + "." +
              reductions[index].type +
              " [%t], [box], 512;\n@%z cp.async.bulk.commit_group;\n@%z cp.async.bulk.wait_group 0;\nret;\n}\n";
    }
  }
  // Thread t of block 0 writes to block 1: plain, in vectors, and added; then block 1 copies its own back into block 0.
  text += R"(.visible .entry remote(.param .u64 po, .param .u64 pi) .reqnctapercluster 2, 1, 1
{
.shared .align 128 .b8 box[1024];
.shared .align 8 .b64 bar;
.reg .b64 %t, %o; .reg .b32 %x, %c, %r, %s, %a, %b, %n, %other; .reg .pred %p, %z, %first;
mov.u32 %x, %tid.x; setp.eq.u32 %z, %x, 0; mov.u32 %c, %cluster_ctarank; setp.eq.u32 %first, %c, 0;
xor.b32 %other, %c, 1;
mad.lo.u32 %n, %x, 16, 0; mov.u32 %s, box; add.u32 %s, %s, %n;
st.shared.v4.b32 [%s], {%x, %x, %x, %x}; st.shared.v4.b32 [%s+512], {0, 0, 0, 0};
@%z mbarrier.init.shared.b64 [bar], 1;
@%z mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mov.u32 %b, bar;
mapa.shared::cluster.u32 %a, %s, %other; mapa.shared::cluster.u32 %b, %b, %other;
@!%first bra SECOND;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%a], {%n, 77}, [%b];
st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%a+8], %x, [%b];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%a+12], 1000, [%b];
bra WAIT;
SECOND:
mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra SECOND;
mov.u32 %r, box; mapa.shared::cluster.u32 %a, %r, %other; add.u32 %a, %a, 512;
@%z cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%a], [box], 512, [%b];
bra OUT;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra WAIT;
ld.param.u64 %t, [po]; mul.wide.u32 %o, %x, 16; add.u64 %t, %t, %o;
.reg .b32 %v<4>;
ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%s+512]; st.global.v4.b32 [%t], {%v0, %v1, %v2, %v3};
OUT:
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret;
}
)";
  CUmodule module = cases::load(text);
  std::mt19937_64 random(23);
  std::vector<uint64_t> in(64), before(128);
  CUdeviceptr from = check::memory(512), to = check::memory(1024);
  for (const bool isMulticast : {false, true}) {
    for (size_t index = 0; index < reductions.size(); ++index) {
      const Reduction& each = reductions[index];
      for (uint64_t& value : in) value = random() >> random() % 64;
      for (uint64_t& value : before) value = random() >> random() % 64;
      OK(cuMemcpyHtoD_v2(from, in.data(), 512));
      OK(cuMemcpyHtoD_v2(to, before.data(), 1024));
      OK(launch(module, ("k" + std::to_string(index) + (isMulticast ? "m" : "s")).c_str(), 2, 64, {&to, &from}));
      const auto out = read<uint64_t>(to, 128);
      for (size_t at = 0; at < 1024; at += each.bytes) {
        auto value = [&](const std::vector<uint64_t>& words, size_t byte) {
          return cases::masked(words[byte / 8] >> byte % 8 * 8, each.bytes);
        };
        const uint64_t want = cases::masked(each.of(value(before, at), value(in, at % 512)), each.bytes);
        if (value(out, at) != want && !(each.type == std::string("f64") && cases::sameF64(value(out, at), want)))
          throw check::Failure(std::string(each.name) + "." + each.type + " at " + std::to_string(at));
      }
    }
  }
  OK(launch(module, "remote", 2, 32, {&to, &from}));
  const auto out = read<uint32_t>(to, 128);
  for (uint32_t thread = 0; thread < 32; ++thread) {
    EQUAL(out[thread * 4], thread * 16);
    EQUAL(out[thread * 4 + 1], 77u);
    EQUAL(out[thread * 4 + 2], thread);
    EQUAL(out[thread * 4 + 3], thread + 1000);
  }
  OK(cuMemFree_v2(from));
  OK(cuMemFree_v2(to));
  OK(cuModuleUnload(module));
}

namespace {

struct Wrong {
  const char* body;
  CUresult status;
  // The instruction set gives it no meaning: an H200 goes on, or its compiler ends the process.
  bool isSoftwareOnly = false;
};
const Wrong kWrong[] = {
    {"mbarrier.init.shared.b64 [bar], 0;", CUDA_ERROR_ILLEGAL_INSTRUCTION, true},
    {"mbarrier.init.shared.b64 [bar], 1048576;", CUDA_ERROR_ILLEGAL_INSTRUCTION, true},
    {"mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 _, [bar], 2;", CUDA_ERROR_ILLEGAL_INSTRUCTION,
     true},
    {"mbarrier.init.shared.b64 [bar+4], 1;", CUDA_ERROR_MISALIGNED_ADDRESS},
    {"mbarrier.init.b64 [%g], 1;", CUDA_ERROR_ILLEGAL_INSTRUCTION},
    {"mbarrier.init.shared.b64 [bar+4096], 1;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"cp.async.ca.shared.global [box], [%g+4], 8;", CUDA_ERROR_MISALIGNED_ADDRESS},
    {"cp.async.ca.shared.global [box+4], [%g], 8;", CUDA_ERROR_MISALIGNED_ADDRESS},
    {"add.u64 %g, %g, 0x4000000000; cp.async.ca.shared.global [box], [%g], 8;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"cp.async.cg.shared.global [box+65536], [%g], 16;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {".reg .b32 %n; mov.b32 %n, 24; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%g], %n, "
     "[bar];",
     CUDA_ERROR_MISALIGNED_ADDRESS, true},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%g], 4096, [bar];",
     CUDA_ERROR_ILLEGAL_ADDRESS},
    {"cp.async.bulk.global.shared::cta.bulk_group [%g], [box+8], 16;", CUDA_ERROR_MISALIGNED_ADDRESS}};

// Nothing is given back: the process ends.
std::string launchWrong(const Wrong& each) {
  new check::Primary;
  CUdeviceptr memory = check::memory(4096);
  const std::string text = kHead +
                           ".visible .entry k(.param .u64 p)\n{\n.shared .align 16 .b8 box[64];\n.shared .align 8 .b64 "
                           "bar;\n.reg .b64 %g;\nld.param.u64 %g, [p];\n";
  const cases::Loaded loaded = cases::tryLoad(text + each.body + "\nret;\n}\n");
  if (loaded.status != CUDA_SUCCESS) return "not loaded: " + loaded.log;
  const CUresult status = launch(loaded.module, "k", 1, 1, {&memory});
  return status == each.status ? "" : "status " + std::to_string(status) + ", want " + std::to_string(each.status);
}
// A driver does not promise anything for a process whose context is lost: each in one of its own.
[[maybe_unused]] const bool isChildSet = [] {
  check::child = [](int, char** arguments) -> int {
    std::string wrong;
    try {
      wrong = launchWrong(kWrong[atoi(arguments[0])]);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) printf("\n%s: %s", kWrong[atoi(arguments[0])].body, wrong.c_str());
    fflush(stdout);
    _exit(wrong.empty() ? 0 : 1);
  };
  return true;
}();

}  // namespace

TEST(what_goes_wrong_ends_the_kernel) {
  int failures = 0;
  for (size_t index = 0; index < sizeof kWrong / sizeof *kWrong; ++index) {
    if (kWrong[index].isSoftwareOnly && check::isOnHardware()) continue;
    const std::string argument = std::to_string(index);
    const pid_t process = fork();
    if (process == 0) {
      execl("/proc/self/exe", "test", "--child", argument.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(process, &status, 0);
    if (WIFSIGNALED(status)) printf("\n%s: ended by signal %d", kWrong[index].body, WTERMSIG(status));
    if (status != 0) ++failures;
  }
  if (failures != 0)
    throw check::Failure(std::to_string(failures) + " of " + std::to_string(sizeof kWrong / sizeof *kWrong) +
                         " ended otherwise");
}
