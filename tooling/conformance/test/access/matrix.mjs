// Uses memory of the kind that the first argument names, from both devices in every way: first through the packages,
// then by the device alone. Prints each result as JSON. An illegal access destroys the context, so each kind has a
// process of its own.
import { cuMemcpyAsync, cuMemcpyBatchAsync, cuMemcpyPeerAsync, cuMemsetD8Async } from '@shoal/cuda-sys/driver'
import { Device, DeviceBuffer, Module, prepareCopies } from '@shoal/driver'
import { copyNode, Graph, kernelNode } from '@shoal/driver/graph'
import { DeviceBuffer as RuntimeBuffer } from '@shoal/runtime'
import { Library } from '@shoal/runtime/library'
import { isMemoryLike, toMemoryRange } from '@shoal/types'
import { kinds, readOnly, writeOnly } from './kinds.mjs'

const ptx = `.version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 memory, .param .u64 own) {
  .reg .u64 %a<3>;
  .reg .u32 %r<2>;
  ld.param.u64 %a0, [memory];
  ld.param.u64 %a1, [own];
  ld.global.u32 %r0, [%a0];
  st.global.u32 [%a1], %r0;
  ret;
}
.visible .entry write(.param .u64 memory, .param .u64 own) {
  .reg .u64 %a<3>;
  .reg .u32 %r<2>;
  ld.param.u64 %a0, [memory];
  ld.param.u64 %a1, [own];
  ld.global.u32 %r0, [%a1];
  st.global.u32 [%a0], %r0;
  ret;
}
`
const kind = process.argv[2]
const bytes = 256
const shape = { grid: 1, block: 1 }

/** Creates the objects that a device needs to use the memory. */
function userOf(ordinal) {
  const device = Device.get(ordinal)
  const stream = device.createStream({ nonBlocking: true })
  const name = writeOnly.has(kind) ? 'write' : 'read'
  const kernel = Module.loadSync(device, ptx).kernel(name, ['ptr', 'ptr'])
  const ofRuntime = Library.loadSync(ptx, { device: ordinal }).kernel(name, ['ptr', 'ptr'])
  return { device, stream, kernel, ofRuntime, own: DeviceBuffer.zeros(device, 'u8', bytes) }
}

const users = [userOf(0), userOf(1)]
/** Objects that were created while the memory could still be used, by the ordinal of the device. */
const earlier = [undefined, undefined]

function prepareEarlier(memory) {
  for (const [ordinal, { device, stream, kernel, own }] of users.entries()) {
    const prepared = kernel.prepare({ ...shape, stream }, memory, own)
    const nodes = Graph.create(device)
    nodes.add(kernelNode(kernel, shape, memory, own))
    const captured = Graph.capture(stream, (capturing) => kernel.launch({ ...shape, stream: capturing }, memory, own))
    earlier[ordinal] = { prepared, node: nodes.instantiate(), captured: captured.instantiate() }
  }
}

const made = await kinds[kind](prepareEarlier)
const memoryFor = (ordinal) => (Array.isArray(made) ? made[ordinal] : made)

async function outcomeOf(stream, fn) {
  try {
    await fn()
  } catch (error) {
    return { outcome: 'refused', error: `${error.name}: ${error.message}` }
  }
  try {
    await stream.synchronize()
    return { outcome: 'accepted' }
  } catch (error) {
    return { outcome: 'lost', error: `${error.name}: ${error.message}` }
  }
}

function check(status) {
  if (status !== 0) throw new Error(`status ${status}`)
}

const results = []
for (const [ordinal, user] of users.entries()) {
  const { device, stream, kernel, ofRuntime, own } = user
  const memory = memoryFor(ordinal)
  const part = () => {
    const view = DeviceBuffer.view(device, memory, 'u8')
    return view.slice(0, bytes)
  }
  const whole = DeviceBuffer.zeros(device, 'u8', toMemoryRange(memory).byteLength)
  const launched = (graph) => graph.instantiate().launch(stream)
  const ways = writeOnly.has(kind)
    ? {}
    : {
        launch: () => kernel.launch({ ...shape, stream }, memory, own),
        prepare: () => kernel.prepare({ ...shape, stream }, memory, own).launch(),
        kernelNode: () => {
          const graph = Graph.create(device)
          graph.add(kernelNode(kernel, shape, memory, own))
          launched(graph)
        },
        captured: () =>
          launched(
            Graph.capture(stream, (capturing) => kernel.launch({ ...shape, stream: capturing }, memory, own), {
              mode: 'thread-local',
            }),
          ),
        'launch of a view': () => kernel.launch({ ...shape, stream }, part(), own),
        'launch of runtime': () => ofRuntime.launch({ ...shape, stream }, memory, own),
        'prepare of runtime': () => ofRuntime.prepare({ ...shape, stream }, memory, own).launch(),
      }
  if (earlier[ordinal] !== undefined) {
    const { prepared, node, captured } = earlier[ordinal]
    ways['prepared earlier'] = () => prepared.launch()
    ways['node of earlier'] = () => node.launch(stream)
    ways['captured earlier'] = () => captured.launch(stream)
  }
  if (!writeOnly.has(kind)) {
    const offers = isMemoryLike(memory)
    if (offers) ways.copyFrom = () => whole.copyFrom(memory, { stream })
    if (offers)
      ways['copyFrom of runtime'] = () =>
        RuntimeBuffer.allocate('u8', whole.length, { device: ordinal }).copyFrom(memory, { stream })
    ways['copyFrom of a view'] = () => own.copyFrom(part(), { stream })
    ways['copyNode from it'] = () => {
      const graph = Graph.create(device)
      graph.add(copyNode(whole, memory))
      launched(graph)
    }
    if (offers)
      ways['captured copy from it'] = () =>
        launched(Graph.capture(stream, (capturing) => whole.copyFrom(memory, { stream: capturing })))
    ways['prepared copies from it'] = () =>
      prepareCopies(device, [{ target: whole, source: memory }]).launch({ stream })
  }
  if (!readOnly.has(kind)) {
    ways['copy to it'] = () => part().copyFrom(own, { stream })
    ways['prepared copies to it'] = () => prepareCopies(device, [{ target: memory, source: whole }]).launch({ stream })
    ways['copyNode to it'] = () => {
      const graph = Graph.create(device)
      graph.add(copyNode(memory, whole))
      launched(graph)
    }
    ways.fill = () => part().fill(1, { stream })
  }
  for (const [way, fn] of Object.entries(ways)) {
    results.push({ way, user: ordinal, ...(await outcomeOf(stream, fn)) })
  }
}

// The device's own answer: uses only the address, which no package checks.
const truths = []
for (const [ordinal, { device, stream, own }] of users.entries()) {
  const { address, context: theirs, deviceOrdinal } = toMemoryRange(memoryFor(ordinal))
  const { primaryContext: context } = device
  const raw = (call) => () => context.run(() => check(call()))
  const handle = () => stream.handle
  const any = async (...calls) => {
    const outcomes = []
    for (const call of calls) outcomes.push(await outcomeOf(stream, raw(call)))
    return outcomes.find(({ outcome }) => outcome === 'accepted') ?? outcomes[0]
  }
  const list = (value) => BigUint64Array.of(value)
  const attributes = new Uint8Array(24)
  attributes[0] = 1
  const batch = (to, from) => () =>
    cuMemcpyBatchAsync(list(to), list(from), list(BigInt(bytes)), 1, attributes, list(0n), 1, handle())
  const mine = context.handle
  // Two contexts, each with the access of its own device, or one context for host memory.
  const asPeer = (call) => (deviceOrdinal < 0 ? [] : [call])
  const answers = {}
  if (!writeOnly.has(kind)) {
    answers.viewRead = await any(() => cuMemcpyAsync(own.address, address, bytes, handle()))
    answers.read = await any(
      () => cuMemcpyAsync(own.address, address, bytes, handle()),
      ...asPeer(() => cuMemcpyPeerAsync(own.address, mine, address, theirs, bytes, handle())),
    )
    answers.batchRead = await any(batch(own.address, address))
  }
  if (!readOnly.has(kind)) {
    answers.viewWrite = await any(() => cuMemcpyAsync(address, own.address, bytes, handle()))
    answers.write = await any(
      () => cuMemcpyAsync(address, own.address, bytes, handle()),
      ...asPeer(() => cuMemcpyPeerAsync(address, theirs, own.address, mine, bytes, handle())),
    )
    answers.batchWrite = await any(batch(address, own.address))
    answers.fill = await any(() => cuMemsetD8Async(address, 1, bytes, handle()))
  }
  truths.push(answers)
}
// This comes last, because an illegal access destroys the context.
for (const [ordinal, { stream, kernel, own }] of users.entries()) {
  const { address } = toMemoryRange(memoryFor(ordinal))
  truths[ordinal].launch = await outcomeOf(stream, () => kernel.launch({ ...shape, stream }, address, own))
}

process.stdout.write(`${JSON.stringify({ results, truths })}\n`, () => process.exit())
