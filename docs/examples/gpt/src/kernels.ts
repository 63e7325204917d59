/**
 * Everything that the model computes, in CUDA C++. Sizes are macros that the program sets when it compiles, so that
 * loops over them are unrolled and indices are cheap: CONTEXT, WIDTH, HEADS, VOCABULARY of the model, TILE of the
 * products of matrices. All arrays are rows, one behind the other; a row of activations belongs to one character of one
 * sequence.
 *
 * No sum depends on the order of threads, so a step computes the same bits each time. Sums over many blocks are
 * written as parts, which `sumParts` adds in a fixed order.
 */
export const source = `
#define INFINITY __int_as_float(0x7f800000)
constexpr int HEAD = WIDTH / HEADS;      // numbers of a query, key or value
constexpr int LANES = 32;
constexpr int PER_LANE = WIDTH / LANES;  // of a row, where a warp has one
constexpr int SIDE = 16;                 // a product's block has SIDE x SIDE threads
constexpr int DEPTH = 16;                // of the slices that it works on
constexpr int QUERIES = CONTEXT < 128 ? CONTEXT : 128;
constexpr int KEYS = CONTEXT < 32 ? CONTEXT : 32;

__device__ float warpSum(float value) {
  for (int distance = LANES / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

__device__ float warpMost(float value) {
  for (int distance = LANES / 2; distance > 0; distance /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

// Numbers that look random, the same on all devices.
__device__ unsigned scramble(unsigned x) {
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

// The characters of a step: each sequence of the batch begins anywhere in the text. first: the number of this rank's first one.
extern "C" __global__ void pick(const int* text, int length, const int* step, unsigned seed, int first, int rows, int* tokens, int* targets) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const unsigned sequence = first + row / CONTEXT;
  const int start = scramble(scramble(seed + step[0] * 0x9e3779b9u) + sequence) % (unsigned)(length - CONTEXT);
  tokens[row] = text[start + row % CONTEXT];
  targets[row] = text[start + row % CONTEXT + 1];
}

extern "C" __global__ void embed(const int* tokens, const float* characters, const float* positions, int rows, float* out) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = index / WIDTH, column = index % WIDTH;
  if (row < rows) out[index] = characters[tokens[row] * WIDTH + column] + positions[row % CONTEXT * WIDTH + column];
}

// Layer norm, a warp for each row; statistics has the mean and the reciprocal of the deviation of each.
extern "C" __global__ void normalize(const float* x, const float* gain, int rows, float* out, float2* statistics) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  x += (size_t)row * WIDTH, out += (size_t)row * WIDTH;
  float values[PER_LANE], mean = 0, variance = 0;
  for (int i = 0; i < PER_LANE; i++) mean += values[i] = x[i * LANES + threadIdx.x];
  mean = warpSum(mean) / WIDTH;
  for (int i = 0; i < PER_LANE; i++) variance += (values[i] - mean) * (values[i] - mean);
  const float reciprocal = rsqrtf(warpSum(variance) / WIDTH + 1e-5f);
  for (int i = 0; i < PER_LANE; i++) {
    const int column = i * LANES + threadIdx.x;
    out[column] = (values[i] - mean) * reciprocal * gain[column];
  }
  if (threadIdx.x == 0) statistics[row] = {mean, reciprocal};
}

// The gradient of x; where "adds", in addition to what dx has already, which came on the way around the layer.
extern "C" __global__ void normalizeBackward(
    const float* dOut, const float* x, const float2* statistics, const float* gain, int rows, int adds, float* dx) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  x += (size_t)row * WIDTH, dOut += (size_t)row * WIDTH, dx += (size_t)row * WIDTH;
  const auto [mean, reciprocal] = statistics[row];
  float normal[PER_LANE], gradient[PER_LANE], sum = 0, product = 0;
  for (int i = 0; i < PER_LANE; i++) {
    const int column = i * LANES + threadIdx.x;
    normal[i] = (x[column] - mean) * reciprocal;
    gradient[i] = dOut[column] * gain[column];
    sum += gradient[i];
    product += gradient[i] * normal[i];
  }
  sum = warpSum(sum) / WIDTH;
  product = warpSum(product) / WIDTH;
  for (int i = 0; i < PER_LANE; i++) {
    const int column = i * LANES + threadIdx.x;
    dx[column] = (adds ? dx[column] : 0) + reciprocal * (gradient[i] - sum - normal[i] * product);
  }
}

// Parts of the gradient of the gain: a thread for each column, a part for each blockIdx.y.
extern "C" __global__ void gainParts(const float* dOut, const float* x, const float2* statistics, int rows, float* parts) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= WIDTH) return;
  float sum = 0;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    const auto [mean, reciprocal] = statistics[row];
    const size_t at = (size_t)row * WIDTH + column;
    sum += dOut[at] * (x[at] - mean) * reciprocal;
  }
  parts[blockIdx.y * WIDTH + column] = sum;
}

// Parts of the gradient of the characters' embedding: a block for each character and part.
extern "C" __global__ void characterParts(const float* dx, const int* tokens, int rows, float* parts) {
  for (int column = threadIdx.x; column < WIDTH; column += blockDim.x) {
    float sum = 0;
    for (int row = blockIdx.y; row < rows; row += gridDim.y)
      if (tokens[row] == blockIdx.x) sum += dx[(size_t)row * WIDTH + column];
    parts[(blockIdx.y * VOCABULARY + blockIdx.x) * WIDTH + column] = sum;
  }
}

extern "C" __global__ void sumParts(const float* parts, int count, int size, float* out) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= size) return;
  float sum = 0;
  for (int part = 0; part < count; part++) sum += parts[(size_t)part * size + index];
  out[index] = sum;
}

enum Then { STORE, ADD, GELU, GELU_BACKWARD };

// x * sigmoid(2 * inner): the same as with tanh, and as its authors have it.
__device__ float geluInner(float x) { return 0.7978845608f * (x + 0.044715f * x * x * x); }
__device__ float gelu(float x) { return x / (1 + expf(-2 * geluInner(x))); }
__device__ float geluSlope(float x) {
  const float sigmoid = 1 / (1 + expf(-2 * geluInner(x)));
  return sigmoid + x * sigmoid * (1 - sigmoid) * 2 * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}

// Which of a tile's TILE rows or columns is a thread's i-th: neighbours where that lets it load four at once.
constexpr int EACH = TILE / SIDE, TOGETHER = EACH < 4 ? EACH : 4;
__device__ constexpr int inTile(int thread, int i) {
  return i / TOGETHER * (SIDE * TOGETHER) + thread * TOGETHER + i % TOGETHER;
}

// out = a * b, rows x inner times inner x columns; an operand that is "turned" lies in memory as its transpose. With more than one block
// in z each takes a share of inner, and leaves a part. A thread computes EACH x EACH elements in registers.
template <bool TURNED_A, bool TURNED_B, Then THEN>
__global__ void multiply(const float* __restrict__ a, const float* __restrict__ b, int rows, int columns, int inner, float* out, float* other) {
  __shared__ __align__(16) float tileA[DEPTH][TILE + 4], tileB[DEPTH][TILE + 4];
  const int firstRow = blockIdx.y * TILE, firstColumn = blockIdx.x * TILE;
  const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  const int share = (inner + gridDim.z - 1) / gridDim.z;
  const int end = min(inner, (int)(blockIdx.z + 1) * share);
  float sums[EACH][EACH] = {};
  for (int first = blockIdx.z * share; first < end; first += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += SIDE * SIDE) {
      const int k = TURNED_A ? i / TILE : i % DEPTH, row = TURNED_A ? i % TILE : i / DEPTH;
      const bool isThere = first + k < end && firstRow + row < rows;
      tileA[k][row] = !isThere ? 0 : TURNED_A ? a[(size_t)(first + k) * rows + firstRow + row] : a[(size_t)(firstRow + row) * inner + first + k];
    }
    for (int i = threadIdx.x; i < TILE * DEPTH; i += SIDE * SIDE) {
      const int k = TURNED_B ? i % DEPTH : i / TILE, column = TURNED_B ? i / DEPTH : i % TILE;
      const bool isThere = first + k < end && firstColumn + column < columns;
      tileB[k][column] = !isThere ? 0 : TURNED_B ? b[(size_t)(firstColumn + column) * inner + first + k] : b[(size_t)(first + k) * columns + firstColumn + column];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      float mineA[EACH], mineB[EACH];
#pragma unroll
      for (int i = 0; i < EACH; i++) mineA[i] = tileA[k][inTile(y, i)], mineB[i] = tileB[k][inTile(x, i)];
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) sums[i][j] += mineA[i] * mineB[j];
    }
    __syncthreads();
  }
  out += (size_t)blockIdx.z * rows * columns;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int row = firstRow + inTile(y, i);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      const int column = firstColumn + inTile(x, j);
      if (row >= rows || column >= columns) continue;
      const size_t at = (size_t)row * columns + column;
      const float value = sums[i][j];
      if (THEN == STORE) out[at] = value;
      if (THEN == ADD) out[at] = value + other[at];
      if (THEN == GELU) other[at] = value, out[at] = gelu(value);  // the way back needs what was there before
      if (THEN == GELU_BACKWARD) out[at] = value * geluSlope(other[at]);
    }
  }
}

// Copies HEAD numbers of each of count rows into shared memory, zeros where there are none; stride: from row to row.
__device__ void loadRows(float (*rows)[HEAD], const float* from, int stride, int first, int count) {
  for (int i = threadIdx.x; i < count * HEAD; i += QUERIES) {
    const int row = first + i / HEAD;
    rows[i / HEAD][i % HEAD] = row < CONTEXT ? from[(size_t)row * stride + i % HEAD] : 0;
  }
}

__device__ void loadRow(float* row, const float* from, int stride, int index) {
  for (int d = 0; d < HEAD; d++) row[d] = index < CONTEXT ? from[(size_t)index * stride + d] : 0;
}

__device__ float dot(const float* a, const float* b) {
  float sum = 0;
  for (int d = 0; d < HEAD; d++) sum += a[d] * b[d];
  return sum;
}

// Attention of each character to those before it and to itself. A thread has a query; keys and values pass by in shared memory. qkv has
// queries, keys and values of all heads in each row; logSums the logarithm of each softmax's denominator, for the way back.
extern "C" __global__ void __launch_bounds__(QUERIES) attend(const float* qkv, float* out, float* logSums) {
  __shared__ __align__(16) float keys[KEYS][HEAD], values[KEYS][HEAD];
  const int query = blockIdx.x * QUERIES + threadIdx.x;
  const size_t row = (size_t)blockIdx.z * CONTEXT;
  qkv += row * 3 * WIDTH + blockIdx.y * HEAD, out += row * WIDTH + blockIdx.y * HEAD;
  float mine[HEAD], sum[HEAD] = {}, most = -INFINITY, total = 0;
  loadRow(mine, qkv, 3 * WIDTH, query);
  const int end = min(CONTEXT, (int)(blockIdx.x + 1) * QUERIES);
  for (int first = 0; first < end; first += KEYS) {
    loadRows(keys, qkv + WIDTH, 3 * WIDTH, first, KEYS);
    loadRows(values, qkv + 2 * WIDTH, 3 * WIDTH, first, KEYS);
    __syncthreads();
    float scores[KEYS], highest = most;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
      scores[k] = first + k <= query ? dot(mine, keys[k]) * rsqrtf(HEAD) : -INFINITY;
      highest = fmaxf(highest, scores[k]);
    }
    const float shrink = expf(most - highest);
    most = highest;
    total *= shrink;
    for (int d = 0; d < HEAD; d++) sum[d] *= shrink;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
      const float weight = expf(scores[k] - most);
      total += weight;
      for (int d = 0; d < HEAD; d++) sum[d] += weight * values[k][d];
    }
    __syncthreads();
  }
  if (query >= CONTEXT) return;
  for (int d = 0; d < HEAD; d++) out[(size_t)query * WIDTH + d] = sum[d] / total;
  logSums[(row + query) * HEADS + blockIdx.y] = most + logf(total);
}

// The way back to the queries; deltas has what each softmax takes off all its gradients.
extern "C" __global__ void __launch_bounds__(QUERIES)
attendBackwardQueries(const float* qkv, const float* out, const float* dOut, const float* logSums, float* dQkv, float* deltas) {
  __shared__ __align__(16) float keys[KEYS][HEAD], values[KEYS][HEAD];
  const int query = blockIdx.x * QUERIES + threadIdx.x;
  const size_t row = (size_t)blockIdx.z * CONTEXT;
  const size_t offset = row * WIDTH + blockIdx.y * HEAD, offset3 = row * 3 * WIDTH + blockIdx.y * HEAD;
  const bool isThere = query < CONTEXT;
  const size_t cell = (row + query) * HEADS + blockIdx.y;
  float mine[HEAD], gradient[HEAD], sum[HEAD] = {}, delta = 0;
  loadRow(mine, qkv + offset3, 3 * WIDTH, query);
  loadRow(gradient, dOut + offset, WIDTH, query);
  if (isThere) {
    delta = dot(gradient, out + offset + (size_t)query * WIDTH);
    deltas[cell] = delta;
  }
  const float logSum = isThere ? logSums[cell] : INFINITY;
  const int end = min(CONTEXT, (int)(blockIdx.x + 1) * QUERIES);
  for (int first = 0; first < end; first += KEYS) {
    loadRows(keys, qkv + offset3 + WIDTH, 3 * WIDTH, first, KEYS);
    loadRows(values, qkv + offset3 + 2 * WIDTH, 3 * WIDTH, first, KEYS);
    __syncthreads();
    for (int k = 0; k < KEYS; k++) {
      if (first + k > query) break;
      const float weight = expf(dot(mine, keys[k]) * rsqrtf(HEAD) - logSum);
      const float dScore = weight * (dot(gradient, values[k]) - delta) * rsqrtf(HEAD);
      for (int d = 0; d < HEAD; d++) sum[d] += dScore * keys[k][d];
    }
    __syncthreads();
  }
  if (!isThere) return;
  for (int d = 0; d < HEAD; d++) dQkv[offset3 + (size_t)query * 3 * WIDTH + d] = sum[d];
}

// The way back to keys and values: a thread has one of each, queries pass by.
extern "C" __global__ void __launch_bounds__(QUERIES)
attendBackwardKeys(const float* qkv, const float* dOut, const float* logSums, const float* deltas, float* dQkv) {
  __shared__ __align__(16) float queries[KEYS][HEAD], gradients[KEYS][HEAD];
  __shared__ float sums[KEYS], takenOff[KEYS];
  const int key = blockIdx.x * QUERIES + threadIdx.x;
  const size_t row = (size_t)blockIdx.z * CONTEXT;
  const size_t offset = row * WIDTH + blockIdx.y * HEAD, offset3 = row * 3 * WIDTH + blockIdx.y * HEAD;
  float mine[HEAD], value[HEAD], dKey[HEAD] = {}, dValue[HEAD] = {};
  loadRow(mine, qkv + offset3 + WIDTH, 3 * WIDTH, key);
  loadRow(value, qkv + offset3 + 2 * WIDTH, 3 * WIDTH, key);
  for (int first = blockIdx.x * QUERIES / KEYS * KEYS; first < CONTEXT; first += KEYS) {
    loadRows(queries, qkv + offset3, 3 * WIDTH, first, KEYS);
    loadRows(gradients, dOut + offset, WIDTH, first, KEYS);
    for (int q = threadIdx.x; q < KEYS; q += QUERIES) {
      const size_t cell = (row + first + q) * HEADS + blockIdx.y;
      const bool isThere = first + q < CONTEXT;
      sums[q] = isThere ? logSums[cell] : INFINITY;
      takenOff[q] = isThere ? deltas[cell] : 0;
    }
    __syncthreads();
    for (int q = 0; q < KEYS; q++) {
      if (first + q < key) continue;
      const float weight = expf(dot(mine, queries[q]) * rsqrtf(HEAD) - sums[q]);
      const float dScore = weight * (dot(value, gradients[q]) - takenOff[q]) * rsqrtf(HEAD);
      for (int d = 0; d < HEAD; d++) dValue[d] += weight * gradients[q][d], dKey[d] += dScore * queries[q][d];
    }
    __syncthreads();
  }
  if (key >= CONTEXT) return;
  for (int d = 0; d < HEAD; d++) {
    dQkv[offset3 + (size_t)key * 3 * WIDTH + WIDTH + d] = dKey[d];
    dQkv[offset3 + (size_t)key * 3 * WIDTH + 2 * WIDTH + d] = dValue[d];
  }
}

// Cross entropy, a warp for each row: its part of the loss, and the gradient in place of the logits. scale: 1 / characters of all ranks.
extern "C" __global__ void crossEntropy(float* logits, const int* targets, int rows, float scale, float* losses) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  logits += (size_t)row * VOCABULARY;
  const int target = targets[row];
  float most = -INFINITY, total = 0;
  for (int i = threadIdx.x; i < VOCABULARY; i += LANES) most = fmaxf(most, logits[i]);
  most = warpMost(most);
  for (int i = threadIdx.x; i < VOCABULARY; i += LANES) total += expf(logits[i] - most);
  total = warpSum(total);
  if (threadIdx.x == 0) losses[row] = (most + logf(total) - logits[target]) * scale;
  __syncwarp();
  for (int i = threadIdx.x; i < VOCABULARY; i += LANES) logits[i] = (expf(logits[i] - most) / total - (i == target)) * scale;
}

// The sum of all, by one block.
extern "C" __global__ void sumAll(const float* values, int count, float* out) {
  __shared__ float sums[LANES];
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += values[i];
  sum = warpSum(sum);
  if (threadIdx.x % LANES == 0) sums[threadIdx.x / LANES] = sum;
  __syncthreads();
  if (threadIdx.x >= LANES) return;
  sum = warpSum(threadIdx.x < blockDim.x / LANES ? sums[threadIdx.x] : 0);
  if (threadIdx.x == 0) out[0] = sum;
}

// AdamW; the first "matrices" weights decay, the gains behind them do not. The rate grows over "warmup" steps, and falls as a cosine to a
// tenth at step "until".
extern "C" __global__ void adamW(
    float* weights, const float* gradients, float* means, float* squares, const int* step, int count, int matrices,
    float rate, float decay, int warmup, int until) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= count) return;
  const int done = step[0];
  const float gone = fminf(1, fmaxf(0, (float)(done - warmup) / max(1, until - warmup)));
  const float now = done < warmup ? rate * (done + 1) / warmup : rate * (0.55f + 0.45f * cospif(gone));
  const float gradient = gradients[index];
  const float mean = means[index] = 0.9f * means[index] + (1 - 0.9f) * gradient;
  const float square = squares[index] = 0.99f * squares[index] + (1 - 0.99f) * gradient * gradient;
  // 1 - b^n without the loss of digits near 1.
  const float meanNow = mean / -expm1f((done + 1) * logf(0.9f)), squareNow = square / -expm1f((done + 1) * logf(0.99f));
  const float weight = weights[index];
  weights[index] = weight - now * (meanNow / (sqrtf(squareNow) + 1e-8f) + (index < matrices ? decay * weight : 0));
}

// The end of a step: its loss is written down, and the next one begins.
extern "C" __global__ void endStep(const float* loss, float* losses, int kept, int* step) {
  losses[step[0] % kept] = loss[0];
  step[0] += 1;
}
`
