// Times calls behind a gate: the stream is held until all of them are enqueued, so that the pace of
// the host is not in the time. The rule alone, without CUDA (docs/design.md, Time).
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "harness/device/device.hpp"

namespace xcorr {

// A gate in the stream of a device.
class Gate {
 public:
  virtual ~Gate() = default;
  // Holds the stream until open(), for at most `longest`. What follows is timed.
  virtual void close(Seconds longest) = 0;
  // Whether the gate has let the stream go by itself since close(), because `longest` was over.
  virtual bool let_go() = 0;
  // Ends the timed part, lets the stream go and waits for it. The time since close().
  virtual Timed open() = 0;
};

// How long a gate holds while the number of calls is sought that fit into the queue. The queue of a
// device holds about a thousand launches, which a host enqueues in 5 ms.
inline constexpr Seconds kSeekTime = 20e-3;
// The longest of so many searches counts: a host may be held up during one, and CUDA loads a kernel
// with its first launch, for which it may wait for the device.
inline constexpr int kSearches = 2;
// How long a gate holds a part of a sample. A busy host may stop for several tens of milliseconds.
inline constexpr Seconds kHoldTime = 200e-3;
// Times that a single call may find its gate open before it counts as one that waits for itself. The first gate holds for
// kSeekTime, and the others for kHoldTime.
inline constexpr int kTries = 3;
// A call with more launches than the queue of a stream holds may have several streams. It has two tries, with gates that hold for
// this time a launch, four times what a host takes to enqueue one.
inline constexpr int kTriesOfMany = 2;
inline constexpr Seconds kLaunchTime = 20e-6;

// More launches than the queue of any device holds.
inline constexpr Index kMostLaunches = 65536;

struct GatedPart {
  Index held;  // calls that were enqueued while the gate was closed
  Timed timed;
};

// `calls` calls of `compute` behind one gate.
inline GatedPart time_part(Gate& gate, const std::function<void()>& compute, Index calls,
                           Seconds longest) {
  gate.close(longest);
  Index held = 0;
  for (; held < calls; ++held) {
    compute();
    if (gate.let_go()) break;
  }
  const Timed timed = gate.open();
  return {gate.let_go() ? std::min(held, calls - 1) : calls, timed};
}

// How many of `calls` calls are enqueued while the gate is closed.
inline Index search(Gate& gate, const std::function<void()>& compute, Index calls) {
  Index held = 0;
  for (int i = 0; i < kSearches && held < calls; ++i) {
    held = std::max(held, time_part(gate, compute, calls, kSeekTime).held);
  }
  return held;
}

// What a call enqueues: all of its launches, and those of its longest chain, of which each waits for the one before. A stream has
// at least the launches of a chain in its queue. 0: not known.
struct Launches {
  Index all = 0, chain = 0;
};

// Counts `nodes` launches, of which the second of each of `edges` waits for the first. No node waits for itself.
inline Launches count_launches(Index nodes, const std::vector<std::pair<Index, Index>>& edges) {
  std::vector<std::vector<Index>> after(nodes);
  std::vector<Index> waits(nodes, 0), place(nodes, 1), ready;
  for (const auto& [from, to] : edges) after[from].push_back(to), ++waits[to];
  for (Index node = 0; node < nodes; ++node) {
    if (waits[node] == 0) ready.push_back(node);
  }
  Launches found{nodes, 0};
  while (!ready.empty()) {
    const Index node = ready.back();
    ready.pop_back();
    found.chain = std::max(found.chain, place[node]);
    for (const Index later : after[node]) {
      place[later] = std::max(place[later], place[node] + 1);
      if (--waits[later] == 0) ready.push_back(later);
    }
  }
  return found;
}

// The pace of calls whose launches are known, where a queue holds `queue` launches: a part takes at most half of it. Calls of
// several launches may use several streams, whose events need places too. A chain that is longer than the queue never fits.
inline Pace pace_of(Launches launches, Index queue) {
  if (launches.all == 0) return {};
  const Index share = launches.all == 1 ? queue / 2 : queue / 4;
  Pace pace{std::max<Index>(share / launches.all, 1), true, launches.chain > queue};
  pace.many = launches.all > queue;
  if (pace.many) {
    pace.hold = std::clamp(kLaunchTime * static_cast<double>(launches.all), kSeekTime, kHoldTime);
  }
  return pace;
}

// Time of `count` calls of `compute` in parts, each behind a closed gate. A part takes at most half
// of the queue: of calls that fit, at most half are enqueued at once. A part whose gate lets go
// early is not counted and measured again, with fewer calls. A single call that is not enqueued
// while its gate is closed waits for its own work, or has more launches than the queue holds. Then
// pace.by_host becomes true, and the time is not to be used. How many calls fit is sought where the
// pace is not known (pace_of).
// `queue`: the launches that the queue holds. Calls have at least one, so that no search needs more of
// them; it leaves a quarter to the gate, since whoever finds the queue full waits until the gate lets go.
// `launches` counts those of a call. It is asked once a single call whose launches are not known has found its gate open.
inline Timed time_gated(
    Gate& gate, const std::function<void()>& compute, Index count, Pace& pace,
    Index queue = kMostLaunches,
    const std::function<Launches()>& launches = [] { return Launches{}; }) {
  if (!pace.by_host && !pace.limited && count > std::max<Index>(pace.calls, 1)) {
    const Index held = search(gate, compute, std::min(2 * count, queue - queue / 4));
    pace.limited = held < 2 * count;
    pace.calls = std::max<Index>(held / 2, 1);
  }
  Timed sum;
  int failures = 0;
  bool known = pace.calls > 0;
  Seconds longest_call = pace.many ? pace.hold : kSeekTime;
  for (Index done = 0; done < count && !pace.by_host;) {
    const Index calls = std::min(count - done, std::max<Index>(pace.calls, 1));
    const GatedPart measured =
        time_part(gate, compute, calls, calls > 1 ? kHoldTime : longest_call);
    if (measured.held == calls) {
      sum.add(measured.timed);
      done += calls;
    } else if (calls > 1) {
      pace.limited = true;
      pace.calls = std::max<Index>(measured.held / 2, 1);
    } else {
      if (!known) {
        known = true;
        if (const Pace found = pace_of(launches(), queue); found.many) pace = found;
      }
      longest_call = pace.many ? pace.hold : kHoldTime;
      pace.by_host |= ++failures == (pace.many ? kTriesOfMany : kTries);
    }
  }
  return sum;
}

}  // namespace xcorr
