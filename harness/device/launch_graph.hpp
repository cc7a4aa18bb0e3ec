// What a call enqueues, read from a graph that captured it.
#pragma once

#include <cuda_runtime.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/device/cuda_check.hpp"
#include "harness/device/launches.hpp"

namespace xcorr {

// The edges of a graph: at most `count`, which becomes the number of all.
inline cudaError_t edges_of(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                            std::size_t& count) {
#if CUDART_VERSION >= 13000
  // A dependent launch has data at its edge, and is refused where nobody asks for them.
  std::vector<cudaGraphEdgeData> data(from == nullptr ? 0 : count);
  return cudaGraphGetEdges(graph, from, to, from == nullptr ? nullptr : data.data(), &count);
#else
  return cudaGraphGetEdges(graph, from, to, &count);
#endif
}

inline Launches launches_in(cudaGraph_t graph) {
  std::size_t count = 0, edges = 0;
  require_cuda(cudaGraphGetNodes(graph, nullptr, &count), "graph");
  std::vector<cudaGraphNode_t> nodes(count);
  require_cuda(cudaGraphGetNodes(graph, nodes.data(), &count), "graph");
  require_cuda(edges_of(graph, nullptr, nullptr, edges), "graph");
  std::vector<cudaGraphNode_t> from(edges), to(edges);
  require_cuda(edges_of(graph, from.data(), to.data(), edges), "graph");
  std::unordered_map<cudaGraphNode_t, Index> number;
  for (std::size_t i = 0; i < nodes.size(); ++i) number.emplace(nodes[i], static_cast<Index>(i));
  std::vector<std::pair<Index, Index>> pairs;
  for (std::size_t i = 0; i < edges; ++i) pairs.emplace_back(number.at(from[i]), number.at(to[i]));
  return count_launches(static_cast<Index>(count), pairs);
}

}  // namespace xcorr
