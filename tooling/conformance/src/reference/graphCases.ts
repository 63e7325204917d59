import { type CaseData, caseData } from './caseData.js'
import type { GraphCase, Named, NodeStep, StreamStep } from './cases.js'
import { kernels } from './ptx.js'

const memory = { a: 256, b: 256, words: 16 }
const common = { part: 'graph', ptx: kernels, memory } as const
const kernel = { do: 'kernel', kernel: 'plain', grid: [4], block: [16], args: [['a'], 60, 3] } as const

type Step = CaseData['graphs']['captured'][string][number]

/** Adds the defaults of `kernel` to the steps, also in child graphs and bodies. */
const complete = (steps: readonly Step[]): readonly (NodeStep & StreamStep)[] =>
  steps.map(
    ({ steps: inner, bodies, ...step }) =>
      ({
        ...(step.do === 'kernel' ? kernel : {}),
        ...step,
        ...(inner && { steps: complete(inner) }),
        ...(bodies && { bodies: bodies.map(complete) }),
      }) as unknown as NodeStep & StreamStep,
  )

const builds = ['by hand', 'captured'] as const

export const graphCases: readonly (GraphCase & Named)[] = [
  ...builds.flatMap((build) =>
    Object.entries(caseData.graphs[build]).map(([name, steps]) => ({
      ...common,
      name: `${name}, ${build}`,
      build,
      steps: complete(steps),
    })),
  ),
  ...Object.entries(caseData.attributes).flatMap(([name, attributes]) =>
    builds.map((build) => ({
      ...common,
      name: `a kernel with attributes: ${name}, ${build}`,
      build,
      steps: [{ ...kernel, attributes }],
    })),
  ),
]
