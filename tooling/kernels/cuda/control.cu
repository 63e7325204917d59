// Control flow: loops that diverge, jump tables, recursion, calls by address.
#include "common.cuh"

EACH1(collatz, int, int, 1, unsigned v = unsigned(a) % 10000 + 1; int steps = 0; while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; ++steps; } o[0] = steps;)
EACH2(greatestDivisor, unsigned, unsigned, unsigned, 1, unsigned p = a, q = b; while (q != 0) { const unsigned r = p % q; p = q; q = r; } o[0] = p;)

extern "C" __global__ void mandelbrot(float x0, float y0, float step, int width, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  const float cx = x0 + float(i % width) * step, cy = y0 + float(i / width) * step;
  float x = 0, y = 0;
  int count = 0;
  for (; count < 200 && x * x + y * y <= 4.0f; ++count) {
    const float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
  }
  out[i] = count;
}

EACH2(switched, int, int, int, 1, int v = b & 0xffff; switch (a & 15) {
  case 0: v += 7; break;
  case 1: v *= 3; break;
  case 2: v ^= 0x55;
  case 3: v -= 9; break;
  case 4: v = v << 2 | 1; break;
  case 5: v = ~v; break;
  case 6: v %= 11; break;
  case 7: v = v * v & 0xfff; break;
  case 9: v >>= 3; break;
  case 12: v = -v; break;
  case 13: for (int k = 0; k < 5; ++k) v += k * v & 15; break;
  default: v = 1;
} o[0] = v;)

EACH1(nested, int, int, 1, int found = 0; const int m = (a & 63) + 2; for (int p = 2; p < m; ++p) { bool prime = true; for (int q = 2; q * q <= p; ++q) { if (p % q == 0) { prime = false; break; } } if (!prime) continue; if (p == 41) break; found += p; } o[0] = found;)

__device__ __noinline__ int fibonacci(int k) { return k < 2 ? k : fibonacci(k - 1) + fibonacci(k - 2); }
EACH1(recursive, int, int, 1, o[0] = fibonacci(a & 7);)

__device__ __noinline__ int ackermann(int m, int k) { return m == 0 ? k + 1 : k == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, k - 1)); }
EACH1(deepRecursion, int, int, 1, o[0] = ackermann(2, a & 3);)

__device__ bool isOdd(unsigned k);
__device__ __noinline__ bool isEven(unsigned k) { return k == 0 || isOdd(k - 1); }
__device__ __noinline__ bool isOdd(unsigned k) { return k != 0 && isEven(k - 1); }
EACH1(mutualRecursion, unsigned, int, 1, o[0] = isEven(a & 15) ? 1 : 2;)

__device__ __noinline__ int twice(int v) { return 2 * v; }
__device__ __noinline__ int square(int v) { return v * v; }
__device__ __noinline__ int flip(int v) { return -v; }
typedef int (*Unary)(int);
__device__ Unary table[3] = {twice, square, flip};
EACH2(functionPointers, int, int, int, 2, o[0] = table[unsigned(a) % 3](b & 0x7fff); const Unary f = a & 1 ? twice : flip; o[1] = f(b & 0xffff) + table[1](a & 255);)

struct Shape { __device__ virtual float area() const = 0; };
struct Square : Shape { float side; __device__ Square(float s) : side(s) {} __device__ float area() const override { return side * side; } };
struct Box : Shape { float w, h; __device__ Box(float a, float b) : w(a), h(b) {} __device__ float area() const override { return w * h; } };
EACH2(virtualCalls, float, float, float, 1, Square square(a); Box box(a, b); const Shape* shapes[2] = {&square, &box}; o[0] = shapes[i % 3 == 0]->area();)

// Each thread sorts numbers of its own, recursively, in local memory.
__device__ __noinline__ void quickSort(int* v, int low, int high) {
  if (low >= high) return;
  const int pivot = v[(low + high) / 2];
  int p = low, q = high;
  while (p <= q) {
    while (v[p] < pivot) ++p;
    while (v[q] > pivot) --q;
    if (p > q) break;
    const int t = v[p];
    v[p++] = v[q];
    v[q--] = t;
  }
  quickSort(v, low, q);
  quickSort(v, p, high);
}
extern "C" __global__ void sortsOfThreads(const int* in, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  int v[16];
  for (int k = 0; k < 16; ++k) v[k] = in[i * 16 + k];
  quickSort(v, 0, 15);
  for (int k = 0; k < 16; ++k) out[i * 16 + k] = v[k];
}

// A machine whose states are labels.
EACH1(stateMachine, unsigned, int, 1, unsigned v = a; int words = 0;
outside: if (v == 0) goto done; if ((v & 3) != 0) { ++words; goto inside; } v >>= 2; goto outside;
inside: if (v == 0) goto done; if ((v & 3) == 0) goto outside; v >>= 2; goto inside;
done: o[0] = words;)

// Edit distance of words of at most 12 letters.
extern "C" __global__ void editDistance(const char* x, const char* y, int* out, int n) {
  const int i = INDEX;
  if (i >= n) return;
  int row[13];
  for (int k = 0; k <= 12; ++k) row[k] = k;
  for (int r = 1; r <= 12; ++r) {
    int diagonal = row[0];
    row[0] = r;
    for (int c = 1; c <= 12; ++c) {
      const int above = row[c];
      const int cost = diagonal + (x[i * 12 + r - 1] != y[i * 12 + c - 1]);
      row[c] = min(min(above, row[c - 1]) + 1, cost);
      diagonal = above;
    }
  }
  out[i] = row[12];
}
