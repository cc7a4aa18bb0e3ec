#include <cublas_v2.h>

#include <nlohmann/json.hpp>

#include "harness/device/cuda_check.hpp"
#include "harness/device/device_kernels.hpp"

namespace xcorr {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 30;  // many times the last-level cache
constexpr int kProduct = 8192;                        // side of the matrix products
constexpr int kRepetitions = 5;
constexpr int kFmaChains = 16;
constexpr int kFmaSteps = 4096;
constexpr int kThreads = 256;  // of a block that computes or exchanges
constexpr int kExchanged = 4;  // values of a thread that are under way at once
constexpr int kExchangeSteps = 2048;

// Independent chains of FMAs in registers. The store, which is never executed, keeps the compiler
// from removing them.
__global__ void fma_chains(float factor, float* out) {
  float chain[kFmaChains];
  for (int i = 0; i < kFmaChains; ++i) chain[i] = static_cast<float>(threadIdx.x + i);
  for (int step = 0; step < kFmaSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kFmaChains; ++i) chain[i] = fmaf(chain[i], factor, 1.0f);
  }
  float sum = 0;
  for (int i = 0; i < kFmaChains; ++i) sum += chain[i];
  if (sum == 12345.678f) *out = sum;
}

// Values that pass from lane to lane. `mask` is 1: an argument, so that two steps do not cancel out
// at compile time.
__global__ void shuffles(int mask, float* out) {
  float value[kExchanged];
  for (int i = 0; i < kExchanged; ++i) value[i] = static_cast<float>(threadIdx.x + i);
  for (int step = 0; step < kExchangeSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kExchanged; ++i) value[i] = __shfl_xor_sync(~0u, value[i], mask);
  }
  float sum = 0;
  for (int i = 0; i < kExchanged; ++i) sum += value[i];
  if (sum == 12345.678f) *out = sum;
}

// Values that a thread stores and its neighbour loads, 16 bytes each, without bank conflicts.
__global__ void shared_exchange(int mask, float* out) {
  __shared__ float4 slot[kExchanged][kThreads];
  float4 value[kExchanged];
  const unsigned own = threadIdx.x, other = own ^ static_cast<unsigned>(mask);
  for (int i = 0; i < kExchanged; ++i) {
    value[i] = make_float4(static_cast<float>(own + i), 1.0f, 2.0f, 3.0f);
  }
  for (int step = 0; step < kExchangeSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kExchanged; ++i) slot[i][own] = value[i];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kExchanged; ++i) value[i] = slot[i][other];
    __syncwarp();
  }
  float sum = 0;
  for (int i = 0; i < kExchanged; ++i) sum += value[i].x + value[i].y + value[i].z + value[i].w;
  if (sum == 12345.678f) *out = sum;
}

__global__ void random_floats(float* data, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    data[i] = static_cast<float>(static_cast<unsigned>(i * 2654435761u) >> 8) * 0x1p-24f;
  }
}

void check_cublas(cublasStatus_t code) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error("ceilings: cuBLAS fails with status " + std::to_string(code) +
                           "; is its library the one of this toolkit?");
}

__device__ long long global_timer() {
  long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__global__ void spin(long long nanoseconds) {
  const long long start = global_timer();
  while (global_timer() - start < nanoseconds) {
  }
}

__global__ void empty() {}

__global__ void hold(GateFlags* flags, unsigned gate, long long nanoseconds) {
  const long long start = global_timer();
  while (flags->opened < gate) {
    if (global_timer() - start < nanoseconds) continue;
    flags->let_go = gate;
    return;
  }
}

__global__ void stamp(ClockStamp* stamps, unsigned sms) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (sm >= sms) return;
  stamps[sm] = {static_cast<unsigned long long>(clock64()),
                static_cast<unsigned long long>(global_timer())};
}

}  // namespace

void launch_spin(long long nanoseconds, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(nanoseconds);
  require_cuda(cudaGetLastError(), "spin kernel");
}

void launch_empty(cudaStream_t stream) {
  empty<<<1, 1, 0, stream>>>();
  require_cuda(cudaGetLastError(), "empty kernel");
}

void launch_hold(GateFlags* flags, unsigned gate, long long nanoseconds, cudaStream_t stream) {
  hold<<<1, 1, 0, stream>>>(flags, gate, nanoseconds);
  require_cuda(cudaGetLastError(), "gate");
}

void launch_stamps(ClockStamp* stamps, int sms, cudaStream_t stream) {
  stamp<<<sms, 1, 0, stream>>>(stamps, static_cast<unsigned>(sms));
  require_cuda(cudaGetLastError(), "clock of the SMs");
}

nlohmann::json measure_ceilings(Device& device) {
  cudaStream_t stream = static_cast<cudaStream_t>(device.stream());
  const Buffer a = device.allocate(kBytes), b = device.allocate(kBytes),
               c = device.allocate(kBytes);
  float* x = static_cast<float*>(a.get());
  float* y = static_cast<float*>(b.get());
  float* z = static_cast<float*>(c.get());
  random_floats<<<4096, 256, 0, stream>>>(x, kBytes / 4);
  random_floats<<<4096, 256, 0, stream>>>(y, kBytes / 4);
  require_cuda(cudaGetLastError(), "random numbers");
  const auto best = [&](const std::function<void()>& work, Index count, Mode mode = Mode::stream) {
    device.time(work, std::max<Index>(count / 10, 1), mode);  // warm
    Seconds shortest = 1e9;
    for (int i = 0; i < kRepetitions; ++i) {
      shortest = std::min(shortest, device.time(work, count, mode) / static_cast<double>(count));
    }
    return shortest;
  };

  const Seconds copy =
      best([&] { cudaMemcpyAsync(y, x, kBytes, cudaMemcpyDeviceToDevice, stream); }, 10);
  const Seconds fill = best([&] { cudaMemsetAsync(z, 1, kBytes, stream); }, 10);
  const int blocks = device.facts().at("multiprocessors").get<int>() * 16;
  const Seconds fma = best([&] { fma_chains<<<blocks, kThreads, 0, stream>>>(0.999f, z); }, 10);
  const Seconds shuffle = best([&] { shuffles<<<blocks, kThreads, 0, stream>>>(1, z); }, 10);
  const Seconds shared = best([&] { shared_exchange<<<blocks, kThreads, 0, stream>>>(1, z); }, 10);
  random_floats<<<4096, 256, 0, stream>>>(y, kBytes / 4);
  require_cuda(cudaGetLastError(), "kernels of the ceilings");

  cublasHandle_t handle{};
  check_cublas(cublasCreate(&handle));
  check_cublas(cublasSetStream(handle, stream));
  const auto product = [&](cublasMath_t math) {
    check_cublas(cublasSetMathMode(handle, math));
    const float one = 1, zero = 0;
    return best(
        [&] {
          check_cublas(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, kProduct, kProduct, kProduct,
                                   &one, x, kProduct, y, kProduct, &zero, z, kProduct));
        },
        5);
  };
  const Seconds fp32 = product(CUBLAS_DEFAULT_MATH), tf32 = product(CUBLAS_TF32_TENSOR_OP_MATH);
  cublasDestroy(handle);
  const auto empty = [&] { launch_empty(stream); };
  const Seconds empty_stream = best(empty, 2000), empty_graph = best(empty, 2000, Mode::graph),
                empty_host = best(empty, 2000, Mode::paper);

  const double bytes = static_cast<double>(kBytes);
  const double flops = 2.0 * kProduct * kProduct * static_cast<double>(kProduct);
  const double threads = static_cast<double>(blocks) * kThreads;
  const double fma_flops = 2.0 * threads * kFmaChains * kFmaSteps;
  const double exchanged = threads * kExchanged * kExchangeSteps;  // values
  return {{"copy_bytes_per_s", 2 * bytes / copy},                  // read and written
          {"fill_bytes_per_s", bytes / fill},
          {"shuffle_bytes_per_s", exchanged * sizeof(float) / shuffle},
          {"shared_bytes_per_s", 2 * exchanged * sizeof(float4) / shared},  // stored and loaded
          {"fp32_fma_flop_per_s", fma_flops / fma},
          {"cublas_fp32_flop_per_s", flops / fp32},
          {"cublas_tf32_flop_per_s", flops / tf32},
          {"empty_launch_stream_us", empty_stream * 1e6},
          {"empty_launch_host_us", empty_host * 1e6},
          {"empty_launch_graph_us", empty_graph * 1e6}};
}

}  // namespace xcorr
