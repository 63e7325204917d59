import assert from 'node:assert/strict'
import { type CUcontext, cuCtxGetCurrent, cuCtxSetCurrent } from '@shoal/cuda-sys/driver'
import { type ContextLimit, type Device, DeviceBuffer, DisposedError } from '@shoal/driver'
import type { Suite } from '../../suite.js'

function currentContext(): bigint {
  const cell = new BigUint64Array(1)
  assert.equal(cuCtxGetCurrent(cell), 0)
  return cell[0] as bigint
}

export const contextSuite: Suite = {
  name: 'driver context',
  cases: [
    {
      name: 'run() makes the context current and restores what was current',
      run(t) {
        const before = currentContext()
        const { primaryContext } = t.device
        assert.equal(primaryContext.run(currentContext), primaryContext.handle)
        assert.equal(currentContext(), before)
        assert.throws(() =>
          primaryContext.run(() => {
            throw new Error('from inside')
          }),
        )
        assert.equal(currentContext(), before)
      },
    },
    {
      name: 'run() takes functions that are not asynchronous, and nothing else',
      run(t) {
        const { primaryContext } = t.device
        const before = currentContext()
        for (const wrong of [5, null, undefined]) {
          assert.throws(() => primaryContext.run(wrong as unknown as () => void), /fn must be a function/)
        }
        const refusal = { name: 'TypeError', message: /Context.run: fn must be a (synchronous )?function/ }
        assert.throws(() => primaryContext.run(async () => undefined), refusal)
        assert.throws(() => primaryContext.run(() => Promise.reject(new Error('ends no process'))), refusal)
        assert.equal(currentContext(), before)
      },
    },
    {
      name: 'setCurrent() makes it current until another one is',
      requires: { devices: 2 },
      run(t) {
        const [first, second] = t.devices as [Device, Device]
        const before = currentContext()
        t.defer(() => assert.equal(cuCtxSetCurrent(before as CUcontext), 0))
        first.primaryContext.setCurrent()
        assert.equal(first.primaryContext.isCurrent, true)
        assert.equal(second.primaryContext.isCurrent, false)
        second.memoryInfo()
        assert.equal(first.primaryContext.isCurrent, true)
      },
    },
    {
      name: 'operations leave the current context of the caller as it was',
      requires: { devices: 2 },
      async run(t) {
        const [first, second] = t.devices as [Device, Device]
        const stream = t.own(second.createStream())
        first.primaryContext.run(() => {
          const buffer = t.own(DeviceBuffer.from(second, new Float32Array(3)))
          buffer.fill(1, { stream })
          t.own(stream.record())
          stream.query()
          assert.equal(currentContext(), first.primaryContext.handle)
          assert.throws(() => buffer.fill('1' as unknown as number), TypeError)
          assert.equal(currentContext(), first.primaryContext.handle)
        })
        await stream.synchronize()
      },
    },
    {
      name: 'nested run() of two devices restores in order',
      requires: { devices: 2 },
      run(t) {
        const [first, second] = t.devices as [Device, Device]
        first.primaryContext.run(() => {
          second.primaryContext.run(() => assert.equal(currentContext(), second.primaryContext.handle))
          assert.equal(currentContext(), first.primaryContext.handle)
        })
      },
    },
    {
      name: 'limits are read and set',
      run(t) {
        const { primaryContext } = t.device
        const before = primaryContext.getLimit('STACK_SIZE')
        assert.ok(before > 0)
        primaryContext.setLimit('STACK_SIZE', before + 1024)
        assert.ok(primaryContext.getLimit('STACK_SIZE') >= before + 1024)
        primaryContext.setLimit('STACK_SIZE', before)
        for (const wrong of ['NO_SUCH', 'MAX', 'toString', undefined, Symbol('STACK_SIZE')]) {
          assert.throws(() => primaryContext.getLimit(wrong as ContextLimit), /Context.getLimit: limit must be/)
        }
        assert.throws(() => primaryContext.setLimit('STACK_SIZE', -1), RangeError)
      },
    },
    {
      name: 'a greater priority is a lower number',
      run(t) {
        const { least, greatest } = t.device.primaryContext.streamPriorityRange
        assert.ok(greatest <= least, `${greatest} … ${least}`)
      },
    },
    {
      name: 'synchronize() resolves, and the blocking one returns',
      async run(t) {
        assert.equal(await t.device.synchronize(), t.device)
        t.device.synchronizeSync()
        assert.ok(t.device.primaryContext.apiVersion > 0)
      },
    },
    {
      name: 'a context stays while something lives in it, and goes afterwards',
      async run(t) {
        const device = t.devices.at(-1) as Device
        device.dispose()
        const context = device.primaryContext
        const buffer = DeviceBuffer.from(device, Float32Array.of(1, 2, 3))
        device.dispose()
        assert.equal(context.disposed, false)
        assert.deepEqual([...(await buffer.toArray())], [1, 2, 3])
        buffer.disposeSync()
        assert.equal(context.disposed, true)
        assert.throws(() => context.handle, DisposedError)
      },
    },
  ],
}
