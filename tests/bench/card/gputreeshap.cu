// Times GPUTreeShap, whose header is found with -I, on the paths and rows of a file, and writes its values of the first rows.
//   nvcc -O3 -std=c++17 -arch=native --extended-lambda -I GPUTREESHAP -o gputreeshap tests/bench/card/gputreeshap.cu
#include <GPUTreeShap/gpu_treeshap.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using Element = gpu_treeshap::PathElement<gpu_treeshap::XgboostSplitCondition>;
constexpr int kRepeats = 3;

struct Rows {
  const float* data;
  size_t n_rows, n_cols;
  __device__ float GetElement(size_t row, size_t col) const { return data[row * n_cols + col]; }
  __host__ __device__ size_t NumRows() const { return n_rows; }
  __host__ __device__ size_t NumCols() const { return n_cols; }
};

template <class T>
std::vector<T> Read(FILE* file, size_t n) {
  std::vector<T> values(n);
  if (fread(values.data(), sizeof(T), n, file) != n) {
    fputs("the file is too short\n", stderr);
    exit(1);
  }
  return values;
}

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int main(int, char** argv) {
  FILE* file = fopen(argv[1], "rb");
  auto sizes = Read<int64_t>(file, 3);
  size_t m = sizes[0], n = sizes[1], k = sizes[2];
  auto path = Read<int64_t>(file, m), feature = Read<int64_t>(file, m);
  auto lower = Read<float>(file, m), upper = Read<float>(file, m);
  auto missing = Read<uint8_t>(file, m);
  auto absent = Read<double>(file, m);
  auto value = Read<float>(file, m), rows = Read<float>(file, n * k);
  fclose(file);
  std::vector<Element> model;
  for (size_t i = 0; i < m; i++) {
    model.emplace_back(path[i], feature[i], 0, gpu_treeshap::XgboostSplitCondition(lower[i], upper[i], missing[i]), absent[i], value[i]);
  }

  float *pinned, *out;  // from which, and to which, copies are fastest
  cudaMallocHost(&pinned, n * k * sizeof(float));
  cudaMallocHost(&out, n * (k + 1) * sizeof(float));
  memcpy(pinned, rows.data(), n * k * sizeof(float));
  thrust::device_vector<float> given(n * k), phi(n * (k + 1));
  Rows data{given.data().get(), n, k};
  for (int i = 0; i < kRepeats; i++) {
    double started = Now();
    cudaMemcpy(given.data().get(), pinned, n * k * sizeof(float), cudaMemcpyHostToDevice);
    gpu_treeshap::GPUTreeShap(data, model.begin(), model.end(), 1, phi.begin(), phi.end());
    cudaMemcpy(out, phi.data().get(), n * (k + 1) * sizeof(float), cudaMemcpyDeviceToHost);
    printf("whole %.4f\n", Now() - started);
  }

  thrust::device_vector<Element> paths(model.begin(), model.end()), unique;
  thrust::device_vector<size_t> segments;
  gpu_treeshap::detail::PreprocessPaths<thrust::device_allocator<int>, gpu_treeshap::XgboostSplitCondition>(&paths, &unique, &segments);
  thrust::device_vector<double> sums(n * (k + 1), 0.0);
  for (int i = 0; i < kRepeats; i++) {
    cudaDeviceSynchronize();
    double started = Now();
    gpu_treeshap::detail::ComputeShap(data, segments, unique, 1, sums.data().get());
    cudaDeviceSynchronize();
    printf("kernel %.4f\n", Now() - started);
  }
  if (cudaGetLastError() != cudaSuccess) return 1;
  file = fopen(argv[2], "wb");
  fwrite(out, sizeof(float), n * (k + 1), file);
  fclose(file);
}
