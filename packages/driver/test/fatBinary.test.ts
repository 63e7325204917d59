import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as zlib from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

process.env['SHOAL_DEVICE'] = 'sim'
const { Device, DeviceBuffer, Module } = await import('@shoal/driver')
const device = Device.get(0)
const folder = scratchFolder()

const ptx = `.version 8.0
.target sm_75
.address_size 64
.visible .entry store(.param .u64 p)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1], 77;
  ret;
}
`
const text = Buffer.from(`${ptx}\0`)

/** Builds a fat binary that contains only PTX. `flags` contain its compression. */
function fatBinary(content: Uint8Array, flags = 0n, whole = text.length): Uint8Array {
  const image = Buffer.alloc(16 + 64 + Math.ceil(content.length / 8) * 8)
  image.writeUInt32LE(0xba55ed50, 0)
  image.writeUInt16LE(1, 4)
  image.writeUInt16LE(16, 6)
  image.writeBigUInt64LE(BigInt(image.length - 16), 8)
  image.writeUInt16LE(1, 16) // PTX
  image.writeUInt32LE(64, 20)
  image.writeBigUInt64LE(BigInt(image.length - 80), 24)
  image.writeUInt32LE(content.length, 32)
  image.writeBigUInt64LE(flags, 56)
  image.writeBigUInt64LE(BigInt(whole), 72)
  image.set(content, 80)
  return image
}

const lz4 = 0x2000n
const zstd = 0x8000n

/** Encodes an LZ4 block with a single run of literals. */
function lz4Literals(bytes: Uint8Array): Uint8Array {
  const rest = bytes.length - 15
  const lengths = [...new Array<number>(Math.floor(rest / 255)).fill(255), rest % 255]
  return Buffer.concat([Uint8Array.from([0xf0, ...lengths]), bytes])
}

/** Encodes a zstd frame with a single raw block. */
function zstdRaw(bytes: Uint8Array): Uint8Array {
  const head = Buffer.alloc(12)
  head.writeUInt32LE(0xfd2fb528, 0)
  head[4] = 0xa0 // one segment, its size in four bytes
  head.writeUInt32LE(bytes.length, 5)
  head.writeUIntLE((bytes.length << 3) | 1, 9, 3)
  return Buffer.concat([head, bytes])
}

async function run(image: Uint8Array): Promise<number> {
  using module = await Module.load(device, image)
  using out = DeviceBuffer.zeros(device, 'u32', 1)
  module.kernel('store', ['ptr']).launch({ grid: 1, block: 1 }, out)
  return (await out.toArray())[0] as number
}

/** Returns why zstd cannot be tested; undefined if the system has the library that the software device uses. */
async function zstdReason(): Promise<string | undefined> {
  const error = await run(fatBinary(zstdRaw(text), zstd)).catch((each: unknown) => each as Error)
  return error instanceof Error && error.message.includes('install libzstd.so.1') ? 'no libzstd.so.1 here' : undefined
}
const reason = await zstdReason()

describe('the PTX of a fat binary runs', () => {
  test('when stored uncompressed', async () => {
    expect(await run(fatBinary(text))).toBe(77)
  })

  test('when compressed with LZ4', async () => {
    expect(await run(fatBinary(lz4Literals(text), lz4))).toBe(77)
  })

  test('when stored in a zstd frame', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    expect(await run(fatBinary(zstdRaw(text), zstd))).toBe(77)
  })

  test('when compressed with zstd', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Uint8Array) => Uint8Array }
    if (zstdCompressSync === undefined) return skip(`Node ${process.version} has no zstd`)
    expect(await run(fatBinary(zstdCompressSync(text), zstd))).toBe(77)
  })

  test.for(['default', 'size', 'speed', 'balance', 'none'])(
    'when made by nvcc --compress-mode=%s',
    async (mode, { skip }) => {
      if (spawnSync('nvcc', ['--version']).status !== 0) return skip('no nvcc here')
      const [source, image] = [join(folder, 'store.cu'), join(folder, `${mode}.fatbin`)]
      // Long enough for compression to pay off.
      const more = Array.from({ length: 50 }, (_, index) => `if (*p == ${index}) p[${index}] = ${index * 3};`).join(
        '\n',
      )
      writeFileSync(source, `extern "C" __global__ void store(unsigned* p) { ${more} *p = 77; }`)
      const code = ['-gencode', 'arch=compute_75,code=compute_75', `--compress-mode=${mode}`]
      try {
        execFileSync('nvcc', ['-fatbin', ...code, '-o', image, source], { stdio: 'pipe' })
      } catch (error) {
        return skip(`this nvcc does not pack so: ${String((error as { stderr?: Buffer }).stderr).split('\n')[0]}`)
      }
      const isZstd = mode === 'default' || mode === 'size' || mode === 'balance'
      if (isZstd && reason !== undefined) return skip(reason)
      expect(await run(readFileSync(image))).toBe(77)
    },
  )
})

describe('wrongly compressed code is refused', () => {
  test.each<readonly [what: string, image: Uint8Array]>([
    ['truncated LZ4', fatBinary(lz4Literals(text).subarray(0, 40), lz4)],
    ['LZ4 longer than the size in the header', fatBinary(lz4Literals(text), lz4, 20)],
    ['truncated zstd', fatBinary(zstdRaw(text).subarray(0, 40), zstd)],
    ['zstd longer than the size in the header', fatBinary(zstdRaw(text), zstd, 20)],
    ['text that is not zstd', fatBinary(text, zstd)],
    ['a header with a size of a billion bytes', fatBinary(zstdRaw(text), zstd, 2 ** 30)],
    ['a header with a size beyond the file', fatBinary(zstdRaw(text), zstd, 2 ** 52)],
  ])('%s', async (what, image) => {
    const code =
      reason !== undefined && what.includes('zstd') ? 'CUDA_ERROR_NO_BINARY_FOR_GPU' : 'CUDA_ERROR_INVALID_IMAGE'
    await expect(run(image)).rejects.toMatchObject({ code })
  })
})
