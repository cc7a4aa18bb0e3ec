/* Correlates two small matrices with libxcorr and prints the output at shift (0, 0), which is 1*1 +
   2*2 + 3*3 + 4*4 = 30.

   cc example.c $(pkg-config --cflags --libs xcorr) -o example && ./example
   The installed package says where its pkg-config file lies:
   PKG_CONFIG_PATH=$(python3 -c 'import xcorr.paths; print(xcorr.paths.PKG_CONFIG)') */
#include <stdio.h>
#include <xcorr.h>

static int failed(const char* step, const char* error) {
  fprintf(stderr, "error: %s: %s\n", step, error);
  return 1;
}

int main(void) {
  const char* request =
      "{\"form\": \"one-to-one\", \"left\": [2, 2], \"right\": [2, 2], \"lefts\": 1, \"rights\": 1,"
      " \"variant\": \"cpu_fft\", \"device\": \"cpu\"}";
  const float left[2][2] = {{1, 2}, {3, 4}}, right[2][2] = {{1, 2}, {3, 4}};
  float out[3][3]; /* shifts -1, 0 and 1 in both directions */
  char error[256];
  void* session = NULL;
  if (xcorr_abi_version() != XCORR_ABI_VERSION) return failed("libxcorr", "of another version");
  if (xcorr_open(request, &session, error, sizeof error)) return failed("xcorr_open", error);
  if (xcorr_compute(session, left, right, out, error, sizeof error)) {
    return failed("xcorr_compute", error);
  }
  if (xcorr_close(session, error, sizeof error)) return failed("xcorr_close", error);
  printf("%.1f\n", (double)out[1][1]);
  return 0;
}
