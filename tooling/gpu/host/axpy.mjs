// Computes y = a * x + y over 2^24 + 3 elements, from PTX and from a cubin, and compares every element bit for bit.
import { randomInt } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Device, DeviceBuffer, Module } from '@shoal/driver'

const length = 2 ** 24 + 3
const block = 256
const a = 2.5
const jsonFile = process.argv[2] === '--json' ? process.argv[3] : undefined

// The inputs are multiples of 2^-20 below 1, so a * x is exact in float32. The sum is then rounded once, fused or not.
const seed = randomInt(2 ** 31)
const x = randomArray(seed)
const y = randomArray(seed + 1)
const expected = Float32Array.from(x, (value, index) => Math.fround(a * value + y[index]))

const results = []
for (const device of Device.all()) {
  const { major, minor } = device.computeCapability
  for (const [kind, file] of [
    ['PTX', 'axpy.ptx'],
    ['cubin', `axpy.sm_${major}${minor}.cubin`],
  ]) {
    const path = `${process.env.SHOAL_KERNELS}/${file}`
    if (!existsSync(path)) throw new Error(`there is no ${file} for ${device.name}`)
    results.push({
      device: device.ordinal,
      name: device.name,
      image: kind,
      ...(await runAxpy(device, readFileSync(path))),
    })
  }
}
for (const { device, name, image, mismatches } of results) {
  console.log(`device ${device} (${name}), ${image}: ${length} elements, seed ${seed}, ${mismatches} wrong`)
}
if (jsonFile) writeFileSync(jsonFile, JSON.stringify({ length, seed, results }))
process.exitCode = results.length > 0 && results.every(({ mismatches }) => mismatches === 0) ? 0 : 1

async function runAxpy(device, image) {
  const module = await Module.load(device, image)
  const kernel = module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
  const stream = device.createStream()
  const deviceX = DeviceBuffer.from(device, x)
  const deviceY = DeviceBuffer.from(device, y)
  kernel.launch({ grid: Math.ceil(length / block), block, stream }, a, deviceX, deviceY, length)
  await stream.synchronize()
  const found = await deviceY.toArray({ stream })
  let mismatches = 0
  for (let index = 0; index < length; index += 1) if (found[index] !== expected[index]) mismatches += 1
  for (const object of [deviceX, deviceY, stream, module]) object.dispose()
  return { mismatches }
}

/** Returns pseudo-random multiples of 2^-20 in [-1, 1). The same seed gives the same numbers. */
function randomArray(seed) {
  let state = seed
  const values = new Float32Array(length)
  for (let index = 0; index < length; index += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    values[index] = ((state >>> 11) - 2 ** 20) / 2 ** 20
  }
  return values
}
