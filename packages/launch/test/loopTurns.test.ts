import { bootstrap, type Job } from '@shoal/launch'
import { expect, test } from 'vitest'
import { loopTurns } from '../../ffi/test/support/loopTurns.js'
import { startJob } from './support/jobs.js'

const bytes = Uint8Array.of(1)
const calls: { readonly [name: string]: (job: Job) => PromiseLike<unknown> } = {
  share: (job) => job.share('share', () => bytes),
  gather: (job) => job.gather('gather', bytes),
  barrier: (job) => job.barrier('barrier'),
  set: (job) => job.set('key', bytes),
  get: (job) => job.get('key'),
}

test.each(Object.entries(calls))('Job.%s of a single process in a loop lets the event loop turn', async (_, call) => {
  const job = await bootstrap({ environment: {} })
  await job.set('key', bytes)
  expect(await loopTurns(() => call(job))).toBe(true)
  await job.dispose()
})

test.each(Object.entries(calls))('Job.%s over a rendezvous in a loop lets the event loop turn', async (_, call) => {
  const { jobs } = await startJob(1)
  const job = jobs[0] as Job
  await job.set('key', bytes)
  expect(await loopTurns(() => call(job))).toBe(true)
})
