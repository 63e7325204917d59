// All types and shapes of mma, checked against independent references.
#include <cfenv>

#include "ptx_products.h"

using namespace matrices;

namespace {

constexpr unsigned kWarps = 24;

int lanesOf(int lane, const Product& each) { return each.products == 1 ? 0 : lane % 16 / 4; }

std::vector<uint32_t> randomWords(std::mt19937& random, size_t count, const Element& type, int kind) {
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) {
    word = random();
    if (type.exponentBits == 0 || kind == 0) continue;  // any bit pattern, including NaN and infinities
    // Ordinary numbers: small integers, or numbers with exponents near one.
    const int per = type.bits == 32 ? 1 : 32 / type.bits;
    word = 0;
    for (int part = 0; part < per; ++part) {
      const int bias = (1 << (type.exponentBits - 1)) - 1, spread = kind == 1 ? 3 : 6;
      const auto exponent =
          static_cast<uint32_t>(bias + static_cast<int>(random() % static_cast<unsigned>(2 * spread)) - spread);
      uint32_t fraction = static_cast<uint32_t>(random()) & ((1u << type.fractionBits) - 1);
      if (type.bits == 32 && type.fractionBits == 10)
        fraction = fraction << 13 | (static_cast<uint32_t>(random()) & 0x1fff);
      const int fractionBits = type.bits == 32 ? 23 : type.fractionBits;
      uint32_t raw = static_cast<uint32_t>(random() & 1) << (type.bits - 1) | exponent << fractionBits | fraction;
      if (random() % 16 == 0) raw &= 1u << (type.bits - 1);                               // zero
      if (random() % 16 == 0) raw &= ~(((1u << type.exponentBits) - 1) << fractionBits);  // subnormal
      word |= raw << type.bits * part;
    }
  }
  return words;
}

void compare(const std::vector<Product>& all) {
  check::Primary primary;
  std::string text = kHead;
  std::vector<Run> runs;
  for (const Product& each : all) {
    const int lanes = each.products == 1 ? 32 : 8;
    auto registers = [&](int elements, const Element& type) { return elements * type.bits / 32 / lanes; };
    Run run;
    run.instruction = each.instruction;
    run.a = registers(each.m * each.k, each.a), run.b = registers(each.k * each.n, each.b),
    run.c = registers(each.m * each.n, each.c), run.d = registers(each.m * each.n, each.d);
    text += kernel(run, runs.size());
    runs.push_back(run);
  }
  CUmodule module = cases::load(text);
  std::mt19937 random(7);
  for (size_t index = 0; index < all.size(); ++index) {
    const Product& each = all[index];
    const Run& run = runs[index];
    for (int kind = 0; kind < 3; ++kind) {
      const auto a = randomWords(random, kWarps * 32 * static_cast<size_t>(run.a), each.a, kind),
                 b = randomWords(random, kWarps * 32 * static_cast<size_t>(run.b), each.b, kind);
      const auto c = randomWords(random, kWarps * 32 * static_cast<size_t>(run.c), each.c, kind);
      const auto got = launch(module, index, run, kWarps, a, b, c);
      for (unsigned warp = 0; warp < kWarps; ++warp) {
        for (int product = 0; product < each.products; ++product) {
          auto rowMajor = [&](int rows, int columns, const Element& type, const Where& where,
                              const std::vector<uint32_t>& words, int registers) {
            std::vector<uint64_t> matrix(static_cast<size_t>(rows * columns), ~uint64_t{0});
            for (int lane = 0; lane < 32; ++lane) {
              if (each.products != 1 && lanesOf(lane, each) != product) continue;
              for (int i = 0; i < registers * 32 / type.bits; ++i) {
                const At at = where(lane, i);
                CHECK(at.row >= 0 && at.row < rows && at.column >= 0 && at.column < columns);
                uint64_t& to = matrix[static_cast<size_t>(at.row * columns + at.column)];
                CHECK(to == ~uint64_t{0});  // each element has exactly one place
                to = elementOf(words, (warp * 32 + static_cast<unsigned>(lane)) * static_cast<size_t>(registers),
                               type.bits, i);
              }
            }
            return matrix;
          };
          const auto A = rowMajor(each.m, each.k, each.a, each.whereA, a, run.a),
                     B = rowMajor(each.k, each.n, each.b, each.whereB, b, run.b);
          const auto C = rowMajor(each.m, each.n, each.c, each.whereC, c, run.c),
                     D = rowMajor(each.m, each.n, each.d, each.whereD, got, run.d);
          for (int row = 0; row < each.m; ++row) {
            for (int column = 0; column < each.n; ++column) {
              const auto at = static_cast<size_t>(row * each.n + column);
              auto x = [&](int i) { return A[static_cast<size_t>(row * each.k + i)]; };
              auto y = [&](int i) { return B[static_cast<size_t>(i * each.n + column)]; };
              uint64_t want;
              if (each.a.exponentBits == 0) {
                auto sum = static_cast<int64_t>(each.c.value(C[at]));
                for (int i = 0; i < each.k; ++i) {
                  if (each.a.bits == 1) sum += static_cast<int64_t>(each.isAnd ? x(i) & y(i) : x(i) ^ y(i));
                  else sum += static_cast<int64_t>(each.a.value(x(i)) * each.b.value(y(i)));
                }
                if (each.isSaturated) sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
                want = static_cast<uint32_t>(sum);
              } else {
                std::vector<std::pair<double, double>> factors;
                for (int i = 0; i < each.k; ++i) factors.emplace_back(each.a.value(x(i)), each.b.value(y(i)));
                const double sum = sumOf(each, each.c.value(C[at]), factors);
                want = each.d.bits == 32 ? cases::bitsF32(static_cast<float>(sum)) : halfOf(sum);
              }
              if (D[at] == want) continue;
              char line[300];
              snprintf(line, sizeof line, "%s, operands of kind %d, row %d, column %d: got %llx, want %llx (c %llx)",
                       each.instruction.c_str(), kind, row, column, static_cast<unsigned long long>(D[at]),
                       static_cast<unsigned long long>(want), static_cast<unsigned long long>(C[at]));
              throw check::Failure(line);
            }
          }
        }
      }
    }
  }
  OK(cuModuleUnload(module));
}

int group(int lane) { return lane / 4; }
int thread(int lane) { return lane % 4; }
At sums(int lane, int i) { return {i < 2 ? group(lane) : group(lane) + 8, thread(lane) * 2 + (i & 1)}; }

Product product(const std::string& shape, const std::string& modifiers, int m, int n, int k, const Element& a,
                const Element& b, const Element& c, const Element& d, Where whereA, Where whereB) {
  Product made{
      "mma.sync.aligned." + shape + ".row.col" + modifiers + "." + d.name + "." + a.name + "." + b.name + "." + c.name,
      m,
      n,
      k,
      a,
      b,
      c,
      d,
      std::move(whereA),
      std::move(whereB),
      sums,
      sums};
  made.instruction += " {D}, {A}, {B}, {C};";
  return made;
}

}  // namespace

TEST(products_of_halves) {
  std::vector<Product> all;
  for (const Element& type : {kF16, kBf16}) {
    for (const Element& sum : {kF32, kF16}) {
      if (type.exponentBits == 8 && sum.bits == 16) continue;
      all.push_back(product(
          "m16n8k8", "", 16, 8, 8, type, type, sum, sum,
          [](int lane, int i) { return At{i < 2 ? group(lane) : group(lane) + 8, thread(lane) * 2 + (i & 1)}; },
          [](int lane, int i) { return At{thread(lane) * 2 + i, group(lane)}; }));
      all.push_back(product(
          "m16n8k16", "", 16, 8, 16, type, type, sum, sum,
          [](int lane, int i) {
            return At{(i < 2 || (i >= 4 && i < 6)) ? group(lane) : group(lane) + 8,
                      i < 4 ? thread(lane) * 2 + (i & 1) : thread(lane) * 2 + (i & 1) + 8};
          },
          [](int lane, int i) {
            return At{i < 2 ? thread(lane) * 2 + (i & 1) : thread(lane) * 2 + (i & 1) + 8, group(lane)};
          }));
    }
  }
  compare(all);
}

TEST(products_of_quads) {
  std::vector<Product> all;
  for (const bool isLeftColumns : {false, true}) {
    for (const bool isRightRows : {false, true}) {
      for (const auto& [d, c] : std::vector<std::pair<Element, Element>>{{kF32, kF32}, {kF16, kF16}, {kF32, kF16}}) {
        Where a = [](int lane, int i) { return At{lane < 16 ? lane % 4 : lane % 4 + 4, i}; },
              b = [](int lane, int i) { return At{i, lane < 16 ? lane % 4 : lane % 4 + 4}; };
        if (isLeftColumns) a = [](int lane, int i) { return At{lane < 16 ? i % 4 : i % 4 + 4, lane % 4}; };
        if (isRightRows) b = [](int lane, int i) { return At{lane % 4, lane < 16 ? i : i + 4}; };
        const Where wide = [](int lane, int i) {
          const int x = (lane & 1) + (i & 2);
          return At{lane < 16 ? x : x + 4, (i & 4) + (lane & 2) + (i & 1)};
        };
        const Where narrow = [](int lane, int i) { return At{lane < 16 ? lane % 4 : lane % 4 + 4, i}; };
        Product made = product("m8n8k4", "", 8, 8, 4, kF16, kF16, c, d, a, b);
        made.instruction.replace(made.instruction.find(".row.col"), 8,
                                 std::string(isLeftColumns ? ".col" : ".row") + (isRightRows ? ".row" : ".col"));
        made.whereC = c.bits == 32 ? wide : narrow;
        made.whereD = d.bits == 32 ? wide : narrow;
        made.products = 4;
        all.push_back(made);
      }
    }
  }
  compare(all);
}

TEST(products_of_tensor_floats_and_of_eight_bits) {
  std::vector<Product> all;
  all.push_back(product(
      "m16n8k4", "", 16, 8, 4, kTf32, kTf32, kF32, kF32,
      [](int lane, int i) { return At{i == 0 ? group(lane) : group(lane) + 8, thread(lane)}; },
      [](int lane, int) { return At{thread(lane), group(lane)}; }));
  all.push_back(product(
      "m16n8k8", "", 16, 8, 8, kTf32, kTf32, kF32, kF32,
      [](int lane, int i) {
        return At{i == 0 || i == 2 ? group(lane) : group(lane) + 8, i < 2 ? thread(lane) : thread(lane) + 4};
      },
      [](int lane, int i) { return At{i == 0 ? thread(lane) : thread(lane) + 4, group(lane)}; }));
  for (const Element& a : {kE4m3, kE5m2}) {
    for (const Element& b : {kE4m3, kE5m2}) {
      for (const Element& sum : {kF32, kF16}) {
        all.push_back(product(
            "m16n8k16", "", 16, 8, 16, a, b, sum, sum,
            [](int lane, int i) { return At{i < 4 ? group(lane) : group(lane) + 8, thread(lane) * 4 + (i & 3)}; },
            [](int lane, int i) { return At{thread(lane) * 4 + i, group(lane)}; }));
        all.push_back(product(
            "m16n8k32", "", 16, 8, 32, a, b, sum, sum,
            [](int lane, int i) {
              return At{(i < 4 || (i >= 8 && i < 12)) ? group(lane) : group(lane) + 8,
                        i < 8 ? thread(lane) * 4 + (i & 3) : thread(lane) * 4 + (i & 3) + 16};
            },
            [](int lane, int i) {
              return At{i < 4 ? thread(lane) * 4 + (i & 3) : thread(lane) * 4 + (i & 3) + 16, group(lane)};
            }));
      }
    }
  }
  compare(all);
}

TEST(products_of_integers) {
  std::vector<Product> all;
  for (const bool isSaturated : {false, true}) {
    const std::string modifiers = isSaturated ? ".satfinite" : "";
    const size_t first = all.size();
    for (const Element& a : {kS8, kU8}) {
      for (const Element& b : {kS8, kU8}) {
        all.push_back(product(
            "m8n8k16", modifiers, 8, 8, 16, a, b, kS32, kS32,
            [](int lane, int i) { return At{group(lane), thread(lane) * 4 + i}; },
            [](int lane, int i) { return At{thread(lane) * 4 + i, group(lane)}; }));
        all.push_back(product(
            "m16n8k16", modifiers, 16, 8, 16, a, b, kS32, kS32,
            [](int lane, int i) { return At{i < 4 ? group(lane) : group(lane) + 8, thread(lane) * 4 + (i & 3)}; },
            [](int lane, int i) { return At{thread(lane) * 4 + i, group(lane)}; }));
        all.push_back(product(
            "m16n8k32", modifiers, 16, 8, 32, a, b, kS32, kS32,
            [](int lane, int i) {
              return At{(i < 4 || (i >= 8 && i < 12)) ? group(lane) : group(lane) + 8,
                        i < 8 ? thread(lane) * 4 + (i & 3) : thread(lane) * 4 + (i & 3) + 16};
            },
            [](int lane, int i) {
              return At{i < 4 ? thread(lane) * 4 + (i & 3) : thread(lane) * 4 + (i & 3) + 16, group(lane)};
            }));
      }
    }
    for (const Element& a : {kS4, kU4}) {
      for (const Element& b : {kS4, kU4}) {
        all.push_back(product(
            "m8n8k32", modifiers, 8, 8, 32, a, b, kS32, kS32,
            [](int lane, int i) { return At{group(lane), thread(lane) * 8 + i}; },
            [](int lane, int i) { return At{thread(lane) * 8 + i, group(lane)}; }));
        all.push_back(product(
            "m16n8k32", modifiers, 16, 8, 32, a, b, kS32, kS32,
            [](int lane, int i) { return At{i < 8 ? group(lane) : group(lane) + 8, thread(lane) * 8 + (i & 7)}; },
            [](int lane, int i) { return At{thread(lane) * 8 + i, group(lane)}; }));
        all.push_back(product(
            "m16n8k64", modifiers, 16, 8, 64, a, b, kS32, kS32,
            [](int lane, int i) {
              return At{(i < 8 || (i >= 16 && i < 24)) ? group(lane) : group(lane) + 8,
                        i < 16 ? thread(lane) * 8 + (i & 7) : thread(lane) * 8 + (i & 7) + 32};
            },
            [](int lane, int i) {
              return At{i < 8 ? thread(lane) * 8 + (i & 7) : thread(lane) * 8 + (i & 7) + 32, group(lane)};
            }));
      }
    }
    for (size_t index = first; index < all.size(); ++index) all[index].isSaturated = isSaturated;
  }
  for (const bool isAnd : {false, true}) {
    const size_t first = all.size();
    all.push_back(product(
        "m8n8k128", "", 8, 8, 128, kB1, kB1, kS32, kS32,
        [](int lane, int i) { return At{group(lane), thread(lane) * 32 + i}; },
        [](int lane, int i) { return At{thread(lane) * 32 + i, group(lane)}; }));
    all.push_back(product(
        "m16n8k128", "", 16, 8, 128, kB1, kB1, kS32, kS32,
        [](int lane, int i) { return At{i < 32 ? group(lane) : group(lane) + 8, thread(lane) * 32 + (i & 31)}; },
        [](int lane, int i) { return At{thread(lane) * 32 + i, group(lane)}; }));
    all.push_back(product(
        "m16n8k256", "", 16, 8, 256, kB1, kB1, kS32, kS32,
        [](int lane, int i) {
          return At{(i < 32 || (i >= 64 && i < 96)) ? group(lane) : group(lane) + 8,
                    i < 64 ? thread(lane) * 32 + (i & 31) : thread(lane) * 32 + (i & 31) + 128};
        },
        [](int lane, int i) {
          return At{i < 32 ? thread(lane) * 32 + (i & 31) : thread(lane) * 32 + (i & 31) + 128, group(lane)};
        }));
    for (size_t index = first; index < all.size(); ++index) {
      all[index].isAnd = isAnd;
      all[index].instruction.insert(all[index].instruction.find(" {D}"), isAnd ? ".and.popc" : ".xor.popc");
    }
  }
  compare(all);
}

TEST(products_of_doubles) {
  check::Primary primary;
  const std::pair<const char*, int> roundings[] = {
      {"", FE_TONEAREST}, {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};
  struct Shape {
    const char* name;
    int m, k;
  };
  const Shape shapes[] = {{"m8n8k4", 8, 4}, {"m16n8k4", 16, 4}, {"m16n8k8", 16, 8}, {"m16n8k16", 16, 16}};
  std::vector<Run> runs;
  std::string text = kHead;
  for (const Shape& shape : shapes) {
    for (auto& rounding : roundings) {
      Run run{std::string("mma.sync.aligned.") + shape.name + ".row.col" + rounding.first +
                  ".f64.f64.f64.f64 {D}, {A}, {B}, {C};",
              shape.m / 4,
              shape.m * shape.k / 32,
              shape.k / 4,
              shape.m / 4,
              true};
      text += kernel(run, runs.size());
      runs.push_back(run);
    }
  }
  CUmodule module = cases::load(text);
  const std::vector<uint64_t> operands = cases::operands(11);
  std::mt19937_64 random(3);
  for (size_t index = 0; index < runs.size(); ++index) {
    const Run& run = runs[index];
    const Shape& shape = shapes[index / 5];
    auto draw = [&](int registers) {
      std::vector<uint32_t> words;
      for (size_t at = 0; at < kWarps * 32 * static_cast<size_t>(registers); ++at) {
        uint64_t bits = at % 3 == 0 ? operands[random() % operands.size()]
                                    : cases::bitsF64(static_cast<double>(static_cast<int64_t>(random())) * 0x1p-60);
        if (at > kWarps * 16 * static_cast<size_t>(registers) && !std::isfinite(cases::toF64(bits))) bits = 0;
        words.push_back(static_cast<uint32_t>(bits));
        words.push_back(static_cast<uint32_t>(bits >> 32));
      }
      return words;
    };
    const auto a = draw(run.a), b = draw(run.b), c = draw(run.c);
    const auto got = launch(module, index, run, kWarps, a, b, c);
    auto at = [](const std::vector<uint32_t>& words, unsigned warp, int registers, int lane, int i) {
      const size_t word =
          2 * ((warp * 32 + static_cast<unsigned>(lane)) * static_cast<size_t>(registers) + static_cast<size_t>(i));
      return words[word] | static_cast<uint64_t>(words[word + 1]) << 32;
    };
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      double A[16][16], B[16][8];
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < run.a; ++i)
          A[shape.m == 8 || i % 2 == 0 ? group(lane) : group(lane) + 8][(shape.m == 8 ? i : i / 2) * 4 + thread(lane)] =
              cases::toF64(at(a, warp, run.a, lane, i));
        for (int i = 0; i < run.b; ++i)
          B[i * 4 + thread(lane)][group(lane)] = cases::toF64(at(b, warp, run.b, lane, i));
      }
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < run.c; ++i) {
          const At where = sums(lane, i);
          fesetround(roundings[index % 5].second);
          volatile double sum = cases::toF64(at(c, warp, run.c, lane, i));
          for (int step = 0; step < shape.k; ++step)
            sum = std::fma(A[where.row][step], B[step][where.column], static_cast<double>(sum));
          fesetround(FE_TONEAREST);
          if (!cases::sameF64(at(got, warp, run.d, lane, i), cases::bitsF64(sum)))
            throw check::Failure(run.instruction + ": another sum");
        }
      }
    }
  }
  OK(cuModuleUnload(module));
}

TEST(wrong_matrices_are_refused_with_their_line) {
  check::softwareOnly("the words of the compiler there are others, and it takes more");
  check::Primary primary;
  struct Wrong {
    const char* instruction;
    int status;
  };
  for (const Wrong& each :
       {Wrong{"mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
              "{%r0,%r1,%r2,%r3};",
              CUDA_ERROR_INVALID_PTX},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2}, {%r0,%r1}, "
         "{%r0,%r1,%r2,%r3};",
         CUDA_ERROR_INVALID_PTX},
        {"mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
         "{%r0,%r1,%r2,%r3};",
         CUDA_ERROR_INVALID_PTX},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
         "{%r0,%r1,%r2,%r3};",
         CUDA_ERROR_INVALID_PTX},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%h0}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
         "{%r0,%r1,%r2,%r3};",
         CUDA_ERROR_INVALID_PTX},
        {"mma.sync.aligned.row.col.f32.f16.f16.f32 %r0, %r1, %r2, %r3;", CUDA_ERROR_INVALID_PTX},
        {"wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%rd1], 16;",
         CUDA_ERROR_INVALID_PTX},
        {"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r0,%r1,%r2}, [%rd1];", CUDA_ERROR_INVALID_PTX},
        {"wgmma.fence.sync.aligned;", CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"tcgen05.fence::before_thread_sync;", CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd1, {%r1}], [%r2];",
         CUDA_ERROR_NO_BINARY_FOR_GPU}}) {
    const std::string text = kHead + ".visible .entry k()\n{\n.reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .b16 %h<2>;\n" +
                             each.instruction + "\nret;\n}\n";
    char log[400] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUmodule module = nullptr;
    if (cuModuleLoadDataEx(&module, text.c_str(), 2, options, values) != each.status)
      throw check::Failure(std::string(each.instruction) + ": " + log);
    const std::string said = log;
    CHECK(said.find("line 7") != std::string::npos);
    if (each.status == CUDA_ERROR_NO_BINARY_FOR_GPU)
      CHECK(said.find(std::string(each.instruction).substr(0, 6)) != std::string::npos);
  }
}
