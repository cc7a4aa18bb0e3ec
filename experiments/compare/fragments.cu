// Reads back where the elements of matrices lie in the registers of a warp, as the TF32 paper does: A row by row and B
// column by column are 0, 1, 2, ...; C is made by a product such that its element in row i and column j is 16 i + j. Prints
// JSON: of each fragment 32 lanes with the elements of their registers in order.
#include <mma.h>

#include <cstdio>

namespace {

constexpr int kLanes = 32;

__global__ void dump(float* a, float* b, float* c) {
  using namespace nvcuda::wmma;
  __shared__ float left[16 * 8], right[8 * 16];
  fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> of_a;
  fragment<matrix_b, 16, 16, 8, precision::tf32, col_major> of_b;
  fragment<accumulator, 16, 16, 8, float> of_c;
  const auto lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 128; i += kLanes) left[i] = right[i] = static_cast<float>(i);
  __syncwarp();
  load_matrix_sync(of_a, left, 8);
  load_matrix_sync(of_b, right, 8);
  for (int i = 0; i < of_a.num_elements; ++i) a[lane * of_a.num_elements + i] = of_a.x[i];
  for (int i = 0; i < of_b.num_elements; ++i) b[lane * of_b.num_elements + i] = of_b.x[i];
  __syncwarp();
  // Row i of A is (i, 1, 0, ...), column j of B is (16, j, 0, ...).
  for (int i = lane; i < 128; i += kLanes) {
    const int k = i % 8;
    left[i] = k == 0 ? static_cast<float>(i / 8) : k == 1 ? 1.0f : 0.0f;
    right[i] = k == 0 ? 16.0f : k == 1 ? static_cast<float>(i / 8) : 0.0f;
  }
  __syncwarp();
  load_matrix_sync(of_a, left, 8);
  load_matrix_sync(of_b, right, 8);
  fill_fragment(of_c, 0.0f);
  mma_sync(of_c, of_a, of_b, of_c);
  for (int i = 0; i < of_c.num_elements; ++i) c[lane * of_c.num_elements + i] = of_c.x[i];
}

void print(const char* name, const float* values, int elements, const char* end) {
  std::printf("\"%s\": [", name);
  for (int lane = 0; lane < kLanes; ++lane) {
    std::printf("%s[", lane ? ", " : "");
    for (int i = 0; i < elements; ++i) {
      std::printf("%s%d", i ? ", " : "", static_cast<int>(values[lane * elements + i]));
    }
    std::printf("]");
  }
  std::printf("]%s", end);
}

}  // namespace

int main() {
  float* values = nullptr;
  cudaError_t status = cudaMallocManaged(&values, 3 * 256 * sizeof(float));
  if (status == cudaSuccess) {
    dump<<<1, kLanes>>>(values, values + 256, values + 512);
    status = cudaGetLastError();
    if (status == cudaSuccess) status = cudaDeviceSynchronize();
  }
  if (status != cudaSuccess) {
    std::fprintf(stderr, "fragments: %s\n", cudaGetErrorString(status));
    return 1;
  }
  std::printf("{");
  print("a", values, 4, ", ");
  print("b", values + 256, 4, ", ");
  print("c", values + 512, 8, "}\n");
  return 0;
}
