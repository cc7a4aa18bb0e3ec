// The sessions that callers of the C API have open. A handle is a number that is never used again, so
// that a session that was closed, or never opened, is found out.
#pragma once

#include <memory>

#include "harness/library/session.hpp"

namespace xcorr {

// `uses_cuda`: the session is of no use in a child of this process.
void* keep_session(std::unique_ptr<Session> session, bool uses_cuda);
// One thread at a time computes with a session; others wait. Throws UserError for a handle that is no
// open session.
void compute_with(void* handle, const Arrays& arrays);
void close_session(void* handle);

}  // namespace xcorr
