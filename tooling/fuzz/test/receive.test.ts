import { expect, test } from 'vitest'
import { runReceiveCampaign } from '../dist/receive/campaign.js'

test('wrong messages of a new seed open nothing and leak nothing', async () => {
  const seed = Math.floor(Math.random() * 1e9)
  const { ran, refused, opened, failures } = await runReceiveCampaign({ seed, count: 300 })
  expect(failures, `seed ${seed}`).toEqual([])
  expect(ran).toBe(300)
  expect(refused).toBeGreaterThan(opened)
})

test('senders killed within a message leak nothing', async () => {
  const seed = Math.floor(Math.random() * 1e9)
  const { ran, failures } = await runReceiveCampaign({ seed, count: 2, only: 'death' })
  expect({ seed, ran, failures }).toEqual({ seed, ran: 2, failures: [] })
})
