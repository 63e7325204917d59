// A network with one hidden layer, its gradient, and one step of gradient descent. NVRTC compiles this file to
// `network.ptx`.

constexpr int inputs = 4, hidden = 16;
constexpr int biases = hidden * inputs, outputs = biases + hidden, outputBias = outputs + hidden;
constexpr int parameterCount = outputBias + 1;
constexpr int threads = 128;

// Computes the hidden layer and the error of the output for each example. One thread per example.
extern "C" __global__ void forward(const double* parameters, const double* x, const double* y, double* activations,
                                   double* errors, int examples) {
  const int example = blockIdx.x * blockDim.x + threadIdx.x;
  if (example >= examples) return;
  double output = parameters[outputBias];
  for (int j = 0; j < hidden; ++j) {
    double sum = parameters[biases + j];
    for (int i = 0; i < inputs; ++i) sum += parameters[j * inputs + i] * x[example * inputs + i];
    const double activation = tanh(sum);
    activations[example * hidden + j] = activation;
    output += parameters[outputs + j] * activation;
  }
  errors[example] = output - y[example];
}

// The share of one example in the gradient by one parameter. The index after the last parameter returns the squared
// error.
__device__ double term(int parameter, double error, const double* parameters, const double* x, const double* activations) {
  if (parameter == parameterCount) return error * error;
  if (parameter == outputBias) return 2 * error;
  if (parameter >= outputs) return 2 * error * activations[parameter - outputs];
  const int j = parameter >= biases ? parameter - biases : parameter / inputs;
  const double back = 2 * error * parameters[outputs + j] * (1 - activations[j] * activations[j]);
  return parameter >= biases ? back : back * x[parameter % inputs];
}

// Sums over the examples, one block per parameter. The order of additions is fixed, so equal examples have bit-equal
// sums.
extern "C" __global__ void gradientSums(const double* parameters, const double* x, const double* activations,
                                        const double* errors, double* sums, int examples) {
  __shared__ double part[threads];
  double sum = 0;
  for (int example = threadIdx.x; example < examples; example += threads) {
    sum += term(blockIdx.x, errors[example], parameters, x + example * inputs, activations + example * hidden);
  }
  part[threadIdx.x] = sum;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

// One step along the gradient of all ranks. Stores the mean squared error from before the step. One thread per
// parameter.
extern "C" __global__ void descend(double* parameters, const double* sums, double* losses, int step, int examples,
                                   double rate) {
  if (threadIdx.x == parameterCount) losses[step] = sums[parameterCount] / examples;
  if (threadIdx.x < parameterCount) parameters[threadIdx.x] -= rate * sums[threadIdx.x] / examples;
}
