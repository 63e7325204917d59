import type { Spec } from '../spec.js'
import { type ApiNames, driver, runtime, zero } from './apiNames.js'
import { withContext, withRuntimeDevice } from './start.js'
import { type GroupBuilder, handle, integer, member, out, presence, use, type Value } from './steps.js'

const made = ['blocking', 'nonBlocking', 'urgent']

export function driverStreams(spec: Spec): GroupBuilder {
  const group = withContext(spec, 'driver-streams')
    .setUp('cuStreamCreate', handle('CUstream', 'blocking'), zero)
    .setUp('cuStreamCreate', handle('CUstream', 'nonBlocking'), member('CUstream_flags', 'CU_STREAM_NON_BLOCKING'))
    .setUp('cuStreamCreateWithPriority', handle('CUstream', 'urgent'), integer(1), integer(-2))
  askAll(group, driver, (stream) =>
    group
      .ask('cuStreamGetCtx', stream, handle('CUcontext'))
      .ask('cuStreamGetCtx_v2', stream, handle('CUcontext'), out('CUgreenCtx'))
      .ask('cuStreamGetGreenCtx', stream, out('CUgreenCtx')),
  )
  return end(group.setUp('cuEventCreate', handle('CUevent', 'event'), zero), driver)
}

export function runtimeStreams(spec: Spec): GroupBuilder {
  const group = withRuntimeDevice(spec, 'runtime-streams')
    .setUp('cudaStreamCreate', handle('cudaStream_t', 'blocking'))
    .setUp('cudaStreamCreateWithFlags', handle('cudaStream_t', 'nonBlocking'), integer(1))
    .setUp('cudaStreamCreateWithPriority', handle('cudaStream_t', 'urgent'), integer(1), integer(-2))
  askAll(group, runtime)
  return end(group.setUp('cudaEventCreate', handle('cudaEvent_t', 'event')), runtime)
}

/** Of the default streams (their own, legacy and per thread) and those that were made. */
function askAll(group: GroupBuilder, apiNames: ApiNames, askContext: (stream: Value) => void = () => undefined): void {
  const { api } = apiNames
  for (const stream of [zero, integer(1), integer(2), ...made.map((name) => use(name))]) {
    group
      .ask(api('StreamGetFlags'), stream, out('unsigned int'))
      .ask(api('StreamGetPriority'), stream, out('int'))
      .ask(api('StreamGetDevice'), stream, out(apiNames.deviceType))
      .ask(api('StreamGetId'), stream, out('unsigned long long', { compare: presence('a number of this process') }))
    askContext(stream)
    group
      .ask(api('StreamIsCapturing'), stream, out(apiNames.captureStatus))
      .ask(api('StreamQuery'), stream)
      .ask(
        api('StreamGetCaptureInfo'),
        stream,
        out(apiNames.captureStatus),
        out(apiNames.word),
        out(apiNames.graph),
        out('void *'),
        out('void *'),
        out('size_t'),
      )
    group.each(apiNames.attributeId, (attribute) =>
      group.ask(api('StreamGetAttribute'), stream, attribute, out(apiNames.attributeValue)),
    )
  }
}

function end(group: GroupBuilder, { api }: ApiNames): GroupBuilder {
  group.ask(api('EventQuery'), use('event')).setUp(api('EventDestroy'), use('event'))
  for (const name of made) group.setUp(api('StreamDestroy'), use(name))
  return group
}
