import type { Spec } from '../spec.js'
import { type ApiNames, driver, runtime, zero } from './apiNames.js'
import { withContext, withRuntimeDevice } from './start.js'
import { address, type GroupBuilder, handle, integer, member, none, offset, out, presence, use } from './steps.js'

/** A node of the graph that comes after another one. */
const after = (node: string) => [use('graph'), address(node), integer(1)] as const

/** What is filled by a node, for every kind of params. */
const filled = {
  dst: use('memory'),
  pitch: integer(256),
  value: integer(7),
  elementSize: integer(4),
  width: integer(16),
  height: integer(2),
}

/** On input the length of the array, on output the number of nodes. */
const numberOfNodes = out('size_t', { initial: 8 })

export function driverGraphs(spec: Spec): GroupBuilder {
  const node = (name: string) => handle('CUgraphNode', name)
  const group = withContext(spec, 'driver-graphs')
    .setUp('cuMemAlloc', handle('CUdeviceptr', 'memory'), integer(4096))
    .setUp('cuGraphCreate', handle('CUgraph', 'graph'), zero)
    .setUp('cuGraphAddEmptyNode', node('first'), use('graph'), none, zero)
    .memory('fill', 'CUDA_MEMSET_NODE_PARAMS', filled)
    .setUp('cuGraphAddMemsetNode', node('second'), ...after('first'), address('fill'), use('context'))
    .setUp('cuEventCreate', handle('CUevent', 'event'), zero)
    .setUp('cuGraphAddEventRecordNode', node('third'), ...after('second'), use('event'))
    .memory('copy', 'CUDA_MEMCPY3D', {
      srcMemoryType: member('CUmemorytype', 'CU_MEMORYTYPE_DEVICE'),
      srcDevice: use('memory'),
      srcPitch: integer(256),
      srcHeight: integer(2),
      dstMemoryType: member('CUmemorytype', 'CU_MEMORYTYPE_DEVICE'),
      dstDevice: use('memory', 2048),
      dstPitch: integer(256),
      dstHeight: integer(2),
      WidthInBytes: integer(64),
      Height: integer(2),
      Depth: integer(1),
    })
    .setUp('cuGraphAddMemcpyNode', node('fourth'), ...after('third'), address('copy'), use('context'))
    .setUp('cuGraphAddEventWaitNode', node('fifth'), ...after('fourth'), use('event'))
    .setUp('cuGraphCreate', handle('CUgraph', 'inner'), zero)
    .setUp('cuGraphAddEmptyNode', node('innermost'), use('inner'), none, zero)
    .setUp('cuGraphAddChildGraphNode', node('sixth'), ...after('fifth'), use('inner'))
  askNodes(group, driver, () => group.ask('cuGraphGetNodes', use('graph'), none, numberOfNodes))
  group
    .ask(
      'cuGraphMemsetNodeGetParams',
      use('second'),
      out('CUDA_MEMSET_NODE_PARAMS', { fields: { dst: offset('memory') } }),
    )
    .ask(
      'cuGraphMemcpyNodeGetParams',
      use('fourth'),
      out('CUDA_MEMCPY3D', { fields: { srcDevice: offset('memory'), dstDevice: offset('memory') } }),
    )
    .ask('cuGraphEventRecordNodeGetEvent', use('third'), handle('CUevent'))
    .ask('cuGraphEventRecordNodeGetEvent', use('first'), out('CUevent'))
    .ask('cuGraphEventWaitNodeGetEvent', use('fifth'), handle('CUevent'))
    .ask('cuGraphChildGraphNodeGetGraph', use('sixth'), handle('CUgraph'))
  return end(group, driver).setUp('cuMemFree', use('memory'))
}

export function runtimeGraphs(spec: Spec): GroupBuilder {
  const node = (name: string) => handle('cudaGraphNode_t', name)
  const group = withRuntimeDevice(spec, 'runtime-graphs')
    .setUp('cudaMalloc', handle('void *', 'memory'), integer(4096))
    .setUp('cudaEventCreate', handle('cudaEvent_t', 'event'))
    .setUp('cudaGraphCreate', handle('cudaGraph_t', 'graph'), zero)
    .setUp('cudaGraphCreate', handle('cudaGraph_t', 'inner'), zero)
    .setUp('cudaGraphAddEmptyNode', node('innermost'), use('inner'), none, zero)
    .memory('fill', 'cudaMemsetParams', filled)
    .setUp('cudaGraphAddEmptyNode', node('first'), use('graph'), none, zero)
    .setUp('cudaGraphAddMemsetNode', node('second'), ...after('first'), address('fill'))
    .setUp('cudaGraphAddEventRecordNode', node('third'), ...after('second'), use('event'))
    .setUp('cudaGraphAddEventWaitNode', node('fourth'), ...after('third'), use('event'))
    .setUp('cudaGraphAddChildGraphNode', node('fifth'), ...after('fourth'), use('inner'))
    .setUp(
      'cudaGraphAddMemcpyNode1D',
      node('sixth'),
      ...after('fifth'),
      use('memory', 2048),
      use('memory'),
      integer(256),
      member('cudaMemcpyKind', 'cudaMemcpyDeviceToDevice'),
    )
  askNodes(group, runtime)
  group
    .ask('cudaGraphMemsetNodeGetParams', use('second'), out('cudaMemsetParams', { fields: { dst: offset('memory') } }))
    .ask('cudaGraphEventRecordNodeGetEvent', use('third'), handle('cudaEvent_t'))
    .ask('cudaGraphEventWaitNodeGetEvent', use('fourth'), handle('cudaEvent_t'))
    .ask('cudaGraphChildGraphNodeGetGraph', use('fifth'), handle('cudaGraph_t'))
  return end(group, runtime).setUp('cudaFree', use('memory'))
}

/** Asks the graph and each of its six nodes for nodes and edges. */
function askNodes(group: GroupBuilder, apiNames: ApiNames, askNumber: () => void = () => undefined): void {
  const { api } = apiNames
  const nodes = () => out(apiNames.node, { count: 8, compare: presence('handles of this process') })
  const edges = () => out(apiNames.edgeData, { count: 8 })
  group.ask(api('GraphGetNodes'), use('graph'), nodes(), numberOfNodes)
  askNumber()
  group
    .ask(api('GraphGetRootNodes'), use('graph'), nodes(), numberOfNodes)
    .ask(api('GraphGetEdges'), use('graph'), nodes(), nodes(), edges(), numberOfNodes)
  for (const node of ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'])
    group
      .ask(api('GraphNodeGetType'), use(node), out(apiNames.nodeType))
      .ask(api('GraphNodeGetDependencies'), use(node), nodes(), edges(), numberOfNodes)
      .ask(api('GraphNodeGetDependentNodes'), use(node), nodes(), edges(), numberOfNodes)
}

/** Asks the instantiated graph, then destroys everything but the memory. */
function end(group: GroupBuilder, { api, graphExec, word }: ApiNames): GroupBuilder {
  return group
    .setUp(api('GraphInstantiate'), handle(graphExec, 'exec'), use('graph'), zero)
    .ask(api('GraphExecGetFlags'), use('exec'), out(word))
    .ask(api('GraphNodeGetEnabled'), use('exec'), use('second'), out('unsigned int'))
    .setUp(api('GraphExecDestroy'), use('exec'))
    .setUp(api('GraphDestroy'), use('graph'))
    .setUp(api('GraphDestroy'), use('inner'))
    .setUp(api('EventDestroy'), use('event'))
}
