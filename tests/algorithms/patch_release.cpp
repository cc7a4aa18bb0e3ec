// A library whose builds differ in what one number is (test_kernel_cache.cpp).
extern "C" const char* patch_release() { return PATCH; }
