import { fileURLToPath } from 'node:url'
import { deviceLibraryNames } from '@shoal/bindgen/dist/spec/types.js'
import { describe, expect, it } from 'vitest'
import { groupsOf, notAsked, readGroups } from '../dist/list.js'
import { readSpecs, type Spec } from '../dist/spec.js'

const specs = readSpecs(fileURLToPath(new URL('../../bindgen/spec', import.meta.url)))

const soundsLikeQuestion =
  /(Get|Query|Occupancy|CanAccess|IsLoaded|IsCapturing|ComputeCapability|Peek|LogsCurrent|Enumerate|Choose|_get|_info|_version|_my_pe|_n_pes|status)/

describe('the list of the sweep', () => {
  for (const library of deviceLibraryNames) {
    const spec = specs.get(library) as Spec
    const asked = new Set(
      groupsOf(spec).flatMap(({ steps }) => steps.flatMap((step) => (step.kind === 'call' ? [step.function] : []))),
    )

    it(`has every query function of ${library}, or a reason against it`, () => {
      const families = Object.keys(notAsked.families[library]).map((pattern) => new RegExp(pattern))
      const unexplained = [...spec.functions.values()].filter(
        ({ name, supersededBy }) =>
          supersededBy === undefined &&
          soundsLikeQuestion.test(name) &&
          !asked.has(name) &&
          notAsked.functions[library][name] === undefined &&
          !families.some((pattern) => pattern.test(name)),
      )
      expect(unexplained.map(({ name }) => name)).toEqual([])
    })

    it(`has no stale reason for ${library}`, () => {
      const stale = Object.keys(notAsked.functions[library]).filter(
        (name) => asked.has(name) || !spec.functions.has(name),
      )
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

  it.each([
    ['cuInit(0)', 'a step stands before the first group'],
    ['group g\ncuInit', '"cuInit" cannot be read'],
    ['group g\ncuInit(0, 1)', 'cuInit has 1 parameters, the list gives 2'],
    ['group g\ncuInits(0)', 'driver has no function cuInits'],
    ['group g\ncuInit($x)', '$x has no value'],
    ['group g\ncuInit(**)', '** is no out-parameter'],
    ['group g\ncuDriverGetVersion(*int~luck)', 'there is no comparison luck'],
    ['group g\n+start', 'there is no macro start'],
    ['macro m $a\n  cuInit($a)\ngroup g\n+m', 'm takes 1 values'],
    ['group g\neach $m in CUresults\n  cuInit($m)', 'driver has no enumeration CUresults'],
    ['group g\ncase x\n  /y/ cuInit(0)', 'no case for x'],
  ])('refuses %j', (text, problem) => {
    expect(() => readGroups(specs.get('driver') as Spec, text)).toThrow(problem)
  })
})
