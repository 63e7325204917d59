import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { groupsOf } from '../dist/list/index.js'
import { notAsked, notAskedFamilies, soundsLikeQuestion } from '../dist/list/notAsked.js'
import { readSpecs } from '../dist/spec.js'

const specs = readSpecs(fileURLToPath(new URL('../../bindgen/spec', import.meta.url)))

describe('the list of the sweep', () => {
  for (const [library, spec] of specs) {
    const asked = new Set(
      groupsOf(spec).flatMap(({ steps }) => steps.flatMap((step) => (step.kind === 'call' ? [step.function] : []))),
    )

    it(`has every function of ${library} that reads like a question, or says why not`, () => {
      const families = notAskedFamilies.filter((family) => family.library === library)
      const unexplained = [...spec.functions.values()].filter(
        ({ name, supersededBy }) =>
          supersededBy === undefined &&
          soundsLikeQuestion.test(name) &&
          !asked.has(name) &&
          notAsked[library][name] === undefined &&
          !families.some(({ pattern }) => pattern.test(name)),
      )
      expect(unexplained.map(({ name }) => name)).toEqual([])
    })

    it(`gives no reason for what is asked of ${library} or does not exist`, () => {
      const stale = Object.keys(notAsked[library]).filter((name) => asked.has(name) || !spec.functions.has(name))
      expect(stale).toEqual([])
    })
  }

  it('never makes a multicast object', () => {
    const driver = specs.get('driver')
    const made = driver && groupsOf(driver).flatMap(({ steps }) => steps)
    expect(made?.some((step) => step.kind === 'call' && /^cuMulticast(?!GetGranularity)/.test(step.function))).toBe(
      false,
    )
  })
})
