import { expect, test } from 'vitest'
import { start } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)

test('each kernel runs on its part of the software device', async () => {
  const { code, output, errors } = await start(main, [], { SHOAL_SIM_DEVICES: '1' }).end
  expect(output).toContain(
    'Shoal Software Device (SOFTWARE: this CPU, no GPU), 4 multiprocessors: 2 for what is urgent, 2 for',
  )
  expect(output).toContain('the urgent kernel ran on 2 multiprocessors, the long one on 2: none in common')
  expect(output).toMatch(/the urgent kernel ended (while|after)/)
  expect(errors).not.toContain('ShoalLeakWarning')
  expect(code).toBe(0)
})

test('without a driver the program fails with one line', async () => {
  const { code, errors } = await start(main, [], { SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' }).end
  expect(errors).toContain('partitioned-gpu: ')
  expect(code).toBe(2)
})
