/** The cases that are kept as data, one step, attribute or case a line. */
import { readFileSync } from 'node:fs'
import type { LaunchAttributeInputs, Named, PoolCase, StreamCase } from './cases.js'

/** A step without what most kernels have in common. */
interface StepData {
  readonly do: string
  readonly steps?: readonly StepData[]
  readonly bodies?: readonly (readonly StepData[])[]
}

export interface CaseData {
  readonly graphs: Readonly<Record<'by hand' | 'captured', Readonly<Record<string, readonly StepData[]>>>>
  readonly attributes: Readonly<Record<string, LaunchAttributeInputs>>
  /** Without a name, it is that of its attributes. */
  readonly streams: readonly Partial<Named & StreamCase>[]
  readonly pools: readonly (Named & Partial<PoolCase>)[]
}

const file = new URL('../../questions/reference.json', import.meta.url)

export const caseData = JSON.parse(readFileSync(file, 'utf8')) as CaseData
