// The C interface of libxcorr as a foreign program declares it, and its errors as exceptions.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
int xcorr_list(char* json, std::size_t capacity, char* error, std::size_t error_capacity);
int xcorr_machine(const char* device, char* json, std::size_t capacity, char* error,
                  std::size_t error_capacity);
int xcorr_describe(const char* request, char* json, std::size_t capacity, char* error,
                   std::size_t error_capacity);
int xcorr_supports(const char* request, char* json, std::size_t capacity, char* error,
                   std::size_t error_capacity);
int xcorr_open(const char* request, void** session, char* error, std::size_t error_capacity);
int xcorr_compute(void* session, const void* left, const void* right, void* out, char* error,
                  std::size_t error_capacity);
int xcorr_close(void* session, char* error, std::size_t error_capacity);
int xcorr_reference(const char* request, const double* left, const double* right, double* out,
                    char* error, std::size_t error_capacity);
}

namespace xcorr::stress {

inline constexpr std::size_t kErrorBytes = 4096;

// f(error, capacity) is one call; its error becomes an exception.
template <typename F>
void checked(F&& f) {
  char error[kErrorBytes] = "";
  if (f(error, sizeof error) != 0) throw std::runtime_error(error);
}

// f(json, capacity, error, capacity) is one call that gives JSON.
template <typename F>
nlohmann::json answer(F&& f) {
  std::vector<char> json(1 << 16);
  char error[kErrorBytes] = "";
  int code = f(json.data(), json.size(), error, sizeof error);
  if (code == 2) {  // too small: it says how much is needed
    json.resize(std::stoul(json.data()));
    code = f(json.data(), json.size(), error, sizeof error);
  }
  if (code != 0) throw std::runtime_error(error);
  return nlohmann::json::parse(json.data());
}

class OpenSession {
 public:
  explicit OpenSession(const std::string& request) {
    checked([&](char* error, std::size_t n) {
      return xcorr_open(request.c_str(), &session_, error, n);
    });
  }
  ~OpenSession() {
    char error[kErrorBytes] = "";
    if (session_) xcorr_close(session_, error, sizeof error);
  }
  OpenSession(const OpenSession&) = delete;
  void compute(const float* left, const float* right, float* out) {
    checked([&](char* error, std::size_t n) {
      return xcorr_compute(session_, left, right, out, error, n);
    });
  }

 private:
  void* session_ = nullptr;
};

}  // namespace xcorr::stress
