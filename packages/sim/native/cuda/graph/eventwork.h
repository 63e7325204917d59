// Event record and event wait as nodes.
#pragma once

#include "core/event.h"
#include "work.h"

namespace shoal {

CUresult prepareRecord(const std::shared_ptr<Event>& event, Operation& operation);
// Leaves `run` empty if there is nothing to wait for.
CUresult prepareWait(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream, Operation& operation);

class EventRecordWork : public Work {
 public:
  EventRecordWork(std::shared_ptr<Event> event, CUevent handle) : event(std::move(event)), handle(handle) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
  std::shared_ptr<Context> context() const override { return event->context; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override {
    return stream ? prepareRecord(event, operation) : CUDA_SUCCESS;
  }
  const std::shared_ptr<Event> event;
  const CUevent handle;
};

class EventWaitWork : public Work {
 public:
  EventWaitWork(std::shared_ptr<Event> event, CUevent handle) : event(std::move(event)), handle(handle) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
  CUresult prepare(const std::shared_ptr<Stream>& stream, Operation& operation) const override {
    if (!stream) return CUDA_SUCCESS;
    operation.run = [] { return CUDA_SUCCESS; };
    return prepareWait(event, stream, operation);
  }
  const std::shared_ptr<Event> event;
  const CUevent handle;
};

}  // namespace shoal
